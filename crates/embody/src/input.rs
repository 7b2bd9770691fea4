//! Reads stdin and files for commands, up to a limit.

use std::fs::File;
use std::io::{Read, stdin};
use std::path::Path;

use crate::error::CliError;

/// The store has a lower limit and reports it.
const TEXT_LIMIT: u64 = 1024 * 1024;

/// The argument itself, or stdin for `-`.
pub(crate) fn text(given: &str) -> Result<String, CliError> {
    if given != "-" {
        return Ok(given.to_owned());
    }
    let mut text = String::new();
    stdin()
        .lock()
        .take(TEXT_LIMIT)
        .read_to_string(&mut text)
        .map_err(|error| CliError::new("the text on stdin cannot be read").caused_by(&error))?;
    Ok(text)
}

/// A file, or stdin for `-`; `None` if it has `limit` bytes or more.
pub(crate) fn file(path: &Path, limit: u64) -> Result<Option<String>, CliError> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        stdin().lock().take(limit).read_to_string(&mut text)
    } else {
        File::open(path).and_then(|file| file.take(limit).read_to_string(&mut text))
    };
    let read = read
        .map_err(|error| CliError::new(format!("`{}` cannot be read", path.display())).caused_by(&error))?;
    Ok((read as u64 != limit).then_some(text))
}
