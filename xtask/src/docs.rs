//! `cargo xtask docs`: writes the pages that the program itself knows best. A test fails when they are stale.

use std::path::Path;
use std::process::{Command, ExitCode};

use crate::policy_page;

const PAGES: &[(&str, &[&str])] =
    &[("docs/cli.md", &["man", "--markdown"]), ("docs/config.md", &["config", "reference"])];

const POLICY: &str = "docs/policy.md";

/// Writes every generated page.
pub(crate) fn run() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    for (page, args) in PAGES {
        let output = Command::new(env!("CARGO"))
            .args(["run", "--quiet", "--package", "embody", "--", "--workspace", "nowhere"])
            .args(*args)
            .current_dir(root)
            .output();
        let written = match output {
            Ok(output) if output.status.success() => std::fs::write(root.join(page), output.stdout),
            Ok(output) => Err(std::io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned())),
            Err(error) => Err(error),
        };
        if let Err(error) = written {
            eprintln!("error: {page} could not be written: {error}");
            return ExitCode::FAILURE;
        }
        println!("wrote {page}");
    }
    if let Err(error) = std::fs::write(root.join(POLICY), policy_page::page()) {
        eprintln!("error: {POLICY} could not be written: {error}");
        return ExitCode::FAILURE;
    }
    println!("wrote {POLICY}");
    ExitCode::SUCCESS
}
