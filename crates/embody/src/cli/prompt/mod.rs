//! `embody prompt …`: show, explain, diff, lint, receipt.

mod diff;
mod explain;
mod html;
mod lint;
pub(crate) mod receipt;
mod report;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use embody_prompt::{assemble, render};

use crate::cli::Context;
use crate::error::CliError;
use crate::prompt_loading::{PromptArgs, load_prompt};
use crate::{output, store};

pub(super) use lint::findings;
pub(crate) use report::PromptReport;
pub(super) use report::display_source;

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
    Receipt(receipt::ReceiptArgs),
}

pub(crate) fn run(command: &PromptCommand, context: &Context) -> Result<ExitCode, CliError> {
    match command {
        PromptCommand::Show(args) => show(args, context),
        PromptCommand::Explain(args) => explain::run(args, context),
        PromptCommand::Diff(args) => diff::run(args, context),
        PromptCommand::Lint(args) => lint::run(args, context),
        PromptCommand::Receipt(args) => receipt::run(args, context),
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
            Ok(store.receipts().insert(&scope, receipt::new_receipt(&report)?).await?)
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
