//! The nervous system: one MCP entry in front of bodies and mind.
//!
//! A host talks to a [`Broker`] as to any server. Behind it, each session has its own connections to the mind and to every
//! body; a tool call goes through one pipeline (`call`), everything else is forwarded to where it belongs (`forward`).
//! Payloads are forwarded as raw text. This room holds no persona text and knows no body's business.
//!
//! | module | owns |
//! |---|---|
//! | [`arguments`] | a call's arguments, read once and refused when two readers could read them differently |
//! | [`policy`] | what a tool does to the world, and what the operator's rules say about a call |
//! | [`gate`] | whether a call may happen now; the only maker of a [`gate::Permit`] |
//! | `call` | the pipeline of a tool call; the only sender of one |
//! | `words` | what was decided, and what came of it, for the model and for the record |
//! | [`approval`] | asking a person |
//! | [`catalogue`] | which tools are offered, under which names, by which pinned definitions |
//! | [`upstream`] | one supervised connection to a server behind us |
//! | `session` | one host's session: connections, bootstrap, contract |
//! | `instructions` | what bodies say about themselves, in frames for the model |
//! | `find` | the search for tools that are not listed |
//! | `observe` | what the mind hears, and its view |
//! | `meta` | what reaches a server with a request without being shown |
//! | `local` | one of our own agents as a host, in this process |
//! | [`meter`] | numbers and spans for whoever watches |
//! | `forward` | everything that is not a tool call |
//! | `stateless` | hosts that have no session on the wire |
//! | `replicas` | other processes that serve the same hosts |
//! | `admitted` | who comes in with a token |
//! | `face` | methods to all of the above |

mod admitted;
pub mod approval;
pub mod arguments;
mod asked;
mod body_form;
mod call;
mod carry;
pub mod catalogue;
mod degraded;
mod face;
mod find;
mod forward;
pub mod gate;
mod instructions;
mod local;
mod meta;
pub mod meter;
mod observe;
mod own;
pub mod policy;
mod principal;
mod replicas;
mod results;
mod reverse;
mod runtime;
mod session;
mod sessions;
mod setup;
mod stateless;
mod status;
mod sweep;
mod trace_context;
pub mod upstream;
mod words;

pub use embody_text::visible;

pub use self::face::Broker;
pub use self::instructions::{Description, InstructionsMode, PIN as INSTRUCTIONS_PIN, ServerInstructions};
pub use self::local::{Called, Local, LocalError, LocalTool};
pub use self::principal::Principal;
pub use self::session::contract::contract_text;
pub(crate) use self::sessions::Sessions;
pub use self::setup::{Rules, Setup, SpecSource, Times};
