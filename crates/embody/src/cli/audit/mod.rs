//! `embody audit …`: shows, verifies and exports the audit chain.

mod tail;

use std::process::ExitCode;

use clap::Subcommand;
use embody_store::DatabaseUrl;
use embody_store::audit::{AuditReport, ChainReport, ChainState};
use serde_json::json;

use super::Context;
use crate::audit_report::report_text;
use crate::error::CliError;
use crate::output::{self, StdoutStream, pluralize};
use crate::store;

const EXAMPLES: &str = "Examples:
  embody audit tail --count 50
  embody audit tail --since yesterday --tool 'send_*' --outcome denied
  embody audit tail --since 2h --follow
  embody audit verify
  embody audit export > audit.jsonl";

#[derive(Subcommand, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) enum AuditCommand {
    /// Print one line per call with its outcome, and per change of the operator; the newest last
    #[command(
        after_help = "Examples:\n  embody audit tail --count 50\n  embody audit tail --since yesterday --tool 'send_*' --outcome denied\n  embody audit tail --since 2h --follow"
    )]
    Tail(tail::TailArgs),
    /// Verify every record; exit with 1 at the first invalid one
    #[command(after_help = "Examples:\n  embody audit verify\n  embody audit verify --json")]
    Verify,
    /// Print every record as JSON Lines
    #[command(after_help = "Examples:\n  embody audit export > audit.jsonl")]
    Export,
}

pub(crate) fn run(command: &AuditCommand, context: &Context) -> Result<ExitCode, CliError> {
    match command {
        AuditCommand::Tail(args) => tail::tail(args, context),
        AuditCommand::Verify => verify(context),
        AuditCommand::Export => export(context),
    }
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
