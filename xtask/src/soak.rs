//! `cargo xtask soak`: the crash tests of the store, the broker, the scheduler and Telegram, ten times as long, an hour
//! of visits to one broker, and all public servers behind the broker. `./test` runs the short form.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

/// Kills in the long form.
const KILLS: &str = "200";
const BROKER_KILLS: &str = "1000";
/// Due runs in the long form.
const SCHEDULE_RUNS: &str = "1000";
/// Messages on Telegram in the long form.
const TELEGRAM_UPDATES: &str = "10000";

/// Hosts that visit the broker in the long form, and for how long.
const ENDURANCE_SESSIONS: &str = "1000";
const ENDURANCE_S: &str = "3600";

/// Becomes the test runner, with a database of its own.
pub(crate) fn run() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    let installed = install(root, "tools/mcp-peers", &["target/mcp-peers"]).and_then(|peers| {
        Ok((peers, install(root, "tools/public-servers", &["target/public-servers", "--all"])?))
    });
    let (peers, servers) = match installed {
        Ok(folders) => folders,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    let error = Command::new(root.join("tools/postgres"))
        .args([
            "with",
            "cargo",
            "nextest",
            "run",
            "--profile",
            "soak",
            // The same selection as in `./test`: another one would be built anew.
            "--workspace",
            "--filterset",
            "test(/^crash::/) | test(/^schedule::replicas::/) | (binary(=agent) & test(/^kills::/)) | \
             (binary(=broker) & test(/^(kills|endurance|public_servers)::/))",
        ])
        .env("EMBODY_TEST_PEERS", peers)
        .env("EMBODY_TEST_SERVERS", servers)
        .env("EMBODY_PUBLIC_SERVERS", "all")
        .env("EMBODY_KILLS", KILLS)
        .env("EMBODY_BROKER_KILLS", BROKER_KILLS)
        .env("EMBODY_SCHEDULE_RUNS", SCHEDULE_RUNS)
        .env("EMBODY_TELEGRAM_UPDATES", TELEGRAM_UPDATES)
        .env("EMBODY_ENDURANCE_SESSIONS", ENDURANCE_SESSIONS)
        .env("EMBODY_ENDURANCE_S", ENDURANCE_S)
        .current_dir(root)
        .exec();
    eprintln!("error: `tools/postgres` could not be run: {error}");
    ExitCode::FAILURE
}

/// Runs `PROGRAM install ARGUMENTS`, and returns the folder that it prints.
fn install(root: &Path, program: &str, arguments: &[&str]) -> io::Result<String> {
    let mut command = Command::new(root.join(program));
    command.arg("install").args(arguments).current_dir(root).stderr(Stdio::inherit());
    let output = command.output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!("`{program} install` failed")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
