//! `embody init [DIR]`: writes a workspace. Never overwrites a file; lists the files that it left unchanged. Adds the keys that a new
//! workspace sets to an `embody.toml` that lacks them, and changes no value.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use crate::config::FILE_NAME;
use crate::config::complete::add_missing_keys;
use crate::error::{CliError, ErrorContext};
use crate::output;
use crate::workspace_files::{WrittenFiles, write};

#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  embody init\n  embody init ./my-agent && embody --workspace ./my-agent prompt show"
)]
pub(crate) struct InitArgs {
    /// The folder [default: the workspace]
    dir: Option<PathBuf>,
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
