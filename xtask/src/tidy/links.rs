//! A relative link in a document leads to a tracked file, and so does a path in backticks in the pages for contributors. URLs
//! and anchors are not checked.

use super::Tracked;

pub(super) fn check(files: &[Tracked], breaches: &mut Vec<String>) {
    for file in files.iter().filter(|file| is_document(&file.path)) {
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for (number, target) in links(&file.text) {
            let Some(path) = resolved(folder, target) else {
                breaches.push(format!("{}:{number}: `{target}` leads out of the repository", file.path));
                continue;
            };
            if !path.is_empty() && !is_tracked(files, &path) {
                breaches.push(format!("{}:{number}: `{target}` leads to no file", file.path));
            }
        }
    }
}

fn is_tracked(files: &[Tracked], path: &str) -> bool {
    let inside = format!("{path}/");
    files.iter().any(|file| file.path == path || file.path.starts_with(&inside))
}

/// The pages that say where things are.
const MAPS: [&str; 2] = ["ARCHITECTURE.md", "CONTRIBUTING.md"];
/// Where tools and builds write, which git ignores.
const IGNORED: &str = "target/";

/// A path that starts at the root must exist there; another one, such as `db/writer.rs`, must be the end of a path.
pub(super) fn check_paths(files: &[Tracked], breaches: &mut Vec<String>) {
    for page in files.iter().filter(|file| MAPS.contains(&file.path.as_str())) {
        for (number, line) in prose(&page.text) {
            for path in line.split('`').skip(1).step_by(2).filter(|span| is_path(files, span)) {
                let bare = path.trim_end_matches('/');
                let (end, within) = (format!("/{bare}"), format!("/{bare}/"));
                let is_below = |file: &Tracked| file.path.ends_with(&end) || file.path.contains(&within);
                let is_rooted = is_rooted(files, path);
                if !is_tracked(files, bare) && (is_rooted || !files.iter().any(is_below)) {
                    breaches.push(format!("{}:{number}: there is no `{path}`", page.path));
                }
            }
        }
    }
}

/// Whether a code span is a path: it starts with a folder of the root, or it names a folder or a Rust file.
fn is_path(files: &[Tracked], span: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    span.chars().all(is_plain)
        && !span.starts_with(['/', '.'])
        && span != IGNORED
        && (is_rooted(files, span) || span.ends_with('/') || span.ends_with(".rs"))
}

fn is_rooted(files: &[Tracked], path: &str) -> bool {
    let root = path.split_inclusive('/').next().unwrap_or_default();
    root.ends_with('/') && files.iter().any(|file| file.path.starts_with(root))
}

/// The documents of the root, and those in `docs` and its folders.
fn is_document(path: &str) -> bool {
    path.ends_with(".md") && (!path.contains('/') || path.starts_with("docs/"))
}

/// The relative targets with their lines, without the anchor. Code is not a link.
fn links(text: &str) -> Vec<(usize, &str)> {
    prose(text).flat_map(|(number, line)| targets(line).map(move |target| (number, target))).collect()
}

/// The lines outside fenced code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("](").filter_map(move |(at, mark)| {
        let (before, after) = (line.get(..at)?, line.get(at + mark.len()..)?);
        // The title of an image may follow the target; an anchor alone stays on the page.
        let target = after.split([')', ' ', '#']).next()?;
        let is_in_code = before.matches('`').count() % 2 == 1;
        (!is_in_code && !target.is_empty() && !target.contains(':')).then_some(target)
    })
}

/// The path from the root, or `None` if it leaves it.
fn resolved(folder: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(target.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_does_not_exist_is_a_breach() {
        let text = "`crates/a/src/one.rs` `two/three.rs` `two/` `crates/` `target/` `/mcp` `cargo test` `x.y` `a`\n\
             ```\n`crates/gone.rs`\n```\n`crates/a/gone.rs` `four.rs` `five/` `src/two`\n";
        let file = |path: &str, text: &str| Tracked { path: path.into(), text: text.into() };
        let files = [
            file("ARCHITECTURE.md", text),
            file("README.md", "`crates/gone.rs`"),
            file("crates/a/src/one.rs", ""),
            file("crates/a/src/two/three.rs", ""),
        ];
        let mut breaches = Vec::new();
        check_paths(&files, &mut breaches);
        let expected = ["`crates/a/gone.rs`", "`four.rs`", "`five/`"];
        assert_eq!(breaches, expected.map(|path| format!("ARCHITECTURE.md:5: there is no {path}")));
    }

    #[test]
    fn a_link_to_nothing_is_a_breach() {
        let text = "[a](a.md) ![b](img/b.svg \"t\") [c](../README.md#top)\n[`d`](img) `[e](gone)` [f](#g)\n\
             [h](https://h.example/gone) [i](mailto:i@h.example)\n```\n[j](gone)\n```\n\
             [k](gone.md) [l](../../l) [m](../docs/gone/../gone.md#x)\n";
        let file = |path: &str, text: &str| Tracked { path: path.into(), text: text.into() };
        let files = [
            file("docs/a.md", text),
            file("docs/img/b.svg", ""),
            file("README.md", "[a](docs/a.md) [b](docs) [c](/docs/img/)"),
            file("crates/prompt/tests/c.md", "[a](gone)"),
        ];
        let mut breaches = Vec::new();
        check(&files, &mut breaches);
        assert_eq!(
            breaches,
            [
                "docs/a.md:7: `gone.md` leads to no file",
                "docs/a.md:7: `../../l` leads out of the repository",
                "docs/a.md:7: `../docs/gone/../gone.md` leads to no file",
            ]
        );
    }
}
