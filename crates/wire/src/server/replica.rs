//! Events between processes that serve the same hosts. The service implements their delivery.

use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::era::ClientInfo;
use crate::message::{Message, Outcome, Request};
use crate::version::Version;

/// Where a suspended call is.
#[derive(Debug)]
pub enum Claim {
    Here,
    /// In another process, which has resumed it.
    Elsewhere(ResumeResult),
    /// The call is gone, but can be restarted with the resume data of its server request.
    Restart(Box<RawValue>),
}

/// The result of resuming a call with its host's answers.
#[derive(Debug)]
pub enum ResumeResult {
    Done(Outcome),
    InputRequired {
        /// The `inputRequests`.
        requests: String,
        /// The ticket of the suspended call.
        ticket: String,
    },
}

/// An event from another process about a host that both serve.
#[derive(Debug)]
pub enum ReplicaEvent {
    /// The host sent this message to the other process, in its session.
    FromHost { session: String, message: Message },
    /// The host ended its session in the other process.
    SessionDeleted { session: String },
    /// The other process resumes a call that is suspended here.
    CallClaimed {
        /// The ticket it is suspended under.
        ticket: String,
    },
    /// The host answered, in the other process, the server requests of a call that is suspended here.
    CallAnswered {
        ticket: String,
        request: Request,
        /// Receives the result. Dropped if the call is not suspended here.
        reply: oneshot::Sender<ResumeResult>,
    },
}

/// A session that continues in another process.
#[derive(Debug, Clone)]
pub struct ResumedSession {
    pub version: Version,
    pub client_info: ClientInfo,
}
