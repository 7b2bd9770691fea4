//! `embody status`: running sessions, degraded states, pending approvals, and the messages and runs whose process died before the
//! outcome was recorded. Reads only the store; starts and repeats nothing.

use std::fmt::Write;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use embody_broker::catalogue::quarantine_reason;
use embody_broker::visible;
use embody_store::sessions::BrokerSession;
use embody_text::truncate;
use serde_json::{Value, json};

use super::{Context, ScopeArgs};
use crate::error::CliError;
use crate::output::{one_line, pluralize, printable};
use crate::pidfile::{self, UpProcess};
use crate::processes::{self, FIX_HINT, Process};
use crate::server_tools::Server;
use crate::status::{LISTED, Status, UnknownOutcome, bodies, contract_delivered, pin_state, read};
use crate::store;
use crate::time::display;

const HEAD: Style = Style::new().bold();
const BAD: Style = AnsiColor::Yellow.on_default();

pub(super) const EXAMPLES: &str = "Examples:\n  embody status\n  embody status --user ann --json";

pub(crate) fn run(scope: &ScopeArgs, context: &Context) -> Result<ExitCode, CliError> {
    let user = scope.user();
    let (config, owner) = (&context.config, ScopeArgs::owner());
    let bodies = bodies(config, &user, &owner);
    let url = store::database_url(context).to_string();
    let status =
        store::with_existing(context, async |store| read(store, (&user, &owner), config, url).await)?;
    let up = pidfile::read(&context.workspace);
    let processes = processes::list(&context.workspace);
    let Some(status) = status else {
        let text = match &up {
            None => "Nothing has run in this workspace yet. A host starts `embody mcp`.".to_owned(),
            up => format!("{}; the configured store is empty.", up_text(up.as_ref())),
        };
        return context.print_plain(
            &json!({"sessions": [], "bodies": bodies, "up": up, "processes": processes}),
            || text + "\n",
        );
    };
    let mut report = status.json();
    if let Some(members) = report.as_object_mut() {
        members.insert("up".to_owned(), json!(up));
        members.insert("processes".to_owned(), json!(processes));
    }
    context.print(&report, || as_text(&status, up.as_ref(), &processes))
}

fn as_text(status: &Status, up: Option<&UpProcess>, processes: &[Process]) -> String {
    let mut out = String::new();
    let mut line = |name: &str, text: String| {
        let _ = writeln!(out, "{HEAD}{name:10}{HEAD:#} {text}");
    };
    line("store", printable(&status.store).into_owned());
    if status.servers.is_empty() {
        line("servers", "none configured".to_owned());
    }
    for (index, server) in status.servers.iter().enumerate() {
        line(if index == 0 { "servers" } else { "" }, server_line(server));
    }
    line("up", up_text(up));
    for (index, problem) in processes.iter().filter_map(configuration_line).enumerate() {
        line(if index == 0 { "config" } else { "" }, problem);
    }
    line(
        "sessions",
        match status.sessions.len() {
            0 => "none active in the last minute".to_owned(),
            count => {
                format!("{count} active in the last minute (may include sessions that just ended)")
            }
        },
    );
    for session in &status.sessions {
        line("", session_line(session, status.now));
        for reason in &session.reasons {
            line("", format!("  {BAD}degraded:{BAD:#} {}", printable(&truncate(reason, 200))));
        }
    }
    let hint = |count: usize, command: &str| match count {
        0 => "none".to_owned(),
        _ => format!("{count}: {command}"),
    };
    line("approvals", hint(status.approvals, "embody approvals list"));
    line(
        "tools",
        match status.waiting_tools.len() {
            0 => "no definition is quarantined".to_owned(),
            count => {
                format!("{BAD}{} quarantined{BAD:#}: embody pins list", pluralize(count, "definition"))
            }
        },
    );
    for pin in status.waiting_tools.iter().take(LISTED) {
        let name = visible::line(&format!("{}/{}", pin.body, pin.tool)).into_owned();
        let reason = quarantine_reason(pin).map(|reason| reason.to_string()).unwrap_or_default();
        line("", format!("  {BAD}{}{BAD:#} {name}: {reason}", pin_state(pin)));
    }
    line(
        "outbox",
        format!(
            "{} not yet delivered to the mind",
            pluralize(usize::try_from(status.observations).unwrap_or_default(), "observation")
        ),
    );
    line("writes", unfinished_line(status.unfinished));
    line("unknown", unknown_line(status.unknown_outcomes.len()));
    for outcome in status.unknown_outcomes.iter().take(LISTED) {
        line("", outcome_line(outcome));
    }
    if status.unknown_outcomes.len() > LISTED {
        line("", format!("… and {} more: --json has them all", status.unknown_outcomes.len() - LISTED));
    }
    out
}

fn server_line(server: &Server) -> String {
    let name = &server.name;
    let tools = server
        .tools
        .as_ref()
        .map_or_else(|| "no tools known".to_owned(), |tools| pluralize(tools.len() as u64, "tool"));
    match &server.health {
        None => format!("{name}: never contacted, {tools}: embody server test {name}"),
        Some(health) if health.is_ok => format!("{name}: ok {}, {tools}", display(health.checked_at)),
        Some(health) => {
            let error = one_line(&truncate(health.error.as_deref().unwrap_or_default(), 200));
            format!("{name}: {BAD}failed{BAD:#} {}, {tools}: {error}", display(health.checked_at))
        }
    }
}

fn unfinished_line(count: usize) -> String {
    match count {
        0 => "every sent write has an outcome".to_owned(),
        count => format!("{BAD}{count} without an outcome{BAD:#}: in progress or unknown"),
    }
}

fn unknown_line(count: usize) -> String {
    match count {
        0 => "no message or run has an unknown outcome".to_owned(),
        count => {
            format!("{BAD}{count}{BAD:#} messages or runs with an unknown outcome; they are not repeated")
        }
    }
}

fn session_line(session: &BrokerSession, now: i64) -> String {
    let (id, channel) = (truncate(&session.id, 12), printable(&session.channel));
    let host = session.host.as_deref().map(host_name).unwrap_or_default();
    let contract = match contract_delivered(session) {
        None => "contract in the prompt",
        Some(false) => "contract not delivered",
        Some(true) => "contract delivered",
    };
    let idle = now.saturating_sub(session.seen_at) / 1_000_000;
    format!("{id}  {channel}  {host}  {contract}, last active {idle} s ago")
}

/// What of the configuration a process does not use.
fn configuration_line(process: &Process) -> Option<String> {
    let Process { command, pid, configuration, .. } = process;
    let name = format!("embody {} (process {pid})", printable(command));
    if let Some(problem) = &configuration.problem {
        let problem = one_line(&truncate(problem, 400));
        return Some(format!(
            "{BAD}not applied{BAD:#} by {name}, which uses the previous configuration: {problem}; {FIX_HINT}"
        ));
    }
    let sections = configuration.needs_restart.join(", ");
    (!sections.is_empty()).then(|| format!("{BAD}restart{BAD:#} {name} to apply: {}", printable(&sections)))
}

fn up_text(up: Option<&UpProcess>) -> String {
    up.map_or("`embody up` is not running on this workspace".to_owned(), |up| {
        format!("`embody up` runs at {}, process {}", printable(&up.address), up.pid)
    })
}

fn host_name(host: &str) -> String {
    let host: Value = serde_json::from_str(host).unwrap_or_default();
    let part = |name: &str| host.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let name = truncate(&format!("{} {}", part("name"), part("version")), 40);
    printable(name.trim()).into_owned()
}

fn outcome_line(outcome: &UnknownOutcome) -> String {
    let UnknownOutcome { kind, id, channel, about, micros, .. } = outcome;
    let (channel, about) = (truncate(channel, 40), truncate(about, 80));
    format!("{}  {kind}  {}  {}  {id}", display(*micros), printable(&channel), printable(&about))
}
