//! `embody instructions …`: the standing instructions of a user for an agent.

use std::fmt::Write;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use clap::{Args, Subcommand};
use embody_mind::whole_diff;
use embody_prompt::INSTRUCTIONS_LIMIT;
use embody_store::{Instructions, InstructionsChange, InstructionsOutcome, PastInstructions};
use serde_json::json;

use super::proposals::{self, ProposalArgs, ProposalsArgs};
use super::{Context, Who};
use crate::failure::Failure;
use crate::input;
use crate::output::{self, printable};
use crate::store;
use crate::time;

/// Who writes from a terminal.
pub(super) const OPERATOR: &str = "operator";
const ADDED: Style = AnsiColor::Green.on_default();
const REMOVED: Style = AnsiColor::Red.on_default();
const EXAMPLES: &str = "Examples:
  embody instructions set 'Answer in bullet points.'
  embody instructions set - < instructions.md
  embody instructions history --diff
  embody instructions revert 3
  embody instructions proposals";

/// What to do with them.
#[derive(Subcommand, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) enum InstructionsCommand {
    /// Prints the text and nothing else
    Show(ShowArgs),
    /// Replaces the text; an empty one clears it
    Set(SetArgs),
    /// Lists the versions, newest first
    History(HistoryArgs),
    /// Writes the text of an old version again, as a new version
    Revert(RevertArgs),
    /// Lists the changes that were wished for and wait for your word
    Proposals(ProposalsArgs),
    /// Makes a proposal part of the instructions
    Accept(ProposalArgs),
    /// Puts a proposal away
    Dismiss(ProposalArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    who: Who,
}

#[derive(Args, Debug)]
pub(crate) struct SetArgs {
    /// The whole text, or `-` to read it from stdin
    text: String,
    /// Only if this is still the version
    #[arg(long, value_name = "VERSION")]
    expected_version: Option<i64>,
    #[command(flatten)]
    who: Who,
}

#[derive(Args, Debug)]
pub(crate) struct HistoryArgs {
    /// How many versions
    #[arg(long, default_value_t = 20)]
    limit: u32,
    /// What each version changed, line by line
    #[arg(long)]
    diff: bool,
    #[command(flatten)]
    who: Who,
}

#[derive(Args, Debug)]
pub(crate) struct RevertArgs {
    /// The version to go back to
    version: i64,
    #[command(flatten)]
    who: Who,
}

pub(crate) fn run(command: &InstructionsCommand, context: &Context) -> Result<ExitCode, Failure> {
    match command {
        InstructionsCommand::Show(args) => show(args, context),
        InstructionsCommand::Set(args) => set(args, context),
        InstructionsCommand::History(args) => history(args, context),
        InstructionsCommand::Revert(args) => revert(args, context),
        InstructionsCommand::Proposals(args) => proposals::list(args, context),
        InstructionsCommand::Accept(args) => proposals::accept(args, context),
        InstructionsCommand::Dismiss(args) => proposals::dismiss(args, context),
    }
}

fn show(args: &ShowArgs, context: &Context) -> Result<ExitCode, Failure> {
    let scope = args.who.scope()?;
    let found = store::read(context, async |store| Ok(store.instructions(&scope).await?))?;
    let found = found.unwrap_or(Instructions { text: String::new(), version: 0, changed_at: 0 });
    if context.json {
        output::json(&as_json(&found))?;
    } else {
        output::exactly(&found.text)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn set(args: &SetArgs, context: &Context) -> Result<ExitCode, Failure> {
    let scope = args.who.scope()?;
    let text = input::text(&args.text)?;
    let change =
        InstructionsChange { text, writer: OPERATOR.to_owned(), expected_version: args.expected_version };
    let outcome = store::with(context, async |store| Ok(store.set_instructions(&scope, change).await?))?;
    match outcome {
        InstructionsOutcome::Written(now) => written(&now, context),
        InstructionsOutcome::Stale(now) => Err(Failure::new(format!(
            "the instructions have version `{}` by now; nothing was changed",
            now.version
        ))
        .hint("look at `embody instructions show`, then set them again with that version")),
    }
}

pub(super) fn written(now: &Instructions, context: &Context) -> Result<ExitCode, Failure> {
    let characters = now.text.chars().count();
    if context.json {
        output::json(&json!({ "version": now.version, "characters": characters }))?;
    } else {
        output::plain(&format!("version {}, {characters} characters\n", now.version))?;
    }
    if characters > INSTRUCTIONS_LIMIT {
        output::aside(&format!(
            "prompts show the first {INSTRUCTIONS_LIMIT} characters; the agent reads the rest with read_memory"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn history(args: &HistoryArgs, context: &Context) -> Result<ExitCode, Failure> {
    let scope = args.who.scope()?;
    // One more than is shown: the last one's difference is from it.
    let most = args.limit.saturating_add(1);
    let versions = store::read(context, async |store| Ok(store.instructions_history(&scope, most).await?))?;
    let versions = versions.unwrap_or_default();
    let before = versions.iter().skip(1).map(|past| past.instructions.text.as_str()).chain([""]);
    let shown: Vec<(&PastInstructions, Option<String>)> = versions
        .iter()
        .zip(before)
        .take(args.limit as usize)
        .map(|(past, before)| (past, args.diff.then(|| whole_diff(before, &past.instructions.text))))
        .collect();
    if context.json {
        let versions: Vec<_> = shown.iter().map(|(past, diff)| past_json(past, diff.as_deref())).collect();
        output::json(&json!({ "versions": versions }))?;
    } else {
        output::styled(&as_text(&shown))?;
    }
    Ok(ExitCode::SUCCESS)
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
        let (when, by) = (time::shown(*changed_at), printable(&past.writer));
        let _ = writeln!(out, "{version:>7}  {when:20}  {by:12}  {}", printable(&time::clipped(line, 60)));
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

fn revert(args: &RevertArgs, context: &Context) -> Result<ExitCode, Failure> {
    let scope = args.who.scope()?;
    let now = store::with(context, async |store| {
        Ok(store.revert_instructions(&scope, args.version, OPERATOR).await?)
    })?;
    written(&now, context)
}

fn as_json(instructions: &Instructions) -> serde_json::Value {
    let Instructions { text, version, changed_at } = instructions;
    json!({ "text": text, "version": version, "changed_at": (*version > 0).then(|| time::rfc3339(*changed_at)) })
}
