//! `embody audit …`: shows, verifies and exports the audit chain.

use std::fmt::Write;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use clap::{Args, Subcommand};
use embody_store::DatabaseUrl;
use embody_store::audit::{AuditRecord, AuditReport, ChainReport, ChainState};
use embody_text::truncate;
use serde_json::{Map, Value, json};

use super::Context;
use crate::error::CliError;
use crate::output::{self, StdoutStream, one_line, pluralize, printable};
use crate::store;
use crate::time;

const EXAMPLES: &str = "Examples:
  embody audit tail --count 50
  embody audit verify
  embody audit export > audit.jsonl";

#[derive(Subcommand, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) enum AuditCommand {
    /// Print the newest records, oldest first
    Tail(TailArgs),
    /// Verify every record; exit with 1 at the first invalid one
    Verify,
    /// Print every record as JSON Lines
    Export,
}

#[derive(Args, Debug)]
pub(crate) struct TailArgs {
    /// The number of records
    #[arg(long, short = 'n', default_value_t = 20)]
    count: u32,
    /// Only records of this user
    #[arg(long)]
    user: Option<String>,
}

pub(crate) fn run(command: &AuditCommand, context: &Context) -> Result<ExitCode, CliError> {
    match command {
        AuditCommand::Tail(args) => tail(args, context),
        AuditCommand::Verify => verify(context),
        AuditCommand::Export => export(context),
    }
}

fn tail(args: &TailArgs, context: &Context) -> Result<ExitCode, CliError> {
    let records = store::with_existing(context, async |store| {
        Ok(store.audit().tail(args.count, args.user.as_deref()).await?)
    })?;
    let records = records.unwrap_or_default();
    context.print(&json!({ "records": records }), || as_text(&records))
}

fn as_text(records: &[AuditRecord]) -> String {
    const EVENT: Style = AnsiColor::Cyan.on_default();
    if records.is_empty() {
        return "The audit chain has no records yet.\n".to_owned();
    }
    let mut out = String::new();
    for record in records {
        let (when, user) = (time::display(record.at), printable(&record.user));
        let detail = summary_line(&record.detail);
        let event = printable(&record.event);
        let _ = writeln!(out, "{:>6}  {when}  {EVENT}{event:8}{EVENT:#}  {user:12}  {}", record.seq, detail);
    }
    out
}

fn verify(context: &Context) -> Result<ExitCode, CliError> {
    let url = store::database_url(context);
    let report = store::with_existing(context, async |store| Ok(store.audit().verify().await?))?;
    if report.is_none() && url.has_audit_files() {
        return Err(CliError::new(format!(
            "the database `{url}` is missing, but the key or the head of its audit chain exists"
        ))
        .hint("restore the database from a backup"));
    }
    let report = report.unwrap_or(AuditReport { chains: Vec::new() });
    // A server also has the chains of other machines; a file has only its own.
    let foreign = |chain: &ChainReport| chain.state == ChainState::KeyAway;
    let is_server = matches!(url, DatabaseUrl::Postgres { .. });
    let intact = report.broken().is_none() && (is_server || !report.chains.iter().any(foreign));
    context.print(&json!({ "intact": intact, "chains": report.chains }), || report_text(&report))?;
    Ok(output::exit_code(intact))
}

pub(super) fn report_text(report: &AuditReport) -> String {
    let is_new = |chain: &ChainReport| chain.records == 0 && chain.state == ChainState::Intact;
    if report.chains.iter().all(is_new) {
        return "The audit chain has no records yet.\n".to_owned();
    }
    report.chains.iter().map(chain_text).collect()
}

fn chain_text(chain: &ChainReport) -> String {
    let (state, style, more) = match &chain.state {
        ChainState::Intact => ("intact", AnsiColor::Green.on_default(), String::new()),
        ChainState::Broken(found) => ("BROKEN", AnsiColor::Red.on_default().bold(), format!(" at {found}")),
        ChainState::KeyAway => {
            ("not verified", AnsiColor::Yellow.on_default(), ": its key is not on this machine".to_owned())
        }
    };
    let since = chain.first_at.map_or(String::new(), |at| format!(" since {}", time::display(at)));
    let mut out = format!(
        "{style}{state}{style:#}  chain {}, {}{since}{}\n",
        printable(&chain.chain),
        pluralize(chain.records, "record"),
        printable(&more)
    );
    if chain.beyond_head > 0 {
        let _ = writeln!(
            out,
            "  newer than the head outside the database: {}",
            pluralize(chain.beyond_head, "record")
        );
    }
    if let Some(trouble) = &chain.head_trouble {
        let _ = writeln!(out, "  head: {}", printable(trouble));
    }
    out
}

fn export(context: &Context) -> Result<ExitCode, CliError> {
    let count = store::with_existing(context, async |store| {
        let mut out = StdoutStream::new();
        let written = store.audit().export(&mut out).await;
        out.finish(written)
    })?;
    if let Some(count) = count.unwrap_or(Some(0)) {
        output::stderr_line(&pluralize(count, "record"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Characters of the arguments, of any other text and of a digest in a line.
const ARGUMENTS: usize = 200;
const TEXT: usize = 100;
const DIGEST: usize = 12;

/// A record in one line: tool and arguments first, then the outcome, ids and digests last. `--json` and `export` have all of it.
fn summary_line(detail: &str) -> String {
    let Ok(Value::Object(mut detail)) = serde_json::from_str(detail) else {
        return one_line(&truncate(detail, ARGUMENTS));
    };
    let mut parts: Vec<String> = Vec::new();
    parts.extend(tool(&mut detail));
    parts.extend(detail.remove("args_excerpt").map(|args| truncate(&args.to_string(), ARGUMENTS)));
    for key in ["action", "subject", "said", "decision", "outcome", "reason", "detail", "note"] {
        parts.extend(detail.remove(key).map(|value| truncate(&text(&value), TEXT)));
    }
    let call = detail.remove("call_id").map(|id| format!("call {}", text(&id)));
    let digest =
        detail.remove("args_digest").map(|digest| format!("digest {}", truncate(&text(&digest), DIGEST)));
    parts.extend(detail.iter().map(|(key, value)| format!("{key} {}", truncate(&text(value), TEXT))));
    parts.extend([call, digest].into_iter().flatten());
    one_line(&parts.join("  "))
}

/// `BODY/TOOL`, as in rules.
fn tool(detail: &mut Map<String, Value>) -> Option<String> {
    let (body, tool) = (detail.remove("body"), detail.remove("tool"));
    let parts: Vec<String> = [body, tool].iter().flatten().map(text).collect();
    (!parts.is_empty()).then(|| parts.join("/"))
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_come_first_and_a_short_digest_last() {
        let digest = "0123456789abcdef".repeat(4);
        let call = json!({
            "call_id": "0199-1", "body": "embody", "tool": "send_message", "class": "human_visible_write",
            "args_digest": digest, "args_excerpt": {"to": "123", "text": "Good morning"},
            "decision": "deny", "reason": "not from here",
        });
        assert_eq!(
            summary_line(&call.to_string()),
            r#"embody/send_message  {"text":"Good morning","to":"123"}  deny  not from here  class human_visible_write  call 0199-1  digest 0123456789ab…"#
        );
        let end = json!({"call_id": "0199-1", "outcome": "done"});
        assert_eq!(summary_line(&end.to_string()), "done  call 0199-1");
        let operation = json!({"action": "token_made", "subject": "7", "note": "for ann"});
        assert_eq!(summary_line(&operation.to_string()), "token_made  7  for ann");
    }

    #[test]
    fn a_summary_stays_on_one_line() {
        let long = json!({"args_excerpt": {"text": "x".repeat(9000)}, "odd": {"a": ["y".repeat(9000)]}});
        assert!(summary_line(&long.to_string()).chars().count() < 400);
        assert_eq!(summary_line("no JSON"), "no JSON");
        assert_eq!(summary_line("no\nJSON"), "no\\nJSON");
        // Quoted text cannot add a line that looks like a record.
        let quoted = json!({"outcome": "failed", "detail": "{\n\t\"code\": 1\n}\n     9  forged", "odd": "a\u{1b}[1mb"});
        assert_eq!(
            summary_line(&quoted.to_string()),
            r#"failed  {\n\t"code": 1\n}\n     9  forged  odd a⟨U+001B⟩[1mb"#
        );
        assert_eq!(summary_line(&"z".repeat(9000)).chars().count(), ARGUMENTS + 1);
    }
}
