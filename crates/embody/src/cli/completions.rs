//! `embody completions SHELL`.

use std::process::ExitCode;

use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};

use super::Cli;
use crate::failure::Failure;
use crate::output;

/// Which shell.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  embody completions bash > ~/.local/share/bash-completion/completions/embody"
)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    generate(args.shell, &mut Cli::command(), "embody", &mut script);
    output::plain(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
