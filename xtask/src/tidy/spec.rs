//! Every requirement that is done is named by a test, as `spec: ID`.

use super::Tracked;

/// The requirements that this repository says it meets.
const DONE: &str = include_str!("spec_ids.txt");

pub(super) fn check(files: &[Tracked], breaches: &mut Vec<String>) {
    let tests = |file: &&Tracked| file.is_rust() && (file.is_test() || file.text.contains("#[cfg(test)]"));
    let named: Vec<&str> = files.iter().filter(tests).flat_map(|file| ids(&file.text)).collect();
    for id in DONE.split_whitespace().filter(|id| !named.contains(id)) {
        breaches.push(format!("no test names `spec: {id}`"));
    }
}

/// The ids in comments `spec: …`.
fn ids(text: &str) -> impl Iterator<Item = &str> {
    let marked = text.lines().filter_map(|line| line.trim_start().strip_prefix("//")?.split_once("spec:"));
    marked
        .flat_map(|(_, ids)| ids.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')))
        .filter(|id| id.len() == 4)
}
