//! All output to stdout: colours only on a terminal, no error when the reader closes the pipe, as `head` does.
//!
//! Control characters in text of models, bodies and users never reach a terminal. A pipe gets the bytes as they are.

use std::borrow::Cow;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Stdout, Write};
use std::process::ExitCode;

use embody_text::visible;

use crate::error::{CliError, ErrorContext, HINT};

/// Prints text with styles. Escape sequences other than our styles are escaped on a terminal; untrusted text must have passed
/// [`printable`] before.
pub(crate) fn styled(text: &str) -> Result<(), CliError> {
    let text = if io::stdout().is_terminal() { with_styles(text) } else { Cow::Borrowed(text) };
    finish(write!(anstream::stdout().lock(), "{text}"))
}

/// Untrusted text on one line.
pub(crate) fn one_line(text: &str) -> String {
    printable(text).replace('\n', "\\n").replace('\t', "\\t")
}

/// `1 record`, `2 records`.
pub(crate) fn pluralize<N: std::fmt::Display + PartialEq + From<u8>>(count: N, what: &str) -> String {
    if count == N::from(1) { format!("1 {what}") } else { format!("{count} {what}s") }
}

pub(crate) fn json(value: &impl serde::Serialize) -> Result<(), CliError> {
    let text = serde_json::to_string_pretty(value).context("the result could not be written as JSON")?;
    // On a terminal, control characters are written as JSON escapes.
    let text = if io::stdout().is_terminal() { json_on_terminal(&text) } else { text };
    plain(&(text + "\n"))
}

fn json_on_terminal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if visible::steers(c) && c != '\n' => {
                let units = c.encode_utf16(&mut [0; 2]).to_vec();
                out.extend(units.iter().map(|unit| format!("\\u{unit:04x}")));
            }
            c => out.push(c),
        }
    }
    out
}

/// Prints text without styles: unchanged to a pipe, with control characters escaped on a terminal.
pub(crate) fn plain(text: &str) -> Result<(), CliError> {
    let text = if io::stdout().is_terminal() { printable(text) } else { Cow::Borrowed(text) };
    finish(io::stdout().lock().write_all(text.as_bytes()))
}

/// Like [`plain`], with a final newline on a terminal only.
pub(crate) fn raw_bytes(text: &str) -> Result<(), CliError> {
    plain(text)?;
    if io::stdout().is_terminal() { plain("\n") } else { Ok(()) }
}

/// Buffered stdout for large output. The caller flushes it.
pub(crate) struct StdoutStream {
    out: BufWriter<Stdout>,
    is_terminal: bool,
    is_closed: bool,
}

impl StdoutStream {
    pub(crate) fn new() -> Self {
        let is_terminal = io::stdout().is_terminal();
        Self { out: BufWriter::new(io::stdout()), is_terminal, is_closed: false }
    }

    /// The result, or `None` if writing failed because the reader closed the pipe.
    pub(crate) fn finish<T, E: Into<CliError>>(&self, written: Result<T, E>) -> Result<Option<T>, CliError> {
        match written {
            Ok(done) => Ok(Some(done)),
            Err(_) if self.is_closed => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn check_closed<T>(&mut self, written: io::Result<T>) -> io::Result<T> {
        self.is_closed |= written.as_ref().is_err_and(|error| error.kind() == ErrorKind::BrokenPipe);
        written
    }
}

impl Write for StdoutStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = if self.is_terminal {
            let text = String::from_utf8_lossy(bytes);
            self.out.write_all(printable(&text).as_bytes()).map(|()| bytes.len())
        } else {
            self.out.write(bytes)
        };
        self.check_closed(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.out.flush();
        self.check_closed(flushed)
    }
}

pub(crate) fn stderr_line(text: &str) {
    anstream::eprintln!("{}", printable(text));
}

/// A hint beside a result, as an error has it.
pub(crate) fn hint(text: &str) {
    anstream::eprintln!("{HINT}hint:{HINT:#} {}", printable(text));
}

pub(crate) fn exit_code(is_ok: bool) -> ExitCode {
    if is_ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Untrusted text for a terminal: control and invisible characters are shown as `⟨U+001B⟩`.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    visible::on_terminal(text)
}

/// Like [`printable`], but keeps sequences that only set bold, dim, italics, underline or a colour.
fn with_styles(text: &str) -> Cow<'_, str> {
    if !text.contains('\u{1b}') {
        return printable(text);
    }
    let mut out = String::with_capacity(text.len());
    for (number, piece) in text.split('\u{1b}').enumerate() {
        let rest = if number == 0 {
            Some(piece)
        } else {
            style(piece).map(|style| after_style(style, piece, &mut out))
        };
        match rest {
            Some(rest) => out.push_str(&printable(rest)),
            None => out.push_str(&printable(&format!("\u{1b}{piece}"))),
        }
    }
    Cow::Owned(out)
}

fn after_style<'a>(style: &str, piece: &'a str, out: &mut String) -> &'a str {
    out.push('\u{1b}');
    out.push_str(style);
    piece.get(style.len()..).unwrap_or_default()
}

/// The style sequence at the start of a text that follows an escape character.
fn style(piece: &str) -> Option<&str> {
    let codes = piece.strip_prefix('[')?;
    let end = codes.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    let (codes, rest) = codes.split_at_checked(end)?;
    let is_known = |code: &str| matches!(code, "" | "0" | "1" | "2" | "3" | "4") || is_colour(code);
    let is_style = rest.starts_with('m') && codes.split(';').all(is_known);
    is_style.then(|| piece.get(..end + 2)).flatten()
}

fn is_colour(code: &str) -> bool {
    code.parse().is_ok_and(|code: u8| matches!(code, 31..=37 | 91..=97))
}

fn finish(written: io::Result<()>) -> Result<(), CliError> {
    match written.and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(CliError::new("the output could not be written").caused_by(&error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_on_a_terminal() {
        assert_eq!(printable("a\u{1b}[31mb\u{7}\u{202e}c\r"), "a⟨U+001B⟩[31mb⟨U+0007⟩⟨U+202E⟩c⟨U+000D⟩");
        assert_eq!(printable("two\nlines\tand שלום"), "two\nlines\tand שלום");
    }

    #[test]
    fn json_on_a_terminal_stays_json() {
        let value = serde_json::json!({"x": "a\u{1b}[2J\u{9b}\u{202e}\u{e0041}<é"});
        let shown = json_on_terminal(&serde_json::to_string_pretty(&value).unwrap());
        assert_eq!(shown, "{\n  \"x\": \"a\\u001b[2J\\u009b\\u202e\\udb40\\udc41<é\"\n}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }

    #[test]
    fn only_known_styles_stay() {
        for text in ["plain\n", "\u{1b}[1mbold\u{1b}[0m", "\u{1b}[1;32mgreen\u{1b}[m \u{1b}[2mdim\u{1b}[0m"] {
            assert_eq!(with_styles(text), text);
        }
        for (text, shown) in [
            ("a\u{1b}]0;title\u{7}b", "a⟨U+001B⟩]0;title⟨U+0007⟩b"),
            ("\u{1b}[2J\u{1b}[H", "⟨U+001B⟩[2J⟨U+001B⟩[H"),
            ("\u{1b}[8mhidden\u{1b}[30;40m", "⟨U+001B⟩[8mhidden⟨U+001B⟩[30;40m"),
            ("\u{1b}", "⟨U+001B⟩"),
            ("\u{1b}[1mx\u{9b}2J", "\u{1b}[1mx⟨U+009B⟩2J"),
        ] {
            assert_eq!(with_styles(text), shown);
        }
    }
}
