//! Everything that goes to stdout goes through here: colours only on a terminal, and no complaint when the reader has
//! seen enough, as `head` does.

use std::borrow::Cow;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Stdout, Write};
use std::process::ExitCode;

use crate::failure::Failure;

/// Prints a text that may have styles.
pub(crate) fn styled(text: &str) -> Result<(), Failure> {
    finish(write!(anstream::stdout().lock(), "{text}"))
}

/// A text that may hold anything, on one line.
pub(crate) fn one_line(text: &str) -> String {
    printable(text).replace('\n', "\\n").replace('\t', "\\t")
}

/// So many of them, in words.
pub(crate) fn counted<N: std::fmt::Display + PartialEq + From<u8>>(count: N, what: &str) -> String {
    if count == N::from(1) { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// Prints JSON for programs.
pub(crate) fn json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::new("the result could not be written as JSON").because(&error))?;
    plain(&(text + "\n"))
}

/// Prints a text as it is.
pub(crate) fn plain(text: &str) -> Result<(), Failure> {
    finish(io::stdout().lock().write_all(text.as_bytes()))
}

/// Prints exactly these bytes; only a terminal gets a line end, so that the shell's prompt starts on its own line.
pub(crate) fn exactly(text: &str) -> Result<(), Failure> {
    plain(text)?;
    if io::stdout().is_terminal() { plain("\n") } else { Ok(()) }
}

/// Stdout for what is too much to hold at once. Whoever writes to it flushes it; it knows whether its reader has left.
pub(crate) struct Stream {
    out: BufWriter<Stdout>,
    reader_left: bool,
}

impl Stream {
    pub(crate) fn new() -> Self {
        Self { out: BufWriter::new(io::stdout()), reader_left: false }
    }

    /// What was written, or `None` if it failed only because the reader has seen enough.
    pub(crate) fn finish<T, E: Into<Failure>>(&self, written: Result<T, E>) -> Result<Option<T>, Failure> {
        match written {
            Ok(done) => Ok(Some(done)),
            Err(_) if self.reader_left => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn noticed<T>(&mut self, written: io::Result<T>) -> io::Result<T> {
        self.reader_left |= written.as_ref().is_err_and(|error| error.kind() == ErrorKind::BrokenPipe);
        written
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes);
        self.noticed(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.out.flush();
        self.noticed(flushed)
    }
}

/// Says something beside the result, on stderr.
pub(crate) fn aside(text: &str) {
    anstream::eprintln!("{}", printable(text));
}

/// The exit code for whether something is so.
pub(crate) fn verdict(so: bool) -> ExitCode {
    if so { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A text from a file or a name as it may stand on a terminal: what would steer it is shown instead of sent.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let shown = |c: char| if steers(c) { c.escape_unicode().to_string() } else { c.to_string() };
    Cow::Owned(text.chars().map(shown).collect())
}

/// Controls, and marks that turn the direction of what follows.
fn steers(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

fn finish(written: io::Result<()>) -> Result<(), Failure> {
    match written.and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::new("the output could not be written").because(&error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn nothing_steers_a_terminal() {
        assert_eq!(printable("a\u{1b}[31mb\u{7}\u{202e}c\r"), "a\\u{1b}[31mb\\u{7}\\u{202e}c\\u{d}");
        assert_eq!(printable("two\nlines\tand שלום"), "two\nlines\tand שלום");
    }
}
