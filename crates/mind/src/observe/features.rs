//! A call, read once and within bounds: the words of the tool's name, the values at their JSON paths, who is addressed.
//! What a value is for is read from its name and its shape. It knows everyday words of argument names, and no tool in
//! particular.

use serde_json::Value;

use super::ObservedCall;
use embody_text::fold::{fold, words};
use embody_text::secrets::names_secret;

const MAX_LEAVES: usize = 256;
const DEPTH_LIMIT: usize = 8;
/// Characters read of message texts, and as many of all other values: a long text hides no address.
const TEXT_CHARS: usize = 32 * 1024;
const PATH_CHARS: usize = 120;
#[derive(Clone, Debug)]
pub(super) struct CallFeatures {
    pub(super) tool: String,
    pub(super) words: Vec<String>,
    pub(super) bytes: usize,
    pub(super) leaves: Vec<Leaf>,
    /// Texts with several recipients, as written. Each recipient is a leaf, but `Miller, Bob` is one person.
    pub(super) recipient_lists: Vec<Leaf>,
    pub(super) lists: Vec<(String, usize)>,
    /// `None` before the call.
    pub(super) outcome: Option<Outcome>,
    pub(super) gaps: ScanGaps,
    left: LeftChars,
}

#[derive(Clone, Copy, Debug)]
struct LeftChars {
    content: usize,
    values: usize,
}

/// The parts of a call that were not read because there was too much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ScanGaps {
    pub(super) values: bool,
    /// The end of a message text.
    pub(super) content: bool,
}

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
    /// Its path names a secret.
    pub(super) secret: bool,
}

impl CallFeatures {
    pub(super) fn of(call: ObservedCall<'_>) -> Self {
        let mut features = Self {
            tool: call.tool_name.chars().take(PATH_CHARS).collect(),
            words: name_words(call.tool_name),
            bytes: size(call.args),
            leaves: Vec::new(),
            recipient_lists: Vec::new(),
            lists: Vec::new(),
            outcome: call.result.map(outcome),
            gaps: ScanGaps::default(),
            left: LeftChars { content: TEXT_CHARS, values: TEXT_CHARS },
        };
        features.walk(call.args, String::new(), "", 0);
        features
    }

    pub(super) fn is_addressed(&self) -> bool {
        self.leaves.iter().any(|leaf| leaf.role == Role::Addressing)
    }

    fn walk(&mut self, value: &Value, path: String, key: &str, depth: usize) {
        if value.is_null() {
            return;
        }
        if depth > DEPTH_LIMIT || self.leaves.len() >= MAX_LEAVES {
            self.gaps.values = true;
            return;
        }
        match value {
            Value::Object(fields) => {
                self.gaps.values |= fields.len() > MAX_LEAVES;
                for (name, value) in fields.iter().take(MAX_LEAVES) {
                    let dot = if path.is_empty() { "" } else { "." };
                    let path = format!("{path}{dot}{name}").chars().take(PATH_CHARS).collect();
                    self.walk(value, path, name, depth + 1);
                }
            }
            Value::Array(items) => {
                self.gaps.values |= items.len() > MAX_LEAVES;
                self.lists.push((path.clone(), items.len()));
                let path: String = format!("{path}[]").chars().take(PATH_CHARS).collect();
                for item in items.iter().take(MAX_LEAVES) {
                    self.walk(item, path.clone(), key, depth + 1);
                }
            }
            Value::String(text) => self.text(text, path, key),
            Value::Number(number) => {
                let secret = is_secret(&path, key);
                let (text, number) = (number.to_string(), number.as_f64());
                self.leaves.push(Leaf { path, text, number, role: Role::Other, secret });
            }
            Value::Bool(truth) => {
                let secret = is_secret(&path, key);
                self.leaves.push(Leaf {
                    path,
                    text: truth.to_string(),
                    number: None,
                    role: Role::Other,
                    secret,
                });
            }
            Value::Null => {}
        }
    }

    fn text(&mut self, text: &str, path: String, key: &str) {
        let mut read: String = text.chars().take(TEXT_CHARS).collect();
        let role = role(key, &read);
        let (left, gaps) = match role {
            Role::Content => (&mut self.left.content, &mut self.gaps.content),
            Role::Addressing | Role::Other => (&mut self.left.values, &mut self.gaps.values),
        };
        if let Some((end, _)) = read.char_indices().nth(*left) {
            read.truncate(end);
        }
        *left = left.saturating_sub(read.chars().count());
        *gaps |= read.len() < text.len();
        let parts = if role == Role::Addressing { recipients(&read) } else { Vec::new() };
        let single = parts.first().is_none_or(|first| first == read.trim());
        let whole = Leaf { secret: is_secret(&path, key), path, text: read, number: None, role };
        if single {
            return self.leaves.push(whole);
        }
        let left = MAX_LEAVES.saturating_sub(self.leaves.len());
        self.gaps.values |= parts.len() > left;
        self.leaves.extend(parts.into_iter().take(left).map(|text| Leaf { text, ..whole.clone() }));
        self.recipient_lists.push(whole);
    }
}

/// Splits `sendEmail`, `send_email` and `mail/send-email` into words.
pub(super) fn name_words(name: &str) -> Vec<String> {
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

/// The broker reports a failure as an object with `error`.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Addressing,
    Content,
    Other,
}

/// Usual names of arguments that contain a recipient.
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
pub(super) fn role(key: &str, text: &str) -> Role {
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
    // Nothing but addresses says whom it is about, whatever it is called.
    let addresses = || text.contains('@') && recipients(text).iter().all(|part| address(part).is_some());
    if is(&ADDRESSING) || addresses() { Role::Addressing } else { Role::Other }
}

/// Whether a value must not appear in a reason: also one that is only called a key. A path may be cut before its last word, so
/// its key counts too.
fn is_secret(path: &str, key: &str) -> bool {
    let is_key = |name: &str| words(name).iter().any(|word| matches!(word.as_str(), "key" | "keys"));
    [path, key].into_iter().any(|name| names_secret(name) || is_key(name))
}

const MAX_ADDRESS_CHARS: usize = 120;

/// The address in a text like `bob@example.com` or `Bob <bob@example.com>`, folded.
pub(super) fn address(text: &str) -> Option<String> {
    let inner =
        text.rsplit_once('<').and_then(|(_, rest)| rest.split_once('>')).map_or(text, |(inner, _)| inner);
    let inner = inner.trim().trim_start_matches("mailto:");
    let (local, domain) = inner.split_once('@')?;
    let plain = !local.is_empty() && domain.contains('.') && !domain.contains('@');
    let short = inner.chars().count() <= MAX_ADDRESS_CHARS && !inner.contains(char::is_whitespace);
    (plain && short).then(|| inner.to_lowercase())
}

/// Each recipient of a list like `Eve <eve@x.org>, al@x.com; Carol`: an address by itself if it has one. A list without
/// commas is one too when it has several addresses.
pub(super) fn recipients(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for part in text.split([',', ';', '\n']).map(str::trim).filter(|part| !part.is_empty()) {
        if address(part).is_some() && part.matches('@').count() == 1 || !part.contains('@') {
            found.push(part.to_owned());
            continue;
        }
        let before = found.len();
        let bare = part.split(|letter: char| letter.is_whitespace() || "<>()[]\"'".contains(letter));
        found.extend(bare.filter_map(address));
        if found.len() == before {
            found.push(part.to_owned());
        }
    }
    found
}

/// The parent of a value: the domain of an address, the host of a link, the folder of a file.
pub(super) fn parent_of(text: &str) -> Option<(&'static str, String)> {
    if let Some(address) = address(text) {
        return address.split_once('@').map(|(_, domain)| ("domain", domain.to_owned()));
    }
    if text.contains(char::is_whitespace) || text.chars().count() > MAX_ADDRESS_CHARS {
        return None;
    }
    if let Some((_, rest)) = text.split_once("://") {
        return Some(("host", rest.split(['/', '?', '#']).next().unwrap_or_default().to_lowercase()));
    }
    let (folder, _) = text.rsplit_once('/')?;
    let top: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).take(2).collect();
    Some(("folder", top.join("/")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_have_paths_and_roles() {
        let args = json!({"message": {"to": ["Bob <bob@x.org>", "team-room"], "body": "hi Carol", "urgent": true}, "n": 3});
        let features = CallFeatures::of(ObservedCall {
            tool_name: "mail/sendEmail_v2",
            args: &args,
            result: None,
            key: None,
        });
        assert_eq!(features.words, ["mail", "send", "email", "v2"]);
        let seen: Vec<_> = features.leaves.iter().map(|leaf| (leaf.path.as_str(), leaf.role)).collect();
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
        assert_eq!(features.lists, [("message.to".to_owned(), 2)]);
        assert_eq!(features.bytes, args.to_string().len());
    }

    #[test]
    fn endless_arguments_are_read_within_bounds() {
        let mut deep = json!("x");
        for _ in 0..100 {
            deep = json!({ "a": deep });
        }
        let of =
            |args: &Value| CallFeatures::of(ObservedCall { tool_name: "t", args, result: None, key: None });
        let values = ScanGaps { values: true, content: false };
        assert!(of(&deep).leaves.is_empty());
        assert_eq!(of(&deep).gaps, values);
        let wide: Vec<String> = (0..10_000).map(|number| number.to_string()).collect();
        let wide = of(&json!({ "wide": wide }));
        assert_eq!((wide.leaves.len(), wide.gaps), (MAX_LEAVES, values));
        let crowd = of(&json!({ "to": "a@x.org,".repeat(300) }));
        assert_eq!((crowd.leaves.len(), crowd.gaps), (MAX_LEAVES, values));
        let long = of(&json!({ "body": "x".repeat(TEXT_CHARS + 1), "n": null }));
        assert_eq!(long.gaps, ScanGaps { values: false, content: true });
        assert_eq!(of(&json!({ "x": "x".repeat(TEXT_CHARS) })).gaps, ScanGaps::default());
        assert_eq!(of(&json!({ "x": "x".repeat(TEXT_CHARS + 1) })).gaps, values);
    }

    #[test]
    fn each_recipient_of_a_list_is_a_value() {
        let args =
            json!({"to": "Eve <a@evil.example>, Al <al@x.com>", "who": "Miller, Bob", "body": "a, b@x.org"});
        let features =
            CallFeatures::of(ObservedCall { tool_name: "t", args: &args, result: None, key: None });
        let seen: Vec<_> = features.leaves.iter().map(|leaf| leaf.text.as_str()).collect();
        assert_eq!(seen, ["a, b@x.org", "Eve <a@evil.example>", "Al <al@x.com>", "Miller", "Bob"]);
        assert_eq!(
            features.recipient_lists.iter().map(|leaf| leaf.text.as_str()).collect::<Vec<_>>(),
            ["Eve <a@evil.example>, Al <al@x.com>", "Miller, Bob"]
        );
    }

    #[test]
    fn the_key_says_who_is_addressed_however_long_a_value_is() {
        assert_eq!(role("to", &"somebody ".repeat(40)), Role::Addressing);
        assert_eq!(role("x", "a@x.org;b@x.org"), Role::Addressing);
        assert_eq!(role("x", "see you, b@x.org"), Role::Other);
        assert_eq!(role("body", "a@x.org, b@x.org"), Role::Content);
        assert_eq!(role("x", ""), Role::Other);
    }

    #[test]
    fn secrets_are_known_by_their_paths() {
        for path in
            ["password", "db.userPassword", "apiKey", "auth.value", "headers.X-Access-Token", "pin[]", "key"]
        {
            assert!(is_secret(path, ""), "{path}");
        }
        for path in ["to", "spinner", "keyboard", "author", "body"] {
            assert!(!is_secret(path, ""), "{path}");
        }
    }

    #[test]
    fn a_list_has_recipients() {
        assert_eq!(recipients("a@x.org"), ["a@x.org"]);
        assert_eq!(
            recipients("Eve <a@x.org>,Al <al@x.com> ;Carol"),
            ["Eve <a@x.org>", "Al <al@x.com>", "Carol"]
        );
        assert_eq!(recipients("a@x.org b@x.org\nEve c@x.org"), ["a@x.org", "b@x.org", "c@x.org"]);
        assert_eq!(recipients("Eve <a@x.org> Al <al@x.com>"), ["a@x.org", "al@x.com"]);
        assert_eq!(recipients("@home, the @channel"), ["@home", "the @channel"]);
        assert_eq!(recipients(" ,; "), Vec::<String>::new());
    }

    #[test]
    fn a_value_belongs_somewhere() {
        let belongs = |text| parent_of(text).map(|(what, whom)| format!("{what} {whom}"));
        assert_eq!(belongs("Bob <Bob@X.org>").as_deref(), Some("domain x.org"));
        assert_eq!(belongs("https://x.org/a?b").as_deref(), Some("host x.org"));
        assert_eq!(belongs("/home/ann/docs/a.txt").as_deref(), Some("folder home/ann"));
        assert_eq!(belongs("see you at 3/4 past"), None);
        assert_eq!(belongs("budget"), None);
    }
}
