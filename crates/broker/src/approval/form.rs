//! The form in the host: whether a text fits, and the decision from its answer. The form is empty: if a person can have
//! answered it, `accept` approves and `decline` denies; anything else decides nothing.
//!
//! Hosts truncate or scroll long forms without notice, some with "accept" preselected: longer texts go to another channel.

use std::time::Duration;

use embody_store::approvals::Answer;
use embody_wire::Outcome;
use embody_wire::server::HostResponse;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use unicode_width::UnicodeWidthChar;

use crate::policy::Via;

pub(super) const LINES: usize = 15;
/// The columns of a line; wide characters take two.
pub(super) const COLUMNS: usize = 80;
const MARKS_MAX: usize = 2;
pub(super) const MARK: &str = "…";

/// The number of lines of a text, wrapped at spaces; longer words are broken.
pub(crate) fn lines(text: &str) -> usize {
    text.split('\n').map(wrapped).sum()
}

fn wrapped(line: &str) -> usize {
    let (mut lines, mut column) = (1, 0);
    for (index, word) in line.split(' ').enumerate() {
        if index > 0 && column > 0 && column + 1 + columns(word) > COLUMNS {
            (lines, column) = (lines + 1, 0);
        } else if index > 0 {
            column += 1;
        }
        for width in widths(word) {
            if column + width > COLUMNS {
                (lines, column) = (lines + 1, 0);
            }
            column += width;
        }
    }
    lines
}

/// The reason for a denial if the rules allow only a form and the host has none.
pub(super) const NO_FORMS: &str = "the operator's rules let only a form in the host approve it (`via = [\"elicitation\"]`), and this host shows no forms";

pub(super) fn columns(text: &str) -> usize {
    widths(text).sum()
}

/// The width of each character. Only combining marks have no width, and at most [`MARKS_MAX`] of them: programs render others
/// differently, and thousands could hide in a line.
fn widths(text: &str) -> impl Iterator<Item = usize> {
    let mut marks = MARKS_MAX;
    text.chars().map(move |c| match c.width().unwrap_or(0) {
        0 if marks < MARKS_MAX => {
            marks += 1;
            0
        }
        0 => 1,
        width => {
            marks = 0;
            width
        }
    })
}

pub(super) fn cut(text: &str, most: usize) -> String {
    if columns(text) <= most {
        return text.to_owned();
    }
    format!("{}{MARK}", start_of(text, most.saturating_sub(columns(MARK))))
}

fn start_of(text: &str, most: usize) -> &str {
    let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
    let fitting = ends.filter_map(|end| text.get(..end)).take_while(|start| columns(start) <= most);
    fitting.last().unwrap_or_default()
}

/// Whether a form shows the whole text.
pub(crate) fn form_fits(text: &str) -> Result<(), String> {
    let lines = lines(text);
    if lines <= LINES {
        return Ok(());
    }
    Err(format!("the form's message takes {lines} lines of {COLUMNS} columns; a form shows at most {LINES}"))
}

pub(super) fn too_long(lines: usize) -> String {
    format!(
        "the approval form for this call would have {lines} lines and a form shows at most {LINES}, but the operator's \
         rules let only a form approve it (`via = [\"elicitation\"]`)"
    )
}

/// Where the owner can answer a pending approval, to complete "it waits for approval …". Names no command that approves.
pub(crate) fn where_asked(channels: &[Via]) -> String {
    let names: Vec<&str> = channels
        .iter()
        .map(|via| match via {
            Via::Elicitation => "in a form of this host",
            Via::Console => "in the embody console",
            Via::Cli => "with the `embody approvals` command line",
            Via::Telegram => "on Telegram",
        })
        .collect();
    match names.split_last() {
        None => "in a form of this host".to_owned(),
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
    }
}

/// The recorded decider for answers of the host.
pub(super) const BY: &str = "elicitation";

/// An answer that arrives sooner is automatic: hosts without a user answer by themselves.
const READING_TIME: Duration = Duration::from_millis(500);

pub(super) fn params(message: &str) -> Option<Box<RawValue>> {
    let schema = json!({"type": "object", "properties": {}});
    to_raw_value(&json!({"message": message, "requestedSchema": schema})).ok()
}

/// The decision from the host's answer; `None` if it decides nothing. An automatic answer counts only if the rules allow no
/// other channel.
pub(super) fn decision(answered: &HostResponse, is_only_channel: bool) -> Option<Answer> {
    let Outcome::Result(result) = &answered.outcome else { return None };
    // Rejects a duplicate `action`, which two parsers could read differently.
    let Elicited { action } = serde_json::from_str(result.get()).ok()?;
    let is_automatic = answered.after.is_some_and(|after| after < READING_TIME);
    match action.as_str() {
        _ if is_automatic && !is_only_channel => None,
        "accept" => Some(Answer::Approve),
        "decline" => Some(Answer::Deny),
        _ => None,
    }
}

#[derive(Deserialize)]
struct Elicited {
    action: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_as_a_terminal_of_80_columns_wraps_them() {
        let word = |length: usize| "a".repeat(length);
        for (text, expected) in [
            (String::new(), 1),
            ("a\nb\n".to_owned(), 3),
            (word(80), 1),
            (word(81), 2),
            (word(241), 4),
            (format!("{} {}", word(40), word(39)), 1),
            (format!("{} {}", word(40), word(40)), 2),
            (format!("{} {} {}", word(50), word(50), word(50)), 3),
            (format!("{} {}", word(50), word(120)), 3),
            ("漢".repeat(40), 1),
            ("漢".repeat(41), 2),
            (format!("{} {}", "漢".repeat(20), "漢".repeat(20)), 2),
            ("e\u{301}".repeat(80), 1),
            ("e\u{301}\u{302}".repeat(80), 1),
            ("e\u{301}\u{302}\u{303}".repeat(40), 1),
            ("e\u{301}\u{302}\u{303}".repeat(41), 2),
            // Each is a mark by its width, without a base character.
            ("\u{11c2}".repeat(4000), 50),
            (format!("a {}", "\u{1161}".repeat(4000)), 51),
        ] {
            assert_eq!(lines(&text), expected, "{text}");
        }
    }

    #[test]
    fn the_channels_are_named_in_a_sentence_without_a_command_that_approves() {
        use Via::{Cli, Console, Telegram};
        for (channels, expected) in [
            (&[][..], "in a form of this host"),
            (&[Console][..], "in the embody console"),
            (
                &[Console, Cli, Telegram][..],
                "in the embody console, with the `embody approvals` command line or on Telegram",
            ),
        ] {
            assert_eq!(where_asked(channels), expected);
            assert!(!where_asked(channels).contains("approve "));
        }
    }

    fn answered(result: &str, after: Option<Duration>) -> HostResponse {
        HostResponse { outcome: Outcome::Result(RawValue::from_string(result.to_owned()).unwrap()), after }
    }

    // spec: N-10
    #[test]
    fn only_accept_approves() {
        for (result, expected) in [
            (r#"{"action":"accept"}"#, Some(Answer::Approve)),
            (r#"{"action":"accept","content":{},"_meta":{"x":1}}"#, Some(Answer::Approve)),
            (r#"{"action":"decline"}"#, Some(Answer::Deny)),
            (r#"{"action":"cancel"}"#, None),
            (r#"{"action":"Accept"}"#, None),
            (r#"{"action":"decline","action":"accept"}"#, None),
            (r#"{"action":true}"#, None),
            (r#"{"content":{"action":"accept"}}"#, None),
            ("{}", None),
            ("null", None),
            (r#""accept""#, None),
        ] {
            assert_eq!(decision(&answered(result, Some(READING_TIME)), false), expected, "{result}");
        }
        let error = RawValue::from_string(r#"{"code":-32601,"message":"accept"}"#.to_owned()).unwrap();
        assert_eq!(decision(&HostResponse { outcome: Outcome::Error(error), after: None }, true), None);
    }

    #[test]
    fn an_answer_faster_than_a_person_reads_decides_only_where_no_other_channel_is_left() {
        let fast = Some(READING_TIME - Duration::from_millis(1));
        for (after, is_only_channel, is_decided) in [
            (fast, false, false),
            (fast, true, true),
            (Some(READING_TIME), false, true),
            // Another process sent the form: its age is unknown, so the answer counts.
            (None, false, true),
        ] {
            for (action, answer) in [("accept", Answer::Approve), ("decline", Answer::Deny)] {
                let answered = answered(&format!(r#"{{"action":"{action}"}}"#), after);
                let expected = is_decided.then_some(answer);
                assert_eq!(decision(&answered, is_only_channel), expected, "{action} {after:?}");
            }
        }
    }

    #[test]
    fn the_form_is_empty() {
        let params = params("a \"b\"\n⏎").unwrap();
        let value: serde_json::Value = serde_json::from_str(params.get()).unwrap();
        let schema = json!({"type": "object", "properties": {}});
        assert_eq!(value, json!({"message": "a \"b\"\n⏎", "requestedSchema": schema}));
    }
}
