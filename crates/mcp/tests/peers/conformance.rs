//! The official conformance suites, and what their result files say.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::{process, program};

const LIMIT: Duration = Duration::from_secs(240);

/// Which suite, and at which revision of the protocol.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Suite {
    /// The stable release, which ends at 2025-11-25.
    Stable,
    /// The one to come, at a revision.
    Next(&'static str),
    /// What that one has for tasks, an extension of 2026-07-28.
    Tasks,
}

/// It runs extensions only by the names of their scenarios.
const TASKS: [&str; 10] = [
    "tasks-lifecycle",
    "tasks-capability-negotiation",
    "tasks-wire-fields",
    "tasks-request-state-removal",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-dispatch-and-envelope",
    NOTIFICATIONS,
    "tasks-required-task-error",
    "tasks-mrtr-composition",
];
/// The suite has this one and skips it, whatever the server does: it says that it has to be written anew. Our own tests listen.
const NOTIFICATIONS: &str = "tasks-status-notifications";

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) scenarios: usize,
    /// Checks that succeeded.
    pub(crate) passed: usize,
    /// Every check that failed, warned or was skipped, and every scenario without a success, in words.
    pub(crate) complaints: Vec<String>,
}

/// Runs every scenario of a suite that applies.
pub(crate) fn conform(suite: Suite, url: &str) -> Report {
    let results = tempfile::tempdir().unwrap();
    let runs: Vec<Vec<&str>> = match suite {
        Suite::Stable => vec![vec!["--suite", "all"]],
        Suite::Next(revision) => vec![vec!["--suite", "all", "--spec-version", revision]],
        Suite::Tasks => TASKS.iter().map(|scenario| vec!["--scenario", scenario]).collect(),
    };
    let program = program(if matches!(suite, Suite::Stable) { "conformance" } else { "conformance-next" });
    let mut report = Report { scenarios: 0, passed: 0, complaints: Vec::new() };
    for run in runs {
        let mut command = Command::new(&program);
        command.arg("server").args(run).args(["--url", url, "-o"]).arg(results.path());
        let said = process::run(&mut command, LIMIT);
        // Its own judgement counts too: it may know of a failure that stands in no file.
        if said.code != Some(0) {
            report.complaints.push(format!("exit code {:?}\n{}{}", said.code, said.output, said.errors));
        }
    }
    for folder in std::fs::read_dir(results.path()).unwrap() {
        let folder = folder.unwrap();
        let checks = std::fs::read_to_string(folder.path().join("checks.json")).unwrap();
        let checks: Vec<Value> = serde_json::from_str(&checks).unwrap();
        report.add(&folder.file_name().to_string_lossy(), &checks);
    }
    let is_skipped = |complaint: &String| {
        complaint.starts_with(&format!("server-{NOTIFICATIONS}"))
            && (complaint.contains(": SKIPPED ") || complaint.ends_with(": nothing succeeded"))
    };
    report.complaints.retain(|complaint| !is_skipped(complaint));
    report
}

impl Report {
    fn add(&mut self, scenario: &str, checks: &[Value]) {
        let status = |check: &Value| check["status"].as_str().unwrap_or_default().to_owned();
        let passed = checks.iter().filter(|check| status(check) == "SUCCESS").count();
        self.scenarios += 1;
        self.passed += passed;
        if passed == 0 {
            self.complaints.push(format!("{scenario}: nothing succeeded"));
        }
        for check in checks.iter().filter(|check| !matches!(&*status(check), "SUCCESS" | "INFO")) {
            let (id, message) = (&check["id"], &check["errorMessage"]);
            self.complaints.push(format!(
                "{scenario}: {} {id}: {message}\n{:#}",
                status(check),
                check["details"]
            ));
        }
    }
}
