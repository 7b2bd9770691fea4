//! Compares the written values with the known keys: unknown keys, wrong types, values out of range. Invalid parts are reported
//! and removed, so that the rest is still checked.

use embody_agent::usage::{MAX_UNITS, Money};

use super::error::{Problem, Report, quoted};
use super::schema::{self, Field, Shape};
use super::tree::{Content, KeyPath, Node, Origin, shown_key};

/// Reports and removes what does not fit. Returns whether the node itself may stay.
pub(super) fn prune(shape: &Shape, node: &mut Node, path: &KeyPath, report: &mut Report) -> bool {
    let problem = match (shape, &mut node.content) {
        (Shape::Table(fields), Content::Table(entries)) => {
            entries.retain(|key, node| match fields.iter().find(|field| field.name == *key) {
                Some(field) => prune(&field.shape, node, &path.key(key), report),
                None => {
                    report.add(unknown(fields, path, key, node));
                    false
                }
            });
            return true;
        }
        (Shape::Map { names, value }, Content::Table(entries)) => {
            entries.retain(|key, node| match names {
                Some(names) if !names.contains(key) => {
                    let names: Vec<&str> = names.iter().map(String::as_str).collect();
                    report.add(unknown_in(path, &names, key, node));
                    false
                }
                _ => prune(value, node, &path.key(key), report),
            });
            return true;
        }
        (Shape::List { max, .. }, Content::List(items)) if items.len() > *max => {
            Problem::new(format!("`{path}` has {} entries, but may have {max} at most", items.len()))
        }
        (Shape::List { item, .. }, Content::List(items)) => return prune_list(item, items, path, report),
        (Shape::Choice { or_list: Some((list, _)), .. }, Content::List(_)) => {
            return prune(list, node, path, report);
        }
        (shape, Content::Leaf(value)) if fits(shape, value) => match leaf_problem(shape, value, path) {
            Some(problem) => problem,
            None => return true,
        },
        (shape, content) => mismatch(shape, content, &node.origin, path),
    };
    report.reject(path, problem.at(path, &node.origin));
    false
}

/// A list of tables keeps the position of an invalid element, so that the others keep their indexes; any other list is
/// dropped completely, because a command or a pattern list with a gap has another meaning.
fn prune_list(item: &Shape, items: &mut [Node], path: &KeyPath, report: &mut Report) -> bool {
    let mut is_complete = true;
    for (index, node) in items.iter_mut().enumerate() {
        if !prune(item, node, &path.index(index), report) {
            *node = Node::empty(node.origin.clone());
            is_complete &= matches!(item, Shape::Table(_));
        }
    }
    is_complete
}

fn fits(shape: &Shape, value: &toml::Value) -> bool {
    match shape {
        Shape::Text(_) | Shape::Choice { .. } => value.is_str(),
        Shape::TextOrBoolean => value.is_str() || value.is_bool(),
        Shape::Boolean => value.is_bool(),
        Shape::Integer { .. } => value.is_integer(),
        Shape::Number => value.is_integer() || value.is_float(),
        Shape::List { .. } | Shape::Table(_) | Shape::Map { .. } => false,
    }
}

fn leaf_problem(shape: &Shape, value: &toml::Value, path: &KeyPath) -> Option<Problem> {
    match (shape, value) {
        (Shape::Integer { min, max }, toml::Value::Integer(number)) if number < min || number > max => {
            Some(Problem::new(format!("`{path}` is `{number}`, but must be from {min} to {max}")))
        }
        (Shape::Number, number) => {
            // The shortest text of a float is what was written.
            let text = number.as_float().map_or_else(|| number.to_string(), |number| number.to_string());
            let wrong = || {
                format!("`{path}` is `{number}`, but must be from 0 to {MAX_UNITS} with at most six decimals")
            };
            Money::parse(&text).is_none().then(|| Problem::new(wrong()))
        }
        (Shape::Choice { words, or_list }, toml::Value::String(word)) if !words.contains(word) => {
            let message = format!("`{path}` is {}, but must be {}", quoted(word), expected(shape));
            let problem = Problem::new(message);
            let near = schema::nearest(word, words.iter().map(String::as_str));
            Some(match (or_list, near) {
                // A string that resembles a choice may be intended as a string.
                (Some((_, noun)), near) => {
                    let near = near.map(|near| format!(", or did you mean `{near}`?")).unwrap_or_default();
                    problem.hint(format!("write {noun} as a list: `[{value}]`{near}"))
                }
                (None, Some(near)) => problem.hint(format!("did you mean `{near}` for `{path}`?")),
                (None, None) => problem,
            })
        }
        (_, toml::Value::String(text)) if text.contains('\0') => {
            Some(Problem::new(format!("`{path}` holds a NUL character, which no program takes")))
        }
        _ => None,
    }
}

/// The type in words, as in "must be …".
fn expected(shape: &Shape) -> String {
    match shape {
        Shape::Text(_) => "text".to_owned(),
        Shape::Choice { words, or_list } => {
            let list = or_list.as_ref().map(|(_, noun)| format!(" or a list of {noun}"));
            format!("one of {}{}", words.join(", "), list.unwrap_or_default())
        }
        Shape::TextOrBoolean => "text, true or false".to_owned(),
        Shape::Boolean => "true or false".to_owned(),
        Shape::Integer { .. } => "a whole number".to_owned(),
        Shape::Number => "a number".to_owned(),
        Shape::List { .. } if shape.is_table_list() => "a list of tables".to_owned(),
        Shape::List { .. } => "a list".to_owned(),
        Shape::Table(_) | Shape::Map { .. } => "a table".to_owned(),
    }
}

/// The problem for a value of the wrong type. Where a table is expected the value may contain secrets, so only its type is
/// reported.
fn mismatch(shape: &Shape, content: &Content, origin: &Origin, path: &KeyPath) -> Problem {
    let is_table = shape.is_table_list() || matches!(shape, Shape::Table(_) | Shape::Map { .. });
    let written = match content {
        Content::Table(_) => "a table".to_owned(),
        Content::List(_) => "a list".to_owned(),
        Content::Leaf(_) if is_table || shape.is_secret() => "a single value".to_owned(),
        Content::Leaf(value) => quoted(&value.to_string()),
    };
    let problem = Problem::new(format!("`{path}` is {written}, but must be {}", expected(shape)));
    let in_quotes = |words: &[String]| words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>();
    match (shape, content) {
        (Shape::List { .. }, _) if is_table => {
            problem.hint(format!("head each entry `[{}]`", path.heading()))
        }
        (Shape::Table(_) | Shape::Map { .. }, _) => problem.hint(format!("head it `{}`", path.heading())),
        (Shape::List { item, .. }, _) => {
            let example = match &**item {
                Shape::Integer { .. } => "1, 2".to_owned(),
                Shape::Choice { words, .. } => in_quotes(words.get(..2).unwrap_or(words)).join(", "),
                _ => "\"one\", \"two\"".to_owned(),
            };
            problem.hint(format!("write `{path}` as a list like `[{example}]`"))
        }
        (
            Shape::Integer { .. } | Shape::Number | Shape::Boolean,
            Content::Leaf(toml::Value::String(text)),
        ) if matches!(origin, Origin::File { .. })
            && (text.parse::<f64>().is_ok() || text.parse::<bool>().is_ok()) =>
        {
            problem.hint(format!("write `{path}` without quotes"))
        }
        (Shape::Text(_), Content::Leaf(_)) => problem.hint(format!("put `{path}` in quotes")),
        (Shape::Choice { words, or_list: Some((_, noun)) }, _) => {
            let words = in_quotes(words).join("` or `");
            problem.hint(format!("write {noun} as a list like `[\"one\", \"two\"]`, or `{words}`"))
        }
        // Not the quoted value: it is not one of the choices.
        (Shape::Choice { words, .. }, _) => {
            let word = words.first().map(String::as_str).unwrap_or_default();
            problem.hint(format!("write one of these words in quotes, as in `{word:?}`"))
        }
        _ => problem,
    }
}

fn unknown(fields: &[Field], parent: &KeyPath, key: &str, node: &Node) -> Problem {
    let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
    if !parent.is_root() {
        return unknown_in(parent, &names, key, node);
    }
    let path = parent.key(key);
    let kind = if matches!(node.content, Content::Leaf(_)) { "key" } else { "section" };
    let problem = Problem::new(format!("unknown {kind} `{path}`")).at(&path, &node.origin);
    let is_home = |section: &&Field| {
        matches!(section.shape, Shape::Table(_))
            && section.shape.fields().iter().any(|field| field.name == key)
    };
    match (fields.iter().find(is_home), schema::nearest(key, names.iter().copied())) {
        (Some(home), _) if kind == "key" => problem.hint(format!("`{key}` belongs below `[{}]`", home.name)),
        (_, Some(near)) => problem.hint(format!("did you mean `{near}` instead of `{path}`?")),
        (_, None) => problem.hint(format!("the sections are {}", names.join(", "))),
    }
}

fn unknown_in(parent: &KeyPath, names: &[&str], key: &str, node: &Node) -> Problem {
    let (heading, shown) = (parent.heading(), shown_key(key));
    let problem =
        Problem::new(format!("unknown key `{shown}` in `{heading}`")).at(&parent.key(key), &node.origin);
    match schema::nearest(key, names.iter().copied()) {
        Some(near) => problem.hint(format!("did you mean `{near}` instead of `{shown}`?")),
        None => problem.hint(format!("the keys of `{heading}` are {}", names.join(", "))),
    }
}
