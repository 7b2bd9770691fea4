//! `embody memory consolidations` and `undo`: lists what the mind consolidated, and reverts it.

use std::fmt::Write;
use std::process::ExitCode;

use clap::Args;
use embody_store::consolidations::{ConsolidationRun, UndoResult};
use jiff::Timestamp;
use serde_json::json;

use super::{DIM, HEAD};
use crate::cli::{Context, ScopeArgs};
use crate::error::CliError;
use crate::output;
use crate::store;
use crate::time;

#[derive(Args, Debug)]
pub(crate) struct ConsolidationsArgs {
    /// How many
    #[arg(long, default_value_t = 20)]
    limit: u32,
    #[command(flatten)]
    scope: ScopeArgs,
}

#[derive(Args, Debug)]
pub(crate) struct UndoArgs {
    /// The id of the run
    run: String,
    #[command(flatten)]
    scope: ScopeArgs,
}

pub(super) fn list(args: &ConsolidationsArgs, context: &Context) -> Result<ExitCode, CliError> {
    let scope = args.scope.resolve()?;
    let runs = store::with_existing(context, async |store| {
        Ok(store.consolidations().list(&scope, args.limit).await?)
    })?;
    let runs = runs.unwrap_or_default();
    if context.json {
        let runs: Vec<_> = runs.iter().map(as_json).collect();
        output::json(&json!({ "consolidations": runs }))?;
    } else {
        output::styled(&as_text(&runs))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn undo(args: &UndoArgs, context: &Context) -> Result<ExitCode, CliError> {
    let scope = args.scope.resolve()?;
    let now = Timestamp::now().as_microsecond();
    let undone = store::with_existing(context, async |store| {
        Ok(store.consolidations().undo(&scope, &args.run, now).await?)
    })?;
    let UndoResult { memories, commitments, entries, left } = undone.ok_or_else(|| {
        CliError::new(format!("there is no consolidation `{}`", args.run))
            .hint("`embody memory consolidations` lists them; `--user` and `--agent` say whose")
    })?;
    if context.json {
        output::json(
            &json!({ "memories": memories, "commitments": commitments, "log_entries": entries, "left": left }),
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    output::plain(&format!(
        "brought back: memories {memories}, commitments {commitments}, log entries {entries}\n"
    ))?;
    if left > 0 {
        output::stderr_line(&format!("left alone, because they were changed since or are gone: {left}"));
    }
    Ok(ExitCode::SUCCESS)
}

fn as_text(runs: &[ConsolidationRun]) -> String {
    if runs.is_empty() {
        return "Nothing was tidied up yet.\n".to_owned();
    }
    let mut out = format!(
        "{HEAD}{:36}  {:20}  {:>8}  {:>6}  {:>6}{HEAD:#}\n",
        "run", "when", "memories", "lapsed", "log"
    );
    for ConsolidationRun { id, at, merged, lapsed, pruned, undone_at } in runs {
        let back = undone_at.map_or(String::new(), |undone_at| {
            format!("  {DIM}taken back {}{DIM:#}", time::display(undone_at))
        });
        let when = time::display(*at);
        let _ = writeln!(out, "{id:36}  {when:20}  {merged:>8}  {lapsed:>6}  {pruned:>6}{back}");
    }
    out
}

fn as_json(run: &ConsolidationRun) -> serde_json::Value {
    json!({
        "id": run.id,
        "at": time::rfc3339(run.at),
        "merged": run.merged,
        "lapsed": run.lapsed,
        "pruned": run.pruned,
        "undone_at": run.undone_at.map(time::rfc3339),
    })
}
