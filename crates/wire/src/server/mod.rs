//! The server side: a [`Service`] behind faces that hosts can reach.
//!
//! A face carries messages and keeps the rules of its transport: stdio lines ([`lines`]), streamable HTTP and legacy
//! HTTP+SSE ([`http`]), both protocol eras on each. What a method means is the service's: a face reads of a request only
//! what its transport needs (id, method, the era's `_meta`, the names that headers mirror) and passes payloads on as
//! they came.
//!
//! What a call says on its way (progress, logs, questions to the host) and its answer travel in one ordered queue, so
//! nothing ever arrives after the answer. Queues are bounded: a host that does not read holds up its own calls only.

mod connection;
mod era;
mod errors;
pub mod http;
mod in_flight;
pub mod lines;
mod multi_round;
mod outbound;
mod oversized_line;
mod replay_buffer;
mod replica;
mod resume;
mod server_requests;
mod service;

pub(crate) use self::era::named_by;
pub use self::era::{ClientInfo, Era, MODERN, TASKS, supported};
pub use self::errors::{AuthError, code, failure, failure_with};
pub use self::replica::{Claim, ReplicaEvent, ResumeResult, ResumedSession};
pub use self::service::{AskError, Call, Credentials, Host, HostResponse, ServerRequest, Service};
pub use tokio_util::sync::CancellationToken;

pub(crate) use self::outbound::OutboundMessage;

fn new_session_id() -> std::sync::Arc<str> {
    uuid::Uuid::new_v4().simple().to_string().into()
}
