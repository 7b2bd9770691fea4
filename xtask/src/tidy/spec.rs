//! Every requirement of `docs/requirements.md` is named by a test, as `spec: ID`, and every id that a test names is on that page.

use std::collections::BTreeSet;

use super::Tracked;

const PAGE: &str = "docs/requirements.md";

pub(super) fn check(files: &[Tracked], breaches: &mut Vec<String>) {
    let page = files.iter().find(|file| file.path == PAGE).map_or("", |file| file.text.as_str());
    let required: BTreeSet<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(' ').next())
        .filter(|id| is_id(id))
        .collect();
    let tests = |file: &&Tracked| file.is_rust() && (file.is_test() || file.text.contains("#[cfg(test)]"));
    let named: BTreeSet<&str> = files.iter().filter(tests).flat_map(|file| ids(&file.text)).collect();
    for id in required.difference(&named) {
        breaches.push(format!("{PAGE}: no test names `spec: {id}`"));
    }
    for id in named.difference(&required) {
        breaches.push(format!("{PAGE}: a test names `spec: {id}`, which is not on this page"));
    }
}

/// The ids in comments `spec: …`.
fn ids(text: &str) -> impl Iterator<Item = &str> {
    let marked = text.lines().filter_map(|line| line.trim_start().strip_prefix("//")?.split_once("spec:"));
    marked
        .flat_map(|(_, ids)| ids.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')))
        .filter(|id| is_id(id))
}

/// One capital letter, a hyphen and two digits.
fn is_id(word: &str) -> bool {
    matches!(word.as_bytes(), [b'A'..=b'Z', b'-', b'0'..=b'9', b'0'..=b'9'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_and_the_tests_name_the_same_ids() {
        let file = |path: &str, text: &str| Tracked { path: path.into(), text: text.into() };
        let page = file(PAGE, "| id | requirement |\n|---|---|\n| T-01 | One. |\n| T-02 | Two. |\n");
        let test = file("crates/a/tests/b.rs", concat!("// spe", "c: T-01, T-09\n"));
        let mut breaches = Vec::new();
        check(&[page, test], &mut breaches);
        assert_eq!(breaches.len(), 2, "{breaches:?}");
        assert!(breaches.iter().any(|breach| breach.contains("T-02")));
        assert!(breaches.iter().any(|breach| breach.contains("T-09")));
    }
}
