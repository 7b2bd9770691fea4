//! The flat list of keys for `config show`: each key that is set or has a default, its value with secrets masked, and its
//! origin. For display only; programs use the typed fields of `Config`.

use std::collections::BTreeMap;

use super::keys::{Shape, TextKind};
use super::mask;
use super::node::{Content, Node};
use super::origin::{KeyPath, Origin};
use super::resolved::{Config, Dialect, Setting, Store, Upstream};

/// Every key that is set or has a default, section by section.
pub(super) fn list(shape: &Shape, tree: &Node, config: &Config) -> Vec<Setting> {
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
