//! A person changes a text in their own editor: `$VISUAL`, else `$EDITOR`, else `vi`. Nothing of what they wrote is lost: if the
//! text cannot be taken, its file stays.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Write};
use std::process::Command;

use tempfile::{Builder, NamedTempFile};

use crate::config::env::non_empty;
use crate::error::{CliError, ErrorContext};

const DEFAULT: &str = "vi";
/// The exit code of a shell that does not find a program.
const NOT_FOUND: i32 = 127;

/// A text that a person changed, in its file until it is dropped.
#[derive(Debug)]
pub(super) struct EditedText {
    pub(super) text: String,
    file: NamedTempFile,
}

impl EditedText {
    /// Keeps the file, so that a text that could not be stored is not lost, and says where it is.
    pub(super) fn keep(self, error: CliError) -> CliError {
        kept(self.file, error)
    }
}

fn kept(file: NamedTempFile, error: CliError) -> CliError {
    match file.keep() {
        Ok((_, path)) => error.hint(format!("your text is in `{}`", path.display())),
        Err(_) => error,
    }
}

/// Opens the editor on a text of at most `limit` bytes; `None` if it is unchanged. `name` is part of the name of the file.
pub(super) fn edit(name: &str, text: &str, limit: usize) -> Result<Option<EditedText>, CliError> {
    let failed = "the file for the editor cannot be written";
    let prefix = format!("embody-{name}-");
    let mut file = Builder::new().prefix(&prefix).suffix(".md").tempfile().context(failed)?;
    file.write_all(text.as_bytes()).and_then(|()| file.flush()).context(failed)?;
    run(file.path().as_os_str())?;
    let edited = match read(&file, limit) {
        Ok(edited) => edited,
        Err(error) => return Err(kept(file, error)),
    };
    // Most editors end the last line.
    let edited = match edited.strip_suffix('\n') {
        Some(line) if !text.ends_with('\n') => line.to_owned(),
        _ => edited,
    };
    Ok((edited != text).then_some(EditedText { text: edited, file }))
}

/// The editor may be a command with arguments, which a shell splits as it does for other programs.
fn run(path: &OsStr) -> Result<(), CliError> {
    let editor = non_empty("VISUAL").or_else(|| non_empty("EDITOR")).unwrap_or_else(|| DEFAULT.into());
    let shown = editor.display().to_string();
    let mut script: OsString = editor;
    script.push(" \"$1\"");
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).arg("sh").arg(path);
    let ended = command.status().context(format!("the editor `{shown}` could not be started"))?;
    if ended.success() {
        return Ok(());
    }
    let error = CliError::new(format!("the editor `{shown}` ended with {ended}; nothing was changed"));
    Err(match ended.code() {
        Some(NOT_FOUND) => error.hint("set VISUAL or EDITOR to the command of your editor"),
        _ => error,
    })
}

/// An editor may have put another file in its place.
fn read(file: &NamedTempFile, limit: usize) -> Result<String, CliError> {
    let path = file.path().display().to_string();
    let mut bytes = Vec::new();
    let most = limit as u64 + 1;
    File::open(file.path())
        .and_then(|file| file.take(most).read_to_end(&mut bytes))
        .context(format!("`{path}` cannot be read after the editor ended"))?;
    let wrong = |reason: String| CliError::new(format!("{reason}; nothing was changed"));
    if bytes.len() > limit {
        return Err(wrong(format!("the text has more than {limit} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|_| wrong("the text is not UTF-8".to_owned()))?;
    match text.char_indices().find(|(_, c)| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        None => Ok(text),
        Some((at, c)) => {
            Err(wrong(format!("the text has the control character U+{:04X} at byte {at}", u32::from(c))))
        }
    }
}
