//! The keys for people: the list of `config show`, with secrets masked, and the reference page, whose prose comes from `raw`, so
//! that the page and the program agree. Programs use the typed fields of `Config`.

use std::collections::BTreeMap;

use super::keys::{self, Field, Shape, TextKind};
use super::resolved::{Config, Dialect, Setting, Store, Upstream};
use super::tree::{Content, KeyPath, Node, Origin};
use super::{env, mask};

/// The page `docs/config.md`: one table per section.
pub(crate) fn reference_markdown() -> String {
    let mut page = String::from(INTRODUCTION);
    for section in keys::root().fields() {
        let item = match &section.shape {
            Shape::List { item, .. } => item.as_ref(),
            table => table,
        };
        push_section(&mut page, &[&section.name], section, item, matches!(section.shape, Shape::List { .. }));
    }
    page
}

const INTRODUCTION: &str = "\
# Configuration

<!-- Generated from the program. Do not edit by hand. -->

`embody` reads `embody.toml` in its workspace, or the file that `--config` names. Every key is optional.
A flag on the command line wins over the environment, the environment over the file, the file over the default.

- `embody config show` prints every key in force and where it comes from.
- `embody config check` tells everything that is wrong, with file and line.
- `embody config schema` prints a JSON Schema for editors.

A variable's value is taken as it is for keys that hold text; anything else is read as TOML, as in
`EMBODY_TELEGRAM__ALLOW_USERS='[1, 2]'`. Entries of a list are counted from 0, as in `EMBODY_BODY__0__NAME`.
`PERSONA_SATI_MCP_URL` and `PERSONA_SATI_MCP_TOKEN_COMMAND` (split as shell words) set `persona.url` and
`persona.token_command`; they win over the file and give way to `EMBODY_PERSONA__…`. In the same way
`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_EXPORTER_OTLP_HEADERS` and `OTEL_SERVICE_NAME` set `[telemetry]`. `HTTPS_PROXY`,
`HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` are no keys, and hold as [elsewhere](proxies.md).
";

fn push_section(page: &mut String, path: &[&str], section: &Field, table: &Shape, list: bool) {
    let name = path.join(".");
    let heading = if list { format!("[[{name}]]") } else { format!("[{name}]") };
    page.push_str(&format!("\n## `{heading}`\n\n{}\n\n", section.description));
    page.push_str("| key | type | default | what it is | variable |\n|---|---|---|---|---|\n");
    let mut nested = Vec::new();
    for field in table.fields() {
        match &field.shape {
            Shape::List { item, .. } if matches!(**item, Shape::Table(_)) => {
                nested.push((field, item.as_ref()))
            }
            _ => page.push_str(&row(path, field, list)),
        }
    }
    for (field, item) in nested {
        let path: Vec<&str> = path.iter().copied().chain([field.name.as_str()]).collect();
        push_section(page, &path, field, item, true);
    }
}

fn row(path: &[&str], field: &Field, list: bool) -> String {
    let default = field.default.as_ref().map_or_else(String::new, |value| format!("`{value}`"));
    let index = list.then_some("N");
    let below = matches!(field.shape, Shape::Map { .. }).then_some("NAME");
    let parts = path.iter().copied().chain(index).chain([field.name.as_str()]).chain(below);
    let cells = [
        format!("`{}`", field.name),
        kind(&field.shape),
        default,
        field.description.clone(),
        format!("`{}`", env::variable(parts)),
    ];
    format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | "))
}

fn kind(shape: &Shape) -> String {
    match shape {
        Shape::Text(_) => "text".to_owned(),
        Shape::Choice(words) => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
        Shape::ChoiceOrTexts { words, .. } => {
            let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
            format!("{}, or list of text", words.join(", "))
        }
        Shape::TextOrBoolean => "text or boolean".to_owned(),
        Shape::Boolean => "boolean".to_owned(),
        Shape::Integer { min: i64::MIN, max: i64::MAX } => "integer".to_owned(),
        Shape::Integer { min, max } => format!("integer, {min} to {max}"),
        Shape::List { item, .. } => format!("list of {}", kind(item)),
        Shape::Table(_) => "table".to_owned(),
        Shape::Map { names: None, value } => format!("table of {}", kind(value)),
        Shape::Map { names: Some(names), value } => {
            format!("table of {}; keys: {}", kind(value), names.join(", "))
        }
    }
}

/// Every key that is set or has a default, section by section.
pub(super) fn list_settings(shape: &Shape, tree: &Node, config: &Config) -> Vec<Setting> {
    let mut list = Listing { derived: derived(config), settings: Vec::new() };
    list.walk(shape, Some(tree), None, &KeyPath::default());
    list.settings
}

struct Listing {
    derived: BTreeMap<String, toml::Value>,
    settings: Vec<Setting>,
}

impl Listing {
    fn walk(&mut self, shape: &Shape, node: Option<&Node>, default: Option<&toml::Value>, path: &KeyPath) {
        match shape {
            Shape::Table(fields) => {
                for field in fields {
                    let node = node.and_then(|node| node.entry(&field.name));
                    self.walk(&field.shape, node, field.default.as_ref(), &path.key(&field.name));
                }
            }
            Shape::List { item, .. } if matches!(**item, Shape::Table(_)) => {
                for (index, node) in node.map(Node::items).unwrap_or_default().iter().enumerate() {
                    self.walk(item, Some(node), None, &path.index(index));
                }
            }
            Shape::Map { value, .. } => {
                if let Some(Content::Table(entries)) = node.map(|node| &node.content) {
                    for (key, node) in entries {
                        self.walk(value, Some(node), None, &path.key(key));
                    }
                }
            }
            leaf => self.leaf(leaf, node, default, path),
        }
    }

    fn leaf(&mut self, shape: &Shape, node: Option<&Node>, default: Option<&toml::Value>, path: &KeyPath) {
        let key = path.to_string();
        let (value, origin) = match node {
            Some(node) => (Some(node.to_value()), node.origin.clone()),
            None => (self.derived.remove(&key).or_else(|| default.cloned()), Origin::Default),
        };
        if let Some(value) = value {
            self.settings.push(Setting { key, value: masked(shape, value), origin });
        }
    }
}

fn masked(shape: &Shape, value: toml::Value) -> toml::Value {
    match (shape, value) {
        (Shape::Text(TextKind::Secret), _) => toml::Value::String(mask::HIDDEN.to_owned()),
        (Shape::Text(TextKind::Address), toml::Value::String(text)) => {
            toml::Value::String(mask::address(&text))
        }
        (_, toml::Value::String(text)) => toml::Value::String(mask::addresses(&text)),
        (Shape::List { item, .. }, toml::Value::Array(items)) if item.is_secret() => {
            // Shows the program only; its arguments may contain secrets.
            let hidden = |(index, word)| if index == 0 { word } else { mask::HIDDEN.into() };
            toml::Value::Array(items.into_iter().enumerate().map(hidden).collect())
        }
        (Shape::List { item, .. }, toml::Value::Array(items)) => {
            toml::Value::Array(items.into_iter().map(|value| masked(item, value)).collect())
        }
        (_, value) => value,
    }
}

/// The defaults that depend on other keys.
fn derived(config: &Config) -> BTreeMap<String, toml::Value> {
    let mut derived = BTreeMap::new();
    let mut put = |key: String, value: toml::Value| derived.insert(key, value);
    if let Store::Workspace { path } = &config.store {
        put("store.url".to_owned(), format!("sqlite://{}", path.display()).into());
    }
    if let Some(upstream) = &config.mind.upstream {
        put("mind.transport".to_owned(), transport(upstream).into());
    }
    for (index, body) in config.bodies.iter().enumerate() {
        put(format!("body[{index}].transport"), transport(&body.upstream).into());
        put(format!("body[{index}].trust_annotations"), body.trust_annotations.into());
    }
    let seconds = |duration: std::time::Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    put("policy.ask_wait_s".to_owned(), seconds(config.policy.ask_wait).into());
    put("policy.ask_timeout_s".to_owned(), seconds(config.policy.ask_timeout).into());
    put("model.base_url".to_owned(), config.model.base_url.to_string().into());
    put("model.api_key_env".to_owned(), config.model.api_key_env.clone().into());
    derived
}

fn transport(upstream: &Upstream) -> &'static str {
    match upstream {
        Upstream::Stdio { .. } => "stdio",
        Upstream::Remote { dialect: Dialect::Sse, .. } => "sse",
        Upstream::Remote { dialect: Dialect::Http | Dialect::Guessed, .. } => "http",
    }
}
