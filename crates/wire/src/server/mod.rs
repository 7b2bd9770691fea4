//! The server side: a [`Service`] behind the transports that hosts use: stdio lines ([`lines`]), streamable HTTP and legacy
//! HTTP+SSE ([`http`]), with both protocol eras on each. A transport reads only what it needs and passes payloads on unchanged.
//! The messages of a call and its response share one ordered, bounded queue, so nothing arrives after the response.

mod connection;
mod era;
mod errors;
pub mod http;
mod in_flight;
pub(crate) mod in_process;
pub mod lines;
mod multi_round;
mod outbound;
mod oversized_line;
mod replay_buffer;
mod replica;
mod server_requests;
mod service;
mod stateless;

pub(crate) use self::connection::Cancellation;
pub(crate) use self::era::named_by;
pub use self::era::{Era, MODERN, TASKS, supported};
pub use self::errors::{AuthError, code, failure, failure_with};
pub use self::in_process::InProcessConnection;
pub use self::replica::{Claim, ReplicaEvent, ReplicatedService, ResumeResult, ResumedSession};
pub use self::service::{AskError, Call, Credentials, Host, HostResponse, ServerRequest, Service};
pub use self::stateless::{BoxFuture, MultiRoundService};
pub use tokio_util::sync::CancellationToken;

pub(crate) use self::outbound::OutboundMessage;

fn new_session_id() -> std::sync::Arc<str> {
    uuid::Uuid::new_v4().simple().to_string().into()
}
