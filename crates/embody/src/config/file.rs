//! Owns finding and reading the configuration file: which one, how large at most, and what is said when it cannot be
//! read. Refuses to parse.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::error::{Problem, quoted};

/// Largest file that is read.
pub(super) const MAX_BYTES: u64 = 1024 * 1024;

/// The name of the file in a workspace.
pub(crate) const FILE_NAME: &str = "embody.toml";

/// A configuration file's path and text.
pub(super) struct Source {
    /// Which file.
    pub(super) path: PathBuf,
    /// What it says.
    pub(super) text: String,
}

/// Reads the named file, or else the workspace's own if there is one.
pub(super) fn read(explicit: Option<PathBuf>, workspace: &Path) -> Result<Option<Source>, Box<Problem>> {
    let path = match explicit {
        Some(path) => path,
        None => {
            let path = workspace.join(FILE_NAME);
            // A dangling link counts as present: a policy must not vanish unnoticed.
            match fs::symlink_metadata(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                _ => path,
            }
        }
    };
    let text = text_of(&path)?;
    Ok(Some(Source { path, text }))
}

fn text_of(path: &Path) -> Result<String, Box<Problem>> {
    let name = quoted(&path.to_string_lossy());
    let refuse = |what: &str| Box::new(Problem::bare(format!("the configuration file {name} {what}")));
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Box::new(
            refuse("does not exist")
                .hint("check the path; without `--config` the workspace's `embody.toml` is read"),
        ),
        _ => Box::new(refuse("cannot be read").cause(error.to_string())),
    };
    // Opening a pipe or a terminal could wait for ever, so look first.
    let metadata = fs::metadata(path).map_err(unreadable)?;
    if metadata.is_dir() {
        let hint =
            format!("name a file in it, for example {}", quoted(&path.join(FILE_NAME).to_string_lossy()));
        return Err(Box::new(refuse("is a folder").hint(hint)));
    }
    if !metadata.is_file() {
        return Err(refuse("is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes)).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(refuse(&format!("is larger than {MAX_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes().iter().take(good).filter(|byte| **byte == b'\n').count();
        Box::new(
            refuse(&format!("is not UTF-8 text: line {line} has a wrong byte"))
                .hint("save the file as UTF-8"),
        )
    })
}
