//! `cargo xtask bench WHAT`: runs a benchmark and writes what it measured into `docs/`. It judges no number: a slow
//! machine is not a failure.

mod agent;
mod broker;
mod catalogue;
mod memory;
mod plot;
mod prompt;
mod store;
mod table;

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

/// Runs the benchmark of that name.
pub(crate) fn run(mut arguments: impl Iterator<Item = String>) -> ExitCode {
    let written = match arguments.next().as_deref() {
        Some("prompt") => prompt::run(),
        Some("memory") => memory::run(arguments),
        Some("store") => store::run(),
        Some("broker") => broker::run(arguments),
        Some("agent") => agent::run(),
        Some("catalogue") => catalogue::run(),
        _ => {
            eprintln!(
                "usage: cargo xtask bench prompt | store | broker [--without-peers] | agent | catalogue | memory --data FILE"
            );
            return ExitCode::from(2);
        }
    };
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("error: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn write(root: &Path, name: &str, text: &str) -> Result<(), String> {
    fs::write(root.join(name), text).map_err(|error| format!("{name} could not be written: {error}"))?;
    println!("wrote {name}");
    Ok(())
}

/// What a command of cargo prints, which must succeed.
fn cargo(root: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(env!("CARGO"))
        .args(arguments)
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("`cargo` did not start: {error}"))?;
    if !output.status.success() {
        return Err(format!("`cargo {}` ended with {}", arguments.join(" "), output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| "`cargo` printed no text".into())
}
