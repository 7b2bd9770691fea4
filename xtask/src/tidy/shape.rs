//! The longest file, banned names, and a `//!` header in every file. There is no lower limit and no count of files, so splitting a
//! file gains nothing.

use super::Tracked;

const PRODUCTION_LINES: usize = 600;
const TEST_LINES: usize = 800;
const BANNED: &[&str] =
    &["core", "common", "utils", "util", "helpers", "helper", "manager", "implementation", "misc"];

pub(super) fn check(files: &[Tracked], breaches: &mut Vec<String>) {
    for file in files.iter().filter(|file| file.is_rust()) {
        let lines = file.text.lines().count();
        let limit = if file.is_test() { TEST_LINES } else { PRODUCTION_LINES };
        if lines > limit {
            breaches.push(format!("{}: {lines} lines, the limit is {limit}: split it by subject", file.path));
        }
        let mut names = file.path.trim_end_matches(".rs").split('/');
        if let Some(name) = names.find(|name| BANNED.contains(name)) {
            breaches.push(format!("{}: `{name}` says nothing about what is inside", file.path));
        }
        if !file.text.lines().take(3).any(|line| line.starts_with("//!")) {
            breaches.push(format!("{}: no `//!` header that says what the file owns", file.path));
        }
    }
    for file in files.iter().filter(|file| file.path == "crates/embody/src/main.rs") {
        if file.text.lines().count() >= 60 {
            breaches.push(format!("{}: main stays below 60 lines", file.path));
        }
    }
}
