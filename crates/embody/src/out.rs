//! stdout, for every command: whole texts, colours only on a terminal. A reader that has seen enough, as `head` has, is
//! no failure; any other trouble is one. Refuses to panic over either.

use std::io::{ErrorKind, Write};

use crate::failure::Failure;

/// Prints a text, with its colours where stdout shows them.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    write(anstream::stdout().lock(), text)
}

/// Prints a text as it is, whatever is in it.
pub(crate) fn print_exactly(text: &str) -> Result<(), Failure> {
    write(std::io::stdout().lock(), text)
}

/// Prints a value as JSON.
pub(crate) fn print_json(value: &serde_json::Value) -> Result<(), Failure> {
    print_exactly(&format!("{value:#}\n"))
}

fn write(mut stdout: impl Write, text: &str) -> Result<(), Failure> {
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::new("the output could not be written").because(&error))
        }
        _ => Ok(()),
    }
}
