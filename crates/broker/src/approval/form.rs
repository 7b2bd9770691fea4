//! Whether a text fits a form that hosts show completely, and which other channels remain.
//!
//! Hosts truncate or scroll long forms without notice, some with "accept" preselected: longer texts go to another channel.

use unicode_width::UnicodeWidthChar;

use crate::policy::Via;

/// The maximum number of lines of a form.
pub(super) const LINES: usize = 15;
/// The columns of a line; wide characters take two.
pub(super) const COLUMNS: usize = 80;
/// The maximum number of consecutive zero-width marks.
const MARKS: usize = 2;

/// The number of lines of a text, wrapped at spaces; longer words are broken.
pub(crate) fn lines(text: &str) -> usize {
    text.split('\n').map(wrapped).sum()
}

fn wrapped(line: &str) -> usize {
    let (mut lines, mut column) = (1, 0);
    for (place, word) in line.split(' ').enumerate() {
        if place > 0 && column > 0 && column + 1 + columns(word) > COLUMNS {
            (lines, column) = (lines + 1, 0);
        } else if place > 0 {
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

/// The width of a text on one line.
pub(super) fn columns(text: &str) -> usize {
    widths(text).sum()
}

/// The width of each character. Only combining marks have no width, and at most [`MARKS`] of them: programs render others
/// differently, and thousands could hide in a line.
fn widths(text: &str) -> impl Iterator<Item = usize> {
    let mut marks = MARKS;
    text.chars().map(move |c| match c.width().unwrap_or(0) {
        0 if marks < MARKS => {
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

/// Whether a form shows the whole text.
///
/// # Errors
/// When it does not, with the reason.
pub(crate) fn form_fits(text: &str) -> Result<(), String> {
    let lines = lines(text);
    if lines <= LINES {
        return Ok(());
    }
    Err(format!("the form's message takes {lines} lines of {COLUMNS} columns; a form shows at most {LINES}"))
}

/// The reason for a denial if the form is too long and the rules allow only a form.
pub(super) fn too_long(lines: usize) -> String {
    format!(
        "the approval form for this call would have {lines} lines and a form shows at most {LINES}, but the operator's \
         rules let only a form approve it (`via = [\"elicitation\"]`)"
    )
}

/// Where the owner can answer a pending approval, to complete "it waits for approval …". Names no command that approves.
#[must_use]
pub fn where_asked(channels: &[Via]) -> String {
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
}
