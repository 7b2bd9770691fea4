//! A call, read once and within bounds: the words of the tool's name, the values at their JSON paths, who is addressed.
//! It knows everyday words of argument names, and no tool in particular.

use serde_json::Value;

use super::Call;
use super::address::address;
use super::caution::words::{fold, words};

const MOST_LEAVES: usize = 256;
const DEPTH_LIMIT: usize = 8;
/// So much of a text is looked at, in characters.
const TEXT_CHARS: usize = 2048;
const PATH_CHARS: usize = 120;
/// A text longer than this addresses nobody.
const ADDRESS_CHARS: usize = 120;

/// What people call the places where a recipient stands.
const ADDRESSING: [&str; 34] = [
    "to",
    "cc",
    "bcc",
    "recipient",
    "user",
    "member",
    "attendee",
    "participant",
    "invitee",
    "guest",
    "channel",
    "chat",
    "room",
    "team",
    "group",
    "email",
    "mail",
    "address",
    "phone",
    "number",
    "contact",
    "person",
    "people",
    "who",
    "with",
    "assignee",
    "owner",
    "reviewer",
    "target",
    "audience",
    "name",
    "list",
    "payee",
    "mention",
];
/// And what they call those of a text.
const CONTENT: [&str; 16] = [
    "body",
    "text",
    "content",
    "message",
    "subject",
    "title",
    "description",
    "html",
    "note",
    "caption",
    "comment",
    "summary",
    "markdown",
    "agenda",
    "reason",
    "query",
];

/// A call as far as it is looked at.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    /// The whole name.
    pub(super) tool: String,
    /// The words of the name, folded.
    pub(super) words: Vec<String>,
    /// How much the arguments are, in bytes of JSON.
    pub(super) bytes: usize,
    pub(super) leaves: Vec<Leaf>,
    /// Lists and how long they are, by path.
    pub(super) lists: Vec<(String, usize)>,
    /// Whether it went well; nothing before the call.
    pub(super) outcome: Option<Outcome>,
}

/// How a call went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Fine,
    Failed,
}

/// A value that is not a list or an object.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    /// Like `message.to[]`.
    pub(super) path: String,
    pub(super) text: String,
    pub(super) number: Option<f64>,
    pub(super) role: Role,
}

/// What a value is there for, as far as its name and shape say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It says who is addressed.
    Addressing,
    /// It is what they are told.
    Content,
    Other,
}

impl Reading {
    pub(super) fn of(call: Call<'_>) -> Self {
        let mut reading = Self {
            tool: call.tool_name.chars().take(PATH_CHARS).collect(),
            words: name_words(call.tool_name),
            bytes: size(call.args),
            leaves: Vec::new(),
            lists: Vec::new(),
            outcome: call.result.map(outcome),
        };
        reading.walk(call.args, String::new(), "", 0);
        reading
    }

    /// Whether it says anywhere whom it addresses.
    pub(super) fn is_addressed(&self) -> bool {
        self.leaves.iter().any(|leaf| leaf.role == Role::Addressing)
    }

    fn walk(&mut self, value: &Value, path: String, key: &str, depth: usize) {
        if depth > DEPTH_LIMIT || self.leaves.len() >= MOST_LEAVES {
            return;
        }
        match value {
            Value::Object(fields) => {
                for (name, value) in fields.iter().take(MOST_LEAVES) {
                    let dot = if path.is_empty() { "" } else { "." };
                    let path = format!("{path}{dot}{name}").chars().take(PATH_CHARS).collect();
                    self.walk(value, path, name, depth + 1);
                }
            }
            Value::Array(items) => {
                self.lists.push((path.clone(), items.len()));
                let path: String = format!("{path}[]").chars().take(PATH_CHARS).collect();
                for item in items.iter().take(MOST_LEAVES) {
                    self.walk(item, path.clone(), key, depth + 1);
                }
            }
            Value::String(text) => {
                let text: String = text.chars().take(TEXT_CHARS).collect();
                let role = role(key, &text);
                self.leaves.push(Leaf { path, text, number: None, role });
            }
            Value::Number(number) => {
                let (text, number) = (number.to_string(), number.as_f64());
                self.leaves.push(Leaf { path, text, number, role: Role::Other });
            }
            Value::Bool(truth) => {
                self.leaves.push(Leaf { path, text: truth.to_string(), number: None, role: Role::Other });
            }
            Value::Null => {}
        }
    }
}

fn role(key: &str, text: &str) -> Role {
    let key = words(key);
    let is = |list: &[&str]| {
        let singular = |word: &str| {
            list.contains(&word) || word.strip_suffix('s').is_some_and(|one| list.contains(&one))
        };
        key.iter().any(|word| singular(word))
    };
    if address(text).is_some() {
        return Role::Addressing;
    }
    if is(&CONTENT) {
        return Role::Content;
    }
    let short = text.chars().count() <= ADDRESS_CHARS;
    if short && is(&ADDRESSING) { Role::Addressing } else { Role::Other }
}

/// `sendEmail`, `send_email` and `mail/send-email` by their words.
fn name_words(name: &str) -> Vec<String> {
    let mut spaced = String::new();
    let mut lower = false;
    for letter in name.chars().take(PATH_CHARS) {
        if letter.is_uppercase() && lower {
            spaced.push(' ');
        }
        lower = letter.is_lowercase();
        spaced.push(if letter.is_alphanumeric() { letter } else { ' ' });
    }
    fold(&spaced).split_whitespace().map(str::to_owned).collect()
}

/// The broker tells a failure as an object with `error`.
fn outcome(result: &Value) -> Outcome {
    let failed = result.get("error").is_some_and(|error| !error.is_null() && error != &Value::Bool(false));
    if failed { Outcome::Failed } else { Outcome::Fine }
}

fn size(value: &Value) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // A value that is JSON already can be written as JSON.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_have_paths_and_roles() {
        let args = json!({"message": {"to": ["Bob <bob@x.org>", "team-room"], "body": "hi Carol", "urgent": true}, "n": 3});
        let reading = Reading::of(Call { tool_name: "mail/sendEmail_v2", args: &args, result: None });
        assert_eq!(reading.words, ["mail", "send", "email", "v2"]);
        let seen: Vec<_> = reading.leaves.iter().map(|leaf| (leaf.path.as_str(), leaf.role)).collect();
        assert_eq!(
            seen,
            [
                ("message.body", Role::Content),
                ("message.to[]", Role::Addressing),
                ("message.to[]", Role::Addressing),
                ("message.urgent", Role::Other),
                ("n", Role::Other)
            ]
        );
        assert_eq!(reading.lists, [("message.to".to_owned(), 2)]);
        assert_eq!(reading.bytes, args.to_string().len());
    }

    #[test]
    fn endless_arguments_are_read_within_bounds() {
        let mut deep = json!("x");
        for _ in 0..100 {
            deep = json!({ "a": deep });
        }
        assert!(Reading::of(Call { tool_name: "t", args: &deep, result: None }).leaves.is_empty());
        let wide: Vec<String> = (0..10_000).map(|number| number.to_string()).collect();
        let args = json!({ "wide": wide });
        assert_eq!(Reading::of(Call { tool_name: "t", args: &args, result: None }).leaves.len(), MOST_LEAVES);
    }
}
