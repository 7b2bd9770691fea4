//! The tasks of one upstream: their owner, which of them run, and the calls that started them on stateless servers.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use super::{LONGEST, RoutingTable, UpstreamRoutes};
use crate::session::lock;
use crate::stateless::TaskCall;

const MOST: usize = 1_000;
/// How long a task counts as running if its end is not observed.
pub(crate) const LONGEST_RUN: Duration = Duration::from_secs(24 * 3600);
/// Bytes of arguments that one session stores for its tasks. Beyond this only the length is stored.
const ARGUMENT_BYTES: usize = 1024 * 1024;

#[derive(Default)]
pub(super) struct Tasks {
    known: VecDeque<String>,
    /// Tasks whose end was not observed, and until when they count as running.
    running: HashMap<String, Instant>,
    /// The calls that became tasks on stateless servers.
    begun: HashMap<String, TaskCall>,
    /// The connection number of the process, and the name for it in task ids.
    process: (u32, String),
}

impl Tasks {
    pub(super) fn has(&self, task: &str) -> bool {
        self.known.iter().any(|known| known == task)
    }

    pub(super) fn are_running(&self) -> bool {
        let now = Instant::now();
        self.running.values().any(|until| *until > now)
    }

    fn add(&mut self, task: String) {
        if self.known.len() >= MOST
            && let Some(oldest) = self.known.pop_front()
        {
            self.running.remove(&oldest);
            self.begun.remove(&oldest);
        }
        self.known.push_back(task);
    }

    fn argument_bytes(&self) -> usize {
        self.begun.values().map(TaskCall::argument_bytes).sum()
    }

    /// Removes expired entries.
    fn expire(&mut self) {
        let now = Instant::now();
        self.running.retain(|_, until| *until > now);
        self.begun.retain(|_, begun| begun.until > now);
    }
}

impl RoutingTable {
    /// The first upstream that returns a task id owns the task.
    pub(in crate::forward) fn add_task(&self, upstream: &str, task: String) {
        if task.len() > LONGEST || lock(&self.upstreams).values().any(|routes| routes.tasks.has(&task)) {
            return;
        }
        self.with(upstream, |routes| routes.tasks.add(task));
    }

    /// The name in task ids for the process of this connection. Forgets the tasks of an earlier process, because the new one
    /// may reuse their ids. `None` if the connection is outdated.
    pub(crate) fn process(&self, upstream: &str, connection: u32) -> Option<String> {
        self.with(upstream, |UpstreamRoutes { tasks, .. }| {
            if connection > tasks.process.0 {
                // Unique across all processes of embody.
                let name = uuid::Uuid::new_v4().simple().to_string();
                *tasks = Tasks { process: (connection, name), ..Tasks::default() };
            }
            (connection == tasks.process.0).then(|| tasks.process.1.clone())
        })
    }

    /// Registers a call that a stateless server continues as a task. Hosts receive a signed id that names the server.
    pub(crate) fn begin_task(&self, upstream: &str, task: &str, begun: TaskCall) {
        let mut upstreams = lock(&self.upstreams);
        upstreams.values_mut().for_each(|routes| routes.tasks.expire());
        let bytes: usize = upstreams.values().map(|routes| routes.tasks.argument_bytes()).sum();
        let fits = bytes.saturating_add(begun.argument_bytes()) <= ARGUMENT_BYTES;
        let begun = if fits { begun } else { begun.without_arguments() };
        let tasks = &mut upstreams.entry(upstream.to_owned()).or_default().tasks;
        if !tasks.has(task) {
            tasks.add(task.to_owned());
        }
        tasks.running.insert(task.to_owned(), begun.until);
        tasks.begun.insert(task.to_owned(), begun);
    }

    /// Whether a call of this session started the task, in this process if the server is a process.
    pub(crate) fn has_task(&self, upstream: &str, process: &str, task: &str) -> bool {
        self.with(upstream, |routes| routes.tasks.process.1 == process && routes.tasks.has(task))
    }

    /// Removes an ended task and returns its call.
    pub(crate) fn end_task(&self, upstream: &str, task: &str) -> Option<TaskCall> {
        self.with(upstream, |UpstreamRoutes { tasks, .. }| {
            tasks.running.remove(task);
            tasks.begun.remove(task)
        })
    }

    /// Releases a task that no host waits for: it no longer keeps the session or the server alive. Its result is still
    /// available for a short time.
    pub(crate) fn leave_task(&self, upstream: &str, task: &str) {
        self.with(upstream, |UpstreamRoutes { tasks, .. }| {
            tasks.running.remove(task);
            tasks.begun.get_mut(task).into_iter().for_each(|begun| begun.is_wanted = false);
        });
    }

    pub(crate) fn call_of_task(&self, upstream: &str, task: &str) -> Option<(String, String)> {
        self.with(upstream, |UpstreamRoutes { tasks, .. }| tasks.begun.get(task).map(TaskCall::named))
    }

    pub(crate) fn stop_task(&self, upstream: &str, task: &str, is_told: bool) {
        self.with(upstream, |UpstreamRoutes { tasks, .. }| {
            tasks.begun.get_mut(task).into_iter().for_each(|begun| begun.is_told_to_stop = is_told);
        });
    }

    /// Whether a task is running that would end with the session.
    pub(crate) fn is_busy(&self) -> bool {
        let now = Instant::now();
        let stays = |begun: &TaskCall| begun.is_of_session && begun.is_wanted && begun.until > now;
        lock(&self.upstreams).values().any(|routes| routes.tasks.begun.values().any(stays))
    }

    pub(in crate::forward) fn set_task_running(&self, upstream: &str, task: &str, is_running: bool) {
        self.with(upstream, |UpstreamRoutes { tasks, .. }| match is_running {
            true if tasks.has(task) => {
                tasks.running.insert(task.to_owned(), Instant::now() + LONGEST_RUN);
            }
            true => {}
            false => {
                tasks.running.remove(task);
            }
        });
    }

    pub(crate) fn expire_tasks(&self) {
        lock(&self.upstreams).values_mut().for_each(|routes| routes.tasks.expire());
    }
}
