//! Every value of the arguments, its meaning by the words of its key (`bcc_emails`, `toEmails` and `bccemails` name recipients),
//! and the recipients that they name, at any depth. A heuristic that only decides what is shown first: a body may reach others
//! that no argument names.

use super::text::{quoted, quoted_recipient};
use crate::json::{Node, NodeValue};
use crate::visible;

/// Keys that describe a recipient besides the address.
const LABELS: [&str; 5] = ["name", "displayname", "firstname", "lastname", "label"];

/// The arguments. A member counts as one argument, unless it is an object: then its members count.
pub(super) struct Overview<'a> {
    pub(super) arguments: Vec<Argument<'a>>,
    pub(super) values: Vec<Value>,
    has_declared: bool,
}

pub(super) struct Argument<'a> {
    pub(super) key: String,
    pub(super) node: &'a Node<'a>,
    is_declared: bool,
}

/// One string, number or boolean that is neither empty nor `null`.
pub(super) struct Value {
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
    pub(super) is_in_text: bool,
    pub(super) is_nested: bool,
}

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
    /// `declared` are the keys that the tool's schema declares; empty if unknown.
    pub(super) fn new(args: Option<&'a Node<'a>>, declared: &[String]) -> Self {
        let mut overview = Self { arguments: Vec::new(), values: Vec::new(), has_declared: false };
        if let Some(NodeValue::Object(members)) = args.map(|args| &args.value) {
            for (key, value) in members {
                let is_declared = declared.iter().any(|name| *name == **key);
                overview.add_member(key, value, &Context::at_top(is_declared), false);
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

    fn add_member<'k>(&mut self, key: &'k str, node: &'a Node<'a>, outer: &Context<'k>, has_address: bool) {
        let mut context = outer.of_member(key, has_address.then_some(node));
        if context.argument.is_none() && !node.json.starts_with('{') {
            context.argument = Some(self.arguments.len());
            self.arguments.push(Argument { key: key.to_owned(), node, is_declared: context.is_declared });
        }
        self.add_value(node, &context);
    }

    fn add_value(&mut self, node: &'a Node<'a>, context: &Context<'_>) {
        let (text, is_string) = match &node.value {
            NodeValue::Object(members) => {
                let has_address = members.iter().any(|(_, value)| is_address_node(value));
                for (key, value) in members {
                    self.add_member(key, value, context, has_address);
                }
                return;
            }
            NodeValue::Array(items) => {
                return items.iter().for_each(|item| self.add_value(item, context));
            }
            NodeValue::Text(text) if !text.is_empty() => (text.to_string(), true),
            NodeValue::Plain(plain) if plain.get() != "null" => (plain.get().to_owned(), false),
            NodeValue::Text(_) | NodeValue::Plain(_) | NodeValue::Unreadable => return,
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
    fn of_member(&self, key: &'k str, beside_address: Option<&Node<'_>>) -> Self {
        let own = Meaning::of(key);
        let is_kept = match self.meaning {
            Meaning::Recipient => true,
            Meaning::Place | Meaning::Person => {
                own >= self.meaning && (own.is_named() || own == Meaning::Other && is_form_of_name(key))
            }
            Meaning::Attachment => !own.is_named(),
            _ => false,
        };
        let is_label_of = |node: &Node<'_>| LABELS.contains(&plain(key).as_str()) && !is_address_node(node);
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

fn is_address_node(node: &Node<'_>) -> bool {
    matches!(&node.value, NodeValue::Text(text) if is_address(text))
}

const SEPARATORS: [char; 9] = [',', ';', '\n', '\r', '\t', '|', '，', '；', '、'];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    key: String,
    /// A string, or a number as written.
    pub(super) value: String,
    is_text: bool,
    pub(super) meaning: Meaning,
    pub(super) is_label: bool,
    pub(super) argument: usize,
}

impl Named {
    /// `key: "value"`, made visible.
    pub(super) fn display(&self) -> String {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let key = if self.key.chars().all(is_plain) { self.key.clone() } else { quoted(&self.key) };
        let value = match self.is_text {
            true => quoted_recipient(&self.value),
            false => visible::line(&self.value).into_owned(),
        };
        format!("{key}: {value}")
    }
}

pub(super) fn named(overview: &Overview<'_>) -> Vec<Named> {
    let is_named = |value: &&Value| value.meaning.is_named() && !value.is_truth_value;
    let names = overview.values.iter().filter(is_named).flat_map(|value| {
        names(&value.text, value.meaning).into_iter().map(|name| Named {
            key: value.key.clone(),
            value: name,
            is_text: value.is_string,
            meaning: value.meaning,
            is_label: value.is_label,
            argument: value.argument,
        })
    });
    names.collect()
}

fn names(text: &str, meaning: Meaning) -> Vec<String> {
    let has_many = |text: &str| text.matches('@').count() > 1;
    if meaning != Meaning::Recipient && !has_many(text) {
        return vec![text.to_owned()];
    }
    if let Ok(list) = serde_json::from_str::<Vec<String>>(text) {
        return list.iter().flat_map(|item| names(item, meaning)).collect();
    }
    let is_address = |c: char| c.is_alphanumeric() || "@._+-%".contains(c);
    let mut found = Vec::new();
    for piece in text.split(SEPARATORS).map(str::trim).filter(|piece| !piece.is_empty()) {
        if !has_many(piece) {
            found.push(piece.to_owned());
            continue;
        }
        for word in piece.split_whitespace() {
            let parts = word.split(|c| has_many(word) && !is_address(c));
            found.extend(parts.filter(|part| !part.is_empty()).map(str::to_owned));
        }
    }
    if found.is_empty() { vec![text.to_owned()] } else { found }
}

/// Whether a text contains something like a mail address or a phone number.
pub(super) fn is_address(text: &str) -> bool {
    let is_mail = |word: &str| {
        word.split_once('@').is_some_and(|(before, after)| !before.is_empty() && !after.is_empty())
    };
    let is_phone = || {
        let digits = text.trim().strip_prefix('+').unwrap_or_default();
        let is_part = |c: char| c.is_ascii_digit() || " -().".contains(c);
        digits.chars().all(is_part) && digits.chars().filter(char::is_ascii_digit).count() > 6
    };
    text.split(|c: char| c.is_whitespace() || "<>\"".contains(c)).any(is_mail) || is_phone()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Meaning {
    Recipient,
    Place,
    /// A person that the call is about: a user, a member.
    Person,
    Attachment,
    Code(usize),
    Text(usize),
    Other,
}

const RECIPIENTS: [&str; 5] = ["cc", "bcc", "recipient", "addressee", "mailto"];
const PLACES: [&str; 6] = ["channel", "chat", "conversation", "room", "destination", "audience"];
const PEOPLE: [&str; 14] = [
    "group",
    "team",
    "member",
    "participant",
    "attendee",
    "invitee",
    "guest",
    "user",
    "assignee",
    "reviewer",
    "email",
    "mail",
    "phone",
    "handle",
];
const ATTACHMENTS: [&str; 4] = ["attachment", "attach", "attached", "enclosure"];
const CODE: [&str; 11] = [
    "command",
    "cmd",
    "script",
    "code",
    "sql",
    "shell",
    "program",
    "statement",
    "expression",
    "query",
    "javascript",
];
/// Prefixes of such a word: `shell_command`, but not `country_code`.
const CODE_KINDS: [&str; 9] = ["shell", "bash", "python", "sql", "source", "js", "run", "raw", "exec"];
const TEXTS: [&str; 13] = [
    "body",
    "text",
    "message",
    "content",
    "html",
    "markdown",
    "plaintext",
    "caption",
    "description",
    "comment",
    "reply",
    "note",
    "summary",
];
/// The form of a name, after the word for its owner: `user_id`, `channelName`.
const FORMS: [&str; 10] =
    ["id", "name", "list", "address", "email", "mail", "number", "handle", "key", "identifier"];
/// With these `to` is a limit or a format: `to_date`, `to_page`.
const LIMITS: [&str; 17] = [
    "date",
    "time",
    "timestamp",
    "day",
    "month",
    "year",
    "page",
    "line",
    "row",
    "column",
    "index",
    "offset",
    "version",
    "format",
    "currency",
    "unit",
    "in",
];
/// Words that are joined with others: `replyto`, `sharedwith`.
const JOINTS: [&str; 6] = ["to", "with", "share", "shared", "reply", "send"];
/// Tools with one of these in their name run code.
const RUNNERS: [&str; 12] = [
    "run", "exec", "execute", "eval", "shell", "bash", "terminal", "command", "script", "code", "sql",
    "query",
];

impl Meaning {
    pub(super) fn of(key: &str) -> Self {
        let words = split_words(key);
        let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
        let is_at_end = |wanted: &str| [words.first(), words.last()].contains(&Some(&wanted.to_owned()));
        let is_shared = has(&["share", "shared"]) && has(&["with"]);
        if has(&RECIPIENTS) || is_shared || is_at_end("to") && !has(&LIMITS) {
            return Self::Recipient;
        }
        if has(&ATTACHMENTS) {
            return Self::Attachment;
        }
        // The words before the forms determine the meaning; `email` alone is both.
        let end = words.iter().rposition(|word| !FORMS.contains(&word.as_str())).unwrap_or(0);
        let owner = words.get(end).map_or("", String::as_str);
        if PLACES.contains(&owner) {
            return Self::Place;
        }
        if PEOPLE.contains(&owner) {
            return Self::Person;
        }
        let rank = |list: &[&str], word: &str| list.iter().position(|known| *known == word);
        match words.as_slice() {
            [word] => rank(&CODE, word).map(Self::Code),
            [kind, word] if CODE_KINDS.contains(&kind.as_str()) => rank(&CODE, word).map(Self::Code),
            _ => None,
        }
        .or_else(|| rank(&TEXTS, words.last()?).map(Self::Text))
        .unwrap_or(Self::Other)
    }

    pub(super) fn is_named(self) -> bool {
        self <= Self::Person
    }

    pub(super) fn is_addressed(self) -> bool {
        self <= Self::Place
    }
}

/// Whether a key is the form of a name: `id`, `emailAddress`.
fn is_form_of_name(key: &str) -> bool {
    split_words(key).last().is_some_and(|word| FORMS.contains(&word.as_str()))
}

pub(super) fn is_runner(tool: &str) -> bool {
    split_words(tool).iter().any(|word| RUNNERS.contains(&word.as_str()))
}

/// A key without case and punctuation.
pub(super) fn plain(key: &str) -> String {
    let plain: String = key.chars().filter(char::is_ascii_alphanumeric).collect();
    plain.to_ascii_lowercase()
}

/// The words of a key in lower case; known ones in the singular.
fn split_words(key: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for c in key.chars() {
        let starts = c.is_ascii_uppercase() && !before.is_ascii_uppercase();
        if starts || !c.is_ascii_alphanumeric() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_ascii_alphanumeric()) {
            word.push(c.to_ascii_lowercase());
        }
        before = c;
    }
    words.into_iter().filter(|word| !word.is_empty()).flat_map(separated).collect()
}

/// Splits a word into known words; leaves any other unchanged.
fn separated(word: String) -> Vec<String> {
    fn split(rest: &str, most: usize) -> Option<Vec<String>> {
        if let Some(known) = singular(rest) {
            return Some(vec![known]);
        }
        // Longest first: `bccemails` has no `b` before its `cc`.
        (2..rest.len()).rev().filter(|_| most > 0).find_map(|length| {
            let (start, end) = (singular(rest.get(..length)?)?, rest.get(length..)?);
            let mut words = split(end, most - 1)?;
            words.insert(0, start);
            Some(words)
        })
    }
    // No key of this kind is longer.
    let parts = if word.len() <= 32 { split(&word, 2) } else { None };
    parts.unwrap_or_else(|| vec![word])
}

/// The singular of a known word.
fn singular(word: &str) -> Option<String> {
    let lists: [&[&str]; 9] =
        [&RECIPIENTS, &PLACES, &PEOPLE, &ATTACHMENTS, &CODE, &TEXTS, &FORMS, &LIMITS, &JOINTS];
    let is_known = |word: &&str| lists.iter().any(|list| list.contains(word));
    let singular = [Some(word), word.strip_suffix('s'), word.strip_suffix("es")];
    singular.into_iter().flatten().find(is_known).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: N-10
    #[test]
    fn those_that_the_arguments_name_are_found() {
        for (args, expected) in [
            (r#"{"to":"bob@x.org","text":"hi"}"#, &[r#"to: "bob@x.org""#][..]),
            (r#"{"to":"bоb@x.org"}"#, &[r#"to: "b⟨U+043E⟩b@x.org""#]),
            (r#"{"To":["a","b"],"bcc":"c"}"#, &[r#"To: "a""#, r#"To: "b""#, r#"bcc: "c""#]),
            (r#"{"chat_id":-100123456789012345678901}"#, &["chat_id: -100123456789012345678901"]),
            (
                r#"{"message":{"toRecipients":[{"emailAddress":{"address":"bob@x.org","name":"Bob"}}]}}"#,
                &[r#"toRecipients: "bob@x.org""#, r#"toRecipients: "Bob""#],
            ),
            (r#"{"channel":"a\"b\nto: c\u202e"}"#, &[r#"channel: "a\"b⏎to: c⟨U+202E⟩""#]),
            (r#"{"to: \"б\"":"x"}"#, &[r#""to: \"б\"": "x""#]),
            (r#"{"to":"","cc":[],"bcc":null,"user":true}"#, &[]),
            (r#"{"text":"to: bob","total":3,"tomorrow":"x"}"#, &[]),
            // A wrapper is not a name.
            (r#"{"email":{"to":"bob","body":"Hi","subject":"x"}}"#, &[r#"to: "bob""#]),
            (r#"{"requests":[{"user":{"bcc":"eve"}}]}"#, &[r#"bcc: "eve""#]),
        ] {
            let args_node = Node::parse(args).unwrap();
            let shown: Vec<String> =
                named(&Overview::new(Some(&args_node), &[])).iter().map(Named::display).collect();
            assert_eq!(shown, expected, "{args}");
        }
    }

    #[test]
    fn every_name_in_a_string_counts() {
        for (text, expected) in [
            ("ann@x.org", &["ann@x.org"][..]),
            ("ann, bob;zoe\nmax", &["ann", "bob", "zoe", "max"]),
            ("Ann Lee <ann@x.org>", &["Ann Lee <ann@x.org>"]),
            ("ann@x.org eve@y.org", &["ann@x.org", "eve@y.org"]),
            ("ann@x.org/eve@y.org", &["ann@x.org", "eve@y.org"]),
            (r#"["ann@x.org","bob, eve"]"#, &["ann@x.org", "bob", "eve"]),
            (",", &[","]),
        ] {
            assert_eq!(names(text, Meaning::Recipient), expected, "{text}");
        }
        assert_eq!(names("Lee, Ann", Meaning::Person), ["Lee, Ann"]);
        assert_eq!(names("a@x.org, b@x.org", Meaning::Person), ["a@x.org", "b@x.org"]);
    }

    #[test]
    fn addresses_are_seen() {
        for text in ["ann@x.org", "Ann <ann@x.org>", "+49 170 1234567", "write to ann@x"] {
            assert!(is_address(text), "{text}");
        }
        for text in ["", "ann", "@", "a @ b", "+1", "1234567", "+x"] {
            assert!(!is_address(text), "{text}");
        }
    }

    #[test]
    fn a_key_is_read_by_its_words() {
        use Meaning::{Attachment, Other, Person, Place, Recipient};
        for (keys, expected) in [
            (
                "to To cc bcc bcc_emails toEmails to_emails recipient_list recipientIDs forward_to sendTo replyto \
                 reply_to torecipients toaddresses bccaddresses ccList to-address email_to shared_with sharewith \
                 BCC_EMAILS message.to",
                Recipient,
            ),
            ("channel channels channelid channel_name chat_id conversationId slack_channel rooms", Place),
            ("user users user_ids username emailaddress email phone_number assignee teams userEmail", Person),
            ("attachments attachment_ids attachedFiles", Attachment),
            (
                "total tomorrow to_date up_to_page in_reply_to channel_type user_agent from address name id",
                Other,
            ),
            ("reply_to_message_id country_code zip_code content_type x date_to", Other),
        ] {
            for key in keys.split_whitespace() {
                assert_eq!(Meaning::of(key), expected, "{key}");
            }
        }
        assert_eq!(Meaning::of("shell_command"), Meaning::Code(0));
        assert!(Meaning::of("command") < Meaning::of("sql") && Meaning::of("sql") < Meaning::of("body"));
        assert!(Meaning::of("textBody") < Meaning::of("html") && Meaning::of("html") < Meaning::of("x_note"));
        assert!(is_runner("run_shell") && is_runner("executeSQL") && !is_runner("send_email"));
    }
}
