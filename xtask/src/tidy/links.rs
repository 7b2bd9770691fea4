//! A relative link in a document leads to a tracked file and its anchor to a heading there. A path in backticks in the pages
//! for contributors leads to a tracked file. URLs are not checked.

use super::Tracked;

pub(super) fn check(files: &[Tracked], breaches: &mut Vec<String>) {
    for file in files.iter().filter(|file| is_document(&file.path)) {
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for (number, Link { target, anchor }) in links(&file.text) {
            let path = if target.is_empty() { Some(file.path.clone()) } else { resolved(folder, target) };
            let Some(path) = path else {
                breaches.push(format!("{}:{number}: `{target}` leads out of the repository", file.path));
                continue;
            };
            if !path.is_empty() && !is_tracked(files, &path) {
                breaches.push(format!("{}:{number}: `{target}` leads to no file", file.path));
            }
            let page = files.iter().find(|file| file.path == path && path.ends_with(".md"));
            if !anchor.is_empty() && page.is_some_and(|page| !has_heading(&page.text, anchor)) {
                breaches.push(format!("{}:{number}: `{target}#{anchor}` leads to no heading", file.path));
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

/// A relative link. An empty target is the page itself.
struct Link<'a> {
    target: &'a str,
    anchor: &'a str,
}

/// The relative links with their lines. Code is not a link.
fn links(text: &str) -> Vec<(usize, Link<'_>)> {
    prose(text).flat_map(|(number, line)| targets(line).map(move |link| (number, link))).collect()
}

/// Whether a heading has this anchor, as GitHub makes it: lower case, spaces as hyphens, no other punctuation.
fn has_heading(text: &str, anchor: &str) -> bool {
    let slug = |heading: &str| -> String {
        let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).flat_map(char::to_lowercase).collect()
    };
    let headings = prose(text).filter(|(_, line)| line.starts_with('#'));
    headings.into_iter().any(|(_, line)| slug(line.trim_start_matches('#')) == anchor)
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

fn targets(line: &str) -> impl Iterator<Item = Link<'_>> {
    line.match_indices("](").filter_map(move |(at, mark)| {
        let (before, after) = (line.get(..at)?, line.get(at + mark.len()..)?);
        // The title of an image may follow the target.
        let whole = after.split([')', ' ']).next()?;
        let (target, anchor) = whole.split_once('#').unwrap_or((whole, ""));
        let is_in_code = before.matches('`').count() % 2 == 1;
        (!is_in_code && !whole.is_empty() && !target.contains(':')).then_some(Link { target, anchor })
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
        let text = "[a](a.md) ![b](img/b.svg \"t\") [c](../README.md#the-top)\n[`d`](img) `[e](gone)` [f](#g-h)\n\
             [h](https://h.example/gone#x) [i](mailto:i@h.example)\n```\n[j](gone)\n# No heading\n```\n\
             [k](gone.md) [l](../../l) [m](../docs/gone/../gone.md#x)\n## G: `h`\n[n](#no-heading) [o](../README.md#h)\n";
        let file = |path: &str, text: &str| Tracked { path: path.into(), text: text.into() };
        let files = [
            file("docs/a.md", text),
            file("docs/img/b.svg", ""),
            file("README.md", "# The top\n[a](docs/a.md) [b](docs) [c](/docs/img/)"),
            file("crates/prompt/tests/c.md", "[a](gone)"),
        ];
        let mut breaches = Vec::new();
        check(&files, &mut breaches);
        assert_eq!(
            breaches,
            [
                "docs/a.md:8: `gone.md` leads to no file",
                "docs/a.md:8: `../../l` leads out of the repository",
                "docs/a.md:8: `../docs/gone/../gone.md` leads to no file",
                "docs/a.md:10: `#no-heading` leads to no heading",
                "docs/a.md:10: `../README.md#h` leads to no heading",
            ]
        );
    }
}
