//! JSON-RPC with raw payloads, and the transports that carry it.
//!
//! This room owns envelopes, ids, transports and bounds. It knows nothing of tools or personas, reads no environment,
//! no file and no wall clock, and never re-serializes a payload: `params`, `result` and `error` go out as they came in.
//!
//! The client side speaks the session era (2024-11-05 to 2025-11-25), the server side ([`serve`]) both:
//!
//! | module | owns |
//! |---|---|
//! | [`message`] | the envelope: parse, print, ids, batches |
//! | [`sse`] | a capped, incremental parser of server-sent events; pure |
//! | [`secret`] | text that cannot be printed, and its removal from errors |
//! | [`serve`] | the server side: a service behind stdio, streamable HTTP and legacy SSE |
//! | [`upstream`] | the way to a server behind us, for whole conversations |
//! | `limits` | every bound in one struct |
//! | `version` | the revisions of the session era |
//! | `error` | one [`Error`], one [`Kind`] |
//! | `link` | the HTTP plumbing both transports share: status, bodies, event streams |
//! | `inbound` | what is done with a message that is not the awaited answer |
//! | `http` | streamable HTTP |
//! | `legacy_sse` | the older HTTP+SSE pair |
//! | `transport` | the closed choice between them |
//! | `client` | handshake, requests, close |
//! | `dial` | finding the transport behind a URL |
//!
//! Reading order: `message`, `client`, `dial`, then the transports.

mod client;
mod dial;
mod error;
mod http;
mod inbound;
mod legacy_sse;
mod limits;
mod link;
pub mod message;
pub mod secret;
pub mod serve;
pub mod sse;
mod transport;
pub mod upstream;
mod version;

pub use client::{Client, Endpoint, Identity, Terms};
pub use dial::dial;
pub use error::{Attempt, Error, Kind};
pub use limits::Limits;
pub use message::{Id, Message, Notification, Outcome, Request, Response};
pub use reqwest::Url;
pub use secret::Secret;
pub use transport::Address;
pub use version::Version;
