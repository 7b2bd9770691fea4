//! Which crate depends on which. The list is the table below "Allowed dependencies" in ARCHITECTURE.md: a manifest that has an
//! edge outside it is a breach, and so is an edge of the table that no manifest uses. Inside `embody`, only `main.rs` uses the commands.

use std::collections::BTreeMap;

use super::Tracked;

const PAGE: &str = "ARCHITECTURE.md";
const HEADING: &str = "### Allowed dependencies";

/// `prompt` is pure: it does not wait, read or connect.
const NOT_IN_PROMPT: &[&str] = &["tokio", "sqlx", "reqwest", "rmcp", "axum", "jiff", "rustix"];

/// The commands: they use the rest of the binary, and nothing uses them.
const COMMANDS: &str = "crates/embody/src/cli/";

pub(super) fn check(files: &[Tracked], breaches: &mut Vec<String>) {
    check_commands(files, breaches);
    let page = files.iter().find(|file| file.path == PAGE).map_or("", |file| file.text.as_str());
    let allowed = allowed_edges(page);
    if allowed.is_empty() {
        breaches.push(format!("{PAGE}: no table below `{HEADING}`"));
        return;
    }
    for file in files {
        let Some(name) = file.path.strip_prefix("crates/").and_then(|path| path.strip_suffix("/Cargo.toml"))
        else {
            continue;
        };
        let Some(edges) = allowed.get(name) else {
            breaches.push(format!("{}: the crate `{name}` is not in the table of {PAGE}", file.path));
            continue;
        };
        let dependencies = dependencies(&file.text);
        let own: Vec<&str> = dependencies.iter().filter_map(|name| name.strip_prefix("embody-")).collect();
        for edge in own.iter().filter(|edge| !edges.contains(edge)) {
            breaches.push(format!("{}: `{name}` may not depend on `{edge}` (see {PAGE})", file.path));
        }
        for edge in edges.iter().filter(|edge| !own.contains(edge)) {
            breaches.push(format!("{PAGE}: `{name}` does not depend on `{edge}`: remove it from the table"));
        }
        for dependency in dependencies.iter().filter(|_| name == "prompt") {
            if NOT_IN_PROMPT.contains(&dependency.as_str()) {
                breaches
                    .push(format!("{}: `prompt` is pure and may not depend on `{dependency}`", file.path));
            }
        }
    }
}

fn check_commands(files: &[Tracked], breaches: &mut Vec<String>) {
    let is_outside = |file: &&Tracked| {
        let is_binary = file.path.starts_with("crates/embody/src/") && file.is_rust();
        is_binary && !file.path.starts_with(COMMANDS) && file.path != "crates/embody/src/main.rs"
    };
    for file in files.iter().filter(is_outside) {
        for (number, line) in file.text.lines().enumerate() {
            if line.contains("crate::cli") || line.contains("crate::{cli") {
                breaches.push(format!("{}:{}: only commands may use `{COMMANDS}`", file.path, number + 1));
            }
        }
    }
}

/// Rows of the form `` | `crate` | `a`, `b` | ``.
fn allowed_edges(page: &str) -> BTreeMap<&str, Vec<&str>> {
    let section = page.split_once(HEADING).map_or("", |(_, rest)| rest);
    let table =
        section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    table
        .filter_map(|row| {
            let mut names = row.split('`').skip(1).step_by(2);
            Some((names.next()?, names.collect()))
        })
        .collect()
}

fn dependencies(manifest: &str) -> Vec<String> {
    let table: toml::Table = manifest.parse().unwrap_or_default();
    let names = |key: &str| table.get(key).and_then(toml::Value::as_table).map(|table| table.keys().cloned());
    ["dependencies", "build-dependencies"].iter().filter_map(|key| names(key)).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "### Allowed dependencies\n\n| crate | may use |\n|---|---|\n| `workspace` | `prompt` |\n| `prompt` | |\n";

    fn breaches(path: &str, manifest: &str) -> Vec<String> {
        let file = |path: &str, text: &str| Tracked { path: path.into(), text: text.into() };
        let mut breaches = Vec::new();
        check(&[file(PAGE, TABLE), file(path, manifest)], &mut breaches);
        breaches
    }

    #[test]
    fn an_edge_outside_the_table_is_a_breach() {
        let manifest = "[dependencies]\nembody-prompt.workspace = true\n";
        assert!(breaches("crates/workspace/Cargo.toml", manifest).is_empty());
        let wrong = "[dependencies]\nembody-workspace.workspace = true\n";
        assert_eq!(breaches("crates/prompt/Cargo.toml", wrong).len(), 1);
        assert_eq!(breaches("crates/prompt/Cargo.toml", "[dependencies]\ntokio = \"1\"\n").len(), 1);
        assert_eq!(breaches("crates/utils/Cargo.toml", "").len(), 1);
    }

    #[test]
    fn only_main_and_the_commands_use_the_commands() {
        let line = "use crate::cli::Context;\n";
        assert_eq!(breaches("crates/embody/src/web/chat.rs", line).len(), 1);
        for path in ["crates/embody/src/main.rs", "crates/embody/src/cli/run.rs", "crates/mind/src/mind.rs"] {
            assert!(breaches(path, line).is_empty(), "{path}");
        }
    }

    #[test]
    fn an_edge_that_no_manifest_uses_is_a_breach() {
        assert_eq!(breaches("crates/workspace/Cargo.toml", "").len(), 1);
    }
}
