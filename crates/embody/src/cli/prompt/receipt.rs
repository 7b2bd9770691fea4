//! `embody prompt receipt ID`: replays the exact bytes of a stored prompt.

use std::fmt::Write;
use std::process::ExitCode;

use anstyle::Style;
use clap::Args;
use embody_store::receipts::{NewReceipt, Receipt};
use serde_json::json;

use super::PromptReport;
use crate::cli::Context;
use crate::cli::ScopeArgs;
use crate::error::CliError;
use crate::output::{self, printable};
use crate::store;
use crate::time;

const LISTED: u32 = 20;
const EXAMPLES: &str = "Examples:
  embody prompt show --receipt --json | jq -r .receipt
  embody prompt receipt 019a8b3e-0000-7000-8000-000000000000
  embody prompt diff receipt:019a8b3e-0000-7000-8000-000000000000 ~/.embody";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReceiptArgs {
    /// Its id, or at least eight characters of the prompt's hash; none lists the latest
    id: Option<String>,
    #[command(flatten)]
    scope: ScopeArgs,
}

pub(crate) fn run(args: &ReceiptArgs, context: &Context) -> Result<ExitCode, CliError> {
    let scope = args.scope.resolve()?;
    let Some(id) = &args.id else { return list(scope.user(), context) };
    let report = find(id, scope.user(), context)?;
    if context.json {
        output::json(&report)?;
    } else {
        output::raw_bytes(&report.text)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn list(user: &str, context: &Context) -> Result<ExitCode, CliError> {
    const HEAD: Style = Style::new().bold();
    let latest =
        store::with_existing(context, async |store| Ok(store.receipts().list_latest(user, LISTED).await?))?;
    let latest = latest.unwrap_or_default();
    if context.json {
        let receipt = |receipt: &Receipt| {
            json!({
                "id": receipt.id,
                "agent": receipt.agent,
                "layout": receipt.layout,
                "hash": receipt.hash,
                "created_at": time::rfc3339(receipt.created_at),
            })
        };
        output::json(&json!({ "receipts": latest.iter().map(receipt).collect::<Vec<_>>() }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = format!("{HEAD}{:36}  {:20}  {:12}  {:8}  hash{HEAD:#}\n", "id", "kept", "agent", "layout");
    for receipt in &latest {
        let Receipt { id, agent, layout, hash, created_at, .. } = receipt;
        let (when, agent) = (time::display(*created_at), printable(agent));
        let _ =
            writeln!(out, "{id:36}  {when:20}  {agent:12}  {layout:8}  {}", hash.get(..16).unwrap_or(hash));
    }
    if latest.is_empty() {
        out = "There are no receipts yet.\n".to_owned();
    }
    output::styled(&out)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn find(id: &str, user: &str, context: &Context) -> Result<PromptReport, CliError> {
    let missing = || {
        CliError::new(format!("user `{user}` has no receipt `{id}`"))
            .hint("`embody prompt receipt` lists the latest; `--user` looks for another user's")
    };
    store::with_existing(context, async |store| {
        let found = store.receipts().list(user, id, 1).await?;
        let Some(receipt) = found.first() else { return Ok(None) };
        let text = store.receipts().replay(receipt).await?;
        let report: PromptReport = serde_json::from_str(&receipt.detail).map_err(|error| {
            CliError::new(format!("the account of receipt `{}` cannot be read", receipt.id)).caused_by(&error)
        })?;
        Ok(Some(PromptReport { text, receipt: Some(receipt.id.clone()), ..report }))
    })?
    .flatten()
    .ok_or_else(missing)
}

/// A receipt of the prompt: its sections by hash, the rest of the report as JSON.
pub(crate) fn new_receipt(report: &PromptReport) -> Result<NewReceipt, CliError> {
    let mut parts = Vec::new();
    let mut end = 0;
    for section in &report.sections {
        parts.extend(report.text.get(end..section.start).filter(|text| !text.is_empty()));
        parts.push(report.text_of(section));
        end = section.end;
    }
    parts.extend(report.text.get(end..).filter(|text| !text.is_empty()));
    let account = PromptReport { text: String::new(), ..report.clone() };
    let detail = serde_json::to_string(&account)
        .map_err(|error| CliError::new("the prompt's account cannot be written").caused_by(&error))?;
    Ok(NewReceipt {
        layout: report.layout.clone(),
        hash: report.hash.clone(),
        parts: parts.into_iter().map(str::to_owned).collect(),
        detail,
    })
}
