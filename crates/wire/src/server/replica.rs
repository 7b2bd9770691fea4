//! Processes that serve the same hosts, and the events between them.

use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};

use super::service::Host;
use super::stateless::BoxFuture;
use crate::initialize::InitializeParams;
use crate::initialize::Version;
use crate::message::{Message, Outcome, Request};

/// A service that runs in several processes. It delivers the events between them.
pub trait ReplicatedService<P>: Send + Sync {
    /// Events of the other processes, if there are any. Called once, by the HTTP server.
    fn events(&self) -> Option<mpsc::Receiver<ReplicaEvent>>;

    /// Forwards a message of a host's session that no call here waits for: one in another process may.
    fn forward<'a>(&'a self, host: &'a Host<P>, message: Message) -> BoxFuture<'a, ()>;

    /// The state of a session of this principal that another process has opened.
    fn resume<'a>(&'a self, principal: &'a P, session: &'a str) -> BoxFuture<'a, Option<ResumedSession>>;

    /// The host has ended its session, for every process.
    fn on_session_deleted<'a>(&'a self, host: &'a Host<P>) -> BoxFuture<'a, ()>;
}

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
    pub params: InitializeParams,
}
