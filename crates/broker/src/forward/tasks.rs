//! Tasks: which upstream owns which and which of them run, the requests of sessions about them (experimental in 2025-11-25), and
//! audit records for what a host sends to a running task. A task belongs to the server that first returned its id; a server
//! receives requests only about tasks that it has returned to this session. `stateless` has those of the stateless era.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use embody_store::audit::{AuditOutcome, Event, Record, RedactedArguments, TaskMessage, TaskMessageKind};
use embody_wire::Outcome;
use embody_wire::server::{code, failure};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::printable;
use super::route::{HostRequest, outcome_for_host};
use super::routing_table::{RoutingTable, TEXT_BYTES, UpstreamRoutes};
use crate::BrokerConfig;
use crate::arguments::canonical;
use crate::params;
use crate::pipeline::record::outcome_of;
use crate::policy::Kind;
use crate::session::{Session, lock};
use crate::stateless::TaskCall;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Task {
    task_id: String,
    #[serde(default)]
    status: Option<String>,
}

impl Task {
    fn is_over(&self) -> bool {
        matches!(self.status.as_deref(), Some("completed" | "failed" | "cancelled"))
    }
}

/// Remembers the task in a result, if the request asked for one.
pub(crate) fn record_task_result(session: &Session, upstream: &str, params: &RawValue, result: &RawValue) {
    #[derive(Deserialize)]
    struct Created {
        task: Task,
    }
    if !params.get().contains("\"task\"") {
        return;
    }
    if let Ok(Created { task }) = serde_json::from_str(result.get()) {
        let is_running = !task.is_over();
        session.routes.add_task(upstream, task.task_id.clone());
        note(session, upstream, &task.task_id, is_running);
    }
}

/// A running task prevents the idle shutdown of its server.
fn note(session: &Session, upstream: &str, task: &str, is_running: bool) {
    session.routes.set_task_running(upstream, task, is_running);
    update_keep_alive(session, upstream);
}

pub(crate) fn leave_task(session: &Session, upstream: &str, task: &str) {
    session.routes.leave_task(upstream, task);
    update_keep_alive(session, upstream);
}

/// Keeps a server alive while it has pending work, and releases it otherwise.
pub(crate) fn update_keep_alive(session: &Session, upstream: &str) {
    if let Some(found) = session.upstream(upstream) {
        session.routes.update_keep_alive(found);
    }
}

/// Removes expired tasks, which then no longer keep their servers alive.
pub(crate) fn expire_tasks(session: &Session) {
    session.routes.expire_tasks();
    session.upstreams().for_each(|upstream| session.routes.update_keep_alive(upstream));
}

/// Answers a request about one task. Does not forward an id that no server returned to this session: it could be any text.
pub(super) async fn answer(request: HostRequest<'_>) -> Outcome {
    let Task { task_id, .. } = match params::read(&request.call.request.method, request.params()) {
        Ok(task) => task,
        Err(outcome) => return outcome,
    };
    match request.session.routes.owner_of_task(request.session.upstreams(), &task_id) {
        Some(owner) => {
            let (method, name) = (&*request.call.request.method, &owner.spec().name);
            let params = request.params().and_then(|params| params::only(params, &["taskId"]));
            let result = match request.ask(owner, params.as_deref()).await {
                Ok(result) => result,
                Err(denied) => return denied,
            };
            if let Some(audit) = TaskAudit::read(method, request.params()) {
                let to = TaskTarget { body: name, task: &task_id, call: None };
                audit.record(&request.broker.config, request.session, to, outcome_of(&result)).await;
            }
            let outcome = outcome_for_host(request.session, owner, &Kind::Method.name(method), result).await;
            if has_ended(method, &outcome) {
                note(request.session, name, &task_id, false);
            }
            outcome
        }
        None => {
            let shown = printable(&task_id);
            let message = format!("unknown task `{shown}`; `tasks/list` lists the tasks of this session");
            failure(code::INVALID_PARAMS, message)
        }
    }
}

/// Whether the response shows that the task has ended. A result arrives only then, and an unknown task needs no waiting.
fn has_ended(method: &str, outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Result(_) if method == "tasks/result" => true,
        Outcome::Result(result) => {
            serde_json::from_str::<Task>(result.get()).is_ok_and(|task| task.is_over())
        }
        Outcome::Error(_) => false,
    }
}

pub(crate) struct TaskAudit {
    kind: TaskMessageKind,
    answers: Option<RedactedArguments>,
}

pub(crate) struct TaskTarget<'a> {
    pub(crate) body: &'a str,
    pub(crate) task: &'a str,
    /// The id and the tool of the call that became the task, if known.
    pub(crate) call: Option<(String, String)>,
}

impl TaskAudit {
    /// Parses the request; `None` if it only queries the task.
    pub(crate) fn read(method: &str, params: Option<&RawValue>) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            #[serde(borrow)]
            input_responses: &'a RawValue,
        }
        match method {
            "tasks/cancel" => Some(Self { kind: TaskMessageKind::Cancel, answers: None }),
            "tasks/update" => {
                let given = params.and_then(|params| serde_json::from_str::<Params<'_>>(params.get()).ok());
                let answers = given.map(|Params { input_responses }| {
                    let text = input_responses.get();
                    RedactedArguments::of(canonical(text).as_deref().unwrap_or(text))
                });
                Some(Self { kind: TaskMessageKind::Update, answers })
            }
            _ => None,
        }
    }

    /// Records the request of this session, and whether the body accepted it.
    pub(crate) async fn record(
        self,
        config: &BrokerConfig,
        session: &Session,
        to: TaskTarget<'_>,
        (outcome, detail): (AuditOutcome, Option<String>),
    ) {
        let TaskTarget { body, task, call } = to;
        let (call_id, tool) = call.unzip();
        let (body, task) = (body.to_owned(), task.to_owned());
        let event =
            TaskMessage { call_id, body, tool, task, said: self.kind, args: self.answers, outcome, detail };
        let record = Record { actor: session.identity.actor.clone(), event: Event::Task(event) };
        if let Err(error) = config.store.audit().append_deferred(record).await {
            config.meter.unrecorded.add(1);
            tracing::error!(session = session.id, reason = %error, "a request to a task could not be recorded");
        }
    }
}

const TASKS_MAX: usize = 1_000;
/// How long a task counts as running if its end is not observed.
pub(crate) const LONGEST_RUN: Duration = Duration::from_secs(24 * 3600);
/// Bytes of arguments that one session stores for its tasks. Beyond this only the length is stored.
const ARGUMENT_BYTES: usize = 1024 * 1024;

#[derive(Default)]
pub(super) struct Tasks {
    known: VecDeque<String>,
    /// Tasks whose end was not observed, and until when they count as running.
    running: HashMap<String, Instant>,
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
        if self.known.len() >= TASKS_MAX
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

    fn expire(&mut self) {
        let now = Instant::now();
        self.running.retain(|_, until| *until > now);
        self.begun.retain(|_, begun| begun.until > now);
    }
}

impl RoutingTable {
    /// The first upstream that returns a task id owns the task.
    pub(super) fn add_task(&self, upstream: &str, task: String) {
        if task.len() > TEXT_BYTES || lock(&self.upstreams).values().any(|routes| routes.tasks.has(&task)) {
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

    pub(crate) fn stop_task(&self, upstream: &str, task: &str, is_requested: bool) {
        self.with(upstream, |UpstreamRoutes { tasks, .. }| {
            tasks.begun.get_mut(task).into_iter().for_each(|begun| begun.is_cancel_requested = is_requested);
        });
    }

    /// Whether a task is running that would end with the session.
    pub(crate) fn is_busy(&self) -> bool {
        let now = Instant::now();
        let stays = |begun: &TaskCall| begun.is_of_session && begun.is_wanted && begun.until > now;
        lock(&self.upstreams).values().any(|routes| routes.tasks.begun.values().any(stays))
    }

    fn set_task_running(&self, upstream: &str, task: &str, is_running: bool) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_asks_is_not_said() {
        let params = RawValue::from_string(
            r#"{"taskId":"t","inputResponses":{"b":{"token":"secret"},"a":1}}"#.to_owned(),
        )
        .unwrap();
        assert!(TaskAudit::read("tasks/get", Some(&params)).is_none());
        assert!(TaskAudit::read("tasks/result", Some(&params)).is_none());
        let stop = TaskAudit::read("tasks/cancel", Some(&params)).unwrap();
        assert!(stop.kind == TaskMessageKind::Cancel && stop.answers.is_none());
        let answers = TaskAudit::read("tasks/update", Some(&params)).unwrap().answers.unwrap();
        assert_eq!(answers.excerpt().to_string(), r#"{"a":1,"b":{"token":"[redacted]"}}"#);
        // The order of members does not matter.
        assert_eq!(answers, RedactedArguments::of(r#"{"a":1,"b":{"token":"secret"}}"#));
        assert!(TaskAudit::read("tasks/update", None).unwrap().answers.is_none());
    }
}
