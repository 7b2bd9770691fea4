//! Removes invisible characters from files of a workspace and changes nothing else. A file is replaced whole or not at all, and skipped
//! if it would no longer parse.

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

/// `name` is relative to the workspace. A link is followed if it stays inside.
pub fn strip_invisible(workspace: &Path, name: &str) -> io::Result<StripOutcome> {
    let skipped = |reason: &str| Ok(StripOutcome::Skipped(reason.to_owned()));
    let path = match Folder::new(workspace, "").resolve(name) {
        Ok(path) => path,
        Err(ReadError::NotFound) => return skipped("the workspace does not have this file"),
        Err(ReadError::Refused(reason)) => return Ok(StripOutcome::Skipped(reason)),
    };
    let metadata = std::fs::metadata(&path)?;
    if !metadata.is_file() || metadata.len() > FILE_LIMIT {
        return skipped("it is not a regular file of a readable size");
    }
    let Ok(text) = String::from_utf8(std::fs::read(&path)?) else { return skipped("it is not UTF-8 text") };
    let clean = without_hidden(&text);
    if clean == text {
        return Ok(StripOutcome::Clean);
    }
    if is_readable(&path, &text) && !is_readable(&path, &clean) {
        return skipped("without them it could no longer be read");
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
    let temporary = folder.join(format!(".embody-{}", std::process::id()));
    // Never through an existing file or link.
    let file = OpenOptions::new().write(true).create_new(true).open(&temporary)?;
    let written = write(file, path, text).and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

fn write(mut file: File, like: &Path, text: &str) -> io::Result<()> {
    file.set_permissions(std::fs::metadata(like)?.permissions())?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
