//! The `embody.toml` that `init` writes.

/// A commented file that shows every key and sets only the two that a new workspace needs.
pub(crate) fn commented_default() -> &'static str {
    include_str!("template.toml")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::choices::Layout;
    use crate::config::keys::{self, Shape};
    use crate::config::{Config, ConfigError, Inputs};

    fn load(text: &str) -> Result<Config, ConfigError> {
        let workspace = tempfile::tempdir().unwrap();
        std::fs::write(workspace.path().join("embody.toml"), text).unwrap();
        Config::load(Inputs {
            file: None,
            workspace: workspace.path().to_owned(),
            env: Vec::new(),
            overrides: Vec::new(),
        })
    }

    /// Uncomments only lines with a key or a heading.
    fn uncommented() -> String {
        let is_key = |line: &str| {
            let key = line.split(" = ").next().unwrap_or_default();
            line.contains(" = ")
                && key.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        };
        let lines = commented_default().lines().map(|line| match line.strip_prefix("# ") {
            Some(rest) if is_key(rest) || rest.starts_with('[') => rest,
            _ => line,
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn sets_only_layout_and_fresh_last() {
        let config = load(commented_default()).unwrap();
        assert_eq!(config.prompt.layout, Layout::Channel);
        assert!(config.prompt.fresh_last);
        let set: Vec<&str> = (config.keys.iter())
            .filter(|setting| setting.origin.kind() == "file")
            .map(|setting| setting.key.as_str())
            .collect();
        assert_eq!(set, ["prompt.fresh_last", "prompt.layout"]);
    }

    #[test]
    fn uncommented_is_a_legal_file() {
        let config = load(&uncommented()).unwrap();
        assert_eq!(config.bodies.len(), 2);
        assert_eq!(config.policy.rules.len(), 1);
        assert_eq!(config.telegram.users.len(), 1);
        assert_eq!(config.audience, embody_workspace::Audiences::default());
        assert_eq!(config.sandbox.len(), 8);
    }

    #[test]
    fn shows_every_key() {
        fn missing(section: &str, shape: &Shape, text: &str, found: &mut Vec<String>) {
            for field in shape.fields() {
                if !text.contains(&format!("{} = ", field.name))
                    && !text.contains(&format!(".{}]", field.name))
                {
                    found.push(format!("{section}.{}", field.name));
                }
                if let Shape::List { item, .. } = &field.shape {
                    missing(&field.name, item, text, found);
                }
            }
        }
        let mut found = Vec::new();
        for section in keys::root().fields() {
            let start = commented_default().find(&format!("[{}]", section.name)).unwrap();
            let rest = &commented_default()[start..];
            // A section ends at the first heading of another section.
            let end = rest
                .match_indices("\n# [")
                .map(|(at, _)| at)
                .find(|at| !rest[at + 4..].trim_start_matches('[').starts_with(&section.name))
                .unwrap_or(rest.len());
            missing(&section.name, &section.shape, &rest[..end], &mut found);
            if let Shape::List { item, .. } = &section.shape {
                missing(&section.name, item, &rest[..end], &mut found);
            }
        }
        assert_eq!(found, Vec::<String>::new());
    }
}
