//! The command line's reference page, made from the command definitions themselves.

use std::fmt::Write;

use clap::{Command, CommandFactory};

use super::Cli;

/// Every command with its help, as Markdown.
pub(crate) fn markdown() -> String {
    let mut out = String::from(
        "# Command line\n\nGenerated from the program by `cargo xtask docs`. Global options work before and after the command.\n",
    );
    let mut command = Cli::command().term_width(100).color(clap::ColorChoice::Never);
    command.build();
    section(&mut out, &mut command, "embody");
    out
}

fn section(out: &mut String, command: &mut Command, name: &str) {
    let help = command.render_long_help().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    let _ = write!(out, "\n## `{name}`\n\n```text\n{}\n```\n", lines.join("\n"));
    for child in command.get_subcommands_mut().filter(|child| !child.is_hide_set()) {
        let name = format!("{name} {}", child.get_name());
        section(out, child, &name);
    }
}
