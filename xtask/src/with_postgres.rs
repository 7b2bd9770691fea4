//! `cargo xtask with-postgres -- COMMAND`: runs a command with a PostgreSQL and a PgBouncer of its own. `tools/postgres`
//! makes and removes them; this only finds it.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Becomes `tools/postgres with COMMAND`, so that signals and the exit code need no passing on.
pub(crate) fn run(command: impl Iterator<Item = String>) -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    let error = Command::new(root.join("tools/postgres")).arg("with").args(command).exec();
    eprintln!("error: `tools/postgres` could not be run: {error}");
    ExitCode::FAILURE
}
