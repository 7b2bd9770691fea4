//! What makes a service an MCP server: greeting, tools, resources, prompts, completions, changes, in both protocol eras.
//!
//! An [`Offer`] says what there is and answers typed questions; [`Server`] puts it on the wire. The mind, the body and
//! the fixtures of the tests are offers. The broker is not: what it forwards must stay raw, so it sits on `wire` itself.
//!
//! | module | owns |
//! |---|---|
//! | `offer` | the trait, and the closed set of questions that it answers |
//! | `server` | methods to questions, answers to results |
//! | `era` | what a result must carry in the stateless era |
//! | `context` | what an answer may do on its way: progress, logs, asking the host |
//! | `tool` | definitions of tools, and the headers that mirror their parameters |
//! | `schema` | schemas of tools, from the types of their functions |
//! | `arguments` | a tool's typed arguments, and what is wrong with them |
//! | `content` | results of tools |
//! | `changes` | who is told that a list or a resource has changed |

mod arguments;
mod changes;
mod content;
mod context;
mod era;
mod offer;
mod schema;
mod server;
mod tool;

pub use self::arguments::{ArgumentsError, read_arguments};
pub use self::changes::{Change, Changes};
pub use self::content::ToolResult;
pub use self::context::{Context, Elicited, Level};
pub use self::offer::{About, Ask, Capabilities, Failure, Offer, TaskAct, ToolCall, one_page};
pub use self::schema::{input_schema, output_schema};
pub use self::server::Server;
pub use self::tool::{Annotations, Tool};
pub use embody_wire::Secret;
pub use embody_wire::serve::{AskError, Credentials, Era, Host, Refusal, TASKS};
