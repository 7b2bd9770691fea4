//! Approve: asks the owner about one call and returns to the gate with the answer. `crate::approval` owns the text and the
//! channels; the use of an approval is committed with the intent (`record`).

use std::sync::Arc;
use std::time::Instant;

use embody_store::approvals::ApprovalRequest;
use embody_wire::server::{Era, ServerRequest};
use serde_json::json;
use serde_json::value::RawValue;

use super::ToolCall;
use super::classify::classify;
use super::gate::{self, ApprovalCheck, Decision, Mind, Permit, Pin, Reason, Situation};
use super::observe::MindView;
use super::respond::{self, CallRefusal, raw};
use crate::Broker;
use crate::approval::{Answer, ApprovalPrompt, Approvals, bound_policy, flag_text};
use crate::catalogue::Texts;
use crate::meter::trace;
use crate::policy::{Gate, Via};
use crate::upstream::{Health, missing_arguments};

/// The reason for denying a call that only a form can approve.
const NO_RIGHT: &str = "the rules allow approval only in a form of the host, and answers in this host do not count as the owner's";

/// Refuses a call that would fail whatever the owner answers.
pub(super) async fn refuse_certain_failure(call: &ToolCall<'_>) -> Result<(), CallRefusal> {
    let Some(arguments) = call.arguments.value().as_object().filter(|_| call.is_tool_call()) else {
        return Ok(());
    };
    let error = match &call.upstream.spec().check {
        Some(check) => check.error(&call.tool.tool, arguments).await,
        None => missing_arguments(&call.tool.definition, arguments),
    };
    match error {
        Some(error) => Err(CallRefusal::certain_failure(&error)),
        None => Ok(()),
    }
}

pub(super) async fn ask_and_decide(
    broker: &Broker,
    call: &ToolCall<'_>,
    view: &MindView,
    mut situation: Situation,
    reason: Reason,
) -> Result<(Permit, String), CallRefusal> {
    let answer = tokio::select! {
        biased;
        // A call that the host has cancelled is not sent, even if the owner approves it later.
        () = call.request.until_cancelled_or_shutdown() => return Err(CallRefusal::cancelled()),
        answer = call.timing.exclude_wait(ask(broker, call, reason, view)) => answer?,
    };
    let (mut asked_on, mut have_rules_changed) = (Vec::new(), false);
    let (approval, id) = match answer {
        Answer::Approved { id } => (ApprovalCheck::Given, id),
        Answer::Denied { id, by } => return Err(CallRefusal::denied(&by).approval(id)),
        Answer::TimedOut { id } => return Err(CallRefusal::expired().approval(id)),
        Answer::Lapsed { id, .. } => return Err(CallRefusal::lapsed().approval(id)),
        Answer::Pending { id, channels, after_other_rules } => {
            (asked_on, have_rules_changed) = (channels, after_other_rules);
            (ApprovalCheck::Pending, id)
        }
        Answer::Full => return Err(CallRefusal::too_many_approvals()),
        Answer::Unshowable(reason) => return Err(CallRefusal::unshowable(reason)),
    };
    // The situation may have changed while the owner decided: evaluate it again.
    situation.approval = approval;
    situation.is_body_up = call.link.as_ref().is_ok_and(|link| link.closed().is_none());
    situation.is_contract_delivered = gate::is_contract_delivered(&broker.config, call).await?;
    let catalogue = call.session.catalogue();
    situation.pin = match catalogue.get(&call.tool.name) {
        // Only tools have definitions.
        _ if !call.is_tool_call() => call.tool.pin,
        Some(tool) if tool.hash == call.tool.hash && tool.upstream == call.tool.upstream => tool.pin,
        _ => Pin::Changed,
    };
    if let Some(reason) = denial_of_now(broker, call) {
        return Err(CallRefusal::forbidden(reason).approval(id));
    }
    if !call.upstream.spec().role.is_mind() && call.session.mind.health() == Health::Unavailable {
        situation.mind = Mind::Away;
    }
    match gate::decide(&situation) {
        Decision::Permit(permit) => Ok((permit, id)),
        decision => {
            let refusal = respond::refusal(broker, call, &decision, view, &asked_on).await.approval(id);
            Err(if have_rules_changed { refusal.after_other_rules() } else { refusal })
        }
    }
}

/// Why the current rules deny the call. It ends under the rules that it began with, but not against a denial.
fn denial_of_now(broker: &Broker, call: &ToolCall<'_>) -> Option<String> {
    let settings = broker.config.settings();
    if !call.is_tool_call() || settings.policy_version == call.settings.policy_version {
        return None;
    }
    let ruling = classify(&settings.policy, call.session, call.tool, call.upstream, &call.arguments);
    (ruling.gate == Gate::Deny).then(|| ruling.reasons.join("; "))
}

async fn ask(
    broker: &Broker,
    call: &ToolCall<'_>,
    reason: Reason,
    view: &MindView,
) -> Result<Answer, CallRefusal> {
    let (session, via) = (call.session, &*call.ruling.via);
    let principal = &session.host.principal;
    if !principal.may_approve && *via == [Via::Elicitation] {
        return Ok(Answer::Unshowable(NO_RIGHT.to_owned()));
    }
    // A form answer counts as the owner's only if the host may approve.
    let can_elicit = principal.may_approve
        && via.contains(&Via::Elicitation)
        && session.host.initialize_params().can_show_forms();
    let request = Arc::clone(call.request);
    let elicit = can_elicit.then_some(move |params: Box<RawValue>| async move {
        // An answer that arrives at another process is valid only for exactly this text.
        let shown = blake3::hash(params.get().as_bytes()).to_hex();
        let resume_data = Some(raw(&json!({"approval": shown.as_str()})));
        let (key, method) = (Some("approval".to_owned()), "elicitation/create".to_owned());
        let question = ServerRequest { key, method, params: Some(params), resume_data, must_be_seen: true };
        request.ask_all(vec![question]).await.pop()?.ok()
    });
    let prompt = ApprovalPrompt {
        request: approval_request(call, reason, view),
        class: call.ruling.class,
        via,
        declared: Texts::of(&call.tool.definition).declared_arguments(),
        // A stateless host is asked in the response to its call; no request stays open.
        is_suspended: call.request.host.era() == Era::Stateless,
    };
    let meter = &broker.config.meter;
    let (_asking, step, began) = (meter.enter_approval(), trace::approval_span(), Instant::now());
    let approvals = Approvals::new(broker.config.store.clone(), call.settings.times.ask_wait);
    let asked = approvals.ask(prompt, elicit).await;
    step.finish_ok();
    if let Ok(answer) = &asked {
        meter.record_approval(answer, began.elapsed());
    }
    asked.map_err(|error| {
        tracing::error!(call = call.id, session = session.id, reason = %error, "cannot ask the owner");
        CallRefusal::failed("the owner cannot be asked: the store does not answer")
    })
}

fn approval_request(call: &ToolCall<'_>, reason: Reason, view: &MindView) -> ApprovalRequest {
    let (session, ruling) = (call.session, &call.ruling);
    let reason = match reason {
        Reason::Mind => {
            let flag = view.flags.first().map(|flag| format!("the mind flagged it: {}", flag_text(flag)));
            flag.into_iter().chain(ruling.reasons.iter().cloned()).collect::<Vec<_>>().join("; ")
        }
        _ if !ruling.reasons.is_empty() => ruling.reasons.join("; "),
        _ => ruling.class.why_asked().to_owned(),
    };
    let difference = call.lasting.iter().flat_map(|lasting| &lasting.difference);
    let difference = difference.map(|line| format!("instructions change: {line}"));
    ApprovalRequest {
        scope: session.scope.clone(),
        session: session.id.clone(),
        channel: session.host.principal.channel.clone(),
        body: call.tool.upstream.to_string(),
        tool: call.tool.tool.clone(),
        class: ruling.class.name().to_owned(),
        args: call.arguments.canonical().to_owned(),
        pin: call.tool.hash.clone(),
        policy: bound_policy(&call.settings.policy_version, ruling.class, &ruling.via),
        reason,
        flags: view.flags.iter().cloned().chain(difference).collect(),
        timeout: call.settings.times.ask,
    }
}
