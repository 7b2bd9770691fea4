//! The files of a new workspace. Never overwrites one.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use embody_prompt::DEFAULT_SOUL;

use crate::config::{FILE_NAME, TEMPLATE};
use crate::error::CliError;

#[derive(Default)]
pub(crate) struct WrittenFiles {
    pub(crate) written: Vec<&'static str>,
    pub(crate) kept: Vec<&'static str>,
}

/// Writes the files that are missing in this folder.
pub(crate) fn write(folder: &Path) -> Result<WrittenFiles, CliError> {
    let mut all = WrittenFiles::default();
    for (name, text) in files() {
        let new = write_new(&folder.join(name), &text).map_err(|error| {
            CliError::new(format!("`{}` could not be written", folder.join(name).display())).caused_by(&error).hint(
                "what was written before it is complete; run the command again once the folder can be written to",
            )
        })?;
        if new { all.written.push(name) } else { all.kept.push(name) }
    }
    Ok(all)
}

fn files() -> [(&'static str, String); 11] {
    macro_rules! template {
        ($name:literal) => {
            ($name, include_str!(concat!("templates/", $name)).to_owned())
        };
    }
    [
        template!("prompts/agent_system.md"),
        template!("prompts/anatomy/security.md"),
        template!("prompts/anatomy/channel-discipline.md"),
        template!("prompts/anatomy/identity-and-tools.md"),
        template!("IDENTITY.md"),
        ("SOUL.md", format!("{DEFAULT_SOUL}\n")),
        template!("USER.md"),
        template!("AGENTS.md"),
        template!("TOOLS.md"),
        template!("skills/daily-review/SKILL.md"),
        (FILE_NAME, TEMPLATE.to_owned()),
    ]
}

/// Writes the file unless it exists; removes a file that could not be written completely.
fn write_new(path: &Path, text: &str) -> std::io::Result<bool> {
    // A workspace is private, and its configuration may contain secrets.
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let mut file = match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(false),
        Err(error) => return Err(error),
    };
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    if written.is_err() {
        let _ = fs::remove_file(path);
    }
    written.map(|()| true)
}
