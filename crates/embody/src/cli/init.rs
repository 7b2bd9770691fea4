//! `embody init [DIR]`: writes a workspace. Never overwrites a file; lists the files that it left unchanged. Adds the keys that a new
//! workspace sets to an `embody.toml` that lacks them, and changes no value.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use embody_prompt::DEFAULT_SOUL;
use serde_json::json;

use crate::config::complete::add_missing_keys;
use crate::config::{FILE_NAME, TEMPLATE};
use crate::error::{CliError, ErrorContext};
use crate::output;

#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  embody init\n  embody init ./my-agent && embody --workspace ./my-agent prompt show"
)]
pub(crate) struct InitArgs {
    /// The folder [default: the workspace]
    dir: Option<PathBuf>,
}

fn files() -> [(&'static str, String); 11] {
    macro_rules! template {
        ($name:literal) => {
            ($name, include_str!(concat!("../templates/", $name)).to_owned())
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

pub(crate) fn run(args: &InitArgs, workspace: PathBuf, json: bool) -> Result<ExitCode, CliError> {
    let folder = match &args.dir {
        None => workspace,
        Some(dir) => {
            std::path::absolute(dir).usage_context(format!("`{}` is not a valid path", dir.display()))?
        }
    };
    let WrittenFiles { written, mut kept } = write(&folder)?;
    let mut added = Vec::new();
    if kept.contains(&FILE_NAME) {
        let path = folder.join(FILE_NAME);
        added = add_missing_keys(&path).context(format!("`{}` could not be changed", path.display()))?;
        kept.retain(|name| *name != FILE_NAME || added.is_empty());
    }
    if json {
        output::json(&json!({
            "workspace": folder.display().to_string(),
            "written": written,
            "left_alone": kept,
            "added_keys": added,
        }))?;
    } else {
        let flag = flag(args.dir.as_deref(), &folder);
        output::plain(&report(&folder, &flag, &written, &kept, &added))?;
    }
    Ok(ExitCode::SUCCESS)
}

#[derive(Default)]
pub(super) struct WrittenFiles {
    written: Vec<&'static str>,
    kept: Vec<&'static str>,
}

/// Writes the files that are missing in this folder.
pub(super) fn write(folder: &Path) -> Result<WrittenFiles, CliError> {
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

fn report(folder: &Path, flag: &str, written: &[&str], kept: &[&str], added: &[String]) -> String {
    let mut out = format!("Workspace: {}\n", folder.display());
    written.iter().for_each(|name| out.push_str(&format!("  wrote       {name}\n")));
    kept.iter().for_each(|name| out.push_str(&format!("  left alone  {name}\n")));
    added.iter().for_each(|key| out.push_str(&format!("  added       {key} to {FILE_NAME}\n")));
    if written.is_empty() && added.is_empty() {
        return out + "\nNothing was missing.\n";
    }
    out + &format!("\nNext:\n  edit IDENTITY.md, SOUL.md and USER.md\n  embody{flag} prompt explain\n")
}

/// The `--workspace` flag for this folder, quoted for a shell.
fn flag(given: Option<&Path>, folder: &Path) -> String {
    if super::default_workspace().is_some_and(|home| home == folder) {
        return String::new();
    }
    let shown = given.unwrap_or(folder).display().to_string();
    let quoted = shlex::try_quote(&shown).map_or_else(|_| shown.clone(), |quoted| quoted.into_owned());
    format!(" --workspace {quoted}")
}

/// Writes the file unless it exists; removes a file that could not be written completely.
pub(super) fn write_new(path: &Path, text: &str) -> std::io::Result<bool> {
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
