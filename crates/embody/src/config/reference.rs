//! The keys for people: the reference page, whose prose comes from `settings`, so that the page and the program agree, and the
//! list of `config show`, with secrets masked.

use embody_agent::usage::MAX_UNITS;

use super::schema::{self, Field, Shape, TextKind};
use super::tree::{KeyPath, Node, Origin, Step};
use super::{env, mask};

/// The page `docs/config.md`: one table per section.
pub(crate) fn reference_markdown() -> String {
    let mut page = include_str!("reference.md").to_owned();
    for section in schema::root().fields() {
        push_section(&mut page, &[&section.name], section);
    }
    page
}

fn push_section(page: &mut String, path: &[&str], section: &Field) {
    let (name, is_list) = (path.join("."), section.shape.is_table_list());
    let heading = match &section.shape {
        _ if is_list => format!("[[{name}]]"),
        shape if shape.is_table_map() => format!("[{name}.NAME]"),
        _ => format!("[{name}]"),
    };
    page.push_str(&format!("\n## `{heading}`\n\n{}\n\n", section.description));
    page.push_str("| key | type | default | what it is | variable |\n|---|---|---|---|---|\n");
    let (nested, keys): (Vec<&Field>, Vec<&Field>) = section
        .shape
        .fields()
        .iter()
        .partition(|field| field.shape.is_table_list() || field.shape.is_table_map());
    let index = if is_list { Some("N") } else { section.shape.is_table_map().then_some("NAME") };
    keys.into_iter().for_each(|field| page.push_str(&row(path, field, index)));
    for field in nested {
        let path: Vec<&str> = path.iter().copied().chain([field.name.as_str()]).collect();
        push_section(page, &path, field);
    }
}

fn row(path: &[&str], field: &Field, index: Option<&str>) -> String {
    let default = field.default.as_ref().map_or_else(String::new, |value| format!("`{value}`"));
    let below = matches!(field.shape, Shape::Map { .. }).then_some("NAME");
    let parts: Vec<&str> =
        path.iter().copied().chain(index).chain([field.name.as_str()]).chain(below).collect();
    let cells = [
        format!("`{}`", field.name),
        kind(&field.shape),
        default,
        field.description.clone(),
        // A name of the user's choice cannot be spelled in a variable.
        if index == Some("NAME") { String::new() } else { format!("`{}`", env::variable(&parts)) },
    ];
    format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | "))
}

fn kind(shape: &Shape) -> String {
    match shape {
        Shape::Text(_) => "text".to_owned(),
        Shape::Choice { words, or_list } => {
            let list = if or_list.is_some() { ", or list of text" } else { "" };
            format!("`{}`{list}", words.join("`, `"))
        }
        Shape::TextOrBoolean => "text or boolean".to_owned(),
        Shape::Boolean => "boolean".to_owned(),
        Shape::Integer { min: i64::MIN, max: i64::MAX } => "integer".to_owned(),
        Shape::Integer { min, max } => format!("integer, {min} to {max}"),
        Shape::Number => format!("number, 0 to {MAX_UNITS}"),
        Shape::List { item, .. } => format!("list of {}", kind(item)),
        Shape::Table(_) => "table".to_owned(),
        Shape::Map { names: None, value } => format!("table of {}", kind(value)),
        Shape::Map { names: Some(names), value } => {
            format!("table of {}; keys: {}", kind(value), names.join(", "))
        }
    }
}

/// One key for display, with secrets masked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Setting {
    pub(crate) key: String,
    pub(crate) value: toml::Value,
    pub(crate) origin: Origin,
}

/// Adds every key below `path` that is set or has a default. `in_force` is the value of the loaded configuration.
pub(super) fn list_settings(
    shape: &Shape,
    node: Option<&Node>,
    in_force: Option<&toml::Value>,
    path: &KeyPath,
    settings: &mut Vec<Setting>,
) {
    let mut below = |shape: &Shape, step: Step, path: KeyPath| {
        let in_force = in_force.and_then(|value| match &step {
            Step::Key(key) => value.get(key),
            Step::Index(index) => value.get(index),
        });
        list_settings(shape, node.and_then(|node| node.child(&step)), in_force, &path, settings);
    };
    match shape {
        Shape::Table(fields) => {
            for Field { name, shape, .. } in fields {
                below(shape, Step::Key(name.clone()), path.key(name));
            }
        }
        Shape::List { item, .. } if shape.is_table_list() => {
            let len = in_force.and_then(toml::Value::as_array).map_or(0, Vec::len);
            (0..len).for_each(|index| below(item, Step::Index(index), path.index(index)));
        }
        Shape::Map { value, .. } => {
            for (key, _) in node.into_iter().flat_map(Node::entries) {
                below(value, Step::Key(key.clone()), path.key(key));
            }
        }
        leaf => {
            let (value, origin) = match node {
                Some(node) => (Some(node.to_value()), node.origin.clone()),
                None => (in_force.cloned(), Origin::Default),
            };
            let setting = |value| Setting { key: path.to_string(), value: masked(leaf, value), origin };
            settings.extend(value.map(setting));
        }
    }
}

fn masked(shape: &Shape, value: toml::Value) -> toml::Value {
    match (shape, value) {
        (Shape::Text(TextKind::Secret), _) => mask::HIDDEN.into(),
        (Shape::Text(TextKind::Address), toml::Value::String(text)) => mask::address(&text).into(),
        (_, toml::Value::String(text)) => mask::addresses(&text).into(),
        (Shape::List { item, .. }, toml::Value::Array(items)) => {
            // Shows the program only; its arguments may contain secrets.
            let shown =
                |(index, value)| if index == 0 && item.is_secret() { value } else { masked(item, value) };
            toml::Value::Array(items.into_iter().enumerate().map(shown).collect())
        }
        (_, value) => value,
    }
}
