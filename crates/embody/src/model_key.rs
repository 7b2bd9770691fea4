//! The key of the model: in an environment variable, or in a file that only its owner can read. The only place that reads or writes
//! that file; the key itself is never printed.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use embody_agent::model::KeySource;
use embody_wire::Secret;
use serde_json::{Value, json};

use crate::config::edit;
use crate::config::env::non_empty;
use crate::config::settings::Model;
use crate::error::{CliError, ErrorContext};

/// Before and after the random part of the name of a file that [`write`] creates.
const NAME_PARTS: (&str, &str) = ("model-", ".key");
const RANDOM_DIGITS: usize = 16;

const MAX_BYTES: u64 = 16 * 1024;
/// What group and others may do.
const OTHERS: u32 = 0o077;

#[derive(Debug, Clone)]
pub(crate) struct ModelKey {
    pub(crate) secret: Option<Secret>,
    pub(crate) source: KeySource,
}

impl ModelKey {
    /// The configured one. A variable may be unset: local models seldom need a key.
    pub(crate) fn configured(model: &Model) -> Result<Self, CliError> {
        if let Some(path) = &model.api_key_file {
            let source = KeySource::File(path.display().to_string());
            return Ok(Self { secret: Some(read(path)?), source });
        }
        let key = non_empty(&model.api_key_env).and_then(|key| key.into_string().ok());
        let source = KeySource::Variable(model.api_key_env.clone());
        Ok(Self { secret: key.map(|key| Secret::new(key.trim())), source })
    }

    /// One that a person has just entered.
    pub(crate) fn entered(secret: &Secret) -> Self {
        Self { secret: Some(Secret::new(secret.expose().trim())), source: KeySource::Entered }
    }
}

/// Where the key is, without the key.
pub(crate) fn source_json(model: &Model) -> Value {
    match &model.api_key_file {
        Some(path) => json!({ "source": "file", "name": path, "is_set": path.exists() }),
        None => {
            let variable = &model.api_key_env;
            json!({ "source": "env", "name": variable, "is_set": non_empty(variable).is_some() })
        }
    }
}

fn read(path: &Path) -> Result<Secret, CliError> {
    let shown = path.display();
    let unreadable = || format!("`model.api_key_file`: `{shown}` cannot be read");
    // A pipe would block.
    let is_file = path.metadata().usage_context(unreadable())?.is_file();
    if !is_file {
        return Err(CliError::usage(format!("`model.api_key_file`: `{shown}` is not a file")));
    }
    let file = File::open(path).usage_context(unreadable())?;
    let mode = file.metadata().usage_context(unreadable())?.permissions().mode();
    if mode & OTHERS != 0 {
        let message =
            format!("`model.api_key_file`: others can read `{shown}`, its mode is {:o}", mode & 0o777);
        return Err(CliError::usage(message).hint(format!("run `chmod 600 {shown}`")));
    }
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text).usage_context(unreadable())?;
    match text.trim() {
        "" => Err(CliError::usage(format!("`model.api_key_file`: `{shown}` is empty"))
            .hint("write the key into it, or remove `api_key_file` from `[model]`")),
        key => Ok(Secret::new(key)),
    }
}

/// A new name for a file in the workspace. A key never replaces the content of another file: until the configuration names the new
/// file, the old key belongs to the old server.
pub(crate) fn new_name() -> Result<String, CliError> {
    let mut bytes = [0; RANDOM_DIGITS / 2];
    getrandom::fill(&mut bytes).map_err(|_| CliError::new("the system returned no random bytes"))?;
    let (before, after) = NAME_PARTS;
    Ok(format!("{before}{:016x}{after}", u64::from_be_bytes(bytes)))
}

pub(crate) fn write(path: &Path, key: &Secret) -> Result<(), CliError> {
    let text = format!("{}\n", key.expose().trim());
    edit::replace_private(path, &text).context(format!("`{}` could not be written", path.display()))
}

/// Whether embody created this file: only such a file is removed when another key replaces it.
pub(crate) fn is_own(workspace: &Path, path: &Path) -> bool {
    let (before, after) = NAME_PARTS;
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let digits = name.strip_prefix(before).and_then(|rest| rest.strip_suffix(after)).unwrap_or_default();
    let is_name = digits.len() == RANDOM_DIGITS && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_name && path.parent() == Some(workspace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_with_new_names_in_the_workspace_are_own() {
        let workspace = Path::new("/w");
        assert!(is_own(workspace, &workspace.join(new_name().unwrap())));
        assert_ne!(new_name().unwrap(), new_name().unwrap());
        let names = [
            "model.key",
            "model-mine.key",
            "model-0123456789abcdef.txt",
            "elsewhere/model-0123456789abcdef.key",
        ];
        for name in names {
            assert!(!is_own(workspace, &workspace.join(name)), "{name}");
        }
    }
}
