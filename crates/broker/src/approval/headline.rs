//! The first three lines of an approval text, each of at most 80 columns; some hosts show only these:
//!
//! - the action and its recipients
//! - the beginning of the text, the attachments, and the other arguments or their number, which is never omitted
//! - the reason
//!
//! Arguments cannot imitate the broker's part of a line: a value that is not one plain word is quoted.

use super::form::{COLUMNS, MARK, columns, cut};
use super::overview::{Argument, Meaning, Named, Overview, Value, is_address, is_runner, plain};
use super::text::{ApprovalView, quoted, without_middle, word};
use crate::json::{Node, NodeValue};
use crate::policy::Class;
use crate::visible;

const ACTION_COLUMNS: usize = 40;
/// The minimum part of the first name that is shown, in columns.
const NAME_COLUMNS_MIN: usize = 20;
const NAMES_MAX: usize = 16;
/// Keys of the value that best describes a call, without case and punctuation, best first.
const DESCRIPTIVE_KEYS: [&str; 10] =
    ["path", "filepath", "filename", "file", "url", "uri", "title", "subject", "name", "id"];

pub(super) struct Headline {
    pub(super) action: String,
    pub(super) text: String,
    pub(super) reason: String,
    pub(super) is_reason_whole: bool,
}

pub(super) fn headline(view: &ApprovalView<'_>, overview: &Overview<'_>, named: &[Named]) -> Headline {
    let choice = Choice::new(view.tool, overview, named);
    let reason = format!("Asked because: {}", visible::line(&reason(view)));
    Headline {
        action: action_line(view, &choice),
        text: text_line(overview, &choice),
        is_reason_whole: columns(&reason) <= COLUMNS,
        reason: cut(&reason, COLUMNS),
    }
}

/// The values that the first two lines show; the others are counted.
struct Choice<'a> {
    names: Vec<&'a Named>,
    /// Shown if no names exist: the code to run, or the subject of the call.
    object: Option<&'a Value>,
    pub(super) text: Option<&'a Value>,
}

impl<'a> Choice<'a> {
    fn new(tool: &str, overview: &'a Overview<'_>, named: &'a [Named]) -> Self {
        let mut names: Vec<&Named> = named.iter().filter(|named| !named.is_label).collect();
        names.sort_by_key(|named| (!overview.is_shown(named.argument), named.meaning));
        let values = || overview.values.iter().filter(|value| overview.is_shown(value.argument));
        let is_addressed = names.first().is_some_and(|first| first.meaning.is_addressed());
        let code = values().filter(|value| matches!(value.meaning, Meaning::Code(_)) && value.is_string);
        let code = code.min_by_key(|value| value.meaning).filter(|_| is_runner(tool) || !is_addressed);
        if let Some(code) = code {
            // Code that is too long for the first line gets the whole second line.
            let is_short = columns(&format!("{}: {}?", action(tool), word(&code.text))) <= COLUMNS
                && !code.text.contains('\n');
            let object = Some(code).filter(|_| is_short);
            let text = if is_short { text(values(), object) } else { Some(code) };
            return Self { names: Vec::new(), object, text };
        }
        let object = if names.is_empty() { most_descriptive(values()) } else { None };
        Self { text: text(values(), object), names, object }
    }

    /// Whether the first two lines show or count this value; attachments are counted too.
    pub(super) fn covers(&self, value: &Value) -> bool {
        let is_same = |shown: Option<&Value>| shown.is_some_and(|shown| std::ptr::eq(shown, value));
        let is_name = value.meaning.is_named() && !value.is_truth_value;
        let is_named = is_name && (value.is_label || !self.names.is_empty());
        is_named || value.meaning == Meaning::Attachment || is_same(self.object) || is_same(self.text)
    }
}

/// The action and its recipients, the size of the text, and the tool. If it does not fit, omits the size, then the tool, then
/// further names.
fn action_line(view: &ApprovalView<'_>, choice: &Choice<'_>) -> String {
    let action = cut(&action(view.tool), ACTION_COLUMNS);
    let tool = format!("{}/{}", word(view.body), word(view.tool));
    // After code it could pass for the size of the code.
    let is_code = choice.object.is_some_and(|object| matches!(object.meaning, Meaning::Code(_)));
    let size = choice.text.filter(|_| !is_code).map(|text| size(&text.text));
    let is_addressed = choice.names.first().is_some_and(|first| first.meaning.is_addressed());
    let is_sent = is_addressed && view.class != Class::Destructive.name();
    let between = if is_sent { " to " } else { ": " };
    let start = |object: &str| match object {
        "" => format!("{action}?"),
        object => format!("{action}{between}{object}?"),
    };
    let values: Vec<&str> = match choice.object {
        Some(value) => vec![value.text.as_str()],
        None => choice.names.iter().map(|named| named.value.as_str()).collect(),
    };
    let names: Vec<String> = values.iter().map(|value| word(value)).collect();
    let most = names.len().min(NAMES_MAX);
    for shown in (1..=most).rev().chain(names.is_empty().then_some(0)) {
        let start = start(&listed(&names, shown));
        let all = size.as_ref().map(|size| format!("{start} {size}, {tool}"));
        // Omitting names does not make room for a size.
        let all = all.filter(|_| shown == names.len());
        let fitting = [all, Some(format!("{start} {tool}")), Some(start)];
        if let Some(line) = fitting.into_iter().flatten().find(|line| columns(line) <= COLUMNS) {
            return line;
        }
    }
    // A single name is too long.
    let more = if names.len() > 1 { format!(" and {} more", names.len() - 1) } else { String::new() };
    let around = columns(&start(&format!("{MARK}{more}"))) - columns(MARK);
    let room = COLUMNS.saturating_sub(around).max(NAME_COLUMNS_MIN);
    let first = values.first().copied().unwrap_or_default();
    cut(&start(&format!("{}{more}", without_middle(first, room))), COLUMNS)
}

fn listed(names: &[String], shown: usize) -> String {
    let first: Vec<&str> = names.iter().take(shown).map(String::as_str).collect();
    let more = names.len() - first.len();
    match first.split_last() {
        None => String::new(),
        Some(_) if more > 0 => format!("{} and {more} more", first.join(", ")),
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
    }
}

/// The action of a tool by its name: `send_email` and `sendEmail` become "Send email".
fn action(tool: &str) -> String {
    let mut words = String::new();
    let mut before = ' ';
    let mut rest = tool.chars().peekable();
    while let Some(c) = rest.next() {
        let starts = c.is_uppercase() && before.is_lowercase();
        if (starts || !c.is_alphanumeric()) && !words.is_empty() && !words.ends_with(' ') {
            words.push(' ');
        }
        if c.is_alphanumeric() {
            // A word in capitals stays unchanged.
            let is_capital =
                c.is_uppercase() && (before.is_uppercase() || rest.peek().is_some_and(|c| c.is_uppercase()));
            if is_capital { words.push(c) } else { words.extend(c.to_lowercase()) }
        }
        before = c;
    }
    let words = words.trim_end();
    let mut rest = words.chars();
    match rest.next() {
        Some(first) => first.to_uppercase().chain(rest).collect(),
        None => "Call".to_owned(),
    }
}

fn most_descriptive<'a>(values: impl Iterator<Item = &'a Value>) -> Option<&'a Value> {
    let ranked = values.filter_map(|value| {
        let rank = DESCRIPTIVE_KEYS.iter().position(|key| *key == plain(&value.key))?;
        let is_shown = value.is_string || !matches!(&*value.text, "true" | "false");
        is_shown.then_some((value.is_nested, rank, value))
    });
    ranked.min_by_key(|(is_nested, rank, _)| (*is_nested, *rank)).map(|(.., value)| value)
}

/// The text argument: by its key, else by the key of its container, else the longest string.
fn text<'a>(values: impl Iterator<Item = &'a Value>, object: Option<&Value>) -> Option<&'a Value> {
    let ranked = values.filter_map(|value| {
        let is_object = object.is_some_and(|object| std::ptr::eq(object, value));
        let rank = match value.meaning {
            _ if is_object || !value.is_string => return None,
            Meaning::Text(rank) => (0, rank),
            Meaning::Code(rank) => (1, rank),
            Meaning::Other if value.is_in_text => (2, 0),
            Meaning::Other => (3, 0),
            _ => return None,
        };
        Some((rank, std::cmp::Reverse(value.text.len()), value))
    });
    ranked.min_by_key(|(rank, length, _)| (*rank, *length)).map(|(.., value)| value)
}

/// The size of a text: its lines, or the characters of a single line.
fn size(text: &str) -> String {
    let (count, unit) = match text.lines().count() {
        0 | 1 => (text.chars().count(), "character"),
        lines => (lines, "line"),
    };
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {unit}{plural}", grouped(count))
}

fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn reason(view: &ApprovalView<'_>) -> String {
    if !view.reason.is_empty() {
        return view.reason.to_owned();
    }
    let class = Class::ALL.into_iter().find(|class| class.name() == view.class);
    class.map_or("a person must decide", Class::why_asked).to_owned()
}

/// The minimum width of a text, if it needs that much.
const TEXT_COLUMNS: usize = 30;
/// The maximum width of another argument, and the maximum number of them.
const OTHER_COLUMNS: usize = 44;
const OTHERS_MAX: usize = 8;
const FILE_COLUMNS: usize = 28;
const FILE_KEYS: [&str; 8] = ["path", "filepath", "filename", "file", "name", "url", "uri", "id"];

fn text_line(overview: &Overview<'_>, choice: &Choice<'_>) -> String {
    let files = attachments(overview);
    let (shown, count) = others(overview, choice);
    let text = choice.text.map(|text| text.text.as_str());
    let least = text.map_or(0, |text| columns(&beginning(text, TEXT_COLUMNS)));
    // As many of the others as fit next to the text.
    for number in (0..=shown.len()).rev() {
        let more = match count - number {
            0 => None,
            1 => Some("+1 other argument".to_owned()),
            more => Some(format!("+{more} other arguments")),
        };
        let rest: Vec<&str> =
            files.iter().chain(shown.iter().take(number)).chain(&more).map(String::as_str).collect();
        let rest = rest.join(", ");
        let between = if text.is_some() && !rest.is_empty() { ", " } else { "" };
        let room = COLUMNS.saturating_sub(columns(&rest) + columns(between));
        if room >= least || number == 0 {
            let start = text.map(|text| beginning(text, room)).unwrap_or_default();
            return match (start.is_empty(), overview.values.is_empty()) {
                (true, true) => "No arguments".to_owned(),
                (true, false) if rest.is_empty() => "No other arguments".to_owned(),
                _ => format!("{start}{between}{rest}"),
            };
        }
    }
    String::new()
}

fn beginning(text: &str, most: usize) -> String {
    // Start with the maximum number of characters that can fit.
    let mut start: String = text.chars().take(most).collect();
    loop {
        let mark = if start.len() < text.len() { MARK } else { "" };
        let line = format!("{}{mark}", quoted(&start));
        if columns(&line) <= most || start.pop().is_none() {
            return line;
        }
    }
}

/// The number of attachments, and the name if there is one.
fn attachments(overview: &Overview<'_>) -> Option<String> {
    let is_attached = |index: usize| {
        overview.values.iter().any(|value| value.argument == index && value.meaning == Meaning::Attachment)
    };
    let attached = overview.arguments.iter().enumerate().filter(|(index, _)| is_attached(*index));
    let count: usize = attached
        .map(|(_, argument)| match &argument.node.value {
            NodeValue::Array(items) => items.len(),
            _ => 1,
        })
        .sum();
    if count != 1 {
        return (count > 0).then(|| format!("{count} attachments"));
    }
    let files =
        overview.values.iter().filter(|value| value.meaning == Meaning::Attachment && value.is_string);
    let is_name =
        |key: &str| FILE_KEYS.contains(&plain(key).as_str()) || Meaning::of(key) == Meaning::Attachment;
    let name = files
        .filter(|value| is_name(&value.key))
        .map(|value| without_middle(&value.text, FILE_COLUMNS))
        .next();
    Some(name.map_or_else(|| "1 attachment".to_owned(), |name| format!("1 attachment: {name}")))
}

/// Arguments not shown so far, those with an address first, and their number.
fn others(overview: &Overview<'_>, choice: &Choice<'_>) -> (Vec<String>, usize) {
    let of = |index: usize| overview.values.iter().filter(move |value| value.argument == index);
    let is_other = |index: &usize| of(*index).any(|value| !choice.covers(value));
    let mut indices: Vec<usize> = (0..overview.arguments.len()).filter(is_other).collect();
    let count = indices.len();
    indices.retain(|index| overview.is_shown(*index));
    indices.sort_by_cached_key(|index| {
        !of(*index).any(|value| value.meaning.is_named() || is_address(&value.text))
    });
    let shown = |index: &usize| {
        // A longer one cannot fit.
        let Argument { key, node: Node { json, .. }, .. } = overview.arguments.get(*index)?;
        (json.len() <= 4 * OTHER_COLUMNS).then(|| format!("{}: {}", quoted(key), visible::line(json)))
    };
    let mut all: Vec<String> = indices.iter().filter_map(shown).collect();
    all.retain(|other| columns(other) <= OTHER_COLUMNS);
    all.truncate(OTHERS_MAX);
    (all, count)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn subject<'a>(tool: &'a str, args: &'a str) -> ApprovalView<'a> {
        ApprovalView {
            user: "ann",
            agent: "assistant",
            channel: "stdio",
            body: "mail",
            tool,
            class: "human_visible_write",
            args,
            declared: &[],
            reason: "",
            flags: &[],
        }
    }

    fn lines(subject: &ApprovalView<'_>) -> [String; 3] {
        let args = Node::parse(subject.args).unwrap();
        let overview = Overview::new(Some(&args), subject.declared);
        let Headline { action, text, reason, .. } =
            headline(subject, &overview, &super::super::overview::named(&overview));
        [action, text, reason]
    }

    #[test]
    fn a_tool_is_what_it_does() {
        for (tool, expected) in [
            ("send_email", "Send email"),
            ("create-issue", "Create issue"),
            ("deleteFile", "Delete file"),
            ("mail.send", "Mail send"),
            ("getURL", "Get URL"),
            ("__x__", "X"),
            ("send? ann, x/y", "Send ann x y"),
            ("…", "Call"),
            ("", "Call"),
        ] {
            assert_eq!(action(tool), expected, "{tool}");
        }
    }

    #[test]
    fn the_first_line_says_what_happens_and_to_whom() {
        let many: Vec<String> = (1..=30).map(|number| format!("person{number}@example.com")).collect();
        let many = serde_json::json!({"to": many, "body": "a\nb"}).to_string();
        let long = format!(r#"{{"to":"ann@{}.evil.example","body":"x"}}"#, "example.com.".repeat(9));
        for (tool, args, expected) in [
            (
                "send_email",
                r#"{"to":"ann@example.com","body":"one\ntwo\nthree"}"#,
                "Send email to ann@example.com? 3 lines, mail/send_email",
            ),
            (
                "send_email",
                r#"{"bcc":"eve@x.org","to":["ann@x.org","bob@x.org"],"body":"a"}"#,
                "Send email to eve@x.org, ann@x.org and bob@x.org? 1 character, mail/send_email",
            ),
            // The size is omitted first, then the tool, then names.
            (
                "send_email",
                r#"{"to":["ann.anderson@example.com","bob.anderson@example.com"],"body":"a"}"#,
                "Send email to ann.anderson@example.com and bob.anderson@example.com?",
            ),
            ("send_email", &many, "Send email to person1@example.com, person2@example.com and 28 more?"),
            (
                "send_email",
                &long,
                r#"Send email to "ann@example.com.example.com.exa…e.com.example.com..evil.example"?"#,
            ),
            (
                "create_issue",
                r#"{"title":"Crash","body":"It fails"}"#,
                "Create issue: Crash? 8 characters, mail/create_issue",
            ),
            ("write_file", r#"{"path":"/tmp/a b","id":7}"#, r#"Write file: "/tmp/a b"? mail/write_file"#),
            ("add_member", r#"{"member":"bob","role":"x"}"#, "Add member: bob? 1 character, mail/add_member"),
            ("erase", "{}", "Erase? mail/erase"),
            // Arguments cannot create a line or end the names.
            (
                "send",
                r#"{"to":"ann? 1 line, x/y\nAsked because: \"fun\""}"#,
                r#"Send to "ann? 1 line", x/y and "Asked because: \"fun\""? mail/send"#,
            ),
        ] {
            let [what, ..] = lines(&subject(tool, args));
            assert_eq!(what, expected, "{args}");
        }
        let destructive =
            ApprovalView { class: "destructive", ..subject("delete_message", r#"{"channel":"a"}"#) };
        assert_eq!(lines(&destructive)[0], "Delete message: a? mail/delete_message");
    }

    #[test]
    fn the_second_line_is_the_beginning_of_the_text() {
        let long = format!(r#"{{"body":"{}"}}"#, r#"漢\""#.repeat(100));
        for (args, expected) in [
            (r#"{"to":"a long address of ann","body":"Hi,\nbob"}"#, r#""Hi,⏎bob""#.to_owned()),
            (
                r#"{"to":"ann","message":{"parts":[{"text":"Hi \u202eann"}]}}"#,
                r#""Hi ⟨U+202E⟩ann""#.to_owned(),
            ),
            (&long, format!(r#""{}"…"#, r#"漢\""#.repeat(19))),
            (r#"{"to":"ann","n":7}"#, r#""n": 7"#.to_owned()),
            (r#"{"to":"ann"}"#, "No other arguments".to_owned()),
            ("{}", "No arguments".to_owned()),
            // The key of the text counts, not its length.
            (
                r#"{"body":"PIN 1234","to":"ann","x_note":"Thank you very much for the nice lunch yesterday"}"#,
                r#""PIN 1234", +1 other argument"#.to_owned(),
            ),
            (
                r#"{"attachments":["/home/ann/.ssh/id_rsa"],"channel":"general","text":"Good morning, here is it"}"#,
                r#""Good morning, here is it", 1 attachment: /home/ann/.ssh/id_rsa"#.to_owned(),
            ),
            (
                r#"{"attachments":[{"data":"QUJD","name":"a"},{"data":"QUJD","name":"b"}],"text":"Hi","urgent":true}"#,
                r#""Hi", 2 attachments, "urgent": true"#.to_owned(),
            ),
            // Hidden arguments are counted; arguments with an address come first.
            (
                r#"{"a":1,"b":[1,2],"from":"me@example.com","text":"A text of about thirty-six columns","to":"ann"}"#,
                r#""A text of about thirty-six colu"…, "from": "me@example.com", "a": 1, "b": [1,2]"#
                    .to_owned(),
            ),
            (
                r#"{"content":[{"text":"one","type":"text"},{"text":"two","type":"text"}]}"#,
                r#""one", +1 other argument"#.to_owned(),
            ),
        ] {
            assert_eq!(lines(&subject("send", args))[1], expected, "{args}");
        }
    }

    // spec: N-10
    #[test]
    fn nothing_hides_who_gets_it_or_what_is_run() {
        let comment = "Shows the first lines of the readme of this project, nothing else happens here";
        let shell =
            format!(r#"{{"command":"rm -rf ~","comment":"{comment}","path":"README.md","user":"ann"}}"#);
        let long = format!(r#"{{"command":"echo {} && rm -rf ~","path":"README.md"}}"#, "a".repeat(80));
        for (tool, args, what, text) in [
            (
                "send_email",
                r#"{"bcc_emails":["eve@evil.example"],"body":"Numbers","to":"ann@example.com"}"#,
                "Send email to eve@evil.example and ann@example.com? mail/send_email",
                r#""Numbers""#,
            ),
            (
                "send_email",
                r#"{"body":"Hi","subject":"Lunch","to_emails":["eve@evil.example"]}"#,
                "Send email to eve@evil.example? 2 characters, mail/send_email",
                r#""Hi", "subject": "Lunch""#,
            ),
            (
                "send_email",
                r#"{"body":"Hi","to":"ann@example.com, eve@evil.example, mallory@evil.example, zoe@evil.example, ann@example.com"}"#,
                "Send email to ann@example.com, eve@evil.example and 3 more? mail/send_email",
                r#""Hi""#,
            ),
            (
                "send_email",
                r#"{"assignee":"ann.long.and.trusted.name@example.com","body":"Hi","channel":"our-own-internal-team-channel","to":"eve@evil.example"}"#,
                "Send email to eve@evil.example, our-own-internal-team-channel and 1 more?",
                r#""Hi""#,
            ),
            (
                "send",
                r#"{"body":"Hi","target":"eve@evil.example","to":"ann"}"#,
                "Send to ann? 2 characters, mail/send",
                r#""Hi", "target": "eve@evil.example""#,
            ),
            (
                "run_shell",
                &shell,
                r#"Run shell: "rm -rf ~"? mail/run_shell"#,
                r#""Shows the first lines of the readme of th"…, "user": "ann", "path": "README.md""#,
            ),
            (
                "run_shell",
                &long,
                "Run shell? 97 characters, mail/run_shell",
                r#""echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"…, "path": "README.md""#,
            ),
            // A tool that sends does not run code.
            (
                "send_email",
                r#"{"body":"IBAN","code":"rm","to":"eve"}"#,
                "Send email to eve? 4 characters, mail/send_email",
                r#""IBAN", "code": "rm""#,
            ),
        ] {
            let [shown_what, shown_text, _] = lines(&subject(tool, args));
            assert_eq!((shown_what.as_str(), shown_text.as_str()), (what, text), "{args}");
        }
    }

    // spec: N-10
    #[test]
    fn what_the_schema_does_not_declare_is_counted_but_not_shown() {
        let args = r#"{"body":"A decoy","cc":"zoe","note":"IBAN","path":"x","to":"ann","to_emails":["eve"]}"#;
        let declared = ["to_emails", "note", "subject"].map(str::to_owned);
        let [what, text, _] = lines(&ApprovalView { declared: &declared, ..subject("send_email", args) });
        assert_eq!(what, "Send email to eve, zoe and ann? 4 characters, mail/send_email");
        assert_eq!(text, r#""IBAN", +2 other arguments"#);
        // If none of them is declared, all are shown.
        let other = ["x".to_owned()];
        let all = lines(&ApprovalView { declared: &other, ..subject("send_email", args) });
        assert_eq!(all, lines(&subject("send_email", args)));
    }

    /// The number before a word of a line; 0 if absent.
    fn counted(line: &str, before: &str) -> usize {
        let start = line.split(before).next().filter(|start| start.len() < line.len());
        let number = start.and_then(|start| start.rsplit([' ', '+']).next());
        number.and_then(|number| number.parse().ok()).unwrap_or(0)
    }

    #[test]
    fn the_third_line_says_why() {
        for (class, reason, expected) in [
            ("human_visible_write", "", "Asked because: other people will see it"),
            ("destructive", "", "Asked because: it cannot be undone"),
            ("write", "", "Asked because: it changes data"),
            ("write", "money\nleaves", "Asked because: money⏎leaves"),
        ] {
            assert_eq!(lines(&ApprovalView { class, reason, ..subject("x", "{}") })[2], expected);
        }
        let long = "x".repeat(100);
        let cut =
            headline(&ApprovalView { reason: &long, ..subject("x", "{}") }, &Overview::new(None, &[]), &[]);
        assert!(
            !cut.is_reason_whole && cut.reason == format!("Asked because: {}…", "x".repeat(64)),
            "{}",
            cut.reason
        );
    }

    proptest! {
        // spec: N-10
        #[test]
        fn every_address_is_shown_or_counted(
            people in prop::collection::btree_map(
                "to|cc|bcc_emails|toEmails|recipient_list|channel|user|shared_with|forward-to",
                prop::collection::vec("[a-z]{4,8}@[a-z]{4,8}[.]example", 1..6),
                0..4,
            ),
            others in prop::collection::btree_map(
                "from|body|text|x_note|path|command|[a-z]{3,9}",
                "[a-z]{4,8}@[a-z]{4,8}[.]test",
                0..6,
            ),
            is_joined: bool,
            declared in prop::collection::vec("to|cc|body|text|from|user", 0..4),
        ) {
            let people = people.iter().map(|(key, names)| {
                let value = if is_joined { names.join(", ").into() } else { serde_json::json!(names) };
                (key.clone(), value)
            });
            let others = others.iter().map(|(key, name)| (key.clone(), name.clone().into()));
            let members: serde_json::Map<String, serde_json::Value> = others.chain(people).collect();
            let args = serde_json::json!(members).to_string();
            let lines = lines(&ApprovalView { declared: &declared, ..subject("send_email", &args) });
            let all = lines.join("\n");
            // A counted argument includes everything in it.
            let hidden = members.values().map(|value| {
                let value = value.to_string();
                let addresses = value.split(|c: char| !c.is_ascii_alphanumeric() && !"@.".contains(c));
                addresses.filter(|word| word.contains('@') && !all.contains(word)).count()
            });
            let mut hidden: Vec<usize> = hidden.collect();
            hidden.sort_unstable_by(|one, other| other.cmp(one));
            let left: usize = hidden.iter().skip(counted(&lines[1], " other argument")).sum();
            prop_assert!(left <= counted(&lines[0], " more?"), "{hidden:?}\n{args}\n{all}");
        }

        #[test]
        fn no_line_is_wider_than_80_columns_or_broken(
            to in prop::collection::vec("\\PC{0,60}|[a-z@.]{1,40}", 0..5),
            text in "(\\PC|\n){0,120}",
            tool in "\\PC{0,60}",
            reason in "(\\PC|\n){0,120}",
        ) {
            let args = serde_json::json!({"to": to, "text": text, "path": text}).to_string();
            for line in lines(&ApprovalView { reason: &reason, ..subject(&tool, &args) }) {
                prop_assert!(columns(&line) <= COLUMNS && !line.contains('\n'), "{line}");
            }
        }
    }
}
