//! Work after a call's response: the record of a read, and the observation for the mind. Collected for a few milliseconds and
//! written together, so that no call waits for it.

use std::sync::Arc;
use std::time::Duration;

use embody_store::audit::{AuditOutcome, Event, Read, Record};
use embody_store::outbox::NewObservation;
use embody_wire::Outcome;
use serde_json::json;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{sleep, timeout};

use crate::BrokerConfig;
use crate::arguments::Arguments;
use crate::pipeline::observe::{Observation, result_for_mind};
use crate::pipeline::record::audited_call;
use crate::pipeline::respond::raw;
use crate::pipeline::send::CallResult;
use crate::policy::Class;
use crate::session::SessionIdentity;

/// Calls wait while the queue is full.
const QUEUE_LENGTH: usize = 4096;
/// A crash loses at most the read records of this time.
const BATCH_DELAY: Duration = Duration::from_millis(8);
const BATCH_MAX: usize = 512;
/// Per user; further observations are not stored.
const PENDING_MAX: u32 = 10_000;
/// Longer arguments and results are truncated for the mind.
const KEPT_BYTES: usize = 256 * 1024;
const FINISH_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) struct FinishedCall {
    /// Not the session, which keeps the connection to its host open.
    pub(crate) identity: Arc<SessionIdentity>,
    pub(crate) call_id: String,
    pub(crate) body: Arc<str>,
    pub(crate) tool: String,
    pub(crate) class: Class,
    pub(crate) arguments: Arc<Arguments>,
    /// The outcome of a read; a write is already recorded.
    pub(crate) read: Option<AuditOutcome>,
    /// `None` if the mind does not observe it.
    pub(crate) observed: Option<ObservedResult>,
}

pub(crate) enum ObservedResult {
    Outcome(Outcome),
    /// The beginning of a long result.
    Cut(String),
    Failed(&'static str, String),
}

impl ObservedResult {
    pub(crate) fn of(result: &CallResult) -> Option<Self> {
        Some(match result {
            CallResult::Answered(Outcome::Result(result)) if result.get().len() > KEPT_BYTES => {
                let end = result.get().floor_char_boundary(KEPT_BYTES / 4);
                Self::Cut(result.get().get(..end).unwrap_or_default().to_owned())
            }
            CallResult::Answered(outcome) => Self::Outcome(outcome.clone()),
            CallResult::Unavailable(_) | CallResult::NotSent(_) | CallResult::CancelledUnsent => return None,
            CallResult::Lost(error) => Self::Failed("lost", error.to_string()),
            CallResult::TimedOut => Self::Failed("timeout", "no answer in time".to_owned()),
            CallResult::Cancelled => Self::Failed("cancelled", "cancelled by the host".to_owned()),
        })
    }

    fn value(&self) -> serde_json::Value {
        match self {
            Self::Outcome(outcome) => result_for_mind(outcome),
            Self::Cut(text) => json!({"value": text, "is_cut": true}),
            Self::Failed(kind, message) => json!({"error": message, "error_type": kind}),
        }
    }
}

enum Work {
    Call(Box<FinishedCall>),
    /// Answered when everything before it is written.
    Done(oneshot::Sender<()>),
}

impl Work {
    /// Written at once: the mind must observe a write even if this process is killed next.
    fn is_urgent(&self) -> bool {
        match self {
            Self::Call(call) => call.read.is_none(),
            Self::Done(_) => true,
        }
    }
}

pub(crate) struct PostCallQueue {
    queue: mpsc::Sender<Work>,
}

impl PostCallQueue {
    /// `news` is notified when there is an observation.
    pub(crate) fn start(config: Arc<BrokerConfig>, news: Arc<Notify>) -> Self {
        let (queue, work) = mpsc::channel(QUEUE_LENGTH);
        tokio::spawn(write(config, news, work));
        Self { queue }
    }

    /// Waits only while the queue is full.
    pub(crate) async fn add(&self, call: FinishedCall) {
        let _ = self.queue.send(Work::Call(Box::new(call))).await;
    }

    /// The length of the queue, and its capacity.
    pub(crate) fn waiting(&self) -> (usize, usize) {
        let most = self.queue.max_capacity();
        (most.saturating_sub(self.queue.capacity()), most)
    }

    /// Waits until everything queued so far is written.
    pub(crate) async fn finish(&self) {
        let (done, finished) = oneshot::channel();
        if self.queue.send(Work::Done(done)).await.is_ok() {
            let _ = timeout(FINISH_TIMEOUT, finished).await;
        }
    }
}

async fn write(config: Arc<BrokerConfig>, news: Arc<Notify>, mut work: mpsc::Receiver<Work>) {
    let mut batch = Vec::new();
    while work.recv_many(&mut batch, BATCH_MAX).await > 0 {
        if !batch.iter().any(Work::is_urgent) {
            sleep(BATCH_DELAY).await;
            while batch.len() < BATCH_MAX
                && let Ok(more) = work.try_recv()
            {
                batch.push(more);
            }
        }
        let (mut calls, mut done) = (Vec::new(), Vec::new());
        for work in batch.drain(..) {
            match work {
                Work::Done(reply) => done.push(reply),
                Work::Call(call) => calls.push(*call),
            }
        }
        if store(&config, &calls).await.is_err() {
            // A failing one must not prevent the others.
            for call in &calls {
                if let Err(error) = store(&config, std::slice::from_ref(call)).await {
                    config.meter.unrecorded.add(1);
                    let session = call.identity.actor.session.as_deref();
                    tracing::error!(call = call.call_id, session, reason = %error, "cannot record a call");
                }
            }
        }
        if calls.iter().any(|call| call.observed.is_some()) {
            news.notify_one();
        }
        for reply in done {
            // The receiver may be gone.
            let _ = reply.send(());
        }
    }
}

async fn store(config: &BrokerConfig, calls: &[FinishedCall]) -> embody_store::Result<()> {
    let observations = calls.iter().filter_map(observation).collect();
    let records = calls.iter().filter_map(record).collect();
    config.store.outbox().enqueue_deferred(observations, records).await
}

fn record(finished: &FinishedCall) -> Option<Record> {
    let outcome = finished.read?;
    let FinishedCall { call_id, body, tool, class, arguments, .. } = finished;
    let call = audited_call(call_id, body, tool, *class, arguments.redacted());
    let event = Event::Read(Read { call, outcome });
    Some(Record { actor: finished.identity.actor.clone(), event })
}

fn observation(call: &FinishedCall) -> Option<NewObservation> {
    let result = call.observed.as_ref()?.value();
    let bytes = call.arguments.canonical().len();
    let cut = (bytes > KEPT_BYTES).then(|| raw(&json!({"is_cut": true, "bytes": bytes})));
    let args = cut.as_deref().unwrap_or(call.arguments.raw());
    let payload = raw(&Observation { tool_name: &call.tool, args, result: Some(result) });
    Some(NewObservation {
        scope: call.identity.scope.clone(),
        session: call.identity.actor.session.clone().unwrap_or_default(),
        key: call.call_id.clone(),
        payload: payload.get().to_owned(),
        pending_limit: PENDING_MAX,
    })
}
