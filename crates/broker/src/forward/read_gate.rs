//! The gate for requests that are not tool calls. Each reads one item of a server, named `BODY/resource:URI`,
//! `BODY/prompt:NAME` or `BODY/method:NAME` in rules, `deny` and the audit; it is decided, approved and recorded like a call.
//!
//! Lists and requests about a task that a call started are not recorded and need no approval; only a denial applies. They
//! forward only the parameters that the list or the task needs.

use std::sync::Arc;
use std::time::Instant;

use embody_store::audit::{AuditOutcome, Event, Read, Record, RedactedArguments};
use embody_wire::server::{code, failure};
use embody_wire::{Outcome, off_runtime};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::printable;
use super::route::HostRequest;
use crate::arguments::Arguments;
use crate::catalogue::CatalogTool;
use crate::gate::{ApprovalCheck, Decision, Mind, MindDown, Permit, Pin, Situation, decide};
use crate::json::Members;
use crate::meter::Timing;
use crate::params::{with_known_meta, without_meta};
use crate::pipeline;
use crate::pipeline::record::audited_call;
use crate::pipeline::send::CallResult;
use crate::policy::{Annotations, Class, Facts, Gate, Kind, Policy, Ruling};
use crate::session::Session;
use crate::upstream::{Role, Upstream};
use crate::{BrokerConfig, builtin_tools};

/// Evaluates the rules for an item that is not a tool: it is a read, unless a rule makes it stricter.
fn evaluate_rules(
    policy: &Policy,
    session: &Session,
    upstream: &Upstream,
    item: &str,
    args: &Value,
) -> Ruling {
    let (spec, principal) = (upstream.spec(), &session.host.principal);
    let facts = Facts {
        tool: item,
        body: &spec.name,
        args,
        has_extra: false,
        channel: &principal.channel,
        user: session.scope.user(),
        session: &session.id,
    };
    let reads = Annotations { read_only_hint: Some(true), ..Annotations::default() };
    let ruling = policy.rule(&facts, reads, true);
    match &spec.role {
        Role::Body(body) if !body.exposes(&spec.name, item) => {
            ruling.denied("the operator does not expose it")
        }
        Role::Mind if principal.shared_conversation.is_some() => {
            ruling.denied(builtin_tools::SHARED_CONVERSATION)
        }
        Role::Body(_) | Role::Mind => ruling,
    }
}

/// The permit for a list or a request about a task; `None` if it is denied.
pub(crate) fn permit(
    config: &BrokerConfig,
    session: &Session,
    upstream: &Upstream,
    method: &str,
) -> Option<Permit> {
    let ruling =
        evaluate_rules(&config.settings().policy, session, upstream, &Kind::Method.name(method), &json!({}));
    let gate = if ruling.gate == Gate::Deny { Gate::Deny } else { Gate::Allow };
    let situation = Situation {
        class: Class::Read,
        gate,
        is_body_up: true,
        pin: Pin::Same,
        is_contract_delivered: true,
        mind: Mind::Calm,
        mind_down: MindDown::Warn,
        approval: ApprovalCheck::None,
    };
    match decide(&situation) {
        Decision::Permit(permit) => Some(permit),
        _ => None,
    }
}

pub(crate) fn denied(upstream: &Upstream, method: &str) -> Outcome {
    let (name, method) = (&upstream.spec().name, printable(method));
    failure(code::INVALID_REQUEST, format!("a rule of the operator forbids `{method}` for `{name}`"))
}

/// Sends a request to this upstream as a read of this item if the gate permits it; otherwise returns the refusal.
pub(super) async fn send(
    request: HostRequest<'_>,
    upstream: &Arc<Upstream>,
    item: &str,
    params: Option<&RawValue>,
) -> Result<CallResult, Outcome> {
    let HostRequest { broker, session, call } = request;
    let members = params.map(|params| serde_json::from_str::<Members<'_>>(params.get()));
    let members = members.and_then(Result::ok).map(|Members(members)| members).unwrap_or_default();
    let members: Vec<(&str, &str)> = members.iter().map(|(name, value)| (&**name, value.get())).collect();
    let shown = without_meta(&members);
    let max_bytes = upstream.spec().role.arguments_max_bytes();
    let arguments = Arguments::read_within(shown.as_deref().or(params), max_bytes).map_err(|error| {
        pipeline::respond::rejected(&broker.config, code::INVALID_PARAMS, error.to_string())
    })?;
    let bytes = arguments.canonical().len();
    let settings = broker.config.settings();
    let ruling =
        off_runtime(bytes, || evaluate_rules(&settings.policy, session, upstream, item, arguments.value()));
    let link = match ruling.gate {
        // A denied request does not start a server.
        Gate::Deny => Err("the request is not sent".to_owned()),
        Gate::Allow | Gate::Ask => match upstream.lease().await {
            Ok(link) => Ok(link),
            Err(away) => return Ok(CallResult::Unavailable(away.to_string())),
        },
    };
    let sent = params.map(|params| with_known_meta(params, &members).0);
    let now = Instant::now();
    let call = pipeline::ToolCall {
        session,
        request: call,
        tool: &CatalogTool::without_definition(upstream.spec(), item),
        upstream,
        link,
        method: &call.request.method,
        params: sent.as_deref(),
        wants_task: false,
        arguments: Arc::new(arguments),
        ruling,
        settings,
        lasting: None,
        id: uuid::Uuid::now_v7().simple().to_string(),
        began: tokio::time::Instant::from_std(now),
        meter: broker.config.meter.body(&upstream.spec().name),
        timing: Timing::since(now),
    };
    pipeline::run_request(broker, &call).await
}

pub(super) fn is_denied(
    request: HostRequest<'_>,
    upstream: &Upstream,
    item: &str,
    params: Option<&RawValue>,
) -> bool {
    let args = params.and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or_else(|| json!({}));
    evaluate_rules(&request.broker.config.settings().policy, request.session, upstream, item, &args).gate
        == Gate::Deny
}

/// Whether a resource of this upstream may be watched when no person can be asked. Records the decision.
pub(super) async fn may_watch(
    config: &BrokerConfig,
    session: &Session,
    upstream: &Upstream,
    uri: &str,
) -> bool {
    let item = Kind::Resource.name(uri);
    let args = json!({ "uri": uri });
    let ruling = evaluate_rules(&config.settings().policy, session, upstream, &item, &args);
    let id = uuid::Uuid::now_v7().simple().to_string();
    let redacted = RedactedArguments::of(&args.to_string());
    let call = audited_call(&id, &upstream.spec().name, &item, ruling.class, redacted);
    let may_watch = ruling.gate == Gate::Allow && ruling.class == Class::Read;
    let outcome = if may_watch { AuditOutcome::Done } else { AuditOutcome::Denied };
    let record = Record { actor: session.identity.actor.clone(), event: Event::Read(Read { call, outcome }) };
    if let Err(error) = config.store.audit().append_deferred(record).await {
        config.meter.unrecorded.add(1);
        tracing::error!(session = session.id, reason = %error, "a resource subscription could not be recorded");
    }
    may_watch
}

/// Whether an item of a list is shown: a body has neither reserved names nor items that are not exposed.
pub(super) fn is_listed(upstream: &Upstream, kind: Kind, name: &str) -> bool {
    let spec = upstream.spec();
    match &spec.role {
        Role::Mind => true,
        Role::Body(body) => {
            let is_reserved = kind == Kind::Resource && super::resources::Scheme::of(name).is_some();
            !is_reserved && body.exposes(&spec.name, &kind.name(name))
        }
    }
}
