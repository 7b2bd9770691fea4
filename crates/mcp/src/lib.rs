//! MCP servers: initialization, tools, resources, prompts, completions and changes, in both protocol eras.
//!
//! A [`ServerHandler`] answers typed requests; [`Server`] serves it over `wire`. The mind, the body and the test fixtures are
//! handlers. The broker is not: it forwards raw text, so it uses `wire` directly.
//!
//! | module | owns |
//! |---|---|
//! | `handler` | the trait, and the closed set of requests that it answers |
//! | `server` | maps methods to requests, and results to outcomes |
//! | `era` | the members of a result in the stateless era |
//! | `context` | what a handler may do during a call: progress, logs, requests to the host |
//! | `tool` | definitions and results of tools |
//! | `schema` | schemas of tools, from the types of their functions |
//! | `arguments` | a tool's typed arguments, and their errors |
//! | `changes` | notifies sessions that a list or a resource has changed |

mod arguments;
mod changes;
mod context;
mod era;
mod handler;
mod schema;
mod server;
mod tool;

pub use self::arguments::{ArgumentsError, read_arguments};
pub use self::changes::{Change, ChangeNotifier};
pub use self::context::{ElicitOutcome, LogLevel, RequestContext};
pub use self::handler::{
    CallToolParams, Capabilities, ClientRequest, RequestError, ServerHandler, ServerInfo, TaskRequest,
    single_page,
};
pub use self::schema::{input_schema, output_schema};
pub use self::server::Server;
pub use self::tool::{Annotations, Tool, ToolResult};
pub use embody_wire::Secret;
pub use embody_wire::server::{AskError, AuthError, Credentials, Era, Host, TASKS};
