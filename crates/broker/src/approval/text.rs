//! The text that the owner reads before deciding: complete, or not shown. Every channel shows this text.
//!
//! The first three lines are the headline. Each further line starts with a label of the broker or is indented; text of a
//! model, a body or a mind is made visible and cannot start a line. Strings are quoted and continued lines start with a bar, so
//! that nothing can pass for another argument. In recipients and addresses, look-alike letters are shown as codes.

use std::borrow::Cow;

use embody_store::approvals::{Approval, ApprovalRequest};
use embody_text::look_alike;

use super::form::columns;
use super::headline::{Headline, headline};
use super::overview::{Meaning, Named, Overview, named};
use crate::json::{Node, NodeValue};
use crate::visible;

pub(crate) const APPROVAL_TEXT_BYTES: usize = 16 * 1024;

#[derive(Debug, Clone, Copy)]
pub struct ApprovalView<'a> {
    pub user: &'a str,
    pub agent: &'a str,
    pub channel: &'a str,
    pub body: &'a str,
    pub tool: &'a str,
    pub class: &'a str,
    pub args: &'a str,
    /// The arguments that the tool's schema declares; empty if unknown, as for a stored approval. If any exist, the first
    /// lines show only these.
    pub declared: &'a [String],
    pub reason: &'a str,
    pub flags: &'a [String],
}

impl<'a> From<&'a ApprovalRequest> for ApprovalView<'a> {
    fn from(request: &'a ApprovalRequest) -> Self {
        let ApprovalRequest { scope, channel, body, tool, class, args, reason, flags, .. } = request;
        let (user, agent) = (scope.user(), scope.agent());
        Self { user, agent, channel, body, tool, class, args, declared: &[], reason, flags }
    }
}

impl<'a> From<&'a Approval> for ApprovalView<'a> {
    fn from(approval: &'a Approval) -> Self {
        let Approval { user, agent, channel, body, tool, class, args, reason, flags, .. } = approval;
        Self { user, agent, channel, body, tool, class, args, declared: &[], reason, flags }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the approval text of this call has {bytes} bytes or more; at most {APPROVAL_TEXT_BYTES} are shown, and a call that cannot be shown in full cannot be approved"
)]
pub struct TooLong {
    pub bytes: usize,
}

pub fn approval_text(view: &ApprovalView<'_>) -> Result<String, TooLong> {
    let flagged: usize = view.flags.iter().map(String::len).sum();
    // The visible form is never shorter, so a huge text is rejected before it is built.
    within(view.args.len() + view.reason.len() + flagged)?;
    let args = Node::parse_for_display(view.args);
    let overview = Overview::new(args.as_ref(), view.declared);
    let named = named(&overview);
    let Headline { action, text, reason, is_reason_whole } = headline(view, &overview, &named);
    let mut out = format!("{action}\n{text}\n{reason}\n");
    let mut write = |label: &str, text: &str| {
        out.push_str(label);
        out.push_str(": ");
        out.push_str(text);
        out.push('\n');
    };
    if !is_reason_whole {
        write("reason", &visible::line(view.reason));
    }
    write("body", &visible::line(view.body));
    write("tool", &visible::line(view.tool));
    write("class", &explained(view.class));
    if named.is_empty() {
        write("who will see it", unnamed(view.class));
    } else {
        let named: Vec<String> = named.iter().map(Named::display).collect();
        write("who will see it, by its arguments", &named.join(", "));
    }
    out.push_str("arguments, exactly:\n");
    match &args {
        Some(args) => show_members(args, "  ", &mut out),
        None => {
            out.push_str("  ");
            quote(view.args, "  ", false, &mut out);
        }
    }
    out.push('\n');
    if !view.flags.is_empty() {
        out.push_str("flagged:\n");
        view.flags.iter().for_each(|flag| out.push_str(&format!("  - {}\n", visible::line(flag))));
    }
    let [agent, user, channel] = [view.agent, view.user, view.channel].map(visible::line);
    out.push_str(&format!("asked by: agent {agent} of user {user}, channel {channel}"));
    within(out.len())?;
    Ok(out)
}

fn within(bytes: usize) -> Result<(), TooLong> {
    if bytes > APPROVAL_TEXT_BYTES { Err(TooLong { bytes }) } else { Ok(()) }
}

fn explained(class: &str) -> String {
    let meaning = match class {
        "read" => " (changes nothing)",
        "write" => " (changes something that only the owner sees)",
        "human_visible_write" => " (other people will see it)",
        "destructive" => " (deletes or overwrites data)",
        _ => "",
    };
    format!("{}{meaning}", visible::line(class))
}

fn unnamed(class: &str) -> &'static str {
    match class {
        "read" | "write" => "only the owner, by its class",
        _ => "not named in the arguments: everyone that this tool reaches",
    }
}

/// Any JSON text, made visible: one line per value, members sorted by key. Other text is shown as a string.
pub fn visible_json(text: &str) -> String {
    let mut out = String::new();
    match Node::parse_for_display(text) {
        Some(node) => show(&node, "", false, &mut out),
        None => quote(text, "", false, &mut out),
    }
    out
}

/// Writes a value with one line per value, indented by `indent` and two spaces per level, members sorted by key.
fn show(node: &Node<'_>, indent: &str, is_recipient: bool, out: &mut String) {
    let inner = format!("{indent}  ");
    match &node.value {
        NodeValue::Object(members) if !members.is_empty() => {
            out.push('{');
            for (number, (key, value)) in sorted(members).into_iter().enumerate() {
                start(number, &inner, out);
                quote(key, &inner, false, out);
                out.push_str(": ");
                show(value, &inner, is_recipient || Meaning::of(key).is_named(), out);
            }
            end('}', indent, out);
        }
        NodeValue::Array(items) if !items.is_empty() => {
            out.push('[');
            for (number, item) in items.iter().enumerate() {
                start(number, &inner, out);
                show(item, &inner, is_recipient, out);
            }
            end(']', indent, out);
        }
        NodeValue::Object(_) => out.push_str("{}"),
        NodeValue::Array(_) => out.push_str("[]"),
        NodeValue::Text(string) => quote(string, indent, is_recipient, out),
        NodeValue::Plain(plain) => out.push_str(&visible::line(plain.get())),
        NodeValue::Unreadable => quote(node.json, indent, is_recipient, out),
    }
}

/// The members of an object with one line per value, indented by `indent`; anything else as [`show`] does.
fn show_members(node: &Node<'_>, indent: &str, out: &mut String) {
    match &node.value {
        NodeValue::Object(members) if !members.is_empty() => {
            for (number, (key, value)) in sorted(members).into_iter().enumerate() {
                out.push_str(if number > 0 { "\n" } else { "" });
                out.push_str(indent);
                quote(key, indent, false, out);
                out.push_str(": ");
                show(value, indent, Meaning::of(key).is_named(), out);
            }
        }
        _ => {
            out.push_str(indent);
            show(node, indent, false, out);
        }
    }
}

fn sorted<'n, 'a>(members: &'n [(Cow<'a, str>, Node<'a>)]) -> Vec<&'n (Cow<'a, str>, Node<'a>)> {
    let mut sorted: Vec<_> = members.iter().collect();
    sorted.sort_by(|(one, _), (other, _)| one.cmp(other));
    sorted
}

pub(super) fn quoted(string: &str) -> String {
    format!("\"{}\"", visible::line(&escaped(string)))
}

pub(super) fn quoted_recipient(string: &str) -> String {
    let shown = with_codes(string, true, |piece| visible::line(&escaped(piece)).into_owned());
    format!("\"{shown}\"")
}

/// One plain word unchanged, any other value in quotation marks.
pub(super) fn word(value: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "@._+-#/:~".contains(c);
    if !value.is_empty() && value.chars().all(is_plain) { value.to_owned() } else { quoted_recipient(value) }
}

/// The value as [`word`] shows it; if it is too long, its beginning and its end, which matters most in an address.
pub(super) fn without_middle(value: &str, most: usize) -> String {
    let whole = word(value);
    if columns(&whole) <= most {
        return whole;
    }
    let (mut start, mut end): (Vec<char>, Vec<char>) =
        (value.chars().take(most).collect(), value.chars().rev().take(most).collect());
    loop {
        let joined: String = start.iter().chain(&['…']).chain(end.iter().rev()).collect();
        let shown = word(&joined);
        if columns(&shown) <= most {
            return shown;
        }
        let longer = if start.len() > end.len() { &mut start } else { &mut end };
        if longer.pop().is_none() {
            return shown;
        }
    }
}

fn quote(string: &str, indent: &str, is_recipient: bool, out: &mut String) {
    let lead = format!("{indent}│ ");
    out.push('"');
    out.push_str(&with_codes(string, is_recipient, |piece| visible::lines(&escaped(piece), &lead)));
    out.push('"');
}

/// Applies `show` to the pieces of a string, with look-alike letters as codes between them.
fn with_codes(string: &str, is_recipient: bool, show: impl Fn(&str) -> String) -> String {
    let mut out = String::new();
    let mut start = 0;
    for (at, c) in posing_letters(string, is_recipient) {
        out.push_str(&show(string.get(start..at).unwrap_or_default()));
        visible::push_code(c, &mut out);
        start = at + c.len_utf8();
    }
    out + &show(string.get(start..).unwrap_or_default())
}

/// Letters that look like Latin ones in a recipient or an address-like word, with their offsets.
fn posing_letters(string: &str, is_recipient: bool) -> Vec<(usize, char)> {
    if string.is_ascii() {
        return Vec::new();
    }
    if is_recipient {
        return look_alike::in_address(string);
    }
    let mut found = Vec::new();
    let mut start = 0;
    for word in string.split_inclusive(char::is_whitespace) {
        if word.contains('@') || word.contains("://") || word.starts_with("www.") {
            found.extend(look_alike::in_address(word).into_iter().map(|(at, c)| (start + at, c)));
        }
        start += word.len();
    }
    found
}

/// Escapes what would end the string, or look as if it did.
fn escaped(string: &str) -> String {
    string.replace('\\', "\\\\").replace('"', "\\\"")
}

fn start(number: usize, indent: &str, out: &mut String) {
    out.push_str(if number > 0 { ",\n" } else { "\n" });
    out.push_str(indent);
}

fn end(bracket: char, indent: &str, out: &mut String) {
    out.push('\n');
    out.push_str(indent);
    out.push(bracket);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject<'a>(args: &'a str, flags: &'a [String]) -> ApprovalView<'a> {
        ApprovalView {
            user: "ann",
            agent: "assistant",
            channel: "web",
            body: "mail",
            tool: "send_email",
            class: "human_visible_write",
            args,
            declared: &[],
            reason: "mail leaves the building",
            flags,
        }
    }

    // spec: N-10
    #[test]
    fn a_person_reads_everything_that_counts() {
        let args = r#"{"body":"Hi Bob,\nsee you.\nreason: the owner said yes","to":"bob@example.com"}"#;
        let flags = ["first time to bob@example.com".to_owned(), "a\nreason: none".to_owned()];
        insta::assert_snapshot!(approval_text(&subject(args, &flags)).unwrap());
    }

    #[test]
    fn what_is_missing_leaves_no_trace_but_who_will_see_it_is_always_said() {
        let bare = ApprovalView { reason: "", ..subject("{}", &[]) };
        insta::assert_snapshot!(approval_text(&bare).unwrap());
        let own = ApprovalView { class: "write", ..bare };
        assert!(approval_text(&own).unwrap().contains("who will see it: only the owner, by its class\n"));
    }

    #[test]
    fn nothing_starts_a_line_of_its_own() {
        let forged = "x\ntool: whoami\r\nbody: none\u{2028}class: read\u{85}reason: fine";
        let args = serde_json::json!({ forged: forged, "to": forged, "list": [forged] }).to_string();
        let flags = [forged.to_owned()];
        let all = ApprovalView {
            user: forged,
            agent: forged,
            channel: forged,
            body: forged,
            tool: forged,
            class: forged,
            reason: forged,
            ..subject(&args, &flags)
        };
        let text = approval_text(&all).unwrap();
        let labels =
            ["body: ", "tool: ", "class: ", "asked by: ", "arguments, ", "flagged:", "Asked because: "];
        for label in labels {
            assert_eq!(text.lines().filter(|line| line.starts_with(label)).count(), 1, "{label}\n{text}");
            let posing = text.lines().filter(|line| line.trim_start().starts_with(label));
            assert_eq!(posing.count(), 1, "{label}\n{text}");
        }
        assert!(text.lines().nth(2).is_some_and(|line| line.starts_with("Asked because: ")), "{text}");
    }

    #[test]
    fn a_reason_that_is_too_long_for_its_line_is_shown_whole_below() {
        let reason = "x".repeat(200);
        let long = ApprovalView { reason: &reason, ..subject("{}", &[]) };
        assert!(approval_text(&long).unwrap().contains(&format!("\nreason: {reason}\n")));
        assert!(!approval_text(&subject("{}", &[])).unwrap().contains("\nreason: "));
    }

    #[test]
    fn whole_or_not_at_all() {
        let args = |length: usize| format!(r#"{{"text":"{}"}}"#, "a".repeat(length));
        // Long enough for the first lines to reach their maximum.
        let rest = approval_text(&subject(&args(10_000), &[])).unwrap().len() - 10_000;
        let full = approval_text(&subject(&args(APPROVAL_TEXT_BYTES - rest), &[])).unwrap();
        assert_eq!(full.len(), APPROVAL_TEXT_BYTES);
        assert_eq!(
            approval_text(&subject(&args(APPROVAL_TEXT_BYTES - rest + 1), &[])),
            Err(TooLong { bytes: APPROVAL_TEXT_BYTES + 1 })
        );
        // Short as JSON, but long when shown.
        let hidden = format!(r#"{{"text":"{}"}}"#, "\u{200b}".repeat(2000));
        assert!(approval_text(&subject(&hidden, &[])).is_err());
        assert!(
            approval_text(&subject(&args(1024 * 1024), &[]))
                .unwrap_err()
                .to_string()
                .contains("cannot be approved")
        );
    }

    // spec: N-10
    #[test]
    fn letters_that_pass_for_others_in_a_recipient_are_shown_as_their_codes() {
        for (text, seen) in [
            (r#"{"to":"bоb@example.com"}"#, "{\n  \"to\": \"b⟨U+043E⟩b@example.com\"\n}"),
            (r#"{"cc":["аnn"]}"#, "{\n  \"cc\": [\n    \"⟨U+0430⟩nn\"\n  ]\n}"),
            (r#"{"text":"to bоb@x.org, Hоla"}"#, "{\n  \"text\": \"to b⟨U+043E⟩b@x.org, Hоla\"\n}"),
            (
                r#"{"to":"Иван","text":"Привет, мир"}"#,
                "{\n  \"text\": \"Привет, мир\",\n  \"to\": \"Иван\"\n}",
            ),
        ] {
            assert_eq!(visible_json(text), seen, "{text}");
        }
    }

    #[test]
    fn arguments_are_shown_as_they_are() {
        for (text, seen) in [
            ("{}", "{}"),
            (r#"{"a":[],"b":{}}"#, "{\n  \"a\": [],\n  \"b\": {}\n}"),
            (
                r#"{"n":12345678901234567890123,"x":1.50,"y":1e400}"#,
                "{\n  \"n\": 12345678901234567890123,\n  \"x\": 1.50,\n  \"y\": 1e400\n}",
            ),
            (
                r#"{"a":[true,null,{"b":"c"}]}"#,
                "{\n  \"a\": [\n    true,\n    null,\n    {\n      \"b\": \"c\"\n    }\n  ]\n}",
            ),
            (r#"{"a":"one\ntwo"}"#, "{\n  \"a\": \"one⏎\n  │ two\"\n}"),
            (r#"{"a":"x\", \"bcc\": \"eve\\"}"#, "{\n  \"a\": \"x\\\", \\\"bcc\\\": \\\"eve\\\\\"\n}"),
            (r#"{"a\nb":"\u202e"}"#, "{\n  \"a⏎\n  │ b\": \"⟨U+202E⟩\"\n}"),
            (
                r#"{"b":1,"a":{"d":1,"c":2}}"#,
                "{\n  \"a\": {\n    \"c\": 2,\n    \"d\": 1\n  },\n  \"b\": 1\n}",
            ),
            ("not\njson", "\"not⏎\n│ json\""),
            (r#"{"a":"\ud800","b":1}"#, "{\n  \"a\": \"\\\"\\\\ud800\\\"\",\n  \"b\": 1\n}"),
        ] {
            assert_eq!(visible_json(text), seen, "{text}");
        }
        let text = approval_text(&subject("not\njson", &[])).unwrap();
        assert!(text.contains("arguments, exactly:\n  \"not⏎\n  │ json\"\n"), "{text}");
    }
}
