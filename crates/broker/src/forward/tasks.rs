//! Tasks of sessions (experimental in 2025-11-25). A task belongs to the server that first returned its id; a server receives
//! requests only about tasks that it has returned to this session. `stateless` has those of the stateless era.

use embody_wire::Outcome;
use embody_wire::server::{code, failure};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::route::{HostRequest, outcome_for_host};
use super::task_audit::{TaskAudit, TaskTarget};
use super::{params, printable};
use crate::pipeline::record::outcome_of;
use crate::policy::Kind;
use crate::session::Session;

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
pub(super) fn record_result(session: &Session, upstream: &str, params: &RawValue, result: &RawValue) {
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

/// Releases a task of a stateless server that no host waits for.
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
        Some(owner_of_task) => {
            let (method, name) = (&*request.call.request.method, &owner_of_task.spec().name);
            let params = request.params().and_then(|params| params::only(params, &["taskId"]));
            let carried = match request.ask(owner_of_task, params.as_deref()).await {
                Ok(carried) => carried,
                Err(denied) => return denied,
            };
            if let Some(audit) = TaskAudit::read(method, request.params()) {
                let to = TaskTarget { body: name, task: &task_id, call: None };
                audit.record(&request.broker.config, request.session, to, outcome_of(&carried)).await;
            }
            let outcome =
                outcome_for_host(request.session, owner_of_task, &Kind::Method.name(method), carried).await;
            if has_ended(method, &outcome) {
                note(request.session, name, &task_id, false);
            }
            outcome
        }
        None => {
            let shown = printable(&task_id);
            let words =
                format!("no server has given a task `{shown}` to this session; `tasks/list` shows all");
            failure(code::INVALID_PARAMS, words)
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
