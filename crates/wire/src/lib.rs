//! JSON-RPC with raw payloads, and the transports that carry it.
//!
//! This crate owns envelopes, ids, transports and limits. It does not know tools or personas, reads no environment, no
//! file and no wall clock, and never re-serializes a payload: `params`, `result` and `error` are passed on unchanged.
//!
//! `Client` uses the session era (2024-11-05 to 2025-11-25); [`upstream`] and [`server`] support both eras:
//!
//! | module | owns |
//! |---|---|
//! | [`message`] | the envelope: parsing, printing, ids, batches |
//! | [`sse`] | an incremental parser of server-sent events with a size limit; pure |
//! | [`secret`] | secret text, and its removal from errors |
//! | [`server`] | the server side: a service behind stdio, streamable HTTP and legacy SSE |
//! | [`upstream`] | connections to upstream servers, with progress, server requests and notifications |
//! | `limits` | all limits in one struct |
//! | `error` | [`Error`] and [`Kind`] |
//! | `initialize` | the parameters of `initialize`, for both sides, and the revisions of the session era |
//! | `proxies` | selects the proxy for an address |
//! | `http_client` | the HTTP client both transports share: token, status, bodies, event streams |
//! | `send_receipt` | tracks whether a message has started to be sent |
//! | `blocking` | runs work on large texts without blocking the runtime |
//! | `client` | requests and their responses, without the other messages of a call |
//!
//! Reading order: `message`, [`upstream`], then its transports; [`server`] is independent of them.

mod blocking;
mod client;
mod error;
mod http_client;
mod initialize;
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

pub use blocking::off_runtime;
pub use client::{Client, ClientOptions, dial};
pub use error::{Attempt, Error, Kind};
pub use initialize::{InitializeParams, Version};
pub use limits::Limits;
pub use message::{Id, Message, Notification, Outcome, Request, Response};
pub use proxies::{Proxies, Proxy};
pub use reqwest::Url;
pub use secret::Secret;
