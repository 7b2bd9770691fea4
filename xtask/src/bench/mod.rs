//! `cargo xtask bench WHAT`: runs a benchmark and writes what it measured into `docs/`. It judges no number: a slow
//! machine is not a failure.

mod plot;
mod prompt;
mod table;

use std::process::ExitCode;

/// Runs the benchmark of that name.
pub(crate) fn run(what: Option<&str>) -> ExitCode {
    let written = match what {
        Some("prompt") => prompt::run(),
        _ => {
            eprintln!("usage: cargo xtask bench prompt");
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
