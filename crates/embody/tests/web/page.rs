//! The page in a real browser: `console/tests/*.test.mjs`, driven by Node.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

// spec: S-08
#[test]
fn the_page_works_in_a_browser() {
    passes("page");
}

#[test]
fn a_browser_signs_in_with_a_code_or_a_token() {
    passes("signin");
}

// spec: N-10
#[test]
fn calls_and_what_became_of_them_are_shown_in_a_browser() {
    passes("calls");
}

#[test]
fn conversations_are_drawn_in_a_browser() {
    passes("drawn");
}

#[test]
fn notices_and_the_guided_tour_are_shown_in_a_browser() {
    passes("notices");
}

#[test]
fn a_model_is_set_in_a_browser() {
    passes("model");
}

/// A new user from an empty home: model form, server, approval, rule, memory, schedule, usage, backup, PostgreSQL and back.
#[test]
fn the_whole_first_hour_works_in_a_browser_and_a_terminal() {
    passes("first_hour");
}

#[test]
fn no_text_makes_the_page_slow() {
    passes("markdown");
}

#[test]
fn no_test_of_the_page_is_forgotten() {
    let names = std::fs::read_dir(folder()).unwrap().map(|file| file.unwrap().file_name());
    let found: BTreeSet<String> =
        names.filter_map(|name| Some(name.to_string_lossy().strip_suffix(".test.mjs")?.to_owned())).collect();
    assert_eq!(
        found,
        BTreeSet::from(
            ["page", "signin", "calls", "drawn", "notices", "markdown", "model", "first_hour"]
                .map(str::to_owned)
        )
    );
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../console/tests")
}

/// Runs one of the files.
fn passes(name: &str) {
    let variable = |name: &str, tool: &str| {
        std::env::var_os(name).unwrap_or_else(|| panic!("{name} is not set: `./test` sets it, by `{tool}`"))
    };
    let browser = variable("EMBODY_TEST_BROWSER", "tools/browser install target/browser");
    let peers = variable("EMBODY_TEST_PEERS", "tools/mcp-peers install target/mcp-peers");
    let tests = std::env::current_exe().unwrap();
    let scripted = tests.parent().unwrap().parent().unwrap().join("examples/scripted");
    let output = Command::new(Path::new(&peers).join("bin/node"))
        .args(["--test", "--test-reporter=spec"])
        .arg(folder().join(format!("{name}.test.mjs")))
        .env("EMBODY", env!("CARGO_BIN_EXE_embody"))
        .env("EMBODY_SCRIPTED", scripted)
        .env("EMBODY_TEST_BROWSER", browser)
        .output()
        .unwrap();
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}\n{complained}");
    assert!(said.contains("fail 0") && !said.contains("tests 0"), "{said}");
}
