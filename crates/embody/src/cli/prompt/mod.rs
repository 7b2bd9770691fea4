//! `embody prompt …`: show, explain, diff, lint, receipt.

mod diff;
mod explain;
mod html;
mod lint;
pub(crate) mod receipt;
mod report;
mod show;

use std::process::ExitCode;

use clap::Subcommand;

use super::Context;
use crate::failure::Failure;

pub(super) use lint::findings;
pub(crate) use report::PromptReport;
pub(super) use report::shown;

/// What can be done with a prompt.
#[derive(Subcommand, Debug)]
pub(crate) enum PromptCommand {
    /// Prints exactly the prompt that would be sent, and nothing else
    Show(show::ShowArgs),
    /// Says for each section where it comes from, what it costs and how often it changes
    Explain(explain::ExplainArgs),
    /// Compares two prompts section by section and says what breaks the cacheable prefix
    Diff(diff::DiffArgs),
    /// Says what is wrong with the prompt; exits with 1 if anything is
    Lint(lint::LintArgs),
    /// Replays the exact bytes of a prompt that was kept
    Receipt(receipt::ReceiptArgs),
}

pub(crate) fn run(command: &PromptCommand, context: &Context) -> Result<ExitCode, Failure> {
    match command {
        PromptCommand::Show(args) => show::run(args, context),
        PromptCommand::Explain(args) => explain::run(args, context),
        PromptCommand::Diff(args) => diff::run(args, context),
        PromptCommand::Lint(args) => lint::run(args, context),
        PromptCommand::Receipt(args) => receipt::run(args, context),
    }
}
