//! Tasks of sessions (experimental in 2025-11-25): a task belongs to the server that said its id first, and a server is asked only
//! about tasks that it has named to this session. Those of the stateless era are in `stateless`.

use embody_wire::Outcome;
use embody_wire::server::{code, failure};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::route::{Asking, outcome_for_host};
use super::said::{SaidTo, Saying};
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

/// Remembers the task that a result stands for. Only who asked for a task gets one.
pub(super) fn shown(session: &Session, upstream: &str, params: &RawValue, result: &RawValue) {
    #[derive(Deserialize)]
    struct Created {
        task: Task,
    }
    if !params.get().contains("\"task\"") {
        return;
    }
    if let Ok(Created { task }) = serde_json::from_str(result.get()) {
        let is_running = !task.is_over();
        session.known.learn_task(upstream, task.task_id.clone());
        note(session, upstream, &task.task_id, is_running);
    }
}

/// A server with a task that runs is not stopped for being idle.
fn note(session: &Session, upstream: &str, task: &str, is_running: bool) {
    session.known.runs(upstream, task, is_running);
    keep(session, upstream);
}

/// Nobody waits for a task of a server without sessions any more.
pub(crate) fn leave_task(session: &Session, upstream: &str, task: &str) {
    session.known.leave_task(upstream, task);
    keep(session, upstream);
}

/// A server on which something waits is kept, and else not.
pub(crate) fn keep(session: &Session, upstream: &str) {
    if let Some(found) = session.upstream(upstream) {
        session.known.keep(found);
    }
}

/// Forgets the tasks that nobody was seen to end: no server is kept for them any longer.
pub(crate) fn tidy(session: &Session) {
    session.known.tidy_tasks();
    session.upstreams().for_each(|upstream| session.known.keep(upstream));
}

/// Answers a request about one task. About an id that no server has given to this session none is asked: it could be any text.
pub(super) async fn answer(asking: Asking<'_>) -> Outcome {
    let Task { task_id, .. } = match params::read(&asking.call.request.method, asking.params()) {
        Ok(task) => task,
        Err(outcome) => return outcome,
    };
    match asking.session.known.runner(asking.session.upstreams(), &task_id) {
        Some(runner) => {
            let (method, name) = (&*asking.call.request.method, &runner.spec().name);
            let params = asking.params().and_then(|params| params::only(params, &["taskId"]));
            let carried = match asking.ask(runner, params.as_deref()).await {
                Ok(carried) => carried,
                Err(denied) => return denied,
            };
            if let Some(saying) = Saying::read(method, asking.params()) {
                let to = SaidTo { body: name, task: &task_id, call: None };
                saying.record(&asking.broker.config, asking.session, to, outcome_of(&carried)).await;
            }
            let outcome = outcome_for_host(asking.session, runner, &Kind::Method.name(method), carried).await;
            if has_ended(method, &outcome) {
                note(asking.session, name, &task_id, false);
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

/// Whether the answer says that the task is over. Its result comes when it is; of one that is not known there is nothing to
/// wait for.
fn has_ended(method: &str, outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Result(_) if method == "tasks/result" => true,
        Outcome::Result(result) => {
            serde_json::from_str::<Task>(result.get()).is_ok_and(|task| task.is_over())
        }
        Outcome::Error(_) => false,
    }
}
