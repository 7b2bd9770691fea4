//! JSON-RPC with raw payloads, and the transports that carry it.
//!
//! This crate owns envelopes, ids, transports and bounds. It knows nothing of tools or personas, reads no environment,
//! no file and no wall clock, and never re-serializes a payload: `params`, `result` and `error` go out as they came in.
//!
//! The client side speaks the session era (2024-11-05 to 2025-11-25), the server side ([`server`]) both:
//!
//! | module | owns |
//! |---|---|
//! | [`message`] | the envelope: parse, print, ids, batches |
//! | [`sse`] | a capped, incremental parser of server-sent events; pure |
//! | [`secret`] | text that cannot be printed, and its removal from errors |
//! | [`server`] | the server side: a service behind stdio, streamable HTTP and legacy SSE |
//! | [`upstream`] | the way to a server behind us, for whole conversations |
//! | `limits` | every bound in one struct |
//! | `version` | the revisions of the session era |
//! | `error` | one [`Error`], one [`Kind`] |
//! | `address` | where a server is on the web |
//! | `proxies` | which proxy stands before which address |
//! | `http_client` | the HTTP plumbing both transports share: token, status, bodies, event streams |
//! | `send_receipt` | whether a message has begun to go out |
//! | `blocking` | work on large texts outside the runtime's threads |
//! | `client` | a call and its answer, for whoever wants no more |
//!
//! Reading order: `message`, [`upstream`], then its transports; [`server`] stands on its own.

mod address;
mod blocking;
mod client;
mod error;
mod http_client;
mod limits;
pub mod message;
pub mod param_headers;
mod proxies;
pub mod secret;
mod send_receipt;
pub mod server;
pub mod splice;
pub mod sse;
pub mod upstream;
mod version;

pub use address::Address;
pub use blocking::off_runtime;
pub use client::{Client, ClientOptions, Endpoint, Implementation, dial};
pub use error::{Attempt, Error, Kind};
pub use limits::Limits;
pub use message::{Id, Message, Notification, Outcome, Request, Response};
pub use proxies::{Proxies, Proxy};
pub use reqwest::Url;
pub use secret::Secret;
pub use version::Version;
