//! The first three lines of what a person reads, each of at most 80 columns: what happens and to whom, the beginning of
//! the text, and why they are asked. Some hosts show no more than these.
//!
//! Nothing in the arguments can pass for a part of a line that is ours: a value that is not one plain word stands in
//! quotation marks.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::argument::{Part, quoted, quoted_recipient};
use super::audience::{self, Named};
use super::form::COLUMNS;
use super::words::Subject;
use crate::policy::Class;
use crate::visible;

/// The longest action, in columns.
const ACTION: usize = 40;
/// The least of the first name that is shown, in columns.
const SHORTEST_NAME: usize = 20;
/// The most names.
const NAMES: usize = 16;
/// Keys of the value that tells best what a call is about, without case and punctuation, best first.
const TELLING: [&str; 12] = [
    "path", "filepath", "filename", "file", "url", "uri", "title", "subject", "name", "query", "command",
    "id",
];
const MARK: &str = "…";

/// The first three lines.
pub(super) struct Headline {
    pub(super) what: String,
    pub(super) text: String,
    pub(super) why: String,
    /// Whether the last line holds the whole reason.
    pub(super) is_reason_whole: bool,
}

pub(super) fn headline(subject: &Subject<'_>, named: &[Named]) -> Headline {
    let members = match Part::read(subject.args) {
        Some(Part::Object(members)) => members.into_iter().map(|(key, value)| (key, value.get())).collect(),
        _ => Vec::new(),
    };
    let telling = if named.is_empty() { telling(&members) } else { None };
    let text = longest_text(&members, telling.as_ref().map(|(key, _)| key.as_str()));
    let why = format!("Asked because: {}", visible::line(&reason(subject)));
    Headline {
        what: what(subject, named, telling.as_ref().map(|(_, value)| value.as_str()), text.as_deref()),
        text: text.as_deref().map_or_else(|| first_arguments(&members), beginning),
        is_reason_whole: why.width() <= COLUMNS,
        why: cut(&why, COLUMNS),
    }
}

/// What happens and to whom, how long the text is, and which tool does it. What does not fit is left out in the order
/// size, tool, names after the first.
fn what(subject: &Subject<'_>, named: &[Named], telling: Option<&str>, text: Option<&str>) -> String {
    let action = cut(&action(subject.tool), ACTION);
    let tool = format!("{}/{}", word(subject.body), word(subject.tool));
    let size = text.map(size);
    let is_sent = named.iter().any(Named::is_addressed) && subject.class != Class::Destructive.name();
    let between = if is_sent { " to " } else { ": " };
    let start = |object: &str| match object {
        "" => format!("{action}?"),
        object => format!("{action}{between}{object}?"),
    };
    let names: Vec<String> = match telling {
        Some(value) => vec![word(value)],
        None => named.iter().map(|named| word(&named.value)).collect(),
    };
    let most = names.len().min(NAMES);
    for shown in (1..=most).rev().chain(names.is_empty().then_some(0)) {
        let start = start(&listed(&names, shown));
        let all = size.as_ref().map(|size| format!("{start} {size}, {tool}"));
        // Fewer names are no better with a size.
        let all = all.filter(|_| shown == names.len());
        let fitting = [all, Some(format!("{start} {tool}")), Some(start)];
        if let Some(line) = fitting.into_iter().flatten().find(|line| line.width() <= COLUMNS) {
            return line;
        }
    }
    // One name alone is too long.
    let more = if names.len() > 1 { format!(" and {} more", names.len() - 1) } else { String::new() };
    let room =
        COLUMNS.saturating_sub(start(&format!("{MARK}{more}")).width() - MARK.width()).max(SHORTEST_NAME);
    let first = telling.or(named.first().map(|named| named.value.as_str())).unwrap_or_default();
    cut(&start(&format!("{}{more}", without_middle(first, room))), COLUMNS)
}

/// The first of the names, and how many more there are.
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

/// What a tool does, by its name: `send_email` and `sendEmail` are "Send email".
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
            // A word in capitals stays one.
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

/// A value that is one plain word as it is, any other in quotation marks.
fn word(value: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "@._+-#/:~".contains(c);
    if !value.is_empty() && value.chars().all(is_plain) { value.to_owned() } else { quoted_recipient(value) }
}

/// The member that tells best what the call is about.
fn telling(members: &[(String, &str)]) -> Option<(String, String)> {
    TELLING.iter().find_map(|wanted| {
        let (key, value) = members.iter().find(|(key, _)| audience::plain(key) == *wanted)?;
        let value = match Part::read(value)? {
            Part::Text(text) if !text.is_empty() => text,
            Part::Plain(plain) if !matches!(plain, "true" | "false" | "null") => plain.to_owned(),
            _ => return None,
        };
        Some((key.clone(), value))
    })
}

/// The longest string at any depth that neither names anybody nor is said already.
fn longest_text(members: &[(String, &str)], said: Option<&str>) -> Option<String> {
    fn look(text: &str, longest: &mut Option<String>) {
        match Part::read(text) {
            Some(Part::Object(members)) => {
                let others = members.into_iter().filter(|(key, _)| !audience::is_known(key));
                others.for_each(|(_, value)| look(value.get(), longest));
            }
            Some(Part::Array(items)) => items.into_iter().for_each(|item| look(item.get(), longest)),
            Some(Part::Text(string)) => {
                if longest.as_ref().map_or(0, String::len) < string.len() {
                    *longest = Some(string);
                }
            }
            Some(Part::Plain(_)) | None => {}
        }
    }
    let mut longest = None;
    for (key, value) in members {
        if !audience::is_known(key) && Some(key.as_str()) != said {
            look(value, &mut longest);
        }
    }
    longest
}

/// How long a text is: its lines, or the characters of a single one.
fn size(text: &str) -> String {
    let (count, unit) = match text.lines().count() {
        0 | 1 => (text.chars().count(), "character"),
        lines => (lines, "line"),
    };
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {unit}{plural}", grouped(count))
}

/// A number with a comma between each three digits.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// The beginning of a text in quotation marks; if it goes on, a mark behind them.
fn beginning(text: &str) -> String {
    // No more characters than these are needed, and no fewer are tried than needed.
    let mut start: String = text.chars().take(COLUMNS).collect();
    loop {
        let mark = if start.len() < text.len() { MARK } else { "" };
        let line = format!("{}{mark}", quoted(&start));
        if line.width() <= COLUMNS || start.pop().is_none() {
            return line;
        }
    }
}

/// The first arguments in one line.
fn first_arguments(members: &[(String, &str)]) -> String {
    let mut line = String::new();
    for (key, value) in members {
        if line.width() > COLUMNS {
            break;
        }
        let value: String = value.chars().take(COLUMNS + 1).collect();
        let separator = if line.is_empty() { "" } else { ", " };
        line += &format!("{separator}{}: {}", quoted(key), visible::line(&value));
    }
    if line.is_empty() { "No arguments".to_owned() } else { cut(&line, COLUMNS) }
}

fn reason(subject: &Subject<'_>) -> String {
    if !subject.reason.is_empty() {
        return subject.reason.to_owned();
    }
    let class = Class::ALL.into_iter().find(|class| class.name() == subject.class);
    class.map_or("a person has to decide", Class::why_asked).to_owned()
}

/// The text, with a mark at its end if it is cut.
fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    format!("{}{MARK}", start_of(text.chars(), columns.saturating_sub(1)))
}

/// The beginning and the end of a value, which in an address tells most, as [`word`] shows them.
fn without_middle(value: &str, columns: usize) -> String {
    let (mut start, mut end): (Vec<char>, Vec<char>) =
        (value.chars().take(columns).collect(), value.chars().rev().take(columns).collect());
    loop {
        let joined: String = start.iter().chain(&['…']).chain(end.iter().rev()).collect();
        let shown = word(&joined);
        if shown.width() <= columns {
            return shown;
        }
        let longer = if start.len() > end.len() { &mut start } else { &mut end };
        if longer.pop().is_none() {
            return shown;
        }
    }
}

/// As many characters as there is room for.
fn start_of(text: impl Iterator<Item = char>, columns: usize) -> String {
    let mut used = 0;
    text.take_while(|c| {
        used += c.width().unwrap_or(0);
        used <= columns
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn subject<'a>(tool: &'a str, args: &'a str) -> Subject<'a> {
        Subject {
            user: "ann",
            agent: "assistant",
            channel: "stdio",
            body: "mail",
            tool,
            class: "human_visible_write",
            args,
            reason: "",
            flags: &[],
        }
    }

    fn lines(subject: &Subject<'_>) -> [String; 3] {
        let Headline { what, text, why, .. } = headline(subject, &audience::named(subject.args));
        [what, text, why]
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
            // The size goes first, then the tool, and only then names.
            (
                "send_email",
                r#"{"to":["ann.somebody@example.com","bob.somebody@example.com"],"body":"a"}"#,
                "Send email to ann.somebody@example.com and bob.somebody@example.com?",
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
            // Arguments cannot write a line of their own, nor end the names.
            (
                "send",
                r#"{"to":"ann? 1 line, x/y\nAsked because: \"fun\""}"#,
                r#"Send to "ann? 1 line, x/y⏎Asked because: \"fun\""? mail/send"#,
            ),
        ] {
            let [what, ..] = lines(&subject(tool, args));
            assert_eq!(what, expected, "{args}");
        }
        let destructive = Subject { class: "destructive", ..subject("delete_message", r#"{"channel":"a"}"#) };
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
            (r#"{"to":"ann","n":7}"#, r#""to": "ann", "n": 7"#.to_owned()),
            ("{}", "No arguments".to_owned()),
        ] {
            assert_eq!(lines(&subject("send", args))[1], expected, "{args}");
        }
    }

    #[test]
    fn the_third_line_says_why() {
        for (class, reason, expected) in [
            ("human_visible_write", "", "Asked because: other people will see it"),
            ("destructive", "", "Asked because: it cannot be undone"),
            ("write", "", "Asked because: it changes data"),
            ("write", "money\nleaves", "Asked because: money⏎leaves"),
        ] {
            assert_eq!(lines(&Subject { class, reason, ..subject("x", "{}") })[2], expected);
        }
        let long = "x".repeat(100);
        let cut = headline(&Subject { reason: &long, ..subject("x", "{}") }, &[]);
        assert!(
            !cut.is_reason_whole && cut.why == format!("Asked because: {}…", "x".repeat(64)),
            "{}",
            cut.why
        );
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_80_columns_or_broken(
            to in prop::collection::vec("\\PC{0,60}|[a-z@.]{1,40}", 0..5),
            text in "(\\PC|\n){0,120}",
            tool in "\\PC{0,60}",
            reason in "(\\PC|\n){0,120}",
        ) {
            let args = serde_json::json!({"to": to, "text": text, "path": text}).to_string();
            for line in lines(&Subject { reason: &reason, ..subject(&tool, &args) }) {
                prop_assert!(line.width() <= COLUMNS && !line.contains('\n'), "{line}");
            }
        }
    }
}
