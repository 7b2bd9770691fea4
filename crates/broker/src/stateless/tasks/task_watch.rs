//! Tasks that a listener watches: their servers are polled, and the listener receives what `tasks/get` would return.
//!
//! A server's push only triggers an early poll, so a lost push costs time and nothing else. Polls run concurrently: a server that
//! does not answer delays no other task.

use std::sync::Arc;
use std::time::Duration;

use embody_wire::server::{Call, code, failure};
use embody_wire::upstream::OutgoingCall;
use embody_wire::{Notification, Outcome};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::task_state::TaskState;
use super::{TaskHandle, is_unknown, request_outcome};
use crate::arguments::Members;
use crate::pipeline::respond::raw;
use crate::session::Session;
use crate::stateless::era_meta::member;
use crate::stateless::listen::{Filter, SUBSCRIPTION_ID};
use crate::upstream::{Health, Upstream};
use crate::{Broker, Principal};

/// How often a task is asked for of which its server says nothing about that, and how often any.
const POLL: Duration = Duration::from_secs(5);
const POLL_MIN: Duration = Duration::from_secs(1);
const POLL_MAX: Duration = Duration::from_secs(60);
/// Between two questions about one task, however often it is said to have changed.
const GAP: Duration = Duration::from_millis(200);
/// How long a server may take for the answer. It is asked again later.
const LIMIT: Duration = Duration::from_secs(10);
/// Questions that one listener has open at one server.
const REQUESTS_MAX: usize = 4;

/// The tasks that one listener follows; dropping it ends that.
pub(in crate::stateless) struct TaskWatch {
    session: Arc<Session>,
    tasks: Vec<WatchedTask>,
    /// The places of those that are asked for, and what came of it.
    polls: JoinSet<(usize, Outcome)>,
}

struct WatchedTask {
    handle: Arc<TaskHandle>,
    last: Option<blake3::Hash>,
    /// When it is asked for next; never again once it is over.
    due: Option<Instant>,
    polled_at: Option<Instant>,
    is_polling: bool,
    is_stale: bool,
    is_there: bool,
}

impl WatchedTask {
    fn new(handle: TaskHandle) -> Self {
        Self {
            handle: Arc::new(handle),
            last: None,
            due: Some(Instant::now()),
            polled_at: None,
            is_polling: false,
            is_stale: false,
            is_there: true,
        }
    }

    fn is_at(&self, upstream: &Arc<Upstream>) -> bool {
        Arc::ptr_eq(&self.handle.upstream, upstream)
    }

    fn may_have_changed(&mut self) {
        let soon = self.polled_at.map_or_else(Instant::now, |at| Instant::now().max(at + GAP));
        self.is_stale = self.is_polling;
        self.due = self.due.map(|due| due.min(soon));
    }

    /// It was asked for, and is to be asked for again after this long.
    fn schedule_poll(&mut self, after: Duration) {
        self.due = Some(Instant::now() + after);
        if self.is_stale {
            self.may_have_changed();
        }
    }
}

impl TaskWatch {
    pub(in crate::stateless) fn ids(&self) -> Vec<&str> {
        self.tasks.iter().map(|task| &*task.handle.id).collect()
    }

    /// These may be otherwise than they were: they are asked for soon.
    pub(in crate::stateless) fn may_have_changed(&mut self, which: impl Fn(&TaskHandle) -> bool) {
        let meant = self.tasks.iter_mut().filter(|task| which(&task.handle));
        meant.for_each(WatchedTask::may_have_changed);
    }

    /// What came of asking for one of them, by its place. Those that are due are asked for meanwhile.
    pub(in crate::stateless) async fn next(&mut self, call: &Arc<Call<Principal>>) -> (usize, Outcome) {
        loop {
            self.poll_due(call);
            let due = (0..self.tasks.len()).filter_map(|index| self.due(index)).min();
            let until_due = async {
                match due {
                    Some(due) => sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                Some(Ok((index, outcome))) = self.polls.join_next() => {
                    if let Some(task) = self.tasks.get_mut(index) {
                        task.is_polling = false;
                    }
                    return (index, outcome);
                }
                () = until_due => {}
            }
        }
    }

    /// When one is to be asked for, if it may be: not twice at once, and not when its server has enough to answer.
    fn due(&self, index: usize) -> Option<Instant> {
        let task = self.tasks.get(index).filter(|task| !task.is_polling)?;
        let at_server = self.tasks.iter().filter(|other| other.is_at(&task.handle.upstream));
        let is_full = at_server.filter(|other| other.is_polling).count() >= REQUESTS_MAX;
        task.due.filter(|_| !is_full)
    }

    fn poll_due(&mut self, call: &Arc<Call<Principal>>) {
        for index in 0..self.tasks.len() {
            let is_due = self.due(index).is_some_and(|due| due <= Instant::now());
            let Some(task) = self.tasks.get_mut(index).filter(|_| is_due) else { continue };
            (task.is_polling, task.is_stale) = (true, false);
            task.polled_at = Some(Instant::now());
            let (handle, call) = (Arc::clone(&task.handle), Arc::clone(call));
            self.polls.spawn(async move {
                let params = raw(&json!({"taskId": handle.id}));
                let calling = OutgoingCall { method: "tasks/get", params: Some(&params) };
                let answer = timeout(LIMIT, request_outcome(&handle, &call, calling, LIMIT)).await;
                (
                    index,
                    answer.unwrap_or_else(|_| failure(code::INTERNAL_ERROR, "there is no answer in time")),
                )
            });
        }
    }

    /// Says that these are followed, or no longer are, and tells their servers.
    fn count(&self, which: impl Fn(&WatchedTask) -> bool, on: bool) {
        let listeners = &self.session.notifier.listeners;
        let counted = || self.tasks.iter().filter(|task| which(task)).map(|task| &task.handle);
        for handle in counted() {
            listeners.watch_tasks(&handle.upstream.spec().name, &handle.task, on);
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let mut told: Vec<&Arc<Upstream>> = Vec::new();
        for handle in counted() {
            let upstream = &handle.upstream;
            // One that is away is told when it comes back, if there is still something to tell.
            let is_needed = on || upstream.health() == Health::Connected;
            if !is_needed || told.iter().any(|known| Arc::ptr_eq(known, upstream)) {
                continue;
            }
            told.push(upstream);
            let (listeners, upstream) = (Arc::clone(listeners), Arc::clone(upstream));
            runtime.spawn(async move {
                if let Ok(link) = upstream.lease().await {
                    listeners.send_watched_tasks(&upstream.spec().name, &link);
                }
            });
        }
    }

    /// There is no such task any more: it is not followed.
    fn leave(&mut self, index: usize) {
        if let Some(task) = self.tasks.get_mut(index) {
            (task.due, task.is_there) = (None, false);
            let left = Arc::clone(&task.handle);
            self.count(|task| Arc::ptr_eq(&task.handle, &left), false);
        }
    }
}

impl Drop for TaskWatch {
    fn drop(&mut self) {
        self.count(|task| task.is_there, false);
    }
}

/// Follows the tasks that a listener asks for, as far as they are of its session.
pub(in crate::stateless) async fn watch_tasks(
    broker: &Broker,
    session: &Arc<Session>,
    call: &Call<Principal>,
    filter: &Filter,
) -> TaskWatch {
    let mut tasks: Vec<WatchedTask> = Vec::new();
    for id in filter.task_ids.iter().flatten() {
        let handle = super::find_task(broker, session, &call.host.principal, id).await;
        let handle = handle.ok().filter(|handle| Arc::ptr_eq(&handle.session, session));
        let is_new = |handle: &TaskHandle| tasks.iter().all(|task| task.handle.id != handle.id);
        let task = handle.filter(is_new).map(WatchedTask::new);
        tasks.extend(task);
    }
    let watch = TaskWatch { session: Arc::clone(session), tasks, polls: JoinSet::new() };
    watch.count(|_| true, true);
    watch
}

/// Tells a listener what came of asking for one of its tasks, if it was not told before.
pub(in crate::stateless) async fn notify_watcher(
    broker: &Broker,
    watch: &mut TaskWatch,
    (index, outcome): (usize, Outcome),
    call: &Arc<Call<Principal>>,
    subscription: &Value,
) {
    let Some(task) = watch.tasks.get_mut(index) else { return };
    let result = match super::host_view(broker, &task.handle, call, "tasks/get", outcome).await {
        Outcome::Result(result) => result,
        Outcome::Error(error) if is_unknown(&error) => return watch.leave(index),
        Outcome::Error(_) => return task.schedule_poll(POLL),
    };
    match TaskState::read(&result) {
        Some(state) if state.is_over() => task.due = None,
        state => {
            let wanted = state.and_then(|state| state.poll_ms()).map_or(POLL, Duration::from_millis);
            task.schedule_poll(wanted.clamp(POLL_MIN, POLL_MAX));
        }
    }
    let Some(params) = task_notification(&result, subscription) else { return };
    let hash = blake3::hash(params.get().as_bytes());
    if task.last.replace(hash) != Some(hash) {
        let method = "notifications/tasks".to_owned();
        call.notify(Notification { method, params: Some(params) }).await;
    }
}

/// What `tasks/get` says, as a notification says it.
fn task_notification(result: &RawValue, subscription: &Value) -> Option<Box<RawValue>> {
    let Members(members) = serde_json::from_str(result.get()).ok()?;
    let kept = members.iter().filter(|(name, _)| !matches!(&**name, "resultType" | "_meta"));
    let kept = kept.map(|(name, value)| member(name, value.get()));
    let meta = member("_meta", &json!({SUBSCRIPTION_ID: subscription}).to_string());
    let written: Vec<String> = kept.chain([meta]).collect();
    RawValue::from_string(format!("{{{}}}", written.join(","))).ok()
}
