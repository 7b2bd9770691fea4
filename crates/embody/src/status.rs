//! What runs, what is degraded, and what waits: read from the store for `embody status`, `embody doctor` and `/api/status`.

use std::time::Duration;

use embody_broker::catalogue::quarantine_reason;
use embody_store::Store;
use embody_store::approvals::ApprovalFilter;
use embody_store::pins::ToolPin;
use embody_store::sessions::{BrokerSession, ContractState};
use serde::Serialize;
use serde_json::{Value, json};

use crate::broker_setup::visible_bodies;
use crate::config::Config;
use crate::error::CliError;
use crate::server_tools::{self, Server};
use crate::time::{display, rfc3339};

/// Sessions send a heartbeat every twenty seconds; one whose process died looks alive until this has passed.
const SESSION_TTL: Duration = Duration::from_secs(60);
/// The client name of embody's own agent.
const OWN_AGENT: &str = "embody-agent";
/// The channel of every other host.
const HOSTS: &str = "mcp";
const LIMIT: u32 = 100;
/// How many quarantined definitions and unknown outcomes are listed.
pub(crate) const LISTED: usize = 20;

/// What a user may know about the sessions and the waiting work.
pub(crate) struct Status {
    pub(crate) store: String,
    pub(crate) bodies: Vec<String>,
    pub(crate) servers: Vec<Server>,
    pub(crate) now: i64,
    pub(crate) sessions: Vec<BrokerSession>,
    pub(crate) approvals: usize,
    pub(crate) observations: i64,
    pub(crate) unfinished: usize,
    pub(crate) waiting_tools: Vec<ToolPin>,
    pub(crate) unknown_outcomes: Vec<UnknownOutcome>,
}

/// Only what this user may see: not even the names of bodies that they may not use.
pub(crate) async fn read(
    store: &Store,
    (user, owner): (&str, &str),
    config: &Config,
    url: String,
) -> Result<Status, CliError> {
    let now = jiff::Timestamp::now().as_microsecond();
    let alive = now.saturating_sub(i64::try_from(SESSION_TTL.as_micros()).unwrap_or(i64::MAX));
    let mut sessions = store.sessions().list(user, LIMIT).await?;
    sessions.retain(|session| session.seen_at >= alive);
    let seen = visible_bodies(config, user, owner);
    let is_seen = |pin: &ToolPin| seen.as_ref().is_none_or(|seen| seen.contains(&pin.body));
    let pins = store.pins().list(("", ""), 10_000).await?;
    Ok(Status {
        store: url,
        bodies: bodies(config, user, owner),
        servers: server_tools::servers(config, Some(store), user, owner).await?,
        now,
        sessions,
        approvals: store.approvals().list(user, ApprovalFilter::Pending, LIMIT).await?.len(),
        observations: store.outbox().pending(user).await?.count,
        unfinished: store
            .audit()
            .open_writes(now, LIMIT)
            .await?
            .iter()
            .filter(|write| write.user == user)
            .count(),
        waiting_tools: pins.into_iter().filter(is_seen).filter(is_waiting).collect(),
        unknown_outcomes: unknown_outcomes_of(store, user).await?,
    })
}

pub(crate) fn bodies(config: &Config, user: &str, owner: &str) -> Vec<String> {
    let theirs = config.bodies.iter().filter(|body| user == owner || body.users.include(user, owner));
    theirs.map(|body| body.name.clone()).collect()
}

impl Status {
    pub(crate) fn json(&self) -> Value {
        json!({
            "store": self.store,
            "bodies": self.bodies,
            "servers": self.servers.iter().map(Server::json).collect::<Vec<_>>(),
            "sessions": self.sessions.iter().map(session_json).collect::<Vec<_>>(),
            "pending_approvals": self.approvals,
            "observations_waiting": self.observations,
            "writes_without_outcome": self.unfinished,
            "tools_waiting": self.waiting_tools.len(),
            "quarantined": self.waiting_tools.iter().take(LISTED).map(quarantined_json).collect::<Vec<_>>(),
            "lost": self.unknown_outcomes,
        })
    }
}

pub(crate) fn is_waiting(pin: &ToolPin) -> bool {
    !pin.accepted || pin.is_new || pin.seen.is_some()
}

/// The state in JSON. In text a definition that was never accepted is called quarantined, as in the documentation.
pub(crate) fn pin_state(pin: &ToolPin) -> &'static str {
    match (pin.accepted, &pin.seen) {
        (false, _) => "held",
        (true, Some(_)) => "changed",
        (true, None) if pin.is_new => "new",
        (true, None) => "pinned",
    }
}

/// Whether the session received the contract; `None` for embody's own agent, whose prompts contain it.
pub(crate) fn contract_delivered(session: &BrokerSession) -> Option<bool> {
    let is_delivered = !matches!(session.contract, ContractState::Unwritten);
    // The name is chosen by the host; the channel is not.
    let is_own =
        session.channel != HOSTS && session.host.as_deref().is_some_and(|host| name(host) == OWN_AGENT);
    (is_delivered || !is_own).then_some(is_delivered)
}

fn quarantined_json(pin: &ToolPin) -> Value {
    let reason = quarantine_reason(pin).map(|reason| reason.to_string());
    json!({"body": pin.body, "tool": pin.tool, "state": pin_state(pin), "reason": reason})
}

fn session_json(session: &BrokerSession) -> Value {
    json!({
        "id": session.id,
        "agent": session.agent,
        "channel": session.channel,
        "host": session.host.as_deref().and_then(|host| serde_json::from_str::<Value>(host).ok()),
        "bootstrapped": session.packet.is_some(),
        "contract_delivered": contract_delivered(session),
        "degraded_reasons": session.reasons,
        "since": rfc3339(session.created_at),
        "seen": rfc3339(session.seen_at),
    })
}

fn name(host: &str) -> String {
    let host: Value = serde_json::from_str(host).unwrap_or_default();
    host.get("name").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// How many unknown outcomes of each kind are read.
const OUTCOMES: u32 = 1000;

#[derive(Debug, Serialize)]
pub(crate) struct UnknownOutcome {
    /// `incoming`, `outgoing` or `run`.
    pub(crate) kind: &'static str,
    /// Its id; of a run, that of its schedule.
    pub(crate) id: String,
    #[serde(skip)]
    pub(crate) user: String,
    pub(crate) channel: String,
    /// The conversation, the recipient, or the time that the run was due.
    pub(crate) about: String,
    pub(crate) at: String,
    #[serde(skip)]
    pub(crate) micros: i64,
}

/// Newest first.
pub(crate) async fn unknown_outcomes(store: &Store) -> Result<Vec<UnknownOutcome>, CliError> {
    let mut all = Vec::new();
    for one in store.incoming().list_unknown(OUTCOMES).await? {
        let at = one.started_at.unwrap_or(one.created_at);
        all.push(unknown_outcome("incoming", (one.user, one.id), one.channel, one.conversation, at));
    }
    for one in store.outgoing().list_unknown(OUTCOMES).await? {
        all.push(unknown_outcome("outgoing", (one.user, one.id), one.channel, one.to, one.created_at));
    }
    for one in store.schedules().list_unknown_runs(OUTCOMES).await? {
        let due = format!("due {}", display(one.due_at));
        all.push(unknown_outcome(
            "run",
            (one.user, one.schedule),
            "scheduled".to_owned(),
            due,
            one.started_at,
        ));
    }
    all.sort_by_key(|one| std::cmp::Reverse(one.micros));
    Ok(all)
}

async fn unknown_outcomes_of(store: &Store, user: &str) -> Result<Vec<UnknownOutcome>, CliError> {
    let mut all = unknown_outcomes(store).await?;
    all.retain(|one| one.user == user);
    Ok(all)
}

fn unknown_outcome(
    kind: &'static str,
    (user, id): (String, String),
    channel: String,
    about: String,
    micros: i64,
) -> UnknownOutcome {
    UnknownOutcome { kind, id, user, channel, about, at: rfc3339(micros), micros }
}
