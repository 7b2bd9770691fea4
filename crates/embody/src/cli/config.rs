//! `embody config show|check|schema|reference`: the configuration in force, its problems, and the known keys.

use std::process::ExitCode;

use clap::Subcommand;
use serde_json::{Value, json};

use super::{Context, Loaded, policy};
use crate::config::reference::{Setting, reference_markdown};
use crate::config::tree::Origin;
use crate::config::{Config, Problem, mask, schema};
use crate::error::CliError;
use crate::output;

#[derive(Clone, Copy, Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print every key with its value and its source
    #[command(after_help = SHOW_EXAMPLE)]
    Show,
    /// Report all problems of the configuration; exit with 2 if there are any. Warn about `allow` rules that match more than
    /// their text suggests
    #[command(after_help = CHECK_EXAMPLE)]
    Check,
    /// Print the JSON Schema of embody.toml, for editors and other tools
    #[command(after_help = SCHEMA_EXAMPLE)]
    Schema,
    /// Print the reference page of embody.toml in Markdown
    #[command(hide = true)]
    Reference,
}

pub(crate) fn show(context: &Context) -> Result<ExitCode, CliError> {
    let config = &context.config;
    let keys: Vec<Value> = config.keys.iter().map(setting_json).collect();
    context.print_plain(&json!({ "file": file_json(config), "keys": keys }), || listing(config))
}

pub(crate) fn schema() -> Result<ExitCode, CliError> {
    output::json(&schema::schema())?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn reference() -> Result<ExitCode, CliError> {
    output::plain(&reference_markdown())?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn check((workspace, config): Loaded, json: bool) -> Result<ExitCode, CliError> {
    match config {
        Ok(config) if json => {
            let warnings = policy::warnings(&config);
            output::json(&json!({
                "ok": true,
                "file": file_json(&config),
                "problems": [],
                "warnings": warnings,
            }))?;
        }
        Ok(config) => match &config.file {
            Some(file) => {
                let mut out = format!("ok: {}\n", file.display());
                for warning in policy::warnings(&config) {
                    out.push_str(&format!("warning: {}\nhint: {}\n", warning.text(), warning.hint));
                }
                output::plain(&out)?;
            }
            None => {
                let file = workspace.join("embody.toml");
                output::plain(&format!("ok: {} does not exist; the defaults are used\n", file.display()))?;
            }
        },
        Err(error) if json => {
            let problems: Vec<Value> = error.problems().iter().map(problem_json).collect();
            output::json(&json!({ "ok": false, "count": error.count(), "problems": problems }))?;
            return Ok(ExitCode::from(2));
        }
        Err(error) => return Err(error.into()),
    }
    Ok(ExitCode::SUCCESS)
}

const SHOW_EXAMPLE: &str = "Examples:\n  EMBODY_PROMPT__LAYOUT=full embody config show\n\n\
    Passwords and queries in URLs and the values of `env` are hidden.";
const CHECK_EXAMPLE: &str = "Examples:\n  embody --config ./embody.toml config check --json";
const SCHEMA_EXAMPLE: &str = "Examples:\n  embody config schema > embody.schema.json";

fn listing(config: &Config) -> String {
    let rows: Vec<(String, &Setting)> =
        config.keys.iter().map(|setting| (as_line(&setting.value), setting)).collect();
    let key_width = config.keys.iter().map(|setting| width(&setting.key)).max().unwrap_or(0);
    // A long value must not push all origins off the screen.
    let value_width =
        rows.iter().map(|(value, _)| width(value)).filter(|width| *width <= 40).max().unwrap_or(0);
    let mut out = String::new();
    for (value, setting) in rows {
        let Setting { key, origin, .. } = setting;
        out.push_str(&format!("{key:key_width$}  {value:value_width$}  {origin}\n"));
    }
    out
}

/// Paths need not be UTF-8, but JSON must be.
fn file_json(config: &Config) -> Option<String> {
    config.file.as_ref().map(|file| file.display().to_string())
}

fn setting_json(setting: &Setting) -> Value {
    json!({
        "key": setting.key,
        "value": setting.value,
        "origin": setting.origin.kind(),
        "source": setting.origin.source(),
    })
}

fn problem_json(problem: &Problem) -> Value {
    json!({
        "key": problem.key,
        "message": problem.message,
        "origin": problem.origin.as_ref().map(Origin::kind),
        "source": problem.origin.as_ref().and_then(Origin::source),
        "cause": problem.cause,
        "hint": problem.hint,
    })
}

/// A value as JSON, because TOML would use several lines for some.
fn as_line(value: &toml::Value) -> String {
    serde_json::to_string(value).map_or_else(|_| value.to_string(), |text| mask::escape_control(&text))
}

fn width(text: &str) -> usize {
    text.chars().count()
}
