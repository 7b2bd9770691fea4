//! Tasks of the stateless era (extension `io.modelcontextprotocol/tasks`): a server may answer a call with a task, and the host
//! polls it by id. A task stays with the host that made the call.
//!
//! - `task_call`: the call that became a task, and its end
//! - `task_id`: the signed id that a host receives
//! - `task_state`: a task's state as the host sees it
//! - `task_watch`: tasks that a listener watches

mod task_call;
mod task_id;
mod task_state;
mod task_watch;

use std::sync::Arc;
use std::time::Duration;

use embody_store::Principal;
use embody_store::audit::AuditOutcome;
use embody_wire::Outcome;
use embody_wire::message::ErrorObject;
use embody_wire::server::{Call, TASKS, code, failure, failure_with};
use embody_wire::upstream::OutgoingCall;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

pub(crate) use self::task_call::{TaskCall, register_task};
use self::task_id::TaskRef;
use self::task_state::{TaskState, params_for};
pub(super) use self::task_watch::{notify_watcher, watch_tasks};
use super::session_key::{key_of, session_of};
use crate::forward::{self, TaskAudit, TaskTarget, printable};
use crate::gate::Permit;
use crate::pipeline::record::outcome_of;
use crate::pipeline::send::{CallResult, UpstreamCall, call_upstream_once};
use crate::policy::Kind;
use crate::server_requests::Requester;
use crate::session::Session;
use crate::sessions::InUse;
use crate::upstream::Upstream;
use crate::{Broker, degraded};

pub(super) fn is_about_a_task(method: &str) -> bool {
    matches!(method, "tasks/get" | "tasks/update" | "tasks/cancel")
}

/// The error for a host that did not declare the tasks extension.
pub(super) fn unknown_to(call: &Call<Principal>) -> Option<Outcome> {
    if call.host.initialize_params().has_extension(TASKS) {
        return None;
    }
    let message =
        format!("tasks need the extension `{TASKS}`, which the host did not declare with the request");
    let data = json!({"requiredCapabilities": {"extensions": {TASKS: {}}}});
    Some(failure_with(code::MISSING_CAPABILITY, message, Some(data)))
}

pub(super) struct TaskHandle {
    pub(super) id: String,
    pub(super) task: String,
    /// The process in which it runs; empty if the server is not a process.
    process: String,
    pub(super) session: Arc<Session>,
    pub(super) upstream: Arc<Upstream>,
    permit: Permit,
    /// The task's session, if it is not the caller's.
    _other: Option<InUse>,
}

pub(super) async fn answer_task(
    broker: &Broker,
    session: &Arc<Session>,
    call: &Arc<Call<Principal>>,
) -> Outcome {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Given {
        task_id: String,
    }
    let (method, params) = (&*call.request.method, call.request.params.as_deref());
    let id = match crate::params::read(method, params) {
        Ok(Given { task_id }) => task_id,
        Err(outcome) => return outcome,
    };
    let outcome = match find_task(broker, session, &call.host.principal, &id).await {
        Ok(handle) => request_about(broker, session, &handle, call).await,
        Err(outcome) => outcome,
    };
    match outcome {
        Outcome::Result(result) if !session.is_fine() => {
            Outcome::Result(degraded::add_to_result(result, &session.degraded()))
        }
        outcome => outcome,
    }
}

/// Finds a task, if this principal has received its id.
pub(super) async fn find_task(
    broker: &Broker,
    session: &Arc<Session>,
    whose: &Principal,
    id: &str,
) -> Result<TaskHandle, Outcome> {
    let TaskRef { session: begun_in, process, upstream, task } = task_id::decode(broker, whose, id).await?;
    // A host may declare other capabilities now than with the call.
    let is_here = key_of(&session.id) == begun_in;
    let other = (!is_here).then(|| broker.sessions.use_stateless(&session_of(&begun_in), whose)).flatten();
    let is_its_own = is_here || other.is_some();
    let session = other.as_ref().map_or(session, |other| &other.session);
    let found = session.upstream(&upstream).cloned();
    let found = found.ok_or_else(|| gone(id, &format!("unknown server `{upstream}`")))?;
    let is_known = is_its_own && session.routes.has_task(&upstream, &process, &task);
    if found.spec().is_process() && !is_known {
        return Err(gone(id, &process_is_over(&upstream)));
    }
    let permit = forward::permit(&broker.config, session, &found, "tasks/get")
        .ok_or_else(|| forward::denied(&found, "tasks/get"))?;
    let (id, session) = (id.to_owned(), Arc::clone(session));
    Ok(TaskHandle { id, task, process, session, upstream: found, permit, _other: other })
}

/// Sends a request about a task to its server, and records it.
async fn request_about(
    broker: &Broker,
    session: &Session,
    handle: &TaskHandle,
    call: &Arc<Call<Principal>>,
) -> Outcome {
    let (method, params) = (&*call.request.method, call.request.params.as_deref());
    let TaskHandle { session: begun_in, upstream, task, .. } = handle;
    let name = &upstream.spec().name;
    if forward::permit(&broker.config, session, upstream, method).is_none() {
        return forward::denied(upstream, method);
    }
    let is_known = begun_in.routes.has_task(name, &handle.process, task);
    let audit = TaskAudit::read(method, params).map(|audit| {
        let known = begun_in.routes.call_of_task(name, task).filter(|_| is_known);
        (audit, TaskTarget { body: name, task, call: known })
    });
    // Set before sending: a watcher may see the end of the task before the response arrives here.
    let is_stop = is_known && method == "tasks/cancel";
    if is_stop {
        begun_in.routes.stop_task(name, task, true);
    }
    let sent = send(handle, call, OutgoingCall { method, params }, upstream.spec().call_timeout).await;
    let was_sent = !matches!(
        sent,
        Err(_) | Ok(CallResult::Unavailable(_) | CallResult::NotSent(_) | CallResult::CancelledUnsent)
    );
    if is_stop && !was_sent {
        begun_in.routes.stop_task(name, task, false);
    }
    if let Some((audit, to)) = audit {
        let came = match &sent {
            Ok(result) => outcome_of(result),
            Err(_) => (AuditOutcome::Denied, Some("not sent: the task no longer exists".to_owned())),
        };
        audit.record(&broker.config, session, to, came).await;
    }
    let outcome = match sent {
        Ok(result) => forward::outcome_for_host(session, upstream, &Kind::Method.name(method), result).await,
        Err(gone) => gone,
    };
    host_view(broker, handle, call, method, outcome).await
}

/// Converts a server's response about a task for the host.
async fn host_view(
    broker: &Broker,
    handle: &TaskHandle,
    call: &Arc<Call<Principal>>,
    method: &str,
    outcome: Outcome,
) -> Outcome {
    let TaskHandle { session, upstream, .. } = handle;
    let name = &upstream.spec().name;
    // Another process may have a task with the same id by now.
    let is_known = session.routes.has_task(name, &handle.process, &handle.task);
    let result = match outcome {
        Outcome::Result(result) => result,
        Outcome::Error(error) => {
            if is_known && is_unknown(&error) && method == "tasks/get" {
                forward::leave_task(session, name, &handle.task);
            }
            return Outcome::Error(error);
        }
    };
    if is_known && method == "tasks/cancel" {
        forward::leave_task(session, name, &handle.task);
    }
    if method != "tasks/get" {
        return Outcome::Result(result);
    }
    let state = TaskState::read(&result).filter(|state| state.task == handle.task && !state.is_new());
    let for_host = state.and_then(|state| {
        Some((state.for_host(&handle.id, &asker(session, &handle.upstream, call))?, state))
    });
    let Some((for_host, state)) = for_host else { return unclear_status(handle) };
    if is_known {
        task_call::record_task_end(broker, session, name, &state).await;
    }
    Outcome::Result(for_host)
}

/// Sends a request about a task and converts the outcome for the host.
async fn request_outcome(
    handle: &TaskHandle,
    call: &Arc<Call<Principal>>,
    calling: OutgoingCall<'_>,
    limit: Duration,
) -> Outcome {
    let what = Kind::Method.name(calling.method);
    match send(handle, call, calling, limit).await {
        Ok(result) => forward::outcome_for_host(&handle.session, &handle.upstream, &what, result).await,
        Err(gone) => gone,
    }
}

/// Sends a request about a task to its server; returns an error if the task no longer exists. A task's input requests are
/// part of its state, so an `input_required` result is invalid here.
async fn send(
    handle: &TaskHandle,
    call: &Arc<Call<Principal>>,
    OutgoingCall { method, params }: OutgoingCall<'_>,
    limit: Duration,
) -> Result<CallResult, Outcome> {
    let TaskHandle { session, upstream, .. } = handle;
    let name = &upstream.spec().name;
    let link = match upstream.lease().await {
        Ok(link) => link,
        Err(away) => return Ok(CallResult::Unavailable(away.to_string())),
    };
    if !link.is_stateless() {
        return Err(gone(&handle.id, &format!("`{name}` does not support tasks now")));
    }
    if upstream.spec().is_process()
        && session.routes.process(name, link.number()).as_ref() != Some(&handle.process)
    {
        return Err(gone(&handle.id, &process_is_over(name)));
    }
    let params = params_for(params, &handle.task);
    let calling = OutgoingCall { method, params: params.as_deref() };
    let result = {
        let item = &Kind::Method.name(method);
        let trip = UpstreamCall { session, upstream, item, link: &link, call, limit, permit: &handle.permit };
        call_upstream_once(trip, calling).await
    };
    Ok(match result {
        CallResult::Answered(outcome) if link.input_required(&outcome).is_some() => {
            CallResult::Answered(unclear_status(handle))
        }
        result => result,
    })
}

fn gone(id: &str, why: &str) -> Outcome {
    failure(code::INVALID_PARAMS, format!("the task `{}` no longer exists: {why}", printable(id)))
}

fn process_is_over(upstream: &str) -> String {
    format!(
        "the process of `{upstream}` that ran it belonged to one session, and was restarted, or that session ended or is served by another process of embody"
    )
}

fn unclear_status(TaskHandle { id, upstream, .. }: &TaskHandle) -> Outcome {
    let (name, shown) = (&upstream.spec().name, printable(id));
    failure(code::INTERNAL_ERROR, format!("`{name}` returned no status of the task `{shown}`"))
}

/// Whether this error means that the task does not exist, or no longer does.
fn is_unknown(error: &RawValue) -> bool {
    serde_json::from_str::<ErrorObject>(error.get()).is_ok_and(|error| error.code == code::INVALID_PARAMS)
}

fn asker(session: &Arc<Session>, upstream: &Arc<Upstream>, call: &Arc<Call<Principal>>) -> Requester {
    Requester { session: Arc::clone(session), upstream: Arc::clone(upstream), call: Some(Arc::clone(call)) }
}
