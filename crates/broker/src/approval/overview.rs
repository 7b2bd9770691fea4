//! Every value of the arguments with the meaning of its key, and the argument that it belongs to.

use super::argument::Part;
use super::audience::is_address;
use super::keys::{Meaning, is_form_of_name, plain};

/// Keys that describe a recipient besides the address.
const LABELS: [&str; 5] = ["name", "displayname", "firstname", "lastname", "label"];

/// The arguments. A member counts as one argument, unless it is an object: then its members count.
pub(super) struct Overview<'a> {
    pub(super) arguments: Vec<Argument<'a>>,
    pub(super) values: Vec<Value>,
    /// Whether the tool's schema declares one of the arguments.
    has_declared: bool,
}

pub(super) struct Argument<'a> {
    pub(super) key: String,
    pub(super) json: &'a str,
    is_declared: bool,
}

/// One string, number or boolean that is neither empty nor `null`.
pub(super) struct Value {
    /// The index of its argument.
    pub(super) argument: usize,
    /// The key that determines its meaning, else the nearest one.
    pub(super) key: String,
    pub(super) text: String,
    pub(super) is_string: bool,
    /// Whether it is a boolean, which is not a name.
    pub(super) is_truth_value: bool,
    pub(super) meaning: Meaning,
    /// Whether it describes the person whose address is next to it.
    pub(super) is_label: bool,
    /// Whether the key of a container marks it as text.
    pub(super) is_in_text: bool,
    /// Whether it is nested inside an argument.
    pub(super) is_nested: bool,
}

/// The context of a value from its containers.
struct Context<'k> {
    argument: Option<usize>,
    key: &'k str,
    meaning: Meaning,
    is_label: bool,
    is_in_text: bool,
    is_declared: bool,
    depth: usize,
}

impl<'a> Overview<'a> {
    /// Parses canonical arguments. `declared` are the keys that the tool's schema declares; empty if unknown.
    pub(super) fn read(args: &'a str, declared: &[String]) -> Self {
        let mut overview = Self { arguments: Vec::new(), values: Vec::new(), has_declared: false };
        if let Some(Part::Object(members)) = Part::read(args) {
            for (key, value) in members {
                let is_declared = declared.contains(&key);
                overview.read_member(&key, value.get(), &Context::at_top(is_declared), false);
            }
        }
        overview.has_declared = overview
            .values
            .iter()
            .any(|value| overview.arguments.get(value.argument).is_some_and(|argument| argument.is_declared));
        overview
    }

    /// Whether the first lines may show this argument: if declared ones exist, only these.
    pub(super) fn is_shown(&self, argument: usize) -> bool {
        !self.has_declared || self.arguments.get(argument).is_some_and(|argument| argument.is_declared)
    }

    fn read_member<'k>(&mut self, key: &'k str, json: &'a str, outer: &Context<'k>, has_address: bool) {
        let mut context = outer.of_member(key, has_address.then_some(json));
        if context.argument.is_none() && !json.starts_with('{') {
            context.argument = Some(self.arguments.len());
            self.arguments.push(Argument { key: key.to_owned(), json, is_declared: context.is_declared });
        }
        self.read_value(json, &context);
    }

    fn read_value(&mut self, json: &'a str, context: &Context<'_>) {
        let (text, is_string) = match Part::read(json) {
            Some(Part::Object(members)) => {
                let has_address = members.iter().any(|(_, value)| is_address_text(value.get()));
                for (key, value) in members {
                    self.read_member(&key, value.get(), context, has_address);
                }
                return;
            }
            Some(Part::Array(items)) => {
                return items.into_iter().for_each(|item| self.read_value(item.get(), context));
            }
            Some(Part::Text(text)) if !text.is_empty() => (text, true),
            Some(Part::Plain(plain)) if plain != "null" => (plain.to_owned(), false),
            Some(Part::Text(_) | Part::Plain(_)) | None => return,
        };
        let Some(argument) = context.argument else { return };
        let is_truth_value = !is_string && matches!(&*text, "true" | "false");
        self.values.push(Value {
            argument,
            key: context.key.to_owned(),
            text,
            is_string,
            meaning: context.meaning,
            is_label: context.meaning.is_named() && context.is_label,
            is_truth_value,
            is_in_text: context.is_in_text,
            is_nested: context.depth > 1,
        });
    }
}

impl<'k> Context<'k> {
    fn at_top(is_declared: bool) -> Self {
        let (argument, key, meaning) = (None, "", Meaning::Other);
        Self { argument, key, meaning, is_label: false, is_in_text: false, is_declared, depth: 0 }
    }

    /// The context of a member. The meaning applies to everything below, unless a key below is more specific;
    /// `beside_address` is the value, if an address is next to it.
    fn of_member(&self, key: &'k str, beside_address: Option<&str>) -> Self {
        let own = Meaning::of(key);
        let is_kept = match self.meaning {
            Meaning::Recipient => true,
            Meaning::Place | Meaning::Person => {
                own >= self.meaning && (own.is_named() || own == Meaning::Other && is_form_of_name(key))
            }
            Meaning::Attachment => !own.is_named(),
            _ => false,
        };
        let is_label_of = |json: &str| LABELS.contains(&plain(key).as_str()) && !is_address_text(json);
        Self {
            argument: self.argument,
            key: if is_kept && self.meaning.is_named() { self.key } else { key },
            meaning: if is_kept { self.meaning } else { own },
            is_label: beside_address.is_some_and(is_label_of),
            is_in_text: self.is_in_text || matches!(self.meaning, Meaning::Text(_)),
            is_declared: self.is_declared,
            depth: self.depth + 1,
        }
    }
}

fn is_address_text(json: &str) -> bool {
    matches!(Part::read(json), Some(Part::Text(text)) if is_address(&text))
}
