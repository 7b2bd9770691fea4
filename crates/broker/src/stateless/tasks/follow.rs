//! Tasks that a listener follows: their servers are asked how they are, and the listener is told what `tasks/get` would say.
//!
//! What a server pushes is only a reason to ask at once. It is asked from time to time anyway, as often as it wants to be: so
//! one that tells nothing, or of which a word is lost on the way, costs time and nothing else. Asking goes on beside the
//! listener: a server that does not answer stands before nobody else's news.

use std::sync::Arc;
use std::time::Duration;

use embody_wire::server::{Call, code, failure};
use embody_wire::upstream::OutgoingCall;
use embody_wire::{Notification, Outcome};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::told::Said;
use super::{Held, asked, is_unknown};
use crate::arguments::Members;
use crate::pipeline::respond::raw;
use crate::session::Session;
use crate::stateless::dress::member;
use crate::stateless::listen::{Filter, SUBSCRIPTION_ID};
use crate::upstream::{Health, Upstream};
use crate::{Broker, Principal};

/// How often a task is asked for of which its server says nothing about that, and how often any.
const POLL: Duration = Duration::from_secs(5);
const POLL_LEAST: Duration = Duration::from_secs(1);
const POLL_MOST: Duration = Duration::from_secs(60);
/// Between two questions about one task, however often it is said to have changed.
const GAP: Duration = Duration::from_millis(200);
/// How long a server may take for the answer. It is asked again later.
const LIMIT: Duration = Duration::from_secs(10);
/// Questions that one listener has open at one server.
const MOST_ASKED: usize = 4;

/// The tasks that one listener follows; dropping it ends that.
pub(in crate::stateless) struct Followed {
    session: Arc<Session>,
    tasks: Vec<Task>,
    /// The places of those that are asked for, and what came of it.
    asks: JoinSet<(usize, Outcome)>,
}

struct Task {
    held: Arc<Held>,
    /// What was last told of it.
    last: Option<blake3::Hash>,
    /// When it is asked for next; never again once it is over.
    due: Option<Instant>,
    asked_at: Option<Instant>,
    is_being_asked: bool,
    /// It may be otherwise than when it was asked.
    is_stale: bool,
    /// There is such a task.
    is_there: bool,
}

impl Task {
    fn new(held: Held) -> Self {
        Self {
            held: Arc::new(held),
            last: None,
            due: Some(Instant::now()),
            asked_at: None,
            is_being_asked: false,
            is_stale: false,
            is_there: true,
        }
    }

    fn is_at(&self, upstream: &Arc<Upstream>) -> bool {
        Arc::ptr_eq(&self.held.upstream, upstream)
    }

    /// It may be otherwise than it was.
    fn may_have_changed(&mut self) {
        let soon = self.asked_at.map_or_else(Instant::now, |at| Instant::now().max(at + GAP));
        self.is_stale = self.is_being_asked;
        self.due = self.due.map(|due| due.min(soon));
    }

    /// It was asked for, and is to be asked for again after this long.
    fn again(&mut self, after: Duration) {
        self.due = Some(Instant::now() + after);
        if self.is_stale {
            self.may_have_changed();
        }
    }
}

impl Followed {
    /// What the host calls them.
    pub(in crate::stateless) fn ids(&self) -> Vec<&str> {
        self.tasks.iter().map(|task| &*task.held.id).collect()
    }

    /// These may be otherwise than they were: they are asked for soon.
    pub(in crate::stateless) fn may_have_changed(&mut self, which: impl Fn(&Held) -> bool) {
        let meant = self.tasks.iter_mut().filter(|task| which(&task.held));
        meant.for_each(Task::may_have_changed);
    }

    /// What came of asking for one of them, by its place. Those that are due are asked for meanwhile.
    pub(in crate::stateless) async fn next(&mut self, call: &Arc<Call<Principal>>) -> (usize, Outcome) {
        loop {
            self.ask_due(call);
            let due = (0..self.tasks.len()).filter_map(|place| self.due(place)).min();
            let until_due = async {
                match due {
                    Some(due) => sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                Some(Ok((place, outcome))) = self.asks.join_next() => {
                    if let Some(task) = self.tasks.get_mut(place) {
                        task.is_being_asked = false;
                    }
                    return (place, outcome);
                }
                () = until_due => {}
            }
        }
    }

    /// When one is to be asked for, if it may be: not twice at once, and not when its server has enough to answer.
    fn due(&self, place: usize) -> Option<Instant> {
        let task = self.tasks.get(place).filter(|task| !task.is_being_asked)?;
        let at_server = self.tasks.iter().filter(|other| other.is_at(&task.held.upstream));
        let is_full = at_server.filter(|other| other.is_being_asked).count() >= MOST_ASKED;
        task.due.filter(|_| !is_full)
    }

    fn ask_due(&mut self, call: &Arc<Call<Principal>>) {
        for place in 0..self.tasks.len() {
            let is_due = self.due(place).is_some_and(|due| due <= Instant::now());
            let Some(task) = self.tasks.get_mut(place).filter(|_| is_due) else { continue };
            (task.is_being_asked, task.is_stale) = (true, false);
            task.asked_at = Some(Instant::now());
            let (held, call) = (Arc::clone(&task.held), Arc::clone(call));
            self.asks.spawn(async move {
                let params = raw(&json!({"taskId": held.id}));
                let calling = OutgoingCall { method: "tasks/get", params: Some(&params) };
                let answer = timeout(LIMIT, asked(&held, &call, calling, LIMIT)).await;
                (
                    place,
                    answer.unwrap_or_else(|_| failure(code::INTERNAL_ERROR, "there is no answer in time")),
                )
            });
        }
    }

    /// Says that these are followed, or no longer are, and tells their servers.
    fn count(&self, which: impl Fn(&Task) -> bool, on: bool) {
        let listeners = &self.session.ear.listeners;
        let counted = || self.tasks.iter().filter(|task| which(task)).map(|task| &task.held);
        for held in counted() {
            listeners.follow(&held.upstream.spec().name, &held.task, on);
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let mut told: Vec<&Arc<Upstream>> = Vec::new();
        for held in counted() {
            let upstream = &held.upstream;
            // One that is away is told when it comes back, if there is still something to tell.
            let is_needed = on || upstream.health() == Health::Connected;
            if !is_needed || told.iter().any(|known| Arc::ptr_eq(known, upstream)) {
                continue;
            }
            told.push(upstream);
            let (listeners, upstream) = (Arc::clone(listeners), Arc::clone(upstream));
            runtime.spawn(async move {
                if let Ok(link) = upstream.link().await {
                    listeners.watch_at(&upstream.spec().name, &link);
                }
            });
        }
    }

    /// There is no such task any more: it is not followed.
    fn leave(&mut self, place: usize) {
        if let Some(task) = self.tasks.get_mut(place) {
            (task.due, task.is_there) = (None, false);
            let left = Arc::clone(&task.held);
            self.count(|task| Arc::ptr_eq(&task.held, &left), false);
        }
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.count(|task| task.is_there, false);
    }
}

impl Broker {
    /// Follows the tasks that a listener asks for, as far as they are of its session.
    pub(in crate::stateless) async fn follow(
        &self,
        session: &Arc<Session>,
        call: &Call<Principal>,
        filter: &Filter,
    ) -> Followed {
        let mut tasks: Vec<Task> = Vec::new();
        for id in filter.task_ids.iter().flatten() {
            let held = self.held(session, &call.host.principal, id).await;
            let held = held.ok().filter(|held| Arc::ptr_eq(&held.session, session));
            let is_new = |held: &Held| tasks.iter().all(|task| task.held.id != held.id);
            let task = held.filter(is_new).map(Task::new);
            tasks.extend(task);
        }
        let followed = Followed { session: Arc::clone(session), tasks, asks: JoinSet::new() };
        followed.count(|_| true, true);
        followed
    }

    /// Tells a listener what came of asking for one of its tasks, if it was not told before.
    pub(in crate::stateless) async fn tell_of(
        &self,
        followed: &mut Followed,
        (place, outcome): (usize, Outcome),
        call: &Arc<Call<Principal>>,
        subscription: &Value,
    ) {
        let Some(task) = followed.tasks.get_mut(place) else { return };
        let result = match self.heard(&task.held, call, "tasks/get", outcome).await {
            Outcome::Result(result) => result,
            Outcome::Error(error) if is_unknown(&error) => return followed.leave(place),
            Outcome::Error(_) => return task.again(POLL),
        };
        match Said::read(&result) {
            Some(said) if said.is_over() => task.due = None,
            said => {
                let wanted = said.and_then(|said| said.poll_ms()).map_or(POLL, Duration::from_millis);
                task.again(wanted.clamp(POLL_LEAST, POLL_MOST));
            }
        }
        let Some(params) = told(&result, subscription) else { return };
        let hash = blake3::hash(params.get().as_bytes());
        if task.last.replace(hash) != Some(hash) {
            let method = "notifications/tasks".to_owned();
            call.notify(Notification { method, params: Some(params) }).await;
        }
    }
}

/// What `tasks/get` says, as a notification says it.
fn told(result: &RawValue, subscription: &Value) -> Option<Box<RawValue>> {
    let Members(members) = serde_json::from_str(result.get()).ok()?;
    let kept = members.iter().filter(|(name, _)| !matches!(&**name, "resultType" | "_meta"));
    let kept = kept.map(|(name, value)| member(name, value.get()));
    let meta = member("_meta", &json!({SUBSCRIPTION_ID: subscription}).to_string());
    let written: Vec<String> = kept.chain([meta]).collect();
    RawValue::from_string(format!("{{{}}}", written.join(","))).ok()
}
