//! `embody instructions …`: the standing instructions of a user for an agent, and proposals to change them.

use std::fmt::Write;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use clap::{Args, Subcommand};
use embody_mind::{Caller, ContractSource, Mind, ProposalDecision, Trust, ZonedNow, full_diff};
use embody_prompt::INSTRUCTIONS_LIMIT;
use embody_store::instructions::{Instructions, InstructionsChange, InstructionsOutcome, PastInstructions};
use embody_store::proposals::{Proposal, ProposalStatus};
use embody_store::{IdSet, Scope, ShortIds, Store};
use embody_text::truncate;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::json;

use super::args::read_text;
use super::{Context, ScopeArgs, editor, ids};
use crate::error::CliError;
use crate::output::{self, printable};
use crate::{store, time};

const OPERATOR: &str = "operator";
/// The store's limit.
const TEXT_LIMIT: usize = 64 * 1024;
const ADDED: Style = AnsiColor::Green.on_default();
const DIM: Style = Style::new().dimmed();
const REMOVED: Style = AnsiColor::Red.on_default();
const EXAMPLES: &str = "Examples:
  embody instructions set 'Answer in bullet points.'
  embody instructions set - < instructions.md
  embody instructions edit                      in $VISUAL, $EDITOR or vi
  embody instructions history --diff
  embody instructions revert 3
  embody instructions proposals";

#[derive(Subcommand, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) enum InstructionsCommand {
    /// Print the text
    #[command(
        after_help = "Examples:\n  embody instructions show\n  embody instructions show --user ann --json"
    )]
    Show(ScopeArgs),
    /// Replace the text; an empty text clears it
    #[command(
        after_help = "Examples:\n  embody instructions set 'Answer in bullet points.'\n  embody instructions set - < instructions.md\n  embody instructions set '' --expected-version 4"
    )]
    Set(SetArgs),
    /// Change the text in your editor; a change that someone else makes meanwhile is not lost
    #[command(
        after_help = "Examples:\n  embody instructions edit\n  EDITOR='code --wait' embody instructions edit --agent coach"
    )]
    Edit(ScopeArgs),
    /// List the versions, newest first
    #[command(after_help = "Examples:\n  embody instructions history --diff")]
    History(HistoryArgs),
    /// Restore the text of an old version as a new version
    #[command(after_help = "Examples:\n  embody instructions revert 3")]
    Revert(RevertArgs),
    /// List proposed changes that wait for your decision
    #[command(after_help = "Examples:\n  embody instructions proposals")]
    Proposals(ScopeArgs),
    /// Accept a proposal: it becomes part of the instructions
    #[command(
        after_help = "Examples:\n  embody instructions proposals\n  embody instructions accept 8f21c0de"
    )]
    Accept(ProposalArgs),
    /// Dismiss a proposal
    #[command(after_help = "Examples:\n  embody instructions dismiss 8f21c0de")]
    Dismiss(ProposalArgs),
}

#[derive(Args, Debug)]
pub(crate) struct SetArgs {
    /// The whole text, or `-` to read it from stdin
    text: String,
    /// Change the text only if this is the current version
    #[arg(long, value_name = "VERSION")]
    expected_version: Option<i64>,
    #[command(flatten)]
    scope: ScopeArgs,
}

#[derive(Args, Debug)]
pub(crate) struct HistoryArgs {
    /// The number of versions
    #[arg(long, default_value_t = 20)]
    limit: u32,
    /// Show what each version changed, line by line
    #[arg(long)]
    diff: bool,
    #[command(flatten)]
    scope: ScopeArgs,
}

#[derive(Args, Debug)]
pub(crate) struct RevertArgs {
    /// The version to restore
    version: i64,
    #[command(flatten)]
    scope: ScopeArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ProposalArgs {
    /// The proposal's id, or its end
    id: String,
    #[command(flatten)]
    scope: ScopeArgs,
}

pub(crate) fn run(command: &InstructionsCommand, context: &Context) -> Result<ExitCode, CliError> {
    match command {
        InstructionsCommand::Show(args) => show(args, context),
        InstructionsCommand::Set(args) => set(args, context),
        InstructionsCommand::Edit(args) => edit(args, context),
        InstructionsCommand::History(args) => history(args, context),
        InstructionsCommand::Revert(args) => revert(args, context),
        InstructionsCommand::Proposals(args) => list_proposals(args, context),
        InstructionsCommand::Accept(args) => accept_proposal(args, context),
        InstructionsCommand::Dismiss(args) => dismiss_proposal(args, context),
    }
}

fn show(scope: &ScopeArgs, context: &Context) -> Result<ExitCode, CliError> {
    let found = current(&scope.resolve()?, context)?;
    if context.json {
        output::json(&as_json(&found))?;
    } else {
        output::raw_bytes(&found.text)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn current(scope: &Scope, context: &Context) -> Result<Instructions, CliError> {
    let found = store::with_existing(context, async |store| Ok(store.instructions().get(scope).await?))?;
    Ok(found.unwrap_or(Instructions { text: String::new(), version: 0, changed_at: 0 }))
}

fn set(args: &SetArgs, context: &Context) -> Result<ExitCode, CliError> {
    let scope = args.scope.resolve()?;
    let text = read_text(&args.text)?;
    let change =
        InstructionsChange { text, writer: OPERATOR.to_owned(), expected_version: args.expected_version };
    let now = write(&scope, change, context)?;
    print_version(&now, context)
}

fn write(scope: &Scope, change: InstructionsChange, context: &Context) -> Result<Instructions, CliError> {
    match store::with(context, async |store| Ok(store.instructions().set(scope, change).await?))? {
        InstructionsOutcome::Written(now) => Ok(now),
        InstructionsOutcome::Stale(now) => Err(CliError::new(format!(
            "the instructions are now at version `{}`; nothing was changed",
            now.version
        ))
        .hint("read `embody instructions show`, then set them again with that version")),
    }
}

fn edit(scope: &ScopeArgs, context: &Context) -> Result<ExitCode, CliError> {
    let scope = scope.resolve()?;
    let before = current(&scope, context)?;
    let Some(edited) = editor::edit("instructions", &before.text, TEXT_LIMIT)? else {
        let unchanged = json!({ "version": before.version, "changed": false });
        return context.print_plain(&unchanged, || format!("unchanged, still version {}\n", before.version));
    };
    let change = InstructionsChange {
        text: edited.text.clone(),
        writer: OPERATOR.to_owned(),
        expected_version: Some(before.version),
    };
    match write(&scope, change, context) {
        Ok(now) => print_version(&now, context),
        Err(error) => Err(edited.keep(error)),
    }
}

fn print_version(now: &Instructions, context: &Context) -> Result<ExitCode, CliError> {
    let characters = now.text.chars().count();
    context.print_plain(&json!({ "version": now.version, "characters": characters }), || {
        format!("version {}, {characters} characters\n", now.version)
    })?;
    if characters > INSTRUCTIONS_LIMIT {
        output::stderr_line(&format!(
            "prompts show the first {INSTRUCTIONS_LIMIT} characters; the agent reads the rest with read_memory"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn history(args: &HistoryArgs, context: &Context) -> Result<ExitCode, CliError> {
    let scope = args.scope.resolve()?;
    // One more than shown, for the diff of the last one.
    let most = args.limit.saturating_add(1);
    let versions =
        store::with_existing(context, async |store| Ok(store.instructions().history(&scope, most).await?))?;
    let versions = versions.unwrap_or_default();
    let before = versions.iter().skip(1).map(|past| past.instructions.text.as_str()).chain([""]);
    let shown: Vec<(&PastInstructions, Option<String>)> = versions
        .iter()
        .zip(before)
        .take(args.limit as usize)
        .map(|(past, before)| (past, args.diff.then(|| full_diff(before, &past.instructions.text))))
        .collect();
    context.print_list("versions", &shown, |(past, diff)| past_json(past, diff.as_deref()), as_text)
}

fn past_json(past: &PastInstructions, diff: Option<&str>) -> serde_json::Value {
    let Instructions { text, version, changed_at } = &past.instructions;
    let mut shown = json!({
        "version": version,
        "text": text,
        "writer": past.writer,
        "changed_at": time::rfc3339(*changed_at),
    });
    if let (Some(diff), Some(fields)) = (diff, shown.as_object_mut()) {
        fields.insert("diff".to_owned(), diff.into());
    }
    shown
}

fn as_text(versions: &[(&PastInstructions, Option<String>)]) -> String {
    const HEAD: Style = Style::new().bold();
    if versions.is_empty() {
        return "There are no instructions yet.\n".to_owned();
    }
    let mut out = format!("{HEAD}{:>7}  {:20}  {:12}  text{HEAD:#}\n", "version", "written", "by");
    for (past, diff) in versions {
        let Instructions { text, version, changed_at } = &past.instructions;
        let line = text.lines().next().unwrap_or("(cleared)");
        let (when, by) = (time::display(*changed_at), printable(&past.writer));
        let _ = writeln!(out, "{version:>7}  {when:20}  {by:12}  {}", printable(&truncate(line, 60)));
        for line in diff.iter().flat_map(|diff| diff.lines()) {
            let style = match line.chars().next() {
                Some('+') => ADDED,
                Some('-') => REMOVED,
                _ => Style::new(),
            };
            let _ = writeln!(out, "         {style}{}{style:#}", printable(line));
        }
    }
    out
}

fn revert(args: &RevertArgs, context: &Context) -> Result<ExitCode, CliError> {
    let scope = args.scope.resolve()?;
    let now = store::with(context, async |store| {
        Ok(store.instructions().revert(&scope, args.version, OPERATOR).await?)
    })?;
    print_version(&now, context)
}

fn as_json(instructions: &Instructions) -> serde_json::Value {
    let Instructions { text, version, changed_at } = instructions;
    json!({ "text": text, "version": version, "changed_at": (*version > 0).then(|| time::rfc3339(*changed_at)) })
}

fn list_proposals(scope: &ScopeArgs, context: &Context) -> Result<ExitCode, CliError> {
    let caller = owner(scope.resolve()?);
    let found = store::with_existing(context, async |store| {
        let found = mind(store).open_proposals(&caller).await.map_err(from_mind_error)?;
        let ids = found.iter().map(|proposal| &proposal.id);
        Ok((ids::shorten(context, store, IdSet::Proposals(&caller.scope), ids).await?, found))
    })?;
    let (short, found) = found.unwrap_or_default();
    context.print_list("proposals", &found, proposal_json, |found| proposals_text(found, &short))
}

fn accept_proposal(args: &ProposalArgs, context: &Context) -> Result<ExitCode, CliError> {
    let caller = owner(args.scope.resolve()?);
    let decision = store::with_existing(context, async |store| {
        let id = proposal_id(store, &caller.scope, &args.id).await?;
        mind(store).accept_proposal(&caller, &id, &now()).await.map_err(from_mind_error)
    })?;
    match decision.ok_or_else(|| proposal_not_found(&args.id))? {
        ProposalDecision::Accepted(instructions) => print_version(&instructions, context),
        ProposalDecision::Decided(proposal) => print_decision(&proposal, ProposalStatus::Accepted, context),
        ProposalDecision::Renewed(proposal) => Err(CliError::new(format!(
            "the instructions are now at version `{}`; nothing was changed",
            proposal.change.base_version
        ))
        .hint("the proposal was recreated: read `embody instructions proposals`, then accept it again")),
    }
}

fn dismiss_proposal(args: &ProposalArgs, context: &Context) -> Result<ExitCode, CliError> {
    let caller = owner(args.scope.resolve()?);
    let proposal = store::with_existing(context, async |store| {
        let id = proposal_id(store, &caller.scope, &args.id).await?;
        mind(store).dismiss_proposal(&caller, &id, &now()).await.map_err(from_mind_error)
    })?;
    print_decision(&proposal.ok_or_else(|| proposal_not_found(&args.id))?, ProposalStatus::Dismissed, context)
}

async fn proposal_id(store: &Store, scope: &Scope, given: &str) -> Result<String, CliError> {
    ids::resolve(store, IdSet::Proposals(scope), given, proposal_not_found).await
}

/// Deciding the same twice is not an error; the opposite of an earlier decision is.
fn print_decision(
    proposal: &Proposal,
    wanted: ProposalStatus,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let (id, status) = (&proposal.id, proposal.status.name());
    if proposal.status != wanted {
        return Err(CliError::new(format!("the proposal `{id}` is {status}; nothing was changed")).hint(
            "`embody instructions show` prints the instructions, `embody instructions set` changes them",
        ));
    }
    context.print_plain(&json!({ "id": id, "status": status }), || format!("{id} is {status}\n"))
}

/// A mind without a contract, which commands do not need.
fn mind(store: &Store) -> Mind {
    let no_contract = ContractSource::new(async |_, _| Err("commands have no contract".to_owned()));
    Mind::new(store.clone(), no_contract)
}

/// A person at the terminal with access to the store acts as its owner.
fn owner(scope: Scope) -> Caller {
    Caller { scope, writer: OPERATOR.to_owned(), trust: Trust::Owner, session: None, trains: false }
}

fn now() -> ZonedNow {
    ZonedNow::new(Timestamp::now(), TimeZone::system())
}

fn from_mind_error(error: embody_mind::Error) -> CliError {
    match error {
        embody_mind::Error::Store(error) => error.into(),
        other => CliError::new(&other),
    }
}

/// The error of the store for an unknown id, for when there is no store.
fn proposal_not_found(id: &str) -> CliError {
    CliError::new(format!("unknown proposal `{id}`")).hint(
        "`embody instructions proposals` lists them; `--user` and `--agent` select the user and the agent",
    )
}

fn proposals_text(found: &[Proposal], short: &ShortIds) -> String {
    if found.is_empty() {
        return "No proposals.\n".to_owned();
    }
    let mut out = String::new();
    for Proposal { id, change, writer, trust, created_at, .. } in found {
        let (when, writer) = (time::display(*created_at), printable(writer));
        let _ =
            writeln!(out, "{DIM}{}  {when}  by {writer}, trust {}{DIM:#}", short.of(id), printable(trust));
        match &*change.sentence {
            "" => drop(writeln!(out, "  {}", printable(&change.line))),
            sentence => drop(writeln!(out, "  said: {}", printable(sentence))),
        }
        for line in printable(&change.diff).lines() {
            let _ = writeln!(out, "  {line}");
        }
    }
    out
}

fn proposal_json(proposal: &Proposal) -> serde_json::Value {
    let change = &proposal.change;
    json!({
        "id": proposal.id,
        "line": change.line,
        "text": change.text,
        "diff": change.diff,
        "base_version": change.base_version,
        "sentence": change.sentence,
        "writer": proposal.writer,
        "trust": proposal.trust,
        "created_at": time::rfc3339(proposal.created_at),
    })
}
