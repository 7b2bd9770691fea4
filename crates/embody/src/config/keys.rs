//! The table of known keys, derived once from the JSON schema of `raw`: names, types, limits, defaults, descriptions. `raw`
//! is the only list of keys.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use super::raw::Raw;

pub(crate) fn schema() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<Raw>().to_value();
    drop_null(&mut schema);
    schema
}

pub(crate) fn root() -> &'static Shape {
    static ROOT: LazyLock<Shape> = LazyLock::new(|| Shape::read(&schema()));
    &ROOT
}

#[derive(Debug)]
pub(crate) enum Shape {
    Text(TextKind),
    Choice(Vec<String>),
    TextOrBoolean,
    Boolean,
    Integer {
        min: i64,
        max: i64,
    },
    List {
        item: Box<Shape>,
        max: usize,
    },
    ChoiceOrTexts {
        words: Vec<String>,
        /// The noun for the strings, as in "a list of names".
        texts: String,
        max: usize,
    },
    Table(Vec<Field>),
    Map {
        /// The only allowed names; `None` allows any.
        names: Option<Vec<String>>,
        value: Box<Shape>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextKind {
    Plain,
    /// May contain a password.
    Address,
    /// Never printed.
    Secret,
}

#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) default: Option<toml::Value>,
    pub(crate) shape: Shape,
}

impl Shape {
    /// The type in words, as in "must be …".
    pub(crate) fn expected(&self) -> String {
        match self {
            Self::Text(_) => "text".to_owned(),
            Self::Choice(words) => format!("one of {}", words.join(", ")),
            Self::ChoiceOrTexts { words, texts, .. } => {
                format!("one of {} or a list of {texts}", words.join(", "))
            }
            Self::TextOrBoolean => "text, true or false".to_owned(),
            Self::Boolean => "true or false".to_owned(),
            Self::Integer { .. } => "a whole number".to_owned(),
            Self::List { item, .. } if matches!(**item, Self::Table(_)) => "a list of tables".to_owned(),
            Self::List { .. } => "a list".to_owned(),
            Self::Table(_) | Self::Map { .. } => "a table".to_owned(),
        }
    }

    pub(crate) fn fields(&self) -> &[Field] {
        match self {
            Self::Table(fields) => fields,
            _ => &[],
        }
    }

    fn arguments() -> Self {
        Self::List { item: Box::new(Self::Text(TextKind::Secret)), max: MAX_ITEMS }
    }

    pub(crate) fn is_secret(&self) -> bool {
        match self {
            Self::Text(kind) => matches!(kind, TextKind::Secret),
            Self::List { item, .. } => item.is_secret(),
            Self::Map { value, .. } => value.is_secret(),
            _ => false,
        }
    }

    fn read(schema: &Value) -> Self {
        let strings = |value: Option<&Value>| -> Option<Vec<String>> {
            Some(value?.as_array()?.iter().filter_map(|word| Some(word.as_str()?.to_owned())).collect())
        };
        let limit = |name: &str| schema.get(name).and_then(Value::as_i64);
        match schema.get("type") {
            Some(Value::String(kind)) => match kind.as_str() {
                "object" => match schema.get("properties").and_then(Value::as_object) {
                    Some(properties) => Self::Table(properties.iter().map(Field::read).collect()),
                    None => Self::Map {
                        names: strings(schema.pointer("/propertyNames/enum")),
                        value: Box::new(Self::read(
                            schema.get("additionalProperties").unwrap_or(&Value::Null),
                        )),
                    },
                },
                "array" => Self::List {
                    item: Box::new(Self::read(schema.get("items").unwrap_or(&Value::Null))),
                    max: max_items(schema),
                },
                "integer" => Self::Integer {
                    min: limit("minimum").unwrap_or(i64::MIN),
                    max: limit("maximum").unwrap_or(i64::MAX),
                },
                "boolean" => Self::Boolean,
                _ => match strings(schema.get("enum")) {
                    Some(words) => Self::Choice(words),
                    None => Self::Text(TextKind::read(schema)),
                },
            },
            _ => match schema.get("anyOf").and_then(Value::as_array).map(Vec::as_slice) {
                Some([words, list]) => Self::ChoiceOrTexts {
                    words: strings(words.get("enum")).unwrap_or_default(),
                    texts: list.get("title").and_then(Value::as_str).unwrap_or("texts").to_owned(),
                    max: max_items(list),
                },
                _ => Self::TextOrBoolean,
            },
        }
    }
}

/// The default limit for the elements of a list.
const MAX_ITEMS: usize = 1_000;

fn max_items(schema: &Value) -> usize {
    let max = schema.get("maxItems").and_then(Value::as_u64);
    max.and_then(|max| usize::try_from(max).ok()).unwrap_or(MAX_ITEMS)
}

impl TextKind {
    fn read(schema: &Value) -> Self {
        if schema.get("writeOnly") == Some(&Value::Bool(true)) {
            Self::Secret
        } else if schema.get("format").and_then(Value::as_str) == Some("uri") {
            Self::Address
        } else {
            Self::Plain
        }
    }
}

impl Field {
    fn read((name, schema): (&String, &Value)) -> Self {
        let description = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        let default = schema.get("default").and_then(|value| toml::Value::try_from(value).ok());
        Self {
            name: name.clone(),
            description: description.replace('\n', " "),
            default,
            shape: if is_command(name) { Shape::arguments() } else { Shape::read(schema) },
        }
    }
}

/// Keys with a program and its arguments, which may be secret.
fn is_command(name: &str) -> bool {
    matches!(name, "command" | "token_command")
}

/// TOML has no null, so the schema must not allow it.
fn drop_null(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            drop_null_here(object);
            object.values_mut().for_each(drop_null);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_null),
        _ => {}
    }
}

fn drop_null_here(object: &mut Map<String, Value>) {
    for name in ["type", "enum"] {
        if let Some(Value::Array(items)) = object.get_mut(name) {
            items.retain(|item| !item.is_null() && item != "null");
            if let ("type", [only]) = (name, items.as_slice()) {
                let only = only.clone();
                object.insert(name.to_owned(), only);
            }
        }
    }
    // The default of a section only repeats the defaults of its keys.
    if object.get("default").is_some_and(Value::is_null) || object.contains_key("properties") {
        object.remove("default");
    }
}

/// The known word nearest to `written`, if it is near enough.
pub(crate) fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A long text is not a typo; skip the expensive comparison.
    if written.len() > 80 {
        return None;
    }
    let plain = |text: &str| text.to_lowercase().replace('-', "_");
    let written = plain(written);
    let near = 1 + written.chars().count() / 4;
    known
        .into_iter()
        .map(|word| (strsim::damerau_levenshtein(&written, &plain(word)), word))
        .filter(|(distance, _)| *distance <= near)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each_integer(path: &str, shape: &Shape, seen: &mut Vec<(String, i64, i64)>) {
        match shape {
            Shape::Integer { min, max } => seen.push((path.to_owned(), *min, *max)),
            Shape::Table(fields) => {
                fields
                    .iter()
                    .for_each(|field| each_integer(&format!("{path}.{}", field.name), &field.shape, seen));
            }
            Shape::Map { value, .. } => each_integer(path, value, seen),
            _ => {}
        }
    }

    #[test]
    fn every_number_has_limits() {
        let mut seen = Vec::new();
        each_integer("", root(), &mut seen);
        assert_eq!(seen.len(), 16, "{seen:?}");
        for (path, min, max) in seen {
            assert!(min >= 0 && max <= i64::from(u32::MAX), "{path}: {min} to {max}");
        }
    }

    #[test]
    fn every_key_is_described() {
        fn walk(shape: &Shape) {
            for field in shape.fields() {
                assert!(field.description.ends_with('.'), "{}: {:?}", field.name, field.description);
                walk(&field.shape);
                if let Shape::List { item, .. } = &field.shape {
                    walk(item);
                }
            }
        }
        walk(root());
    }

    #[test]
    fn nearest_finds_slips_and_nothing_far() {
        let known = ["layout", "body", "fresh_last", "budget_tokens", "ask_wait_s"];
        for (written, found) in [
            ("layot", Some("layout")),
            ("Layout", Some("layout")),
            ("fresh-last", Some("fresh_last")),
            ("ask_wait", Some("ask_wait_s")),
            ("bdoy", Some("body")),
            ("colour", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(written, known), found, "{written:?}");
        }
        assert_eq!(nearest(&"layout".repeat(50_000), known), None);
    }
}
