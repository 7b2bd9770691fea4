//! Reads the environment: `EMBODY_SECTION__KEY` for every key, the two `PERSONA_SATI_MCP_…` variables, and the `OTEL_…`
//! variables. Takes the environment as values. Ignores variables of ours without `__`, which are not keys of the
//! configuration.

use super::check;
use super::error::{Problem, Report, quoted};
use super::keys::{self, Shape};
use super::node::Node;
use super::origin::{KeyPath, Origin};
use super::{parse, put, telemetry};

/// The prefix of our variables.
const PREFIX: &str = "EMBODY_";

/// Separates the parts of a key in a variable's name.
const SEPARATOR: &str = "__";

/// The environment of the process as text. Invalid UTF-8 becomes replacement characters, so that it is reported, not ignored.
pub(crate) fn of_process() -> Vec<(String, String)> {
    std::env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
        .collect()
}

/// The value of a variable that is set and not empty.
pub(crate) fn non_empty(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The variable for the key with these parts.
pub(crate) fn variable<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let parts: Vec<String> = parts.into_iter().map(str::to_uppercase).collect();
    format!("{PREFIX}{}", parts.join(SEPARATOR))
}

/// Overrides `tree` with the values of the environment.
pub(super) fn apply(env: impl IntoIterator<Item = (String, String)>, tree: &mut Node, report: &mut Report) {
    let mut ours: Vec<(Vec<Part>, String, String)> = Vec::new();
    let mut shared: Vec<(String, String)> = Vec::new();
    for (name, value) in env {
        match name.as_str() {
            "PERSONA_SATI_MCP_URL" => persona_url(&name, &value, tree, report),
            "PERSONA_SATI_MCP_TOKEN_COMMAND" => persona_command(&name, &value, tree, report),
            _ if name.starts_with(telemetry::PREFIX) => shared.push((name, value)),
            _ if name.starts_with(PREFIX) && name.contains(SEPARATOR) => {
                let rest = name.strip_prefix(PREFIX).unwrap_or_default();
                ours.push((rest.split(SEPARATOR).map(Part::of).collect(), name, value));
            }
            _ => {}
        }
    }
    telemetry::apply(&shared, tree, report);
    // Ordered by index, so that a new entry can be set key by key.
    ours.sort();
    for (parts, name, value) in ours {
        match locate(keys::root(), &parts) {
            Ok((path, shape)) => set(&name, &value, &path, shape, tree, report),
            Err(unknown) => report.add(unknown_variable(&name, &parts, &unknown)),
        }
    }
}

/// A part of a variable's name; numbers first, in numeric order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(usize),
    Name(String),
}

impl Part {
    fn of(text: &str) -> Self {
        match text.parse::<usize>() {
            Ok(number) if number.to_string() == text => Self::Number(number),
            _ => Self::Name(text.to_owned()),
        }
    }

    fn spells(&self, key: &str) -> bool {
        matches!(self, Self::Name(name) if *name == key.to_uppercase())
    }

    fn text(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Name(name) => name.clone(),
        }
    }
}

fn persona_url(name: &str, value: &str, tree: &mut Node, report: &mut Report) {
    let path = KeyPath::dotted("persona.url");
    let origin = Origin::Env { name: name.to_owned() };
    if !value.trim().is_empty() {
        put(&path, Node::text(value, origin), tree, report);
    }
}

fn persona_command(name: &str, value: &str, tree: &mut Node, report: &mut Report) {
    let path = KeyPath::dotted("persona.token_command");
    let origin = Origin::Env { name: name.to_owned() };
    if value.trim().is_empty() {
        return;
    }
    match shlex::split(value) {
        Some(words) => {
            let words = toml::Value::Array(words.into_iter().map(toml::Value::String).collect());
            put(&path, Node::from_value(words, &origin), tree, report);
        }
        None => {
            let message = format!("`{path}` cannot be split into words");
            report.reject(&path, Problem::at(&path, &origin, message).hint("close every quote"));
        }
    }
}

/// Why a variable does not name a key.
struct Unknown {
    /// The index of the wrong part.
    position: usize,
    /// The valid alternatives.
    legal: Legal,
}

/// The valid alternatives for a wrong part.
enum Legal {
    /// One of these.
    Names(Vec<String>),
    /// The index of an entry.
    Number,
    /// None: the key ends before it.
    End,
}

/// Resolves a variable's parts to a key.
fn locate<'a>(mut shape: &'a Shape, parts: &[Part]) -> Result<(KeyPath, &'a Shape), Unknown> {
    let mut path = KeyPath::default();
    for (position, part) in parts.iter().enumerate() {
        match shape {
            Shape::Table(fields) => {
                let names = || Legal::Names(fields.iter().map(|field| field.name.to_uppercase()).collect());
                let field = fields.iter().find(|field| part.spells(&field.name));
                let field = field.ok_or_else(|| Unknown { position, legal: names() })?;
                path = path.key(&field.name);
                shape = &field.shape;
            }
            Shape::List { item, .. } => {
                let Part::Number(index) = part else {
                    return Err(Unknown { position, legal: Legal::Number });
                };
                path = path.index(*index);
                shape = item;
            }
            Shape::Map { names: Some(known), value } => {
                let names = || Legal::Names(known.iter().map(|name| name.to_uppercase()).collect());
                let name = known.iter().find(|name| part.spells(name));
                path = path.key(name.ok_or_else(|| Unknown { position, legal: names() })?);
                shape = value;
            }
            Shape::Map { names: None, value } => {
                // User-defined names may contain the separator.
                let texts: Vec<String> = parts.iter().skip(position).map(Part::text).collect();
                return Ok((path.key(&texts.join(SEPARATOR)), value));
            }
            _ => return Err(Unknown { position, legal: Legal::End }),
        }
    }
    Ok((path, shape))
}

fn set(name: &str, value: &str, path: &KeyPath, shape: &Shape, tree: &mut Node, report: &mut Report) {
    let origin = Origin::Env { name: name.to_owned() };
    let as_is = match shape {
        Shape::Text(_) | Shape::Choice(_) | Shape::Word => true,
        Shape::ChoiceOrTexts { .. } => !value.trim_start().starts_with('['),
        _ => false,
    };
    // A text that is not a TOML value stays a string, and fails the type check later.
    let before = report.count();
    let node = if as_is { None } else { parse::value(value, path, &origin, report) };
    if report.count() > before {
        return;
    }
    let node = node.unwrap_or_else(|| Node::text(value, origin));
    if let Some(node) = check::prune(shape, node, path, report) {
        put(path, node, tree, report);
    }
}

fn unknown_variable(name: &str, parts: &[Part], unknown: &Unknown) -> Problem {
    let origin = Origin::Env { name: name.to_owned() };
    let problem = Problem { place: Some(origin), ..Problem::bare("this variable names no key") };
    let texts: Vec<String> = parts.iter().map(Part::text).collect();
    let (good, rest) = texts.split_at(unknown.position);
    let good = good.iter().map(String::as_str);
    let above = variable(good.clone());
    let Legal::Names(names) = &unknown.legal else {
        return problem.hint(match unknown.legal {
            Legal::Number => format!("after `{above}__` comes the number of an entry, counted from 0"),
            _ => format!("did you mean `{above}`?"),
        });
    };
    let wrong = rest.first().map_or("", String::as_str);
    match keys::nearest(wrong, names.iter().map(String::as_str)) {
        Some(near) => {
            let meant = variable(good.chain([near]).chain(rest.iter().skip(1).map(String::as_str)));
            problem.hint(format!("did you mean `{meant}` instead of {}?", quoted(name)))
        }
        None => {
            let start = variable(good.chain([""]));
            problem.hint(format!("after `{start}` may come {}", names.join(", ")))
        }
    }
}
