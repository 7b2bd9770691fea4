//! Record: stores the intent of a write before it is sent, and the outcome of every call after it. A read does not wait for
//! its record to be stored.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use embody_store::approvals::{ApprovalUse, UseApproval};
use embody_store::audit::{
    AuditOutcome, AuditedCall, DecisionKind, Event, Intent, Record, RecordedIntent, RedactedArguments,
};
use embody_wire::Outcome;
use embody_wire::message::may_contain;
use serde_json::value::RawValue;

use super::ToolCall;
use super::respond::CallRefusal;
use super::send::CallResult;
use crate::approval::bound_policy;
use crate::policy::Class;
use crate::post_call::{FinishedCall, ObservedResult};
use crate::session::{Session, observes_itself};
use crate::upstream::Role;
use crate::{Broker, BrokerConfig};

/// A write in progress. Its session sends heartbeats more often while one exists.
pub(super) struct OpenWrite<'a>(&'a Session);

impl<'a> OpenWrite<'a> {
    pub(super) fn new(session: &'a Session) -> Self {
        session.writes.fetch_add(1, Ordering::AcqRel);
        Self(session)
    }
}

impl Drop for OpenWrite<'_> {
    fn drop(&mut self) {
        self.0.writes.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Commits the intent of a write together with the use of its approval.
pub(super) async fn intent(
    config: &BrokerConfig,
    call: &ToolCall<'_>,
    approval: Option<String>,
) -> Result<RecordedIntent, CallRefusal> {
    let intent = Intent { call: audited(call), approval: approval.clone() };
    let actor = &call.session.identity.actor;
    let begun = match approval {
        None => config.store.audit().begin(actor, intent).await.map(Ok),
        Some(id) => {
            let pin = call.tool.hash.clone();
            let policy = bound_policy(&call.settings.policy_version, call.ruling.class, &call.ruling.via);
            let used = UseApproval { id, actor: actor.clone(), intent, pin, policy };
            config.store.approvals().consume(used).await.map(|used| match used {
                ApprovalUse::Used(begun) => Ok(begun),
                ApprovalUse::Refused(reason) => Err(reason),
            })
        }
    };
    match begun {
        Ok(Ok(begun)) => Ok(begun),
        Ok(Err(reason)) => {
            let session = &call.session.id;
            tracing::info!(call = call.id, session, why = ?reason, "the approval no longer covers its call");
            Err(CallRefusal::approval_spent())
        }
        Err(error) => {
            config.meter.unrecorded.add(1);
            tracing::error!(call = call.id, session = call.session.id, reason = %error, "a write is not sent: cannot write its audit record");
            Err(CallRefusal::failed("its audit record cannot be written, and nothing is sent without one"))
        }
    }
}

/// Records the outcome of a write. `task` is the upstream's id of the task that continues the call.
pub(super) async fn write(
    broker: &Broker,
    call: &ToolCall<'_>,
    intent: RecordedIntent,
    result: CallResult,
    task: Option<String>,
) -> (CallResult, AuditOutcome) {
    let (outcome, detail) = outcome_of(&result);
    // Later requests about the task, possibly from another process, are recorded under this id.
    let detail = task.map(|task| format!("the server continues it as the task `{task}`")).or(detail);
    tracing::debug!(call = call.id, session = call.session.id, ?outcome, "the call is over");
    if let Err(error) = broker.config.store.audit().finish(intent, outcome, detail).await {
        broker.config.meter.unrecorded.add(1);
        tracing::error!(call = call.id, session = call.session.id, reason = %error, "cannot record the outcome of a write");
    }
    queue(broker, call, &result, None).await;
    (result, outcome)
}

pub(super) async fn read(
    broker: &Broker,
    call: &ToolCall<'_>,
    result: CallResult,
) -> (CallResult, AuditOutcome) {
    let outcome = outcome_of(&result).0;
    tracing::debug!(call = call.id, session = call.session.id, ?outcome, "the call is over");
    queue(broker, call, &result, Some(outcome)).await;
    (result, outcome)
}

/// Queues the work that the host does not wait for: a read's record, and the observation of the call by the mind.
async fn queue(broker: &Broker, call: &ToolCall<'_>, result: &CallResult, read: Option<AuditOutcome>) {
    let is_observed = call.is_tool_call()
        && matches!(call.upstream.spec().role, Role::Body(_))
        && !observes_itself(call.upstream);
    let observed = if is_observed { ObservedResult::of(result) } else { None };
    if read.is_none() && observed.is_none() {
        return;
    }
    let finished = FinishedCall {
        identity: Arc::clone(&call.session.identity),
        call_id: call.id.clone(),
        body: Arc::clone(&call.tool.upstream),
        tool: call.tool.tool.clone(),
        class: call.ruling.class,
        arguments: Arc::clone(&call.arguments),
        read,
        observed,
    };
    broker.post_calls.add(finished).await;
}

pub(super) async fn decision(
    config: &BrokerConfig,
    call: &ToolCall<'_>,
    decision: DecisionKind,
    reason: String,
) {
    tracing::debug!(call = call.id, session = call.session.id, ?decision, reason, "the call is not made");
    let event =
        Event::Decision(embody_store::audit::DecisionRecord { call: audited(call), decision, reason });
    let record = Record { actor: call.session.identity.actor.clone(), event };
    if let Err(error) = config.store.audit().append_deferred(record).await {
        config.meter.unrecorded.add(1);
        tracing::error!(call = call.id, session = call.session.id, reason = %error, "cannot record a decision");
    }
}

fn audited(call: &ToolCall<'_>) -> AuditedCall {
    let (body, tool) = (&call.tool.upstream, &call.tool.tool);
    audited_call(&call.id, body, tool, call.ruling.class, call.arguments.redacted())
}

pub(crate) fn audited_call(
    id: &str,
    body: &str,
    tool: &str,
    class: Class,
    args: RedactedArguments,
) -> AuditedCall {
    let (call_id, body, tool) = (id.to_owned(), body.to_owned(), tool.to_owned());
    AuditedCall { call_id, body, tool, class: class.name().to_owned(), args }
}

pub(crate) fn outcome_of(result: &CallResult) -> (AuditOutcome, Option<String>) {
    match result {
        CallResult::Answered(Outcome::Result(result)) if is_error(result) => (AuditOutcome::Failed, None),
        CallResult::Answered(Outcome::Result(_)) => (AuditOutcome::Done, None),
        CallResult::Answered(Outcome::Error(error)) => {
            (AuditOutcome::Failed, Some(error.get().chars().take(500).collect()))
        }
        CallResult::Unavailable(reason) => (AuditOutcome::Denied, Some(format!("not sent: {reason}"))),
        CallResult::NotSent(error) => (AuditOutcome::Denied, Some(format!("not sent: {error}"))),
        CallResult::Lost(error) if error.was_not_executed() => {
            (AuditOutcome::Failed, Some(error.to_string()))
        }
        CallResult::Lost(error) => (AuditOutcome::Unknown, Some(error.to_string())),
        CallResult::TimedOut => (AuditOutcome::Unknown, Some("no answer in time".to_owned())),
        CallResult::CancelledUnsent => {
            (AuditOutcome::Denied, Some("not sent: cancelled by the host".to_owned()))
        }
        CallResult::Cancelled => (AuditOutcome::Unknown, Some("cancelled by the host".to_owned())),
    }
}

pub(crate) fn is_error(result: &RawValue) -> bool {
    #[derive(serde::Deserialize)]
    struct Flag {
        #[serde(rename = "isError", default)]
        is_error: Option<bool>,
    }
    may_contain(result, "isError")
        && serde_json::from_str::<Flag>(result.get()).is_ok_and(|flag| flag.is_error == Some(true))
}
