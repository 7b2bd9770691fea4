//! The server side: a [`Service`] behind faces that hosts can reach.
//!
//! A face carries messages and keeps the rules of its transport: stdio lines ([`lines`]), streamable HTTP and legacy
//! HTTP+SSE ([`http`]), both protocol eras on each. What a method means is the service's: a face reads of a request only
//! what its transport needs (id, method, the era's `_meta`, the names that headers mirror) and passes payloads on as
//! they came.
//!
//! What a call says on its way (progress, logs, questions to the host) and its answer travel in one ordered queue, so
//! nothing ever arrives after the answer. Queues are bounded: a host that does not read holds up its own calls only.

mod asks;
mod cancel;
mod conversation;
mod era;
pub mod http;
mod in_flight;
mod lane;
pub mod lines;
mod overlong;
mod refusal;
mod relay;
mod rounds;
mod service;
mod turns;
mod way;
mod written;

pub use self::conversation::Ending;
pub(crate) use self::era::named_by;
pub use self::era::{Era, Hello, MODERN, TASKS, supported};
pub use self::refusal::{Refusal, code, failure, failure_with};
pub use self::relay::{Claim, Relay, Reply, Resumed};
pub use self::service::{Answered, AskError, Call, Credentials, Host, Question, Service};

pub(crate) use self::lane::Letter;

/// An id that cannot be guessed.
fn new_session_id() -> std::sync::Arc<str> {
    uuid::Uuid::new_v4().simple().to_string().into()
}
