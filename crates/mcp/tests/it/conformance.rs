//! The official suites: everything that applies passes, without a warning.

use crate::fixture;
use crate::peers::{Suite, conform};

/// `counts`: scenarios, and checks that succeed.
fn passes(suite: Suite, counts: (usize, usize)) {
    let server = fixture::listening();
    let report = conform(suite, &server.url);
    assert!(report.complaints.is_empty(), "{}", report.complaints.join("\n"));
    assert_eq!((report.scenarios, report.passed), counts);
}

#[test]
fn the_stable_suite_passes() {
    passes(Suite::Stable, (32, 46));
}

#[test]
fn the_next_suite_passes_in_the_session_era() {
    passes(Suite::Next("2025-11-25"), (33, 83));
}

#[test]
fn the_next_suite_passes_with_tasks() {
    passes(Suite::Tasks, (10, 44));
}

#[test]
fn the_next_suite_passes_in_the_stateless_era() {
    passes(Suite::Next("2026-07-28"), (40, 152));
}
