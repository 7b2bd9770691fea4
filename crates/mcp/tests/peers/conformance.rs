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
}

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
    let mut command = match suite {
        Suite::Stable => Command::new(program("conformance")),
        Suite::Next(_) => Command::new(program("conformance-next")),
    };
    command.args(["server", "--suite", "all", "--url", url, "-o"]).arg(results.path());
    if let Suite::Next(revision) = suite {
        command.args(["--spec-version", revision]);
    }
    let said = process::run(&mut command, LIMIT);
    let mut report = Report { scenarios: 0, passed: 0, complaints: Vec::new() };
    for folder in std::fs::read_dir(results.path()).unwrap() {
        let folder = folder.unwrap();
        let checks = std::fs::read_to_string(folder.path().join("checks.json")).unwrap();
        let checks: Vec<Value> = serde_json::from_str(&checks).unwrap();
        report.add(&folder.file_name().to_string_lossy(), &checks);
    }
    // Its own judgement counts too: it may know of a failure that stands in no file.
    if said.code != Some(0) {
        report.complaints.push(format!("exit code {:?}\n{}{}", said.code, said.output, said.errors));
    }
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
