//! What processes that serve the same hosts say to each other about them. How it gets from one to the other is the
//! service's business.

use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::era::Hello;
use crate::message::{Message, Outcome, Request};
use crate::version::Version;

/// Where a call is that waits for its host.
#[derive(Debug)]
pub enum Claim {
    /// In this process.
    Here,
    /// In another one, which has gone on with it.
    Elsewhere(Reply),
    /// Nowhere any more, but it can be begun anew: with what its question said for this.
    Anew(Box<RawValue>),
}

/// What became of a call when its host had answered.
#[derive(Debug)]
pub enum Reply {
    /// It is over.
    Over(Outcome),
    /// It asks again.
    Asks {
        /// The `inputRequests`.
        requests: String,
        /// What it waits under.
        ticket: String,
    },
}

/// Something that another process says about a host that both serve.
#[derive(Debug)]
pub enum Relay {
    /// The host has said this there, in its session.
    Said {
        /// The session.
        session: String,
        /// An answer, or a notification.
        message: Message,
    },
    /// The host has ended its session there.
    Left {
        /// The session.
        session: String,
    },
    /// A call that waits here goes on there.
    Taken {
        /// What it waits under.
        ticket: String,
    },
    /// The host has answered there what a call asks that waits here.
    Answers {
        /// What it waits under.
        ticket: String,
        /// The request that has the answers.
        request: Request,
        /// Where it is told what came of that. Dropped if the call does not wait here.
        reply: oneshot::Sender<Reply>,
    },
}

/// A session that goes on in another process.
#[derive(Debug, Clone)]
pub struct Resumed {
    /// What was agreed on.
    pub version: Version,
    /// What the host said of itself.
    pub hello: Hello,
}
