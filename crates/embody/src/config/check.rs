//! Compares the written values with the known keys (unknown keys, wrong types, values out of range), and holds the checks
//! that sections share. Invalid parts are reported and removed, so that the rest is still checked.

use std::collections::BTreeMap;
use std::path::Path;

use super::error::{Problem, Report, quoted};
use super::keys::{self, Field, Shape, TextKind};
use super::mask::{self, Address};
use super::resolved::CommandLine;
use super::tree::{Content, KeyPath, Node, Origin, shown_key};

/// The valid part of `node`; `None` if nothing is valid.
pub(super) fn prune(shape: &Shape, node: Node, path: &KeyPath, report: &mut Report) -> Option<Node> {
    let Node { origin, content } = node;
    let content = match (shape, content) {
        (Shape::Table(fields), Content::Table(entries)) => {
            Content::Table(prune_table(fields, entries, path, report))
        }
        (Shape::Map { names, value }, Content::Table(entries)) => {
            Content::Table(prune_map(names.as_deref(), value, entries, path, report))
        }
        (Shape::List { item, max }, Content::List(items)) if items.len() <= *max => {
            Content::List(prune_list(item, items, path, report)?)
        }
        (Shape::ChoiceOrTexts { max, .. }, Content::List(items)) if items.len() <= *max => {
            Content::List(prune_list(&Shape::Text(TextKind::Plain), items, path, report)?)
        }
        (Shape::List { max, .. } | Shape::ChoiceOrTexts { max, .. }, Content::List(items)) => {
            let message = format!("`{path}` has {} entries, but may have {max} at most", items.len());
            report.reject(path, Problem::at(path, &origin, message));
            return None;
        }
        (shape, Content::Leaf(value)) if fits(shape, &value) => {
            check_leaf(shape, &value, path, &origin, report)?;
            Content::Leaf(value)
        }
        (shape, content) => {
            report.reject(path, mismatch(shape, &Node { origin, content }, path));
            return None;
        }
    };
    Some(Node { origin, content })
}

/// The problem for a value of the wrong type. Where a table is expected the value may contain secrets, so only its type is
/// reported.
fn mismatch(shape: &Shape, node: &Node, path: &KeyPath) -> Problem {
    let tables = matches!(shape, Shape::List { item, .. } if matches!(**item, Shape::Table(_)));
    let whole = tables || shape.is_secret() || matches!(shape, Shape::Table(_) | Shape::Map { .. });
    let written = match &node.content {
        Content::Table(_) => "a table".to_owned(),
        Content::List(_) => "a list".to_owned(),
        Content::Leaf(_) if whole => "a single value".to_owned(),
        Content::Leaf(value) => quoted(&value.to_string()),
    };
    let problem =
        Problem::at(path, &node.origin, format!("`{path}` is {written}, but must be {}", shape.expected()));
    let from_file = matches!(node.origin, Origin::File { .. });
    match (shape, &node.content) {
        _ if tables => problem.hint(format!("head each entry `[{}]`", path.heading())),
        (Shape::List { item, .. }, _) => {
            problem.hint(format!("write `{path}` as a list like `{}`", list_of(item)))
        }
        (Shape::Table(_) | Shape::Map { .. }, _) => problem.hint(format!("head it `{}`", path.heading())),
        (Shape::Integer { .. } | Shape::Boolean, Content::Leaf(toml::Value::String(text)))
            if from_file && (text.parse::<i64>().is_ok() || text.parse::<bool>().is_ok()) =>
        {
            problem.hint(format!("write `{path}` without quotes"))
        }
        (Shape::Text(_), Content::Leaf(_)) => problem.hint(format!("put `{path}` in quotes")),
        // Not the quoted value: it is not one of the choices.
        (Shape::Choice(words), _) => {
            let word = words.first().map(String::as_str).unwrap_or_default();
            problem.hint(format!("write one of these words in quotes, as in `{word:?}`"))
        }
        (Shape::ChoiceOrTexts { words, texts, .. }, _) => {
            let words: Vec<String> = words.iter().map(|word| format!("`{word:?}`")).collect();
            problem
                .hint(format!("write {texts} as a list like `[\"one\", \"two\"]`, or {}", words.join(" or ")))
        }
        _ => problem,
    }
}

/// A list of two such values in TOML, as an example.
fn list_of(item: &Shape) -> String {
    match item {
        Shape::Integer { .. } => "[1, 2]".to_owned(),
        Shape::Choice(words) => {
            let words: Vec<String> = words.iter().take(2).map(|word| format!("{word:?}")).collect();
            format!("[{}]", words.join(", "))
        }
        _ => "[\"one\", \"two\"]".to_owned(),
    }
}

fn fits(shape: &Shape, value: &toml::Value) -> bool {
    match shape {
        Shape::Text(_) | Shape::Choice(_) | Shape::ChoiceOrTexts { .. } => value.is_str(),
        Shape::TextOrBoolean => value.is_str() || value.is_bool(),
        Shape::Boolean => value.is_bool(),
        Shape::Integer { .. } => value.is_integer(),
        Shape::List { .. } | Shape::Table(_) | Shape::Map { .. } => false,
    }
}

fn check_leaf(
    shape: &Shape,
    value: &toml::Value,
    path: &KeyPath,
    origin: &Origin,
    report: &mut Report,
) -> Option<()> {
    let problem = match (shape, value) {
        (Shape::Integer { min, max }, toml::Value::Integer(number)) if number < min || number > max => {
            let message = format!("`{path}` is `{number}`, but must be from {min} to {max}");
            Problem::at(path, origin, message)
        }
        (Shape::Choice(words) | Shape::ChoiceOrTexts { words, .. }, toml::Value::String(word))
            if !words.contains(word) =>
        {
            let message = format!("`{path}` is {}, but must be {}", quoted(word), shape.expected());
            let problem = Problem::at(path, origin, message);
            let near = keys::nearest(word, words.iter().map(String::as_str));
            match (shape, near) {
                // A string that resembles a choice may be intended as a string.
                (Shape::ChoiceOrTexts { texts, .. }, near) => {
                    let near = near.map(|near| format!(", or did you mean `{near}`?")).unwrap_or_default();
                    problem.hint(format!("write {texts} as a list: `[{value}]`{near}"))
                }
                (_, Some(near)) => problem.hint(format!("did you mean `{near}` for `{path}`?")),
                (_, None) => problem,
            }
        }
        (_, toml::Value::String(text)) if text.contains('\0') => {
            Problem::at(path, origin, format!("`{path}` holds a NUL character, which no program takes"))
        }
        _ => return Some(()),
    };
    report.reject(path, problem);
    None
}

fn prune_table(
    fields: &[Field],
    entries: BTreeMap<String, Node>,
    path: &KeyPath,
    report: &mut Report,
) -> BTreeMap<String, Node> {
    let mut kept = BTreeMap::new();
    for (key, node) in entries {
        match fields.iter().find(|field| field.name == key) {
            Some(field) => {
                if let Some(node) = prune(&field.shape, node, &path.key(&key), report) {
                    kept.insert(key, node);
                }
            }
            None => report.add_with(|| unknown(fields, path, &key, &node)),
        }
    }
    kept
}

fn prune_map(
    names: Option<&[String]>,
    value: &Shape,
    entries: BTreeMap<String, Node>,
    path: &KeyPath,
    report: &mut Report,
) -> BTreeMap<String, Node> {
    let mut kept = BTreeMap::new();
    for (key, node) in entries {
        let place = path.key(&key);
        match names {
            Some(names) if !names.contains(&key) => {
                let names = || names.iter().map(String::as_str).collect::<Vec<_>>();
                report.add_with(|| unknown_in(&path.heading(), &names(), &key, &place, &node));
            }
            _ => {
                if let Some(node) = prune(value, node, &place, report) {
                    kept.insert(key, node);
                }
            }
        }
    }
    kept
}

/// A list of tables keeps the position of an invalid element, so that the others keep their indexes; any other list is
/// dropped completely, because a command or a pattern list with a gap has another meaning.
fn prune_list(item: &Shape, items: Vec<Node>, path: &KeyPath, report: &mut Report) -> Option<Vec<Node>> {
    let tables = matches!(item, Shape::Table(_));
    let mut kept = Vec::with_capacity(items.len());
    let mut whole = true;
    for (index, node) in items.into_iter().enumerate() {
        let origin = node.origin.clone();
        match prune(item, node, &path.index(index), report) {
            Some(node) => kept.push(node),
            None if tables => kept.push(Node::empty(origin)),
            None => whole = false,
        }
    }
    whole.then_some(kept)
}

fn unknown(fields: &[Field], parent: &KeyPath, key: &str, node: &Node) -> Problem {
    let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
    let path = parent.key(key);
    if !parent.steps().is_empty() {
        return unknown_in(&parent.heading(), &names, key, &path, node);
    }
    let kind = if matches!(node.content, Content::Leaf(_)) { "key" } else { "section" };
    let problem = Problem::at(&path, &node.origin, format!("unknown {kind} `{path}`"));
    let home = fields.iter().find(|section| section.shape.fields().iter().any(|field| field.name == key));
    match (home, keys::nearest(key, names.iter().copied())) {
        (Some(home), _) if kind == "key" => problem.hint(format!("`{key}` belongs below `[{}]`", home.name)),
        (_, Some(near)) => problem.hint(format!("did you mean `{near}` instead of `{path}`?")),
        (_, None) => problem.hint(format!("the sections are {}", names.join(", "))),
    }
}

fn unknown_in(heading: &str, names: &[&str], key: &str, path: &KeyPath, node: &Node) -> Problem {
    let problem = Problem::at(path, &node.origin, format!("unknown key `{}` in `{heading}`", shown_key(key)));
    match keys::nearest(key, names.iter().copied()) {
        Some(near) => problem.hint(format!("did you mean `{near}` instead of `{}`?", shown_key(key))),
        None => problem.hint(format!("the keys of `{heading}` are {}", names.join(", "))),
    }
}

pub(super) struct Checks<'a> {
    pub(super) tree: &'a Node,
    /// Paths are relative to it.
    pub(super) workspace: &'a Path,
    pub(super) report: &'a mut Report,
}

impl Checks<'_> {
    /// Reports a problem at `path`, unless its value was already rejected.
    pub(super) fn fail(&mut self, path: &KeyPath, message: String, hint: Option<&str>) {
        if self.report.is_bad(path) {
            return;
        }
        let problem = Problem::at(path, self.tree.origin_of(path), message);
        self.report.add(match hint {
            Some(hint) => problem.hint(hint),
            None => problem,
        });
    }

    pub(super) fn http(&mut self, path: &KeyPath, text: &str) -> Option<Address> {
        self.address(path, text, (Address::http(text), None))
    }

    pub(super) fn command(&mut self, path: &KeyPath, words: Option<Vec<String>>) -> Option<CommandLine> {
        let mut words = words?.into_iter();
        match words.next() {
            Some(program) if !program.trim().is_empty() => {
                Some(CommandLine { program, args: words.collect() })
            }
            _ => {
                let hint = "write the program and its arguments as separate texts, or remove the key";
                self.fail(path, format!("`{path}` is `[]`, which names no program"), Some(hint));
                None
            }
        }
    }

    pub(super) fn filled(&mut self, path: &KeyPath, text: Option<String>) -> Option<String> {
        let text = text?;
        if text.trim().is_empty() {
            self.fail(
                path,
                format!("`{path}` is `\"\"`, which is empty"),
                Some("remove the key to leave it unset"),
            );
            return None;
        }
        Some(text)
    }

    pub(super) fn all_filled(&mut self, path: &KeyPath, texts: &[String]) {
        for (index, text) in texts.iter().enumerate() {
            self.filled(&path.index(index), Some(text.clone()));
        }
    }

    /// The name of an environment variable. Does not repeat the value, because people paste the secret itself here.
    pub(super) fn variable_name(&mut self, path: &KeyPath, name: &str) -> Option<String> {
        let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if !name.is_empty() && name.chars().all(good) && !name.starts_with(|c: char| c.is_ascii_digit()) {
            return Some(name.to_owned());
        }
        let hint = "put the secret into a variable and write that variable's name here";
        self.fail(path, format!("`{path}` is not the name of an environment variable"), Some(hint));
        None
    }

    /// Unwraps a checked URL, or reports the problem.
    pub(super) fn address(
        &mut self,
        path: &KeyPath,
        text: &str,
        (checked, hint): (Result<Address, &'static str>, Option<&str>),
    ) -> Option<Address> {
        checked
            .map_err(|reason| {
                self.fail(path, format!("`{path}` is `{}`, which {reason}", mask::address(text)), hint);
            })
            .ok()
    }
}
