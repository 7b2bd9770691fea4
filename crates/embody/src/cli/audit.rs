//! `embody audit …`: what was decided and done, and whether the record of it is whole.

use std::fmt::Write;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use clap::{Args, Subcommand};
use embody_store::{AuditRecord, AuditReport, ChainReport, ChainState, DatabaseUrl};
use serde_json::json;

use super::{Context, audit_line};
use crate::failure::Failure;
use crate::output::{self, Stream, counted, printable};
use crate::store;
use crate::time;

const EXAMPLES: &str = "Examples:
  embody audit tail --count 50
  embody audit verify
  embody audit export > audit.jsonl";

/// What to do with it.
#[derive(Subcommand, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) enum AuditCommand {
    /// Shows the newest records, the oldest of them first
    Tail(TailArgs),
    /// Checks every record; exits with 1 and names the first bad one
    Verify,
    /// Writes every record as JSON Lines
    Export,
}

#[derive(Args, Debug)]
pub(crate) struct TailArgs {
    /// How many
    #[arg(long, short = 'n', default_value_t = 20)]
    count: u32,
    /// Only those of this user
    #[arg(long)]
    user: Option<String>,
}

pub(crate) fn run(command: &AuditCommand, context: &Context) -> Result<ExitCode, Failure> {
    match command {
        AuditCommand::Tail(args) => tail(args, context),
        AuditCommand::Verify => verify(context),
        AuditCommand::Export => export(context),
    }
}

fn tail(args: &TailArgs, context: &Context) -> Result<ExitCode, Failure> {
    let records =
        store::read(context, async |store| Ok(store.audit_tail(args.count, args.user.as_deref()).await?))?;
    let records = records.unwrap_or_default();
    if context.json {
        output::json(&json!({ "records": records }))?;
    } else {
        output::styled(&as_text(&records))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn as_text(records: &[AuditRecord]) -> String {
    const EVENT: Style = AnsiColor::Cyan.on_default();
    if records.is_empty() {
        return "Nothing is on record yet.\n".to_owned();
    }
    let mut out = String::new();
    for record in records {
        let (when, user) = (time::shown(record.at), printable(&record.user));
        let detail = audit_line::told(&record.detail);
        let event = printable(&record.event);
        let _ = writeln!(out, "{:>6}  {when}  {EVENT}{event:8}{EVENT:#}  {user:12}  {}", record.seq, detail);
    }
    out
}

fn verify(context: &Context) -> Result<ExitCode, Failure> {
    let place = store::place(context);
    let report = store::read(context, async |store| Ok(store.verify_audit().await?))?;
    if report.is_none() && place.has_audit_files() {
        return Err(Failure::new(format!(
            "the database `{place}` is gone, but the key or the head of its audit chain is there"
        ))
        .hint("put a backup of the database in its place"));
    }
    let report = report.unwrap_or(AuditReport { chains: Vec::new() });
    // A server has the chains of other machines too; a file has only its own.
    let foreign = |chain: &ChainReport| chain.state == ChainState::KeyAway;
    let is_server = matches!(place, DatabaseUrl::Postgres { .. });
    let intact = report.broken().is_none() && (is_server || !report.chains.iter().any(foreign));
    if context.json {
        output::json(&json!({ "intact": intact, "chains": report.chains }))?;
    } else {
        output::styled(&verdicts(&report))?;
    }
    Ok(output::verdict(intact))
}

pub(super) fn verdicts(report: &AuditReport) -> String {
    let is_new = |chain: &ChainReport| chain.records == 0 && chain.state == ChainState::Intact;
    if report.chains.iter().all(is_new) {
        return "Nothing is on record yet.\n".to_owned();
    }
    report.chains.iter().map(verdict).collect()
}

fn verdict(chain: &ChainReport) -> String {
    let (word, style, more) = match &chain.state {
        ChainState::Intact => ("intact", AnsiColor::Green.on_default(), String::new()),
        ChainState::Broken(found) => ("BROKEN", AnsiColor::Red.on_default().bold(), format!(" at {found}")),
        ChainState::KeyAway => {
            ("not verified", AnsiColor::Yellow.on_default(), ": its key is not on this machine".to_owned())
        }
    };
    let since = chain.first_at.map_or(String::new(), |at| format!(" since {}", time::shown(at)));
    let mut out = format!(
        "{style}{word}{style:#}  chain {}, {}{since}{}\n",
        printable(&chain.chain),
        counted(chain.records, "record"),
        printable(&more)
    );
    if chain.beyond_head > 0 {
        let _ = writeln!(
            out,
            "  newer than the head outside the database: {}",
            counted(chain.beyond_head, "record")
        );
    }
    if let Some(trouble) = &chain.head_trouble {
        let _ = writeln!(out, "  head: {}", printable(trouble));
    }
    out
}

fn export(context: &Context) -> Result<ExitCode, Failure> {
    let count = store::read(context, async |store| {
        let mut out = Stream::new();
        let written = store.export_audit(&mut out).await;
        out.finish(written)
    })?;
    if let Some(count) = count.unwrap_or(Some(0)) {
        output::aside(&counted(count, "record"));
    }
    Ok(ExitCode::SUCCESS)
}
