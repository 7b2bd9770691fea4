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

use crate::config::TEMPLATE;
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

const CONFIG: &str = "embody.toml";

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
        (CONFIG, TEMPLATE.to_owned()),
    ]
}

pub(crate) fn run(args: &InitArgs, workspace: PathBuf, json: bool) -> Result<ExitCode, CliError> {
    let folder = match &args.dir {
        None => workspace,
        Some(dir) => std::path::absolute(dir).usage_context(format!("`{}` is no path", dir.display()))?,
    };
    let WrittenFiles { written, mut kept } = write(&folder)?;
    let mut added = Vec::new();
    if kept.contains(&CONFIG) {
        let path = folder.join(CONFIG);
        let context = || format!("`{}` could not be changed", path.display());
        added = add_missing_keys(&path).context(context())?;
        kept.retain(|name| *name != CONFIG || added.is_empty());
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
    added.iter().for_each(|key| out.push_str(&format!("  added       {key} to {CONFIG}\n")));
    if written.is_empty() && added.is_empty() {
        return out + "\nNothing was missing.\n";
    }
    out + &format!("\nNext:\n  edit IDENTITY.md, SOUL.md and USER.md\n  embody{flag} prompt explain\n")
}

/// Adds the keys of `[prompt]` that the template sets and this file lacks. Returns them; leaves a file alone that it cannot extend.
fn add_missing_keys(path: &Path) -> std::io::Result<Vec<String>> {
    let text = fs::read_to_string(path)?;
    let Some((keys, extended)) = with_missing_keys(&text) else { return Ok(Vec::new()) };
    // A link stays a link.
    let path = fs::canonicalize(path)?;
    let temporary = path.with_file_name(format!(".embody-{}", std::process::id()));
    let written = fs::copy(&path, &temporary)
        .and_then(|_| fs::write(&temporary, extended))
        .and_then(|()| fs::rename(&temporary, &path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written.map(|()| keys)
}

/// The missing keys, and the text with them; `None` if nothing is missing or the text has another form than `[prompt]`.
fn with_missing_keys(text: &str) -> Option<(Vec<String>, String)> {
    let table: toml::Table = text.parse().ok()?;
    let template: toml::Table = TEMPLATE.parse().ok()?;
    let prompt = table.get("prompt").and_then(toml::Value::as_table);
    let missing = template.get("prompt")?.as_table()?.iter();
    let missing: Vec<_> =
        missing.filter(|(key, _)| prompt.is_none_or(|prompt| !prompt.contains_key(*key))).collect();
    if missing.is_empty() {
        return None;
    }
    let lines: String = missing.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
    let header = text.split_inclusive('\n').scan(0, |end, line| {
        *end += line.len();
        Some((line, *end))
    });
    let is_header = |line: &str| line.split('#').next().is_some_and(|line| line.trim() == "[prompt]");
    let extended = match header.into_iter().find(|(line, _)| is_header(line) && line.ends_with('\n')) {
        Some((_, end)) => format!("{}{lines}{}", text.get(..end)?, text.get(end..)?),
        None => format!("{}\n\n[prompt]\n{lines}", text.trim_end()),
    };
    // Nothing else may have changed.
    let mut expected = table;
    let prompt = expected.entry("prompt").or_insert_with(|| toml::Value::Table(toml::Table::new()));
    let prompt = prompt.as_table_mut()?;
    prompt.extend(missing.iter().map(|(key, value)| ((*key).clone(), (*value).clone())));
    let keys = missing.iter().map(|(key, _)| format!("prompt.{key}")).collect();
    (extended.parse::<toml::Table>().ok()? == expected).then_some((keys, extended))
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

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: &str = "extra_sections = [\"user\", \"workspace_files\", \"skills\"]\nfresh_last = true\n";

    #[test]
    fn missing_keys_are_added_and_no_value_is_changed() {
        for (text, expected) in [
            (
                "[model]\nmodel = \"m\"\n",
                format!("[model]\nmodel = \"m\"\n\n[prompt]\n{KEYS}layout = \"channel\"\n"),
            ),
            (
                "# mine\n[prompt] # here\nlayout = \"full\" # why\n[log]\n",
                format!("# mine\n[prompt] # here\n{KEYS}layout = \"full\" # why\n[log]\n"),
            ),
            (
                "[prompt.sections]\nsoul = 8\n",
                format!("[prompt.sections]\nsoul = 8\n\n[prompt]\n{KEYS}layout = \"channel\"\n"),
            ),
        ] {
            assert_eq!(with_missing_keys(text).unwrap().1, expected);
        }
        let (keys, _) = with_missing_keys("[prompt]\nlayout = \"body\"\nfresh_last = false\n").unwrap();
        assert_eq!(keys, ["prompt.extra_sections"]);
    }

    #[test]
    fn another_form_of_the_table_is_left_alone() {
        for text in [
            TEMPLATE,
            "prompt = { layout = \"full\" }\n",
            "prompt.layout = \"full\"\n",
            "prompt = 7\n",
            "[prompt\n",
            "[persona]\nx = \"\"\"\n[prompt]\n\"\"\"\n",
        ] {
            assert_eq!(with_missing_keys(text), None, "{text}");
        }
    }
}
