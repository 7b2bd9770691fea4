//! Tasks that a listener watches: their servers are polled, and the listener receives what `tasks/get` would return.
//!
//! A server's push only triggers an early poll, so a lost push costs time and nothing else. Polls run concurrently: a server that
//! does not answer delays no other task.

use std::sync::Arc;
use std::time::Duration;

use embody_store::Principal;
use embody_wire::server::{Call, code, failure};
use embody_wire::upstream::OutgoingCall;
use embody_wire::{Notification, Outcome};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::task_state::TaskState;
use super::{TaskHandle, is_unknown, request_outcome};
use crate::Broker;
use crate::json::Members;
use crate::pipeline::respond::raw;
use crate::session::Session;
use crate::stateless::era_meta::member;
use crate::stateless::listen::{Filter, SUBSCRIPTION_ID};
use crate::upstream::{Health, Upstream};

/// The poll interval if the server reports none, and its bounds.
const POLL: Duration = Duration::from_secs(5);
const POLL_MIN: Duration = Duration::from_secs(1);
const POLL_MAX: Duration = Duration::from_secs(60);
/// The minimum time between two polls of one task, however often it changes.
const GAP: Duration = Duration::from_millis(200);
/// Limit for one poll; a later poll retries.
const LIMIT: Duration = Duration::from_secs(10);
/// Polls that one listener may have open at one server.
const REQUESTS_MAX: usize = 4;

/// The tasks that one listener watches; dropping it ends the watch.
pub(in crate::stateless) struct TaskWatch {
    session: Arc<Session>,
    tasks: Vec<WatchedTask>,
    /// Polls in progress, each with the index of its task.
    polls: JoinSet<(usize, Outcome)>,
}

struct WatchedTask {
    handle: Arc<TaskHandle>,
    last: Option<blake3::Hash>,
    /// When to poll next; `None` once the task has ended.
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

    /// Schedules the next poll after this delay.
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

    /// Schedules an early poll of these tasks, which may have changed.
    pub(in crate::stateless) fn may_have_changed(&mut self, which: impl Fn(&TaskHandle) -> bool) {
        let meant = self.tasks.iter_mut().filter(|task| which(&task.handle));
        meant.for_each(WatchedTask::may_have_changed);
    }

    /// Polls the tasks that are due, and returns the next outcome with the index of its task.
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

    /// When to poll this task: not while a poll of it is open, nor while its server has too many open.
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
                (index, answer.unwrap_or_else(|_| failure(code::INTERNAL_ERROR, "no answer in time")))
            });
        }
    }

    /// Registers or releases a watch of these tasks, and sends the change to their servers.
    fn count(&self, which: impl Fn(&WatchedTask) -> bool, on: bool) {
        let listeners = &self.session.notifier.listeners;
        let counted = || self.tasks.iter().filter(|task| which(task)).map(|task| &task.handle);
        for handle in counted() {
            listeners.watch_tasks(&handle.upstream.spec().name, &handle.task, on);
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let mut notified: Vec<&Arc<Upstream>> = Vec::new();
        for handle in counted() {
            let upstream = &handle.upstream;
            // An unavailable server receives the current list when it reconnects.
            let is_needed = on || upstream.health() == Health::Connected;
            if !is_needed || notified.iter().any(|known| Arc::ptr_eq(known, upstream)) {
                continue;
            }
            notified.push(upstream);
            let (listeners, upstream) = (Arc::clone(listeners), Arc::clone(upstream));
            runtime.spawn(async move {
                if let Ok(link) = upstream.lease().await {
                    listeners.send_watched_tasks(&upstream.spec().name, &link);
                }
            });
        }
    }

    /// Stops watching a task that no longer exists.
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

/// Watches the requested tasks that belong to the listener's session.
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

/// Notifies a listener of a poll's outcome, unless it is unchanged.
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

/// Converts a result of `tasks/get` to a notification.
fn task_notification(result: &RawValue, subscription: &Value) -> Option<Box<RawValue>> {
    let Members(members) = serde_json::from_str(result.get()).ok()?;
    let kept = members.iter().filter(|(name, _)| !matches!(&**name, "resultType" | "_meta"));
    let kept = kept.map(|(name, value)| member(name, value.get()));
    let meta = member("_meta", &json!({SUBSCRIPTION_ID: subscription}).to_string());
    let written: Vec<String> = kept.chain([meta]).collect();
    RawValue::from_string(format!("{{{}}}", written.join(","))).ok()
}
