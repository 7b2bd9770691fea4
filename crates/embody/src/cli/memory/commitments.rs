//! `embody memory commitments` and `settle`: lists open commitments, and settles them for the owner.

use std::fmt::Write;
use std::process::ExitCode;

use clap::Args;
use embody_store::commitments::{Commitment, CommitmentStatus};
use jiff::Timestamp;
use serde_json::json;

use super::DIM;
use crate::cli::{Context, ScopeArgs};
use crate::error::CliError;
use crate::output::{self, printable};
use crate::store;
use crate::time;

#[derive(Args, Debug)]
pub(crate) struct CommitmentsArgs {
    /// Also those that are done, dropped or lapsed
    #[arg(long)]
    all: bool,
    /// How many of each
    #[arg(long, default_value_t = 100)]
    limit: u32,
    #[command(flatten)]
    scope: ScopeArgs,
}

#[derive(Args, Debug)]
pub(crate) struct SettleArgs {
    /// The commitment's id
    id: String,
    /// What has become of it: done, dropped, or open again
    #[arg(long = "as", value_name = "STATUS", default_value = "done", value_parser = ["done", "dropped", "open"])]
    status: String,
    #[command(flatten)]
    scope: ScopeArgs,
}

pub(super) fn list(args: &CommitmentsArgs, context: &Context) -> Result<ExitCode, CliError> {
    let scope = args.scope.resolve()?;
    let statuses = if args.all { &CommitmentStatus::ALL[..] } else { &[CommitmentStatus::Open] };
    let found = store::with_existing(context, async |store| {
        let mut found = Vec::new();
        for status in statuses {
            found.extend(store.commitments().list(&scope, *status, args.limit).await?);
        }
        Ok(found)
    })?;
    let found = found.unwrap_or_default();
    if context.json {
        let commitments: Vec<_> = found.iter().map(as_json).collect();
        output::json(&json!({ "commitments": commitments }))?;
    } else {
        output::styled(&as_text(&found))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn settle(args: &SettleArgs, context: &Context) -> Result<ExitCode, CliError> {
    let scope = args.scope.resolve()?;
    let status = CommitmentStatus::from_name(&args.status).unwrap_or(CommitmentStatus::Done);
    let now = Timestamp::now().as_microsecond();
    let settled = store::with_existing(context, async |store| {
        Ok(store.commitments().set_status(&scope, &args.id, status, now).await?)
    })?;
    let settled = settled.ok_or_else(|| {
        CliError::new(format!("there is no commitment `{}`", args.id))
            .hint("`embody memory commitments` lists them; `--user` and `--agent` say whose")
    })?;
    let (id, status) = (&settled.id, settled.status.name());
    context.print_plain(&json!({ "id": id, "status": status }), || format!("{id} is {status}\n"))
}

fn as_text(found: &[Commitment]) -> String {
    if found.is_empty() {
        return "Nothing is to be done.\n".to_owned();
    }
    let now = Timestamp::now().as_microsecond();
    let mut out = String::new();
    for Commitment { id, status, said, .. } in found {
        let due = said.due_at.map_or(String::new(), |due_at| {
            let verb = if due_at < now { "was due" } else { "due" };
            format!("  {verb} {}", time::display(due_at))
        });
        let (status, who) = (status.name(), printable(&said.who));
        let _ = writeln!(out, "{DIM}{id}  {status}  {who}{due}{DIM:#}");
        for line in printable(&said.text).lines() {
            let _ = writeln!(out, "  {line}");
        }
    }
    out
}

fn as_json(commitment: &Commitment) -> serde_json::Value {
    let said = &commitment.said;
    json!({
        "id": commitment.id,
        "status": commitment.status.name(),
        "who": said.who,
        "text": said.text,
        "due_at": said.due_at.map(time::rfc3339),
        "sentence": said.sentence,
        "session": commitment.session,
        "writer": commitment.writer,
        "trust": commitment.trust,
        "created_at": time::rfc3339(commitment.created_at),
        "changed_at": time::rfc3339(commitment.changed_at),
    })
}
