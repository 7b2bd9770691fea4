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

/// The file in the workspace that a key is written to.
pub(crate) const FILE_NAME: &str = "model.key";

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

/// Under the lock of the configuration.
pub(crate) fn write(workspace: &Path, key: &Secret) -> Result<(), CliError> {
    let path = workspace.join(FILE_NAME);
    let text = format!("{}\n", key.expose().trim());
    edit::replace_private(&path, &text).context(format!("`{}` could not be written", path.display()))
}
