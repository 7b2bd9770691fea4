//! What processes that serve the same hosts say to each other about them. How it gets from one to the other is the
//! service's business.

use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::era::ClientInfo;
use crate::message::{Message, Outcome, Request};
use crate::version::Version;

/// Where a call is that waits for its host.
#[derive(Debug)]
pub enum Claim {
    Here,
    /// In another one, which has gone on with it.
    Elsewhere(ResumeResult),
    /// Nowhere any more, but it can be begun anew: with what its question said for this.
    Restart(Box<RawValue>),
}

/// What became of a call when its host had answered.
#[derive(Debug)]
pub enum ResumeResult {
    Done(Outcome),
    InputRequired {
        /// The `inputRequests`.
        requests: String,
        /// What it waits under.
        ticket: String,
    },
}

/// Something that another process says about a host that both serve.
#[derive(Debug)]
pub enum ReplicaEvent {
    /// The host has said this there, in its session.
    FromHost { session: String, message: Message },
    /// The host has ended its session there.
    SessionDeleted { session: String },
    /// A call that waits here goes on there.
    CallClaimed {
        /// What it waits under.
        ticket: String,
    },
    /// The host has answered there what a call asks that waits here.
    CallAnswered {
        /// What it waits under.
        ticket: String,
        request: Request,
        /// Where it is told what came of that. Dropped if the call does not wait here.
        reply: oneshot::Sender<ResumeResult>,
    },
}

/// A session that goes on in another process.
#[derive(Debug, Clone)]
pub struct ResumedSession {
    pub version: Version,
    pub client_info: ClientInfo,
}
