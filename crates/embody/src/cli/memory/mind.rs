//! What the mind keeps beside memories: withheld statements, commitments, consolidation runs.

use std::fmt::Write;
use std::process::ExitCode;

use embody_store::commitments::{Commitment, CommitmentStatus};
use embody_store::consolidations::{ConsolidationRun, UndoResult};
use embody_store::mind_log::LogEntry;
use embody_store::{IdSet, ShortIds};
use jiff::Timestamp;
use serde_json::json;

use super::{CommitmentsArgs, ConsolidationsArgs, DIM, HEAD, HeldArgs, SettleArgs, UndoArgs, push_indented};
use crate::cli::{Context, ids};
use crate::error::CliError;
use crate::output::{self, printable};
use crate::{store, time};

pub(super) fn list_held(args: &HeldArgs, context: &Context) -> Result<ExitCode, CliError> {
    let scope = args.scope.resolve()?;
    let found = store::with_existing(context, async |store| {
        Ok(store.mind_log().list_held(&scope, args.limit).await?)
    })?;
    context.print_list("held", &found.unwrap_or_default(), held_json, held_text)
}

fn held_text(found: &[LogEntry]) -> String {
    if found.is_empty() {
        return "No withheld statements.\n".to_owned();
    }
    let mut out = String::new();
    for LogEntry { seq, entry } in found {
        let (when, kind, writer) =
            (time::display(entry.at), printable(&entry.kind), printable(&entry.writer));
        let _ = writeln!(out, "{DIM}{seq}  {when}  {kind}  {writer} ({}){DIM:#}", printable(&entry.trust));
        push_indented(&mut out, &entry.text);
    }
    out
}

fn held_json(LogEntry { seq, entry }: &LogEntry) -> serde_json::Value {
    json!({
        "number": seq,
        "at": time::rfc3339(entry.at),
        "session": entry.session,
        "kind": entry.kind,
        "writer": entry.writer,
        "trust": entry.trust,
        "text": entry.text,
    })
}

pub(super) fn list_commitments(args: &CommitmentsArgs, context: &Context) -> Result<ExitCode, CliError> {
    let scope = args.scope.resolve()?;
    let statuses = if args.all { &CommitmentStatus::ALL[..] } else { &[CommitmentStatus::Open] };
    let found = store::with_existing(context, async |store| {
        let mut found = Vec::new();
        for status in statuses {
            found.extend(store.commitments().list(&scope, *status, args.limit).await?);
        }
        let ids = found.iter().map(|commitment| &commitment.id);
        Ok((ids::shorten(context, store, IdSet::Commitments(&scope), ids).await?, found))
    })?;
    let (short, found) = found.unwrap_or_default();
    context.print_list("commitments", &found, commitment_json, |found| commitments_text(found, &short))
}

pub(super) fn settle(args: &SettleArgs, context: &Context) -> Result<ExitCode, CliError> {
    let scope = args.scope.resolve()?;
    let status = CommitmentStatus::from_name(&args.status).unwrap_or(CommitmentStatus::Done);
    let now = Timestamp::now().as_microsecond();
    let settled = store::with_existing(context, async |store| {
        let id = ids::resolve(store, IdSet::Commitments(&scope), &args.id, commitment_not_found).await?;
        Ok(store.commitments().set_status(&scope, &id, status, now).await?)
    })?;
    let settled = settled.ok_or_else(|| commitment_not_found(&args.id))?;
    let (id, status) = (&settled.id, settled.status.name());
    context.print_plain(&json!({ "id": id, "status": status }), || format!("{id} is {status}\n"))
}

fn commitment_not_found(id: &str) -> CliError {
    CliError::new(format!("unknown commitment `{id}`"))
        .hint("`embody memory commitments` lists them; `--user` and `--agent` select the user and the agent")
}

fn commitments_text(found: &[Commitment], short: &ShortIds) -> String {
    if found.is_empty() {
        return "No commitments.\n".to_owned();
    }
    let now = Timestamp::now().as_microsecond();
    let mut out = String::new();
    for Commitment { id, status, said: commitment, .. } in found {
        let due = commitment.due_at.map_or(String::new(), |due_at| {
            let verb = if due_at < now { "was due" } else { "due" };
            format!("  {verb} {}", time::display(due_at))
        });
        let (status, who) = (status.name(), printable(&commitment.who));
        let _ = writeln!(out, "{DIM}{}  {status}  {who}{due}{DIM:#}", short.of(id));
        push_indented(&mut out, &commitment.text);
    }
    out
}

fn commitment_json(commitment: &Commitment) -> serde_json::Value {
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

pub(super) fn list_consolidations(
    args: &ConsolidationsArgs,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let scope = args.scope.resolve()?;
    let runs = store::with_existing(context, async |store| {
        let runs = store.consolidations().list(&scope, args.limit).await?;
        let ids = runs.iter().map(|run| &run.id);
        Ok((ids::shorten(context, store, IdSet::Consolidations(&scope), ids).await?, runs))
    })?;
    let (short, runs) = runs.unwrap_or_default();
    context.print_list("consolidations", &runs, consolidation_json, |runs| consolidations_text(runs, &short))
}

pub(super) fn undo(args: &UndoArgs, context: &Context) -> Result<ExitCode, CliError> {
    let scope = args.scope.resolve()?;
    let now = Timestamp::now().as_microsecond();
    let undone = store::with_existing(context, async |store| {
        let run = ids::resolve(store, IdSet::Consolidations(&scope), &args.run, run_not_found).await?;
        Ok(store.consolidations().undo(&scope, &run, now).await?)
    })?;
    let UndoResult { memories, commitments, entries, left } =
        undone.ok_or_else(|| run_not_found(&args.run))?;
    if context.json {
        output::json(
            &json!({ "memories": memories, "commitments": commitments, "log_entries": entries, "left": left }),
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    output::plain(&format!(
        "restored: memories {memories}, commitments {commitments}, log entries {entries}\n"
    ))?;
    if left > 0 {
        output::stderr_line(&format!(
            "not restored, because they changed since then or were removed: {left}"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn run_not_found(id: &str) -> CliError {
    CliError::new(format!("unknown consolidation `{id}`")).hint(
        "`embody memory consolidations` lists them; `--user` and `--agent` select the user and the agent",
    )
}

fn consolidations_text(runs: &[ConsolidationRun], short: &ShortIds) -> String {
    if runs.is_empty() {
        return "No consolidation runs yet.\n".to_owned();
    }
    let mut out = format!(
        "{HEAD}{:13}  {:20}  {:>8}  {:>6}  {:>6}{HEAD:#}\n",
        "run", "when", "memories", "lapsed", "log"
    );
    for ConsolidationRun { id, at, merged, lapsed, pruned, undone_at } in runs {
        let back = undone_at
            .map_or(String::new(), |undone_at| format!("  {DIM}undone {}{DIM:#}", time::display(undone_at)));
        let when = time::display(*at);
        let _ = writeln!(out, "{:13}  {when:20}  {merged:>8}  {lapsed:>6}  {pruned:>6}{back}", short.of(id));
    }
    out
}

fn consolidation_json(run: &ConsolidationRun) -> serde_json::Value {
    json!({
        "id": run.id,
        "at": time::rfc3339(run.at),
        "merged": run.merged,
        "lapsed": run.lapsed,
        "pruned": run.pruned,
        "undone_at": run.undone_at.map(time::rfc3339),
    })
}
