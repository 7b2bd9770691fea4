//! `cargo xtask count`: production files and lines per crate. A file of tests does not count, nor does a `#[cfg(test)]` item.

use std::collections::BTreeMap;
use std::process::ExitCode;

use crate::tidy::{Tracked, repository_files};

#[derive(Default)]
struct Count {
    files: usize,
    lines: usize,
}

pub(crate) fn run() -> ExitCode {
    let files = match repository_files() {
        Ok(files) => files,
        Err(error) => {
            eprintln!("error: cannot list the repository's files\n  caused by: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut crates: BTreeMap<&str, Count> = BTreeMap::new();
    for file in &files {
        if let Some(name) = production_crate(file) {
            let count = crates.entry(name).or_default();
            count.files += 1;
            count.lines += production_lines(&file.text);
        }
    }
    println!("{:<12}{:>7}{:>9}", "crate", "files", "lines");
    for (name, count) in &crates {
        println!("{name:<12}{:>7}{:>9}", count.files, count.lines);
    }
    let (total_files, total_lines) =
        crates.values().fold((0, 0), |(files, lines), count| (files + count.files, lines + count.lines));
    println!("{:<12}{total_files:>7}{total_lines:>9}", "total");
    ExitCode::SUCCESS
}

/// The crate of a production file: `crates/NAME/src/…`, but not `tests.rs`, `test.rs` or a folder of that name.
fn production_crate(file: &Tracked) -> Option<&str> {
    let (name, path) = file.path.strip_prefix("crates/")?.split_once("/src/")?;
    let is_test = path.trim_end_matches(".rs").split('/').any(|part| part == "tests" || part == "test");
    (file.is_rust() && !is_test).then_some(name)
}

/// The lines of a file without its `#[cfg(test)]` items. Relies on the formatter: an item ends with a `;` in its first line, or
/// with a `}` at its own indentation.
fn production_lines(text: &str) -> usize {
    let mut lines = text.lines();
    let mut count = 0;
    while let Some(line) = lines.next() {
        if line.trim() != "#[cfg(test)]" {
            count += 1;
            continue;
        }
        let Some(item) = lines.find(|line| !line.trim_start().starts_with("#[")) else { break };
        if !item.trim_end().ends_with([';', '}']) {
            let indentation = item.len() - item.trim_start().len();
            let is_end = |line: &str| {
                line.get(..indentation).is_some_and(|start| start.trim().is_empty())
                    && line.get(indentation..).is_some_and(|rest| rest.starts_with('}'))
            };
            lines.find(|line| is_end(line));
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_items_do_not_count() {
        let text = "//! A file.\n\nfn one() {\n    two();\n}\n\n#[cfg(test)]\nmod tests {\n    fn three() {\n    }\n}\n";
        assert_eq!(production_lines(text), 6);
        assert_eq!(production_lines("#[cfg(test)]\nmod tests;\nmod other;\n"), 1);
        assert_eq!(
            production_lines("impl A {\n    #[cfg(test)]\n    fn b() {\n    }\n\n    fn c() {}\n}\n"),
            4
        );
    }

    #[test]
    fn only_sources_of_crates_count() {
        let file = |path: &str| Tracked { path: path.into(), text: String::new() };
        assert_eq!(production_crate(&file("crates/wire/src/server/mod.rs")), Some("wire"));
        for path in [
            "crates/wire/src/server/tests.rs",
            "crates/wire/src/tests/a.rs",
            "crates/wire/tests/it/main.rs",
            "xtask/src/main.rs",
        ] {
            assert_eq!(production_crate(&file(path)), None, "{path}");
        }
    }
}
