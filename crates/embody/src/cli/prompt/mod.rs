//! `embody prompt …`: show, explain, diff, lint, receipt.

mod args;
mod diff;
mod explain;
mod lint;

use std::fmt::Write;
use std::process::ExitCode;

use anstyle::Style;
use clap::{Args, Subcommand};
use embody_store::receipts::Receipt;
use embody_store::{IdSet, ShortIds};
use serde_json::{Value, json};

pub(super) use self::args::{PromptArgs, load_prompt};
pub(super) use self::lint::findings;
use super::{Context, ScopeArgs, ids};
use crate::error::CliError;
use crate::output::{self, printable};
use crate::prompt_report::PromptReport;
use crate::{store, time};

#[derive(Subcommand, Debug)]
pub(crate) enum PromptCommand {
    /// Print exactly the prompt that would be sent, and nothing else
    Show(ShowArgs),
    /// Show the source, the tokens and the cacheability of each section
    Explain(explain::ExplainArgs),
    /// Compare two prompts section by section, and show what breaks the cacheable prefix
    Diff(diff::DiffArgs),
    /// Report problems of the prompt; exit with 1 if there are any
    Lint(lint::LintArgs),
    /// Print the exact bytes of a stored prompt; with `--json` the whole request
    Receipt(ReceiptArgs),
}

pub(crate) fn run(command: &PromptCommand, context: &Context) -> Result<ExitCode, CliError> {
    match command {
        PromptCommand::Show(args) => show(args, context),
        PromptCommand::Explain(args) => explain::run(args, context),
        PromptCommand::Diff(args) => diff::run(args, context),
        PromptCommand::Lint(args) => lint::run(args, context),
        PromptCommand::Receipt(args) => receipt(args, context),
    }
}

const SHOW_EXAMPLES: &str = "Examples:
  embody prompt show --layout tagged
  embody prompt show --layout channel --channel telegram --timezone Europe/Paris
  embody prompt show --layout full --project . --native-tools false
  embody prompt show --receipt > sent.txt
  embody prompt show --json | jq '.sections[] | {kind, source, tokens}'";

#[derive(Args, Debug)]
#[command(after_help = SHOW_EXAMPLES)]
pub(crate) struct ShowArgs {
    /// Keep a receipt: `prompt receipt ID` replays the bytes
    #[arg(long)]
    receipt: bool,
    #[command(flatten)]
    prompt: PromptArgs,
}

fn show(args: &ShowArgs, context: &Context) -> Result<ExitCode, CliError> {
    if args.receipt {
        let report = load_prompt(context, &args.prompt)?.report();
        let scope = args.prompt.scope.resolve()?;
        let id = store::with(context, async |store| {
            Ok(store.receipts().insert(&scope, report.new_receipt()?).await?)
        })?;
        if context.json {
            output::json(&PromptReport { receipt: Some(id), ..report }.without_definitions())?;
        } else {
            output::raw_bytes(&report.text)?;
            output::stderr_line(&format!("receipt {id}"));
        }
    } else if context.json {
        output::json(&load_prompt(context, &args.prompt)?.report().without_definitions())?;
    } else {
        output::raw_bytes(&load_prompt(context, &args.prompt)?.text())?;
    }
    Ok(ExitCode::SUCCESS)
}

const LISTED: u32 = 20;

const RECEIPT_EXAMPLES: &str = "Examples:
  embody prompt show --receipt --json | jq -r .receipt
  embody prompt receipt 019a8b3e
  embody prompt diff receipt:019a8b3e ~/.embody";

#[derive(Args, Debug)]
#[command(after_help = RECEIPT_EXAMPLES)]
pub(crate) struct ReceiptArgs {
    /// Its id, or its end, or at least eight characters of the prompt's hash; none lists the latest
    id: Option<String>,
    #[command(flatten)]
    scope: ScopeArgs,
}

fn receipt(args: &ReceiptArgs, context: &Context) -> Result<ExitCode, CliError> {
    let scope = args.scope.resolve()?;
    let Some(id) = &args.id else { return list_receipts(scope.user(), context) };
    let report = find_receipt(id, scope.user(), context)?;
    if context.json {
        output::json(&report)?;
    } else {
        output::raw_bytes(&report.text)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn list_receipts(user: &str, context: &Context) -> Result<ExitCode, CliError> {
    let latest = store::with_existing(context, async |store| {
        let latest = store.receipts().list_latest(user, LISTED).await?;
        let ids = latest.iter().map(|receipt| &receipt.id);
        Ok((ids::shorten(context, store, IdSet::Receipts(user), ids).await?, latest))
    })?;
    let (short, latest) = latest.unwrap_or_default();
    context.print_list("receipts", &latest, receipt_json, |latest| receipts_text(latest, &short))
}

fn receipt_json(receipt: &Receipt) -> Value {
    json!({
        "id": receipt.id,
        "agent": receipt.agent,
        "layout": receipt.layout,
        "hash": receipt.hash,
        "created_at": time::rfc3339(receipt.created_at),
    })
}

fn receipts_text(receipts: &[Receipt], short: &ShortIds) -> String {
    const HEAD: Style = Style::new().bold();
    if receipts.is_empty() {
        return "There are no receipts yet.\n".to_owned();
    }
    let mut out = format!("{HEAD}{:13}  {:20}  {:12}  {:8}  hash{HEAD:#}\n", "id", "kept", "agent", "layout");
    for Receipt { id, agent, layout, hash, created_at, .. } in receipts {
        let (when, agent) = (time::display(*created_at), printable(agent));
        let (id, hash) = (short.of(id), hash.get(..16).unwrap_or(hash));
        let _ = writeln!(out, "{id:13}  {when:20}  {agent:12}  {layout:8}  {hash}");
    }
    out
}

fn find_receipt(id: &str, user: &str, context: &Context) -> Result<PromptReport, CliError> {
    let missing = || {
        CliError::new(format!("user `{user}` has no receipt `{id}`"))
            .hint("`embody prompt receipt` lists the latest; `--user` looks for another user's")
    };
    store::with_existing(context, async |store| {
        let full = ids::look_up(store, IdSet::Receipts(user), id).await?;
        let found = store.receipts().list(user, full.as_deref().unwrap_or(id), 1).await?;
        let Some(receipt) = found.first() else { return Ok(None) };
        let sent = store.receipts().replay(receipt).await?;
        PromptReport::of_receipt(receipt, sent).map(Some)
    })?
    .flatten()
    .ok_or_else(missing)
}

/// `source:line`, for a terminal.
pub(super) fn display_source(source: &str, line: u32) -> String {
    let source = printable(source);
    if line == 0 { source.into_owned() } else { format!("{source}:{line}") }
}
