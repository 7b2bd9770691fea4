//! One MCP server in front of the bodies and the mind.
//!
//! A host uses a [`Broker`] like any server. Each session has its own connections to the mind and to every body; a tool call
//! runs through one pipeline, every other request is forwarded to its owner. Payloads are forwarded as raw text. This crate
//! contains no persona text and does not depend on what bodies do.
//!
//! | module | owns |
//! |---|---|
//! | `broker` | construction, shutdown, and the entry point of every request |
//! | `pipeline` | the path of a tool call, one file per stage; the only sender of tool calls |
//! | [`arguments`] | a call's arguments, parsed once and rejected when two parsers could read them differently |
//! | `json` | JSON text as a tree that keeps the text of every value |
//! | `params` | other parameters as raw text; the keys of `_meta` that reach a server |
//! | [`policy`] | the class of a tool, and the operator's rules about a call |
//! | [`approval`] | asking the owner |
//! | `builtin_tools` | the broker's own tools |
//! | `post_call`, `outbox` | records of reads, and observations after calls |
//! | [`catalogue`] | the offered tools, their names and pinned definitions |
//! | [`upstream`] | one supervised connection to a server |
//! | `session`, `sessions` | one host's session: connections, bootstrap, contract, instructions; and all open sessions |
//! | `server_requests` | requests of servers to the host, and their forms |
//! | `in_process` | an embody agent as a host in this process |
//! | [`meter`] | metrics and spans |
//! | `forward` | everything that is not a tool call |
//! | `stateless` | hosts without a session on the wire |
//! | `replicas` | other processes that serve the same hosts |
//! | `orphan_recovery` | cleanup after dead processes and expired approvals |

pub mod approval;
pub mod arguments;
mod auth_cache;
mod broker;
mod builtin_tools;
pub mod catalogue;
mod config;
mod degraded;
mod forward;
mod in_process;
mod json;
pub mod meter;
mod orphan_recovery;
mod outbox;
mod params;
mod pipeline;
pub mod policy;
mod post_call;
mod replicas;
mod server_requests;
mod session;
mod sessions;
mod stateless;
mod trace_context;
pub mod upstream;

pub use embody_text::visible;

pub use self::broker::Broker;
pub use self::config::{BrokerConfig, BrokerSettings, CurrentSettings, Rules, Timeouts, UpstreamFactory};
pub use self::in_process::{InProcessClient, InProcessError, InProcessTool, ToolOutcome};
pub use self::pipeline::gate;
pub use self::session::MissingServer;
pub use self::session::contract::contract_text;
pub(crate) use self::session::instructions;
pub use self::session::instructions::{
    Description, InstructionsMode, PIN as INSTRUCTIONS_PIN, ServerInstructions,
};
pub(crate) use self::sessions::Sessions;
