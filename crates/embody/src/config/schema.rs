//! The table of known keys, derived once from the JSON schema of [`Config`]: names, types, limits, descriptions.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::Config;

pub(crate) fn schema() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<Config>().to_value();
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
    Choice {
        words: Vec<String>,
        /// A list that may stand in place of a word, and the noun for its entries, as in "a list of names".
        or_list: Option<(Box<Shape>, String)>,
    },
    TextOrBoolean,
    Boolean,
    Integer {
        min: i64,
        max: i64,
    },
    /// An amount of money.
    Number,
    List {
        item: Box<Shape>,
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

/// The default limit for the elements of a list.
const MAX_ITEMS: u64 = 1_000;

impl Shape {
    pub(crate) fn fields(&self) -> &[Field] {
        match self {
            Self::Table(fields) => fields,
            Self::List { item: shape, .. } | Self::Map { value: shape, .. } => shape.fields(),
            _ => &[],
        }
    }

    pub(crate) fn is_table_list(&self) -> bool {
        matches!(self, Self::List { item, .. } if matches!(**item, Self::Table(_)))
    }

    /// Whether it is a table of tables with names of the user's choice.
    pub(crate) fn is_table_map(&self) -> bool {
        matches!(self, Self::Map { value, .. } if matches!(**value, Self::Table(_)))
    }

    pub(crate) fn is_secret(&self) -> bool {
        match self {
            Self::Text(kind) => *kind == TextKind::Secret,
            Self::List { item: shape, .. } | Self::Map { value: shape, .. } => shape.is_secret(),
            _ => false,
        }
    }

    fn read(schema: &Value) -> Self {
        let part = |name: &str| Box::new(Self::read(schema.get(name).unwrap_or(&Value::Null)));
        let limit = |name: &str| schema.get(name).and_then(Value::as_i64);
        match schema.get("type").and_then(Value::as_str).unwrap_or_default() {
            "object" => match schema.get("properties").and_then(Value::as_object) {
                Some(properties) => Self::Table(properties.iter().map(Field::read).collect()),
                None => Self::Map {
                    names: strings(schema.pointer("/propertyNames/enum")),
                    value: part("additionalProperties"),
                },
            },
            "array" => {
                let max = schema.get("maxItems").and_then(Value::as_u64).unwrap_or(MAX_ITEMS);
                Self::List { item: part("items"), max: usize::try_from(max).unwrap_or(usize::MAX) }
            }
            "integer" => Self::Integer {
                min: limit("minimum").unwrap_or(i64::MIN),
                max: limit("maximum").unwrap_or(i64::MAX),
            },
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            "string" => match strings(schema.get("enum")) {
                Some(words) => Self::Choice { words, or_list: None },
                None if schema.get("writeOnly").is_some() => Self::Text(TextKind::Secret),
                None if schema.get("format").is_some() => Self::Text(TextKind::Address),
                None => Self::Text(TextKind::Plain),
            },
            // Several types.
            _ => match schema.get("anyOf").and_then(Value::as_array).map(Vec::as_slice) {
                Some([words, list]) => {
                    let noun = list.get("title").and_then(Value::as_str).unwrap_or("texts").to_owned();
                    Self::Choice {
                        words: strings(words.get("enum")).unwrap_or_default(),
                        or_list: Some((Box::new(Self::read(list)), noun)),
                    }
                }
                _ => Self::TextOrBoolean,
            },
        }
    }
}

fn strings(value: Option<&Value>) -> Option<Vec<String>> {
    Some(value?.as_array()?.iter().filter_map(|word| Some(word.as_str()?.to_owned())).collect())
}

impl Field {
    fn read((name, schema): (&String, &Value)) -> Self {
        let description = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        let mut shape = Shape::read(schema);
        // The arguments of a program may be secret.
        if let (Shape::List { item, .. }, "command" | "token_command") = (&mut shape, name.as_str()) {
            **item = Shape::Text(TextKind::Secret);
        }
        Self {
            name: name.clone(),
            description: description.replace('\n', " "),
            default: schema.get("default").and_then(|value| toml::Value::try_from(value).ok()),
            shape,
        }
    }
}

/// TOML has no null, so the schema must not allow it.
fn drop_null(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|name| name != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    object.insert("type".to_owned(), only);
                }
            }
            if let Some(Value::Array(words)) = object.get_mut("enum") {
                words.retain(|word| !word.is_null());
            }
            // The default of a section only repeats the defaults of its keys.
            if object.get("default").is_some_and(Value::is_null) || object.contains_key("properties") {
                object.remove("default");
            }
            object.values_mut().for_each(drop_null);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_null),
        _ => {}
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
        assert_eq!(seen.len(), 19, "{seen:?}");
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
