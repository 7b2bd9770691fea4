//! `embody prompt …`: show, explain, diff, lint, receipt. Owns the report of a prompt, which `--json` prints and `diff` reads.

mod diff;
mod explain;
mod lint;

use std::fmt::Write;
use std::process::ExitCode;

use anstyle::Style;
use clap::{Args, Subcommand};
use embody_prompt::{CacheClass, Note, Prompt, RenderedPrompt, Source, Span, assemble, render, tokens};
use embody_store::receipts::{NewReceipt, Receipt};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub(super) use self::lint::findings;
use super::{Context, ScopeArgs};
use crate::error::{CliError, ErrorContext};
use crate::output::{self, printable};
use crate::prompt_loading::{LoadedPrompt, PromptArgs, load_prompt};
use crate::{store, time};

#[derive(Subcommand, Debug)]
pub(crate) enum PromptCommand {
    /// Prints exactly the prompt that would be sent, and nothing else
    Show(ShowArgs),
    /// Says for each section where it comes from, what it costs and how often it changes
    Explain(explain::ExplainArgs),
    /// Compares two prompts section by section and says what breaks the cacheable prefix
    Diff(diff::DiffArgs),
    /// Says what is wrong with the prompt; exits with 1 if anything is
    Lint(lint::LintArgs),
    /// Replays the exact bytes of a prompt that was kept
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
        let report = PromptReport::build(&args.prompt, context)?;
        let scope = args.prompt.scope.resolve()?;
        let id = store::with(context, async |store| {
            Ok(store.receipts().insert(&scope, new_receipt(&report)?).await?)
        })?;
        if context.json {
            output::json(&PromptReport { receipt: Some(id), ..report })?;
        } else {
            output::raw_bytes(&report.text)?;
            output::stderr_line(&format!("receipt {id}"));
        }
    } else if context.json {
        output::json(&PromptReport::build(&args.prompt, context)?)?;
    } else {
        let loaded = load_prompt(context, &args.prompt)?;
        output::raw_bytes(&render(&assemble(&loaded.workspace.input, &loaded.layout)).text)?;
    }
    Ok(ExitCode::SUCCESS)
}

const LISTED: u32 = 20;

const RECEIPT_EXAMPLES: &str = "Examples:
  embody prompt show --receipt --json | jq -r .receipt
  embody prompt receipt 019a8b3e-0000-7000-8000-000000000000
  embody prompt diff receipt:019a8b3e-0000-7000-8000-000000000000 ~/.embody";

#[derive(Args, Debug)]
#[command(after_help = RECEIPT_EXAMPLES)]
pub(crate) struct ReceiptArgs {
    /// Its id, or at least eight characters of the prompt's hash; none lists the latest
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
    let latest =
        store::with_existing(context, async |store| Ok(store.receipts().list_latest(user, LISTED).await?))?;
    context.print_list("receipts", &latest.unwrap_or_default(), receipt_json, receipts_text)
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

fn receipts_text(receipts: &[Receipt]) -> String {
    const HEAD: Style = Style::new().bold();
    if receipts.is_empty() {
        return "There are no receipts yet.\n".to_owned();
    }
    let mut out = format!("{HEAD}{:36}  {:20}  {:12}  {:8}  hash{HEAD:#}\n", "id", "kept", "agent", "layout");
    for Receipt { id, agent, layout, hash, created_at, .. } in receipts {
        let (when, agent) = (time::display(*created_at), printable(agent));
        let _ =
            writeln!(out, "{id:36}  {when:20}  {agent:12}  {layout:8}  {}", hash.get(..16).unwrap_or(hash));
    }
    out
}

fn find_receipt(id: &str, user: &str, context: &Context) -> Result<PromptReport, CliError> {
    let missing = || {
        CliError::new(format!("user `{user}` has no receipt `{id}`"))
            .hint("`embody prompt receipt` lists the latest; `--user` looks for another user's")
    };
    store::with_existing(context, async |store| {
        let found = store.receipts().list(user, id, 1).await?;
        let Some(receipt) = found.first() else { return Ok(None) };
        let text = store.receipts().replay(receipt).await?;
        let report: PromptReport = serde_json::from_str(&receipt.detail)
            .context(format!("the account of receipt `{}` cannot be read", receipt.id))?;
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
    let detail = serde_json::to_string(&account).context("the prompt's account cannot be written")?;
    Ok(NewReceipt {
        layout: report.layout.clone(),
        hash: report.hash.clone(),
        parts: parts.into_iter().map(str::to_owned).collect(),
        detail,
    })
}

/// The prompt, its sections and its notes. Offsets are in bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PromptReport {
    pub(crate) layout: String,
    pub(crate) text: String,
    pub(crate) hash: String,
    pub(crate) chars: usize,
    pub(crate) tokens: usize,
    pub(crate) stable_len: usize,
    pub(crate) sections: Vec<SectionReport>,
    pub(crate) notes: Vec<NoteReport>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) receipt: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SectionReport {
    pub(crate) kind: String,
    pub(crate) source: String,
    /// 0 if the source has no lines.
    pub(crate) line: u32,
    pub(crate) layer: String,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) chars: usize,
    pub(crate) tokens: usize,
    pub(crate) stable: bool,
    pub(crate) truncated: bool,
    pub(crate) hash: String,
    pub(crate) parts: Vec<PartReport>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PartReport {
    pub(crate) source: String,
    pub(crate) line: u32,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NoteReport {
    pub(crate) kind: String,
    pub(crate) message: String,
    pub(crate) source: String,
    pub(crate) line: u32,
}

impl PromptReport {
    pub(crate) fn build(args: &PromptArgs, context: &Context) -> Result<Self, CliError> {
        let LoadedPrompt { workspace, layout, .. } = load_prompt(context, args)?;
        let prompt = assemble(&workspace.input, &layout);
        Ok(Self::new(&prompt, render(&prompt)))
    }

    pub(crate) fn new(prompt: &Prompt<'_>, rendered: RenderedPrompt) -> Self {
        let RenderedPrompt { text, spans, stable_len, hash } = rendered;
        Self {
            layout: prompt.layout.name.to_owned(),
            hash: hash.to_hex().to_string(),
            chars: text.chars().count(),
            tokens: tokens::count(&text),
            stable_len,
            sections: spans.iter().map(|span| section(span, &text)).collect(),
            notes: prompt.notes.iter().map(NoteReport::new).collect(),
            text,
            receipt: None,
        }
    }

    pub(crate) fn text_of(&self, section: &SectionReport) -> &str {
        self.text.get(section.start..section.end).unwrap_or("")
    }
}

impl NoteReport {
    fn new(note: &Note) -> Self {
        let (source, line) = source_line(&note.source);
        Self { kind: note.kind.name().to_owned(), message: note.message.clone(), source, line }
    }
}

fn section(span: &Span, all: &str) -> SectionReport {
    let text = all.get(span.start..span.end).unwrap_or("");
    let (source, line) = source_line(span.source());
    SectionReport {
        kind: span.kind.name().to_owned(),
        source,
        line,
        layer: span.layer.name().to_owned(),
        start: span.start,
        end: span.end,
        chars: text.chars().count(),
        tokens: tokens::count(text),
        stable: span.cache_class == CacheClass::Stable,
        truncated: span.truncated,
        hash: span.hash(all).to_hex().to_string(),
        parts: span
            .parts
            .iter()
            .map(|part| {
                let (source, line) = source_line(&part.source);
                PartReport { source, line, start: part.start, end: part.end }
            })
            .collect(),
    }
}

fn source_line(source: &Source) -> (String, u32) {
    (source.name().to_owned(), source.line())
}

/// `source:line`, for a terminal.
pub(super) fn display_source(source: &str, line: u32) -> String {
    let source = printable(source);
    if line == 0 { source.into_owned() } else { format!("{source}:{line}") }
}
