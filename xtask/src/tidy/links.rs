//! That a relative link in a document leads to a file that is tracked. Refuses to look at addresses and anchors.

use super::Tracked;

pub(super) fn check(files: &[Tracked], breaches: &mut Vec<String>) {
    for file in files.iter().filter(|file| is_document(&file.path)) {
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for (number, target) in links(&file.text) {
            let Some(path) = resolved(folder, target) else {
                breaches.push(format!("{}:{number}: `{target}` leads out of the repository", file.path));
                continue;
            };
            let inside = format!("{path}/");
            let is_there = |other: &Tracked| other.path == path || other.path.starts_with(&inside);
            if !path.is_empty() && !files.iter().any(is_there) {
                breaches.push(format!("{}:{number}: `{target}` leads to no file", file.path));
            }
        }
    }
}

/// The documents of the root, and those in `docs` and its folders.
fn is_document(path: &str) -> bool {
    path.ends_with(".md") && (!path.contains('/') || path.starts_with("docs/"))
}

/// The relative targets with their lines, without what follows `#`. Code is left out: nobody can click on it.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut is_code = false;
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            found.extend(targets(line).map(|target| (number, target)));
        }
    }
    found
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
