//! `embody status`: running sessions, degraded states, pending approvals, and the messages and runs whose process died before the
//! outcome was recorded. Reads only the store; starts and repeats nothing.

use std::fmt::Write;
use std::process::ExitCode;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use embody_broker::catalogue::quarantine_reason;
use embody_broker::visible;
use embody_store::Store;
use embody_store::approvals::ApprovalFilter;
use embody_store::pins::ToolPin;
use embody_store::sessions::{BrokerSession, ContractState};
use embody_text::truncate;
use serde::Serialize;
use serde_json::{Value, json};

use super::pins::{is_waiting, state};
use super::{Context, ScopeArgs};
use crate::broker_setup::visible_bodies;
use crate::config::Config;
use crate::error::CliError;
use crate::output::{pluralize, printable};
use crate::pidfile::{self, UpProcess};
use crate::store;
use crate::time::{display, rfc3339};

const HEAD: Style = Style::new().bold();
const BAD: Style = AnsiColor::Yellow.on_default();
/// Sessions send a heartbeat every twenty seconds; one whose process died looks alive until this has passed.
const SESSION_TTL: Duration = Duration::from_secs(60);
/// The client name of embody's own agent.
const OWN_AGENT: &str = "embody-agent";
/// The channel of every other host.
const HOSTS: &str = "mcp";
const LIMIT: u32 = 100;
/// How many quarantined definitions and unknown outcomes are listed.
const LISTED: usize = 20;

pub(super) const EXAMPLES: &str = "Examples:\n  embody status\n  embody status --user ann --json";

struct Status {
    store: String,
    bodies: Vec<String>,
    now: i64,
    sessions: Vec<BrokerSession>,
    approvals: usize,
    observations: i64,
    unfinished: usize,
    waiting_tools: Vec<ToolPin>,
    unknown_outcomes: Vec<UnknownOutcome>,
}

pub(crate) fn run(scope: &ScopeArgs, context: &Context) -> Result<ExitCode, CliError> {
    let user = scope.user();
    let (config, owner) = (&context.config, ScopeArgs::owner());
    let bodies = bodies(config, &user, &owner);
    let url = store::database_url(context).to_string();
    let status =
        store::with_existing(context, async |store| read(store, (&user, &owner), config, url).await)?;
    let up = pidfile::read(&context.workspace);
    let Some(status) = status else {
        let text = match &up {
            None => "Nothing has run in this workspace yet. A host starts `embody mcp`.".to_owned(),
            up => format!("{}; the configured store is empty.", up_text(up.as_ref())),
        };
        return context.print_plain(&json!({"sessions": [], "bodies": bodies, "up": up}), || text + "\n");
    };
    let mut report = status.json();
    if let Some(members) = report.as_object_mut() {
        members.insert("up".to_owned(), json!(up));
    }
    context.print(&report, || status.text(up.as_ref()))
}

pub(crate) async fn as_json(
    store: &Store,
    user: &str,
    owner: &str,
    config: &Config,
) -> Result<Value, CliError> {
    Ok(read(store, (user, owner), config, store.url().to_string()).await?.json())
}

fn bodies(config: &Config, user: &str, owner: &str) -> Vec<String> {
    let theirs = config.bodies.iter().filter(|body| user == owner || body.users.include(user, owner));
    theirs.map(|body| body.name.clone()).collect()
}

/// Only what this user may see: not even the names of bodies that they may not use.
async fn read(
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

impl Status {
    fn json(&self) -> Value {
        json!({
            "store": self.store,
            "bodies": self.bodies,
            "sessions": self.sessions.iter().map(session_json).collect::<Vec<_>>(),
            "pending_approvals": self.approvals,
            "observations_waiting": self.observations,
            "writes_without_outcome": self.unfinished,
            "tools_waiting": self.waiting_tools.len(),
            "quarantined": self.waiting_tools.iter().take(LISTED).map(quarantined_json).collect::<Vec<_>>(),
            "lost": self.unknown_outcomes,
        })
    }

    fn text(&self, up: Option<&UpProcess>) -> String {
        let mut out = String::new();
        let mut line = |name: &str, text: String| {
            let _ = writeln!(out, "{HEAD}{name:10}{HEAD:#} {text}");
        };
        line("store", printable(&self.store).into_owned());
        line(
            "bodies",
            if self.bodies.is_empty() { "none configured".to_owned() } else { self.bodies.join(", ") },
        );
        line("up", up_text(up));
        line(
            "sessions",
            match self.sessions.len() {
                0 => "none active in the last minute".to_owned(),
                count => {
                    format!("{count} active in the last minute (may include sessions that just ended)")
                }
            },
        );
        for session in &self.sessions {
            line("", self.session(session));
            for reason in &session.reasons {
                line("", format!("  {BAD}degraded:{BAD:#} {}", printable(&truncate(reason, 200))));
            }
        }
        let hint = |count: usize, command: &str| match count {
            0 => "none".to_owned(),
            _ => format!("{count}: {command}"),
        };
        line("approvals", hint(self.approvals, "embody approvals list"));
        line(
            "tools",
            match self.waiting_tools.len() {
                0 => "no definition is quarantined".to_owned(),
                count => {
                    format!("{BAD}{} quarantined{BAD:#}: embody pins list", pluralize(count, "definition"))
                }
            },
        );
        for pin in self.waiting_tools.iter().take(LISTED) {
            let name = visible::line(&format!("{}/{}", pin.body, pin.tool)).into_owned();
            let reason = quarantine_reason(pin).map(|reason| reason.to_string()).unwrap_or_default();
            line("", format!("  {BAD}{}{BAD:#} {name}: {reason}", state(pin)));
        }
        line("outbox", format!("{} not yet delivered to the mind", self.observations));
        line(
            "writes",
            match self.unfinished {
                0 => "all have an outcome".to_owned(),
                count => format!("{BAD}{count} without an outcome{BAD:#}: in progress or unknown"),
            },
        );
        line(
            "unknown",
            match self.unknown_outcomes.len() {
                0 => "none".to_owned(),
                count => format!(
                    "{BAD}{count}{BAD:#} messages or runs with an unknown outcome; they are not repeated"
                ),
            },
        );
        for outcome in self.unknown_outcomes.iter().take(LISTED) {
            line("", outcome.line());
        }
        if self.unknown_outcomes.len() > LISTED {
            line("", format!("… and {} more: --json has them all", self.unknown_outcomes.len() - LISTED));
        }
        out
    }

    fn session(&self, session: &BrokerSession) -> String {
        let (id, channel) = (truncate(&session.id, 12), printable(&session.channel));
        let host = session.host.as_deref().map(host_name).unwrap_or_default();
        let contract = match contract_delivered(session) {
            None => "contract in the prompt",
            Some(false) => "contract not delivered",
            Some(true) => "contract delivered",
        };
        let idle = self.now.saturating_sub(session.seen_at) / 1_000_000;
        format!("{id}  {channel}  {host}  {contract}, last active {idle} s ago")
    }
}

fn up_text(up: Option<&UpProcess>) -> String {
    up.map_or("`embody up` is not running on this workspace".to_owned(), |up| {
        format!("`embody up` runs at {}, process {}", printable(&up.address), up.pid)
    })
}

/// Whether the session received the contract; `None` for embody's own agent, whose prompts contain it.
fn contract_delivered(session: &BrokerSession) -> Option<bool> {
    let is_delivered = !matches!(session.contract, ContractState::Unwritten);
    // The name is chosen by the host; the channel is not.
    let is_own =
        session.channel != HOSTS && session.host.as_deref().is_some_and(|host| name(host) == OWN_AGENT);
    (is_delivered || !is_own).then_some(is_delivered)
}

fn quarantined_json(pin: &ToolPin) -> Value {
    let reason = quarantine_reason(pin).map(|reason| reason.to_string());
    json!({"body": pin.body, "tool": pin.tool, "state": state(pin), "reason": reason})
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

fn host_name(host: &str) -> String {
    let host: Value = serde_json::from_str(host).unwrap_or_default();
    let part = |name: &str| host.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let name = truncate(&format!("{} {}", part("name"), part("version")), 40);
    printable(name.trim()).into_owned()
}

/// How many unknown outcomes of each kind are read.
const OUTCOMES: u32 = 1000;

#[derive(Debug, Serialize)]
pub(super) struct UnknownOutcome {
    /// `incoming`, `outgoing` or `run`.
    kind: &'static str,
    /// Its id; of a run, that of its schedule.
    id: String,
    #[serde(skip)]
    user: String,
    channel: String,
    /// The conversation, the recipient, or the time that the run was due.
    about: String,
    at: String,
    #[serde(skip)]
    micros: i64,
}

/// Newest first.
pub(super) async fn unknown_outcomes(store: &Store) -> Result<Vec<UnknownOutcome>, CliError> {
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

impl UnknownOutcome {
    fn line(&self) -> String {
        let Self { kind, id, channel, about, micros, .. } = self;
        let (channel, about) = (truncate(channel, 40), truncate(about, 80));
        format!("{}  {kind}  {}  {}  {id}", display(*micros), printable(&channel), printable(&about))
    }
}
