//! A call that continues as a task: its stored state, and the audit record and observation of its end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use embody_store::audit::{AuditOutcome, CallEnd, Event, Record};
use embody_wire::message::may_contain;
use embody_wire::server::{Era, TASKS};
use embody_wire::{Error, Outcome};
use serde_json::json;
use serde_json::value::RawValue;

use super::task_id::TaskRef;
use super::task_state::{TaskEnd, TaskState};
use crate::Broker;
use crate::arguments::Arguments;
use crate::forward;
use crate::json::Members;
use crate::pipeline::ToolCall;
use crate::pipeline::record::outcome_of;
use crate::pipeline::respond::raw;
use crate::pipeline::send::CallResult;
use crate::policy::Class;
use crate::post_call::{FinishedCall, ObservedResult};
use crate::session::{Session, observes_itself};
use crate::upstream::Role;

/// How long a task is remembered if its server reports no lifetime.
const KEPT: Duration = Duration::from_secs(3600);
const LONGEST_ARGUMENTS: usize = 16 * 1024;
/// Characters of a server's message that are recorded.
const MESSAGE: usize = 500;

pub(crate) struct TaskCall {
    call_id: String,
    tool: String,
    class: Class,
    arguments: Arc<Arguments>,
    is_observed: bool,
    /// Whether it ends with its session, because its server is a process of the session.
    pub(crate) is_of_session: bool,
    /// Whether a host may still request its result.
    pub(crate) is_wanted: bool,
    /// Whether the host has requested its cancellation.
    pub(crate) is_cancel_requested: bool,
    /// Until when it is remembered and keeps its session alive without requests.
    pub(crate) until: Instant,
}

impl TaskCall {
    fn of(call: &ToolCall<'_>, state: &TaskState<'_>) -> Self {
        let kept = state.ttl_ms().map_or(KEPT, Duration::from_millis).min(forward::LONGEST_RUN);
        let begun = Self {
            call_id: call.id.clone(),
            tool: call.tool.tool.clone(),
            class: call.ruling.class,
            arguments: Arc::clone(&call.arguments),
            is_observed: matches!(call.upstream.spec().role, Role::Body(_))
                && !observes_itself(call.upstream),
            is_of_session: call.upstream.spec().is_process(),
            is_wanted: true,
            is_cancel_requested: false,
            until: Instant::now() + kept,
        };
        if begun.argument_bytes() > LONGEST_ARGUMENTS { begun.without_arguments() } else { begun }
    }

    pub(crate) fn named(&self) -> (String, String) {
        (self.call_id.clone(), self.tool.clone())
    }

    pub(crate) fn argument_bytes(&self) -> usize {
        self.arguments.canonical().len()
    }

    /// Replaces the arguments with their length.
    pub(crate) fn without_arguments(mut self) -> Self {
        let cut = raw(&json!({"is_cut": true, "bytes": self.argument_bytes()}));
        if let Ok(cut) = Arguments::read(Some(&cut)) {
            self.arguments = Arc::new(cut);
        }
        self
    }
}

/// Registers a call that its server continues as a task. Returns the result with the task id for the host, and the server's
/// own id. A task that the host cannot follow has an unknown outcome. Not for calls between two peers of the session era,
/// where these members have no meaning.
pub(crate) async fn register_task(
    broker: &Broker,
    call: &ToolCall<'_>,
    call_result: CallResult,
) -> (CallResult, Option<String>) {
    let has_sessions = !call.link.as_ref().is_ok_and(|link| link.is_stateless());
    let is_stateless = call.request.host.era() == Era::Stateless;
    let result = match &call_result {
        CallResult::Answered(Outcome::Result(result)) if is_task(result) => result,
        _ => return (call_result, None),
    };
    if has_sessions || !is_stateless || !call.request.host.initialize_params().has_extension(TASKS) {
        let error = Error::Protocol("it answered with a task, which this host does not support");
        return (CallResult::Lost(error), None);
    }
    match new_task_for_host(broker, call, result).await {
        Ok((result, task)) => (CallResult::Answered(Outcome::Result(result)), Some(task)),
        Err(error) => (CallResult::Lost(error), None),
    }
}

/// Registers a new task; returns its state for the host and the server's own id.
async fn new_task_for_host(
    broker: &Broker,
    call: &ToolCall<'_>,
    result: &RawValue,
) -> Result<(Box<RawValue>, String), Error> {
    let unclear = || Error::Protocol("it answered with a task whose id cannot be read");
    let state = TaskState::read(result).ok_or_else(unclear)?;
    let (session, upstream) = (call.session, &call.tool.upstream);
    let process = match &call.link {
        Ok(link) if call.upstream.spec().is_process() => session.routes.process(upstream, link.number()),
        _ => Some(String::new()),
    };
    let process = process.ok_or(Error::NoAnswer)?;
    let named = TaskRef {
        session: super::key_of(&session.id).to_owned(),
        process,
        upstream: upstream.to_string(),
        task: state.task.clone(),
    };
    let id =
        super::task_id::encode(broker, &call.request.host.principal, &named).await.map_err(|reason| {
            tracing::error!(call = call.id, session = session.id, reason, "a task has no id for its host");
            Error::Protocol("it answered with a task for which no id could be created")
        })?;
    let asker = super::asker(session, call.upstream, call.request);
    let for_host = state.for_host(&id, &asker).ok_or_else(unclear)?;
    session.routes.begin_task(upstream, &named.task, TaskCall::of(call, &state));
    forward::update_keep_alive(session, upstream);
    Ok((for_host, named.task))
}

/// Handles a task's reported state. If the task has ended, records the end if its call was recorded, and queues the
/// observation for the mind: once, when the host receives it.
pub(super) async fn record_task_end(
    broker: &Broker,
    session: &Session,
    upstream: &str,
    state: &TaskState<'_>,
) {
    let Some(end) = state.end() else { return };
    let Some(begun) = session.routes.end_task(upstream, &state.task) else { return };
    forward::update_keep_alive(session, upstream);
    let came = match end {
        TaskEnd::Completed(result) => Some(CallResult::Answered(Outcome::Result(result.to_owned()))),
        TaskEnd::Failed(error) => Some(CallResult::Answered(Outcome::Error(error.to_owned()))),
        TaskEnd::Cancelled => None,
    };
    if begun.class != Class::Read {
        let (outcome, detail) = match &came {
            Some(came) => ended_by(came),
            None => (AuditOutcome::Unknown, cancelled(begun.is_cancel_requested, state.message().as_deref())),
        };
        let end = CallEnd { call_id: begun.call_id.clone(), outcome, detail: Some(detail) };
        audit_end(broker, session, end).await;
    }
    if !begun.is_observed {
        return;
    }
    let observed = match &came {
        Some(came) => ObservedResult::of(came),
        None => Some(ObservedResult::Failed("cancelled", "the task was cancelled".to_owned())),
    };
    let after = FinishedCall {
        identity: Arc::clone(&session.identity),
        call_id: format!("{}-task", begun.call_id),
        body: upstream.into(),
        tool: begun.tool,
        class: begun.class,
        arguments: begun.arguments,
        read: None,
        observed,
    };
    broker.post_calls.add(after).await;
}

async fn audit_end(broker: &Broker, session: &Session, end: CallEnd) {
    let call = end.call_id.clone();
    let record = Record { actor: session.identity.actor.clone(), event: Event::Outcome(end) };
    if let Err(error) = broker.config.store.audit().append_deferred(record).await {
        broker.config.meter.unrecorded.add(1);
        tracing::error!(call, session = session.id, reason = %error, "the end of a task could not be recorded");
    }
}

fn ended_by(came: &CallResult) -> (AuditOutcome, String) {
    match outcome_of(came) {
        (AuditOutcome::Done, _) => (AuditOutcome::Done, "the task has completed".to_owned()),
        (outcome, None) => (outcome, "the task has failed".to_owned()),
        (outcome, Some(why)) => (outcome, format!("the task has failed: {why}")),
    }
}

/// Why the outcome of a cancelled task is unknown. The server reports the cancellation, but may have stopped halfway or left
/// work running.
fn cancelled(is_cancel_requested: bool, message: Option<&str>) -> String {
    let by = if is_cancel_requested {
        "the host cancelled the task, and its server reports it as cancelled"
    } else {
        "the server reports the task as cancelled, without a cancellation from the host"
    };
    let message: String = message.unwrap_or_default().chars().take(MESSAGE).collect();
    let words = if message.is_empty() { message } else { format!("; its message: {message}") };
    format!("{by}; a part of it may have been done before{words}")
}

/// Whether a result declares that its call continues as a task.
fn is_task(result: &RawValue) -> bool {
    let is_one = |(name, value): &(String, &RawValue)| {
        name == "resultType" && serde_json::from_str::<String>(value.get()).is_ok_and(|kind| kind == "task")
    };
    may_contain(result, "resultType")
        && serde_json::from_str(result.get()).is_ok_and(|Members(members)| members.iter().any(is_one))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forward::RoutingTable;

    fn task_call(until: Instant) -> TaskCall {
        TaskCall {
            call_id: "c".to_owned(),
            tool: "t".to_owned(),
            class: Class::Read,
            arguments: Arc::new(Arguments::read(None).unwrap()),
            is_observed: true,
            is_of_session: true,
            is_wanted: true,
            is_cancel_requested: false,
            until,
        }
    }

    #[test]
    fn a_call_goes_on_as_a_task_if_its_result_says_so() {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        for text in [
            r#"{"taskId":"t","resultType":"task"}"#,
            r#"{"resultType":"complete","result\u0054ype":"t\u0061sk"}"#,
        ] {
            assert!(is_task(&raw(text)), "{text}");
        }
        for text in ["[]", r#"{"resultType":"complete"}"#, r#"{"x":{"resultType":"task"}}"#] {
            assert!(!is_task(&raw(text)), "{text}");
        }
    }

    #[test]
    fn a_task_that_was_cancelled_says_by_whom_and_in_which_words() {
        let text = cancelled(true, Some("stopped after 3 of 9"));
        assert!(text.starts_with("the host cancelled the task"), "{text}");
        assert!(
            text.ends_with("a part of it may have been done before; its message: stopped after 3 of 9"),
            "{text}"
        );
        let text = cancelled(false, None);
        assert!(text.starts_with("the server reports the task as cancelled"), "{text}");
        assert!(text.ends_with("a part of it may have been done before"), "{text}");
        assert!(cancelled(true, Some(&"x".repeat(10 * MESSAGE))).len() < 2 * MESSAGE);
    }

    #[test]
    fn a_session_stays_for_a_task_until_it_is_over_unwanted_or_old() {
        let (known, later) = (RoutingTable::default(), Instant::now() + KEPT);
        assert!(!known.is_busy());
        known.begin_task("a", "1", task_call(later));
        known.begin_task("b", "1", task_call(Instant::now()));
        assert!(known.is_busy() && known.has_task("a", "", "1") && known.has_task("b", "", "1"));
        assert!(known.end_task("a", "1").is_some() && known.end_task("a", "1").is_none());
        assert!(!known.is_busy() && known.has_task("a", "", "1"), "what came of it can still be asked for");
        known.begin_task("a", "2", task_call(later));
        known.leave_task("a", "2");
        assert!(!known.is_busy() && known.end_task("a", "2").is_some());
        known.begin_task("remote", "1", TaskCall { is_of_session: false, ..task_call(later) });
        assert!(!known.is_busy() && known.end_task("remote", "1").is_some(), "it is found again without one");
        for number in 3..2_000 {
            known.begin_task("a", &number.to_string(), task_call(later));
        }
        assert!(!known.has_task("a", "", "3") && known.has_task("a", "", "1999"), "the oldest makes room");
    }

    #[test]
    fn a_task_is_gone_with_its_process() {
        let (known, later) = (RoutingTable::default(), Instant::now() + KEPT);
        let first = known.process("a", 1).unwrap();
        assert_eq!(known.process("a", 1).as_ref(), Some(&first));
        known.begin_task("a", "1", task_call(later));
        assert!(known.is_busy() && known.has_task("a", &first, "1"));
        let second = known.process("a", 2).unwrap();
        assert!(!known.is_busy() && first != second && known.process("a", 1).is_none());
        // The new process uses the same task ids.
        known.begin_task("a", "1", task_call(later));
        assert!(known.has_task("a", &second, "1") && !known.has_task("a", &first, "1"));
    }

    #[test]
    fn what_is_remembered_of_tasks_is_bounded() {
        let (known, later) = (RoutingTable::default(), Instant::now() + KEPT);
        let text = raw(&json!({"text": "x".repeat(LONGEST_ARGUMENTS - 20)}));
        let arguments = Arc::new(Arguments::read(Some(&text)).unwrap());
        let long = || TaskCall { arguments: Arc::clone(&arguments), ..task_call(later) };
        for number in 0..200 {
            known.begin_task(if number % 2 == 0 { "a" } else { "b" }, &number.to_string(), long());
        }
        let kept = |upstream: &str, task: &str| known.end_task(upstream, task).unwrap().argument_bytes();
        assert_eq!(kept("a", "0"), arguments.canonical().len());
        assert!(kept("b", "199") < 100);
        // Expired entries are removed when another task begins, or on lookup.
        known.begin_task("a", "old", task_call(Instant::now()));
        known.begin_task("b", "new", task_call(later));
        assert!(known.end_task("a", "old").is_none());
        known.begin_task("a", "old", task_call(Instant::now()));
        known.expire_tasks();
        assert!(known.end_task("a", "old").is_none() && known.end_task("b", "new").is_some());
    }
}
