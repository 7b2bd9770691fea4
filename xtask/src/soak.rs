//! `cargo xtask soak`: the crash tests of the store and of the broker, ten times as long. `./test` runs the short form.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Kills in the long form.
const KILLS: &str = "200";
const BROKER_KILLS: &str = "1000";

/// Becomes the test runner, with a database of its own.
pub(crate) fn run() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    let error = Command::new(root.join("tools/postgres"))
        .args([
            "with",
            "cargo",
            "nextest",
            "run",
            "--profile",
            "soak",
            "--package",
            "embody-store",
            "--package",
            "embody-broker",
            "--package",
            "embody",
            "--filterset",
            "test(/^crash::/) | test(/^broker::kills::/)",
        ])
        .env("EMBODY_KILLS", KILLS)
        .env("EMBODY_BROKER_KILLS", BROKER_KILLS)
        .current_dir(root)
        .exec();
    eprintln!("error: `tools/postgres` could not be run: {error}");
    ExitCode::FAILURE
}
