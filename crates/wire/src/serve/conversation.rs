//! One host's messages: which call is running, what cancels it, what answers which question.
//!
//! Requests run side by side, each as a task of its own. Notifications are handled in their order, one after the other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::cancel::Cancel;
use super::era::{Era, Facts};
use super::lane::{Lane, Letter};
use super::refusal::{code, failure};
use super::rounds::{self, Parked, Rounds};
use super::service::{Call, Host, Service};
use super::turns::{GoesOn, attend, begin_rounds, go_on};
use super::way::Way;
use super::written::Written;
use crate::limits::Limits;
use crate::message::{self, ErrorObject, Id, Message, Notification, Outcome, Request, Response};
use crate::version::Version;

/// Tells everything that serves that the server is ending.
#[derive(Clone, Debug)]
pub struct Ending(watch::Receiver<bool>);

impl Ending {
    /// A switch, and what it switches.
    #[must_use]
    pub fn new() -> (watch::Sender<bool>, Self) {
        let (switch, ending) = watch::channel(false);
        (switch, Self(ending))
    }

    /// Returns when the server is ending.
    pub async fn wait(&mut self) {
        // A switch that is gone was never used: whoever waits then waits for good.
        if self.0.wait_for(|ending| *ending).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Whether the server is ending.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        *self.0.borrow()
    }
}

/// A request, with what the face has read of it.
pub(crate) struct Arrived {
    pub(crate) request: Request,
    pub(crate) mirrored: Option<Vec<(String, String)>>,
}

/// What one host and the service say to each other.
pub(crate) struct Conversation<S: Service> {
    service: Arc<S>,
    pub(crate) host: Arc<Host<S::Principal>>,
    running: Arc<Running>,
    /// Calls that go on with another request; of a face over HTTP, with that of another connection.
    parked: Arc<Parked<S::Principal>>,
    limits: Limits,
    ending: Ending,
}

impl<S: Service> Conversation<S> {
    pub(crate) fn new(service: Arc<S>, host: Host<S::Principal>, limits: Limits, ending: Ending) -> Self {
        let (host, running, parked) = (Arc::new(host), Arc::default(), Arc::default());
        Self { service, host, running, parked, limits, ending }
    }

    /// The same, with calls that may have been begun elsewhere.
    pub(crate) fn with(self, parked: &Arc<Parked<S::Principal>>) -> Self {
        Self { parked: Arc::clone(parked), ..self }
    }

    /// Takes whatever arrived on a pipe, where everything goes back the same way.
    pub(crate) async fn take(&self, message: Message, way: &Way, done: Option<Arc<Pending>>) {
        match message {
            Message::Request(request) => {
                // Nothing that follows the greeting may overtake it.
                let is_greeting = request.method == "initialize";
                let task = self.begin(request, way.clone(), done);
                if let (true, Some(task)) = (is_greeting, task) {
                    let _ = task.await;
                }
            }
            Message::Notification(notification) => self.notice(notification).await,
            // Nobody else can be asked on a pipe.
            Message::Response(response) => drop(self.host.asks.answer(response)),
        }
    }

    /// Begins a request of either era; its answer goes the given way.
    pub(crate) fn begin(
        &self,
        request: Request,
        way: Way,
        done: Option<Arc<Pending>>,
    ) -> Option<JoinHandle<()>> {
        if Facts::may_be_stateless(&request)
            && let facts = Facts::read(&request)
            && facts.is_stateless(&request.method)
        {
            if let Some(complaint) = facts.complain() {
                answer_soon(request.id, complaint, way, done);
                return None;
            }
            return self.begin_alone(Arrived { request, mirrored: None }, facts, way, done);
        }
        if matches!(self.host.era(), Era::Session(None)) && !matches!(&*request.method, "initialize" | "ping")
        {
            let message = format!("`{}` came before `initialize`", printable(&request.method));
            answer_soon(request.id, failure(code::INVALID_REQUEST, message), way, done);
            return None;
        }
        self.run(Arrived { request, mirrored: None }, Arc::clone(&self.host), way, done)
    }

    /// Runs a request of the stateless era, whose host is known by the request alone.
    pub(crate) fn begin_alone(
        &self,
        arrived: Arrived,
        facts: Facts,
        way: Way,
        done: Option<Arc<Pending>>,
    ) -> Option<JoinHandle<()>> {
        let host = Arc::new(self.host.alone(facts.into_hello()));
        if S::ASKS && rounds::may_ask(&arrived.request.method) {
            return self.run_in_rounds(arrived, host, way, done);
        }
        self.run(arrived, host, way, done)
    }

    /// Runs a call that may ask its host, or goes on with one.
    fn run_in_rounds(
        &self,
        Arrived { request, mirrored }: Arrived,
        host: Arc<Host<S::Principal>>,
        way: Way,
        done: Option<Arc<Pending>>,
    ) -> Option<JoinHandle<()>> {
        let (number, arrived) = (host.arrives(), Instant::now());
        let share = done.as_ref().map(|done| Arc::clone(&done.share));
        let guard = self.enter(&request.id, way.clone(), done)?;
        let (service, parked) = (Arc::clone(&self.service), Arc::clone(&self.parked));
        let ending = self.ending.clone();
        Some(tokio::spawn(async move {
            let begun = match rounds::state(&request) {
                Ok(None) => Ok(None),
                Ok(Some(state)) => go_on(&*service, &parked, (&host, &request), &state).await.map(Some),
                Err(unreadable) => Err(unreadable),
            };
            let anew = match begun {
                Ok(None) => None,
                Ok(Some(GoesOn::Anew(anew))) => Some(anew),
                Ok(Some(GoesOn::Here(rounds))) => {
                    rounds.attach(way);
                    rounds.answer(&request, arrived);
                    return attend(&*service, &parked, (&host, &request), &rounds, guard).await;
                }
                Ok(Some(GoesOn::Elsewhere(outcome))) | Err(outcome) => return guard.answer(outcome).await,
            };
            let rounds = Arc::new(Rounds::new(&request, way, anew));
            let call = Call {
                request: request.clone(),
                host: Arc::clone(&host),
                mirrored,
                number,
                way: Way::Rounds(Arc::clone(&rounds)),
                cancel: rounds.cancel.clone(),
                written: rounds.written.clone(),
                ending,
                _share: share,
            };
            begin_rounds(Arc::clone(&service), call, Arc::clone(&rounds));
            attend(&*service, &parked, (&host, &request), &rounds, guard).await;
        }))
    }

    fn run(
        &self,
        arrived: Arrived,
        host: Arc<Host<S::Principal>>,
        way: Way,
        done: Option<Arc<Pending>>,
    ) -> Option<JoinHandle<()>> {
        let Arrived { request, mirrored } = arrived;
        let number = host.arrives();
        let _share = done.as_ref().map(|done| Arc::clone(&done.share));
        let guard = self.enter(&request.id, way.clone(), done)?;
        let cancel = guard.cancel.clone();
        let hello = (request.method == "initialize" && host.session.is_some())
            .then(|| (Facts::read(&request).into_hello(), Arc::clone(&host)));
        let written = guard.written.clone();
        let ending = self.ending.clone();
        let call = Call { request, host, mirrored, number, way, cancel, written, ending, _share };
        let service = Arc::clone(&self.service);
        // Boxed: a task moves what it runs several times before it begins and after it has ended.
        Some(tokio::spawn(Box::pin(async move {
            let outcome = service.call(call).await;
            if let (Some((hello, host)), Outcome::Result(result)) = (hello, &outcome) {
                host.greet(Era::Session(agreed(result)), hello);
            }
            guard.answer(outcome).await;
        })))
    }

    /// Enters a request among those that run.
    fn enter(&self, id: &Id, way: Way, done: Option<Arc<Pending>>) -> Option<Guard> {
        let (id, running) = (id.clone(), Arc::clone(&self.running));
        match running.enter(&id, self.limits.calls_max) {
            Ok(cancel) => {
                let written = Written::default();
                Some(Guard { id, running, way, cancel, done, written, is_answered: false })
            }
            Err(reason) => {
                answer_soon(id, failure(code::INVALID_REQUEST, reason), way, done);
                None
            }
        }
    }

    /// Takes a notification: one that cancels a call takes effect here, and the service hears of all.
    pub(crate) async fn notice(&self, notification: Notification) {
        if notification.method == "notifications/cancelled"
            && let Some((id, reason)) = notification.params.as_deref().and_then(cancelled)
        {
            self.running.cancel(&id, reason);
        }
        self.service.notice(Arc::clone(&self.host), notification).await;
    }

    /// Cancels everything that runs and tells the service that the host is gone.
    pub(crate) async fn end(&self) {
        self.running.cancel_all();
        self.host.asks.close();
        self.service.gone(Arc::clone(&self.host)).await;
    }

    /// Cancels everything that runs.
    pub(crate) fn cancel_all(&self) {
        self.running.cancel_all();
    }

    /// Nobody will come back for the calls that wait for their host.
    pub(crate) fn forget(&self) {
        self.parked.close();
    }

    /// Waits until nothing runs, at most for this long.
    pub(crate) async fn rest(&self, limit: Duration) {
        let _ = tokio::time::timeout(limit, self.running.rest()).await;
    }
}

/// A reason to cancel that is longer is not passed on.
const REASON_BYTES: usize = 4096;

pub(super) const FAILED: &str = "the server failed while it worked on this request";

/// Counts the answers that a lane still waits for, and finishes it after the last.
pub(crate) struct Pending {
    left: std::sync::atomic::AtomicUsize,
    lane: Option<Arc<Lane>>,
    /// What they take up until the last of them is answered, and nothing works on one any more.
    share: Arc<dyn Send + Sync>,
}

impl Pending {
    /// So many of them. The lane is finished with the last one.
    pub(crate) fn new(count: usize, lane: Option<Arc<Lane>>, share: impl Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { left: count.into(), lane, share: Arc::new(share) })
    }

    fn one_is_answered(&self) {
        if self.left.fetch_sub(1, std::sync::atomic::Ordering::AcqRel) == 1
            && let Some(lane) = &self.lane
        {
            lane.finish();
        }
    }
}

/// The calls that run, and how each is cancelled.
#[derive(Default)]
struct Running {
    calls: Mutex<HashMap<Id, Cancel>>,
    one_less: Notify,
}

impl Running {
    fn calls(&self) -> MutexGuard<'_, HashMap<Id, Cancel>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, id: &Id, most: usize) -> Result<Cancel, String> {
        let mut calls = self.calls();
        if calls.contains_key(id) {
            return Err(format!("a request with the id {id} is still running"));
        }
        if calls.len() >= most {
            return Err(format!("{most} requests are running already; wait for one of them"));
        }
        let cancel = Cancel::default();
        calls.insert(id.clone(), cancel.clone());
        Ok(cancel)
    }

    fn leave(&self, id: &Id) {
        self.calls().remove(id);
        self.one_less.notify_waiters();
    }

    fn cancel(&self, id: &Id, reason: Option<String>) {
        if let Some(call) = self.calls().get(id) {
            call.because(reason);
        }
    }

    fn cancel_all(&self) {
        self.calls().values().for_each(Cancel::now);
    }

    async fn rest(&self) {
        loop {
            let one_less = self.one_less.notified();
            if self.calls().is_empty() {
                return;
            }
            one_less.await;
        }
    }
}

/// Sees to it that a call is answered once, even if the service panics.
pub(super) struct Guard {
    id: Id,
    running: Arc<Running>,
    way: Way,
    pub(super) cancel: Cancel,
    done: Option<Arc<Pending>>,
    pub(super) written: Written,
    is_answered: bool,
}

impl Guard {
    pub(super) async fn answer(mut self, outcome: Outcome) {
        // A cancelled call gets no answer: the host has forgotten it.
        if !self.cancel.is_cancelled() {
            let letter = Letter { written: self.written.clone(), ..answer(self.id.clone(), outcome) };
            let _ = self.way.send(letter).await;
        }
        self.is_answered = true;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.running.leave(&self.id);
        // Whoever still asks on behalf of this call asks for nobody.
        self.cancel.now();
        let done = self.done.take();
        if self.is_answered {
            if let Some(done) = done {
                done.one_is_answered();
            }
            return;
        }
        let failed = failure(code::INTERNAL_ERROR, FAILED);
        answer_soon(self.id.clone(), failed, self.way.clone(), done);
    }
}

fn answer_soon(id: Id, outcome: Outcome, way: Way, done: Option<Arc<Pending>>) {
    // Outside a runtime there is nobody left to answer.
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    runtime.spawn(async move {
        let _ = way.send(answer(id, outcome)).await;
        if let Some(done) = done {
            done.one_is_answered();
        }
    });
}

fn answer(id: Id, outcome: Outcome) -> Letter {
    let code = match &outcome {
        Outcome::Result(_) => 0,
        // An error without a code is an error all the same.
        Outcome::Error(error) => {
            serde_json::from_str(error.get()).map_or(code::INTERNAL_ERROR, |error: ErrorObject| error.code)
        }
    };
    Letter {
        text: Response { id: Some(id), outcome }.print(),
        answer: Some(code),
        written: Written::default(),
    }
}

fn agreed(result: &RawValue) -> Option<Version> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Agreed {
        protocol_version: String,
    }
    let agreed: Agreed = serde_json::from_str(result.get()).ok()?;
    Version::parse(&agreed.protocol_version)
}

/// Which request is cancelled, and why.
fn cancelled(params: &RawValue) -> Option<(Id, Option<String>)> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Cancelled<'a> {
        #[serde(borrow)]
        request_id: &'a RawValue,
        #[serde(borrow, default)]
        reason: Option<&'a RawValue>,
    }
    let Cancelled { request_id, reason } = message::members(params)?;
    let reason = reason.and_then(|reason| serde_json::from_str::<String>(reason.get()).ok());
    let reason = reason.filter(|reason| reason.len() <= REASON_BYTES);
    Some((Id::from_json(request_id.get())?, reason))
}

/// A method's name as it may stand in a message.
pub(crate) fn printable(method: &str) -> String {
    method.chars().filter(|c| !c.is_control()).take(64).collect()
}
