//! What is left to do when a call is over and its answer is on its way: a read's record, and the mind's hearing of it.
//! It is gathered for a few milliseconds and written together, so that nobody who calls waits for it.

use std::sync::Arc;
use std::time::Duration;

use embody_store::{Arguments as Kept, Event, NewObservation, Outcome as Ended, Read, Record, ToolCall};
use embody_wire::Outcome;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{sleep, timeout};

use super::{Observed, told};
use crate::Setup;
use crate::arguments::Arguments;
use crate::carry::Carried;
use crate::policy::Class;
use crate::results::raw;
use crate::session::Who;

/// Calls that wait for their record before another has to wait with them.
const QUEUE: usize = 4096;
/// What a crash may lose of reads.
const GATHER: Duration = Duration::from_millis(8);
const BATCH: usize = 512;
/// More observations than these of one user are not kept.
const PENDING: u32 = 10_000;
/// How much of a long result is kept for the mind.
const KEPT_BYTES: usize = 256 * 1024;
const LAST: Duration = Duration::from_secs(5);

/// A call that is over.
pub(crate) struct After {
    /// Not the session: that holds the way to its host open.
    pub(crate) who: Arc<Who>,
    pub(crate) call_id: String,
    pub(crate) body: Arc<str>,
    pub(crate) tool: String,
    pub(crate) class: Class,
    pub(crate) arguments: Arc<Arguments>,
    /// How it ended, if it was a read; a write has its records already.
    pub(crate) read: Option<Ended>,
    /// What the mind hears of it.
    pub(crate) told: Option<Told>,
}

/// What the mind hears of a call that was sent.
pub(crate) enum Told {
    Outcome(Outcome),
    /// A result too long to be kept: its beginning.
    Cut(String),
    Failed(&'static str, String),
}

impl Told {
    pub(crate) fn of(carried: &Carried) -> Option<Self> {
        Some(match carried {
            Carried::Answered(Outcome::Result(result)) if result.get().len() > KEPT_BYTES => {
                let end = result.get().floor_char_boundary(KEPT_BYTES / 4);
                Self::Cut(result.get().get(..end).unwrap_or_default().to_owned())
            }
            Carried::Answered(outcome) => Self::Outcome(outcome.clone()),
            Carried::Away(_) | Carried::NotSent(_) | Carried::Withdrawn => return None,
            Carried::Lost(error) => Self::Failed("lost", error.to_string()),
            Carried::TimedOut => Self::Failed("timeout", "no answer in time".to_owned()),
            Carried::Unwanted => Self::Failed("cancelled", "cancelled by the host".to_owned()),
        })
    }

    fn value(&self) -> serde_json::Value {
        match self {
            Self::Outcome(outcome) => told(outcome),
            Self::Cut(text) => json!({"value": text, "is_cut": true}),
            Self::Failed(kind, words) => json!({"error": words, "error_type": kind}),
        }
    }
}

enum Work {
    Call(Box<After>),
    /// Everything before this is done.
    Done(oneshot::Sender<()>),
}

impl Work {
    /// Whether it is not gathered with what follows: of a write the mind hears also when this process is killed next.
    fn is_urgent(&self) -> bool {
        match self {
            Self::Call(after) => after.read.is_none(),
            Self::Done(_) => true,
        }
    }
}

/// Takes what is left to do.
pub(crate) struct Afterwards {
    queue: mpsc::Sender<Work>,
}

impl Afterwards {
    /// Begins; `news` hears when there is something for the mind.
    pub(crate) fn start(setup: Arc<Setup>, news: Arc<Notify>) -> Self {
        let (queue, work) = mpsc::channel(QUEUE);
        tokio::spawn(write(setup, news, work));
        Self { queue }
    }

    /// Leaves a call to be put on record. Waits only while too many are left.
    pub(crate) async fn add(&self, after: After) {
        let _ = self.queue.send(Work::Call(Box::new(after))).await;
    }

    /// How many are left, and how many may be.
    pub(crate) fn waiting(&self) -> (usize, usize) {
        let most = self.queue.max_capacity();
        (most.saturating_sub(self.queue.capacity()), most)
    }

    /// Waits until everything that was left is handed on.
    pub(crate) async fn finish(&self) {
        let (done, finished) = oneshot::channel();
        if self.queue.send(Work::Done(done)).await.is_ok() {
            let _ = timeout(LAST, finished).await;
        }
    }
}

async fn write(setup: Arc<Setup>, news: Arc<Notify>, mut work: mpsc::Receiver<Work>) {
    let mut batch = Vec::new();
    while work.recv_many(&mut batch, BATCH).await > 0 {
        if !batch.iter().any(Work::is_urgent) {
            sleep(GATHER).await;
            while batch.len() < BATCH
                && let Ok(more) = work.try_recv()
            {
                batch.push(more);
            }
        }
        let (mut calls, mut done) = (Vec::new(), Vec::new());
        for work in batch.drain(..) {
            match work {
                Work::Done(reply) => done.push(reply),
                Work::Call(after) => calls.push(*after),
            }
        }
        if keep(&setup, &calls).await.is_err() {
            // One of them cannot be written at all: it must not take the others with it.
            for call in &calls {
                if let Err(error) = keep(&setup, std::slice::from_ref(call)).await {
                    setup.meter.unrecorded.add(1);
                    let session = call.who.actor.session.as_deref();
                    tracing::error!(call = call.call_id, session, reason = %error, "a call is not on record");
                }
            }
        }
        if calls.iter().any(|call| call.told.is_some()) {
            news.notify_one();
        }
        for reply in done {
            // Whoever waited may have given up.
            let _ = reply.send(());
        }
    }
}

async fn keep(setup: &Setup, calls: &[After]) -> embody_store::Result<()> {
    let observations = calls.iter().filter_map(observation).collect();
    let records = calls.iter().filter_map(record).collect();
    setup.store.add_observations_soon(observations, records).await
}

fn record(after: &After) -> Option<Record> {
    let call = ToolCall {
        call_id: after.call_id.clone(),
        body: after.body.to_string(),
        tool: after.tool.clone(),
        class: after.class.name().to_owned(),
        args: Kept::of(after.arguments.canonical()),
    };
    Some(Record { actor: after.who.actor.clone(), event: Event::Read(Read { call, outcome: after.read? }) })
}

fn observation(after: &After) -> Option<NewObservation> {
    let result = after.told.as_ref()?.value();
    let args = after.arguments.canonical();
    let cut;
    let args: &RawValue = if args.len() > KEPT_BYTES {
        cut = raw(&json!({"is_cut": true, "bytes": args.len()}));
        &cut
    } else {
        serde_json::from_str(args).ok()?
    };
    let payload = raw(&Observed { tool_name: &after.tool, args, result: Some(result) });
    Some(NewObservation {
        scope: after.who.scope.clone(),
        session: after.who.actor.session.clone().unwrap_or_default(),
        key: after.call_id.clone(),
        payload: payload.get().to_owned(),
        pending_limit: PENDING,
    })
}
