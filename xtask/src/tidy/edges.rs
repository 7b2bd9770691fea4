//! Which crate may depend on which, and what `prompt` may never depend on.

use super::Tracked;

/// The allowed edges between our crates.
const EDGES: &[(&str, &[&str])] = &[
    ("text", &[]),
    ("prompt", &["text"]),
    ("store", &["text"]),
    ("wire", &[]),
    ("workspace", &["prompt"]),
    ("mcp", &["wire"]),
    ("mind", &["mcp", "workspace", "prompt", "store"]),
    ("body", &["mcp", "prompt", "store"]),
    ("broker", &["text", "wire", "mcp", "store"]),
    ("agent", &["text", "broker", "workspace", "prompt", "store", "wire"]),
    ("embody", &["text", "prompt", "store", "wire", "mcp", "workspace", "mind", "body", "broker", "agent"]),
];

/// `prompt` is pure: nothing that waits, reads or connects.
const NOT_IN_PROMPT: &[&str] = &["tokio", "sqlx", "reqwest", "rmcp", "axum", "jiff", "rustix"];

pub(super) fn check(files: &[Tracked], breaches: &mut Vec<String>) {
    for file in files {
        let Some(room) = file.path.strip_prefix("crates/").and_then(|path| path.strip_suffix("/Cargo.toml"))
        else {
            continue;
        };
        let Some((_, allowed)) = EDGES.iter().find(|(name, _)| *name == room) else {
            breaches.push(format!("{}: `{room}` is no room of the house (see ARCHITECTURE.md)", file.path));
            continue;
        };
        for dependency in dependencies(&file.text) {
            let ours = dependency.strip_prefix("embody-");
            if ours.is_some_and(|ours| !allowed.contains(&ours)) {
                breaches.push(format!("{}: `{room}` may not depend on `{dependency}`", file.path));
            }
            if room == "prompt" && NOT_IN_PROMPT.contains(&dependency.as_str()) {
                breaches
                    .push(format!("{}: `prompt` is pure and may not depend on `{dependency}`", file.path));
            }
        }
    }
}

fn dependencies(manifest: &str) -> Vec<String> {
    let table: toml::Table = manifest.parse().unwrap_or_default();
    let names = |key: &str| table.get(key).and_then(toml::Value::as_table).map(|table| table.keys().cloned());
    ["dependencies", "build-dependencies"].iter().filter_map(|key| names(key)).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaches(path: &str, manifest: &str) -> Vec<String> {
        let mut breaches = Vec::new();
        check(&[Tracked { path: path.into(), text: manifest.into() }], &mut breaches);
        breaches
    }

    #[test]
    fn a_forbidden_edge_is_a_breach() {
        assert_eq!(
            breaches("crates/wire/Cargo.toml", "[dependencies]\nembody-prompt.workspace = true\n").len(),
            1
        );
        assert_eq!(breaches("crates/prompt/Cargo.toml", "[dependencies]\ntokio = \"1\"\n").len(), 1);
        assert_eq!(breaches("crates/utils/Cargo.toml", "").len(), 1);
        assert!(
            breaches("crates/workspace/Cargo.toml", "[dependencies]\nembody-prompt.workspace = true\n")
                .is_empty()
        );
    }
}
