//! Resolved values in, system prompt out. Pure: no file, no network, no database, no clock, no async.
//!
//! The flow is one way: a [`PromptInput`] (plain data, each value with its source and its audience) and a
//! [`Layout`] (data too: an ordered list of [`Section`]s and a [`Dialect`]) go into [`assemble`], which cannot
//! fail; [`render`] turns the [`Prompt`] into text, spans, the cache border and hashes. Nothing is appended after it.
//!
//! | module | owns |
//! |---|---|
//! | `audience` | who may see a value; the only way to a value's content |
//! | `input` | the plain data that callers fill in |
//! | `section`, `sections` | the catalogue: one small file per section |
//! | `layout` | the four layouts as data |
//! | `escape` | the rules that keep lower layers inside their frames |
//! | `block`, `assemble`, `render` | pieces, sections, text |
//! | `budget`, `truncate`, `tokens` | what a prompt may cost and what is truncated |
//! | `lint`, `review` | lower-layer text that tries to relax a body rule |

mod assemble;
mod audience;
mod block;
mod budget;
mod escape;
mod input;
mod layout;
mod render;
mod review;
mod section;
mod sections;
mod source;
mod truncate;

pub mod lint;
pub mod tokens;

pub use assemble::{Prompt, assemble};
pub use audience::{Audience, Value};
pub use budget::Budget;
pub use escape::{escaped_json, hidden_characters, without_hidden, without_template_marks};
pub use input::{
    Agent, Body, BodyPart, Directories, HostFacts, Identity, LocalTime, MissingServer, ProjectFile,
    PromptInput, RequestFacts, Responsibility, Sandbox, Server, Skill, Step, StepState, Task, Tool,
    UserProfile, WorkspaceFile,
};
pub use layout::{Dialect, Layout, SEPARATOR};
pub use render::{Part, RenderedPrompt, Span, render};
pub use review::{Review, review};
pub use section::{CacheClass, Frame, Kind, Layer, Section, TruncationPriority};
pub use sections::{DEFAULT_SOUL, INSTRUCTIONS_LIMIT};
pub use source::{Note, NoteKind, Source};
