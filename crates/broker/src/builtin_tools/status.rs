//! `runtime_status`: the state of each part of a session, with reasons.

use embody_store::approvals::ApprovalFilter;
use serde_json::{Value, json};

use crate::BrokerConfig;
use crate::degraded::Degraded;
use crate::session::untrusted_reads::ERRORS;
use crate::session::{CONNECTING, Session, lock};
use crate::upstream::{Health, Role, Upstream, UpstreamStatus};

const APPROVALS_MAX: u32 = 20;
const QUARANTINED_MAX: usize = 20;

/// The state of a session. Marks quoted text of a body as read.
pub(crate) async fn of(config: &BrokerConfig, session: &Session) -> Value {
    let contract = session.current_contract().map(|contract| contract.hash);
    let degraded = session.degraded();
    let catalogue = session.catalogue();
    let shown = config.settings().listing_limit.apply(&catalogue, &session.found_tools());
    let (unlisted, offered) = (shown.unlisted, shown.tools.len() + shown.unlisted);
    let mut quarantined = Vec::new();
    for tool in catalogue.quarantined().take(QUARANTINED_MAX) {
        let (state, reason) = (tool.quarantine_state(), tool.quarantine_reason());
        if let Some(reason) = &reason {
            session.mark_quoted(tool, reason).await;
        }
        let reason = reason.map(|reason| reason.to_string());
        quarantined
            .push(json!({"name": tool.name, "upstream": &*tool.upstream, "state": state, "reason": reason}));
    }
    let store = &config.store;
    let user = session.scope.user();
    let approvals = match store.approvals().list(user, ApprovalFilter::Pending, APPROVALS_MAX).await {
        Ok(approvals) => approvals
            .iter()
            .map(|one| json!({"id": one.id, "body": one.body, "tool": one.tool, "class": one.class, "reason": one.reason, "expires_at": one.expires_at}))
            .collect(),
        Err(error) => json!({"error": error.to_string()}),
    };
    let waiting = store
        .outbox()
        .pending(user)
        .await
        .map_or(Value::Null, |pending| json!({"count": pending.count, "oldest_at": pending.oldest_at}));
    let cognition = lock(&session.last_cognition)
        .clone()
        .map(|last| json!({"what": last.stage, "tool": last.tool, "at": last.at, "failure": last.failure}));
    for one in &degraded {
        if let Degraded::BodyUnavailable { body, reason } = one
            && reason != CONNECTING
        {
            session.mark_read(body, ERRORS).await;
        }
    }
    let mut upstreams = Vec::new();
    for upstream in session.upstreams() {
        let instructions = crate::session::instructions::status(store, upstream).await;
        let state = upstream.status();
        if state.reason.is_some() {
            session.mark_read(&upstream.spec().name, ERRORS).await;
        }
        upstreams.push(upstream_status(upstream, &state, instructions));
    }
    json!({
        "session_id": session.id,
        "user": user,
        "agent": session.scope.agent(),
        "channel": session.host.principal.channel,
        "bootstrapped": session.bootstrap_data().is_some(),
        "contract": {"hash": contract, "delivered": session.was_delivered()},
        "degraded": !degraded.is_empty(),
        "degraded_modes": degraded.iter().map(Degraded::name).collect::<Vec<_>>(),
        "degraded_reasons": degraded.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "tools": {"offered": offered, "listed": offered - unlisted, "quarantined": quarantined},
        "upstreams": upstreams,
        "pending_approvals": approvals,
        "observations_waiting": waiting,
        "observations_dropped": config.meter.unobserved.get(),
        "last_cognition": cognition,
        "version": env!("CARGO_PKG_VERSION"),
    })
}

fn upstream_status(upstream: &Upstream, state: &UpstreamStatus, instructions: Value) -> Value {
    let role = match upstream.spec().role {
        Role::Mind => "mind",
        Role::Body(_) => "body",
    };
    json!({
        "name": upstream.spec().name,
        "role": role,
        "state": match state.health {
            Health::Connecting => "connecting",
            Health::Connected => "connected",
            Health::Unavailable => "unavailable",
            Health::Idle => "idle",
        },
        "reason": state.reason,
        "since": state.since_ms,
        "transport": state.transport,
        "protocol_version": state.version,
        "era": state.is_stateless.map(|is_stateless| if is_stateless { "stateless" } else { "session" }),
        "tool_count": upstream.tools().len(),
        "restarts": state.restarts,
        "idle_stops": state.idle_stops,
        // The stderr of a working server explains nothing, and would count as an untrusted read.
        "stderr": if state.reason.is_some() { &*state.stderr } else { &[] },
        "instructions": instructions,
    })
}
