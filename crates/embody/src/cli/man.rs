//! Generates the manual pages, the shell completions and `docs/cli.md` from the command definitions.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Arg, Args, Command, CommandFactory};
use clap_complete::{Shell, generate};
use clap_mangen::{Man, generate_to};

use super::Cli;
use crate::error::CliError;
use crate::output;

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  embody man | man -l -\n  embody man --dir ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// Write a page for every command into this folder
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Print the reference page in Markdown instead
    #[arg(long, hide = true, conflicts_with = "dir")]
    markdown: bool,
}

pub(crate) fn run(args: &ManArgs) -> Result<ExitCode, CliError> {
    let failed = |error: std::io::Error| CliError::new("cannot write the manual").caused_by(&error);
    if args.markdown {
        output::plain(&markdown())?;
        return Ok(ExitCode::SUCCESS);
    }
    match &args.dir {
        Some(dir) => {
            std::fs::create_dir_all(dir).map_err(failed)?;
            generate_to(Cli::command(), dir).map_err(failed)?;
        }
        None => {
            let mut page = Vec::new();
            Man::new(Cli::command()).render(&mut page).map_err(failed)?;
            output::plain(&String::from_utf8_lossy(&page))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  embody completions bash > ~/.local/share/bash-completion/completions/embody"
)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub(crate) fn completions(args: &CompletionsArgs) -> Result<ExitCode, CliError> {
    let mut script = Vec::new();
    generate(args.shell, &mut Cli::command(), "embody", &mut script);
    output::plain(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

fn markdown() -> String {
    let mut out = String::from(
        "# Command line\n\nGenerated from the program by `cargo xtask docs`. Every command also takes `--help` and the global \
         options of [`embody`](#embody), before or after its own; they are listed only once.\n",
    );
    let mut command = Cli::command().term_width(100).color(clap::ColorChoice::Never);
    command.build();
    section(&mut out, &command, "embody");
    out
}

/// A subcommand is shown without its global options and `--help`.
fn section(out: &mut String, command: &Command, name: &str) {
    let is_root = command.get_name() == name;
    let is_own = |arg: &Arg| is_root || !(arg.is_global_set() || arg.get_id() == "help");
    let mut shown = command.clone().mut_args(|arg| if is_own(&arg) { arg } else { arg.hide(true) });
    let help = shown.render_long_help().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    let _ = write!(out, "\n## `{name}`\n\n```text\n{}\n```\n", lines.join("\n").trim_end());
    for child in command.get_subcommands().filter(|child| !child.is_hide_set()) {
        let name = format!("{name} {}", child.get_name());
        section(out, child, &name);
    }
}
