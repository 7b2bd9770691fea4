//! Takes invisible characters out of a workspace's own files. Only takes out: line ends, order and everything visible stay,
//! a file is replaced whole or not at all, and one that would no longer be read as before is left alone.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use embody_prompt::without_hidden;

use crate::read::{FILE_LIMIT, Folder, ReadError};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StripOutcome {
    Clean,
    Stripped,
    Skipped(String),
}

/// Mends the file of that name, relative to the workspace. A link is followed as long as it stays inside.
pub fn strip_invisible(workspace: &Path, name: &str) -> io::Result<StripOutcome> {
    let left = |reason: &str| Ok(StripOutcome::Skipped(reason.to_owned()));
    let path = match Folder::new(workspace, "").resolve(name) {
        Ok(path) => path,
        Err(ReadError::NotFound) => return left("there is no such file in the workspace"),
        Err(ReadError::Refused(reason)) => return Ok(StripOutcome::Skipped(reason)),
    };
    let metadata = std::fs::metadata(&path)?;
    if !metadata.is_file() || metadata.len() > FILE_LIMIT {
        return left("it is not a regular file of a readable size");
    }
    let Ok(text) = String::from_utf8(std::fs::read(&path)?) else { return left("it is not UTF-8 text") };
    let clean = without_hidden(&text);
    if clean == text {
        return Ok(StripOutcome::Clean);
    }
    if is_readable(&path, &text) && !is_readable(&path, &clean) {
        return left("without them it could no longer be read");
    }
    replace(&path, &clean).map(|()| StripOutcome::Stripped)
}

fn is_readable(path: &Path, text: &str) -> bool {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("json") => serde_json::from_str::<serde_json::Value>(text).is_ok(),
        Some("toml") => text.parse::<toml::Table>().is_ok(),
        _ => true,
    }
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let aside = folder.join(format!(".embody-{}", std::process::id()));
    // Never through something that is already there.
    let file = OpenOptions::new().write(true).create_new(true).open(&aside)?;
    let written = write(file, path, text).and_then(|()| std::fs::rename(&aside, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&aside);
    }
    written
}

fn write(mut file: File, like: &Path, text: &str) -> io::Result<()> {
    file.set_permissions(std::fs::metadata(like)?.permissions())?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
