//! What a command reads beside its arguments: stdin and files, never without end.

use std::fs::File;
use std::io::{Read, stdin};
use std::path::Path;

use crate::failure::Failure;

/// What is read as one text at most; the store allows less and says so.
const TEXT_LIMIT: u64 = 1024 * 1024;

/// A text as it was given, or all of stdin for `-`.
pub(crate) fn text(given: &str) -> Result<String, Failure> {
    if given != "-" {
        return Ok(given.to_owned());
    }
    let mut text = String::new();
    stdin()
        .lock()
        .take(TEXT_LIMIT)
        .read_to_string(&mut text)
        .map_err(|error| Failure::new("the text on stdin cannot be read").because(&error))?;
    Ok(text)
}

/// A whole file, or stdin for `-`; `None` if it has so many bytes or more.
pub(crate) fn file(path: &Path, limit: u64) -> Result<Option<String>, Failure> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        stdin().lock().take(limit).read_to_string(&mut text)
    } else {
        File::open(path).and_then(|file| file.take(limit).read_to_string(&mut text))
    };
    let read =
        read.map_err(|error| Failure::new(format!("`{}` cannot be read", path.display())).because(&error))?;
    Ok((read as u64 != limit).then_some(text))
}
