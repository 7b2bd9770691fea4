//! The tasks of one upstream: their owner, which of them run, and the calls that started them on stateless servers.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use super::{LONGEST, RoutingTable, UpstreamRoutes};
use crate::session::lock;
use crate::stateless::TaskCall;

const MOST: usize = 1_000;
/// How long a task counts as running that is not seen to end.
pub(crate) const LONGEST_RUN: Duration = Duration::from_secs(24 * 3600);
/// Bytes of the arguments that one session remembers for its tasks. Of what comes later only the length is kept.
const ARGUMENT_BYTES: usize = 1024 * 1024;

#[derive(Default)]
pub(super) struct Tasks {
    known: VecDeque<String>,
    /// Those of them that were not seen to end, and until when they count.
    running: HashMap<String, Instant>,
    /// The calls that servers without sessions have made tasks of.
    begun: HashMap<String, TaskCall>,
    /// Which connection to a process they are on, and what ids call it.
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

    /// Forgets what counts no longer.
    fn expire(&mut self) {
        let now = Instant::now();
        self.running.retain(|_, until| *until > now);
        self.begun.retain(|_, begun| begun.until > now);
    }
}

impl RoutingTable {
    /// Whoever says its id first has the task.
    pub(in crate::forward) fn add_task(&self, upstream: &str, task: String) {
        if task.len() > LONGEST || lock(&self.upstreams).values().any(|routes| routes.tasks.has(&task)) {
            return;
        }
        self.with(upstream, |routes| routes.tasks.add(task));
    }

    /// What ids call the process of this connection. The tasks of an earlier one went with it, and another may use the same
    /// names: they are forgotten. `None` if this is an earlier one.
    pub(crate) fn process(&self, upstream: &str, connection: u32) -> Option<String> {
        self.with(upstream, |UpstreamRoutes { tasks, .. }| {
            if connection > tasks.process.0 {
                // A name that no other process of embody has given either.
                let name = uuid::Uuid::new_v4().simple().to_string();
                *tasks = Tasks { process: (connection, name), ..Tasks::default() };
            }
            (connection == tasks.process.0).then(|| tasks.process.1.clone())
        })
    }

    /// A server without sessions has made a task of a call. Hosts know it by an id that says whose it is.
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

    /// Whether a call of this session began it, in this process if its server is one.
    pub(crate) fn has_task(&self, upstream: &str, process: &str, task: &str) -> bool {
        self.with(upstream, |routes| routes.tasks.process.1 == process && routes.tasks.has(task))
    }

    /// It is over: what is known of its call, once.
    pub(crate) fn end_task(&self, upstream: &str, task: &str) -> Option<TaskCall> {
        self.with(upstream, |UpstreamRoutes { tasks, .. }| {
            tasks.running.remove(task);
            tasks.begun.remove(task)
        })
    }

    /// Nobody wants it any more: neither the session nor its server stays for it. What came of it is still told, if somebody
    /// asks soon.
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

    /// Whether a task is not over that would be gone with the session.
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

    /// Forgets the tasks that count no longer.
    pub(crate) fn expire_tasks(&self) {
        lock(&self.upstreams).values_mut().for_each(|routes| routes.tasks.expire());
    }
}
