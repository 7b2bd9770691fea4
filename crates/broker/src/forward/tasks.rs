//! Tasks (experimental in 2025-11-25): a task belongs to whoever said its id first.

use embody_wire::Outcome;
use embody_wire::serve::{code, failure};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::route::Asking;
use super::{params, printable};
use crate::session::Session;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Task {
    task_id: String,
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
        session.known.learn_task(upstream, task.task_id);
    }
}

/// Answers a request about one task. Nobody else is asked about a task that nobody is known to have.
pub(super) async fn answer(asking: Asking<'_>) -> Outcome {
    let Task { task_id } = match params::read(&asking.call.request.method, asking.params()) {
        Ok(task) => task,
        Err(outcome) => return outcome,
    };
    let runner = asking.session.known.runner(asking.session.upstreams(), &task_id);
    let only = || match *asking.with("tasks") {
        [only] => Some(only),
        _ => None,
    };
    match runner.or_else(only) {
        Some(runner) => asking.send(runner, asking.params()).await,
        None => failure(code::INVALID_PARAMS, format!("there is no task `{}`", printable(&task_id))),
    }
}
