//! `embody agent …`: soul and identity in the store, for operators. No tool can write them.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anstyle::Style;
use clap::{Args, Subcommand};
use embody_store::Agent;
use embody_workspace::AgentName;
use serde_json::json;

use super::Context;
use crate::config::nearest;
use crate::error::{CliError, ErrorContext};
use crate::output::printable;
use crate::{store, time};

const IDENTITY_FIELDS: [&str; 5] = ["name", "emoji", "creature", "vibe", "description"];

const EXAMPLES: &str =
    "An agent's own folder wins over what is stored, and that over the files of the workspace.

Examples:
  embody agent set coach --soul soul.md --identity '{\"name\": \"Ada\", \"vibe\": \"calm\"}'
  embody agent set coach --identity '{\"vibe\": \"brisk\"}'      change one field
  embody agent show coach
  embody prompt show --agent coach";

#[derive(Subcommand, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) enum AgentCommand {
    /// List the agents in the store
    #[command(after_help = "Examples:\n  embody agent list")]
    List,
    /// Show one agent
    #[command(after_help = "Examples:\n  embody agent show coach\n  embody agent show coach --json")]
    Show {
        /// The agent's name
        name: String,
    },
    /// Set an agent's soul and identity; a part that is not given is unchanged, also of the identity
    #[command(
        after_help = "Examples:\n  embody agent set coach --soul soul.md\n  embody agent set coach --identity '{\"vibe\": \"brisk\"}'"
    )]
    Set(SetArgs),
    /// Remove an agent's soul and identity from the store
    #[command(after_help = "Examples:\n  embody agent remove coach")]
    Remove {
        /// The agent's name
        name: String,
    },
}

#[derive(Args, Debug)]
#[group(required = true, multiple = true)]
pub(crate) struct AgentValues {
    /// A file with the soul
    #[arg(long, value_name = "FILE")]
    soul: Option<PathBuf>,
    /// The identity as a JSON object: name, emoji, creature, vibe, description; null removes a field
    #[arg(long, value_name = "JSON")]
    identity: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct SetArgs {
    /// The agent's name
    name: String,
    #[command(flatten)]
    values: AgentValues,
}

pub(crate) fn run(command: &AgentCommand, context: &Context) -> Result<ExitCode, CliError> {
    match command {
        AgentCommand::List => list(context),
        AgentCommand::Show { name } => show(name, context),
        AgentCommand::Set(args) => set(args, context),
        AgentCommand::Remove { name } => remove(name, context),
    }
}

fn list(context: &Context) -> Result<ExitCode, CliError> {
    let agents =
        store::with_existing(context, async |store| Ok(store.agents().list().await?))?.unwrap_or_default();
    context.print_list("agents", &agents, as_json, as_text)
}

fn as_text(agents: &[Agent]) -> String {
    if agents.is_empty() {
        return "The store has no agents.\n".to_owned();
    }
    let mut out = String::new();
    for agent in agents {
        let (name, changed) = (printable(&agent.name), time::display(agent.changed_at));
        let soul = agent.soul.as_ref().map_or(0, |soul| soul.chars().count());
        let _ = writeln!(out, "{name:20}  version {:<4} {changed}  soul: {soul} characters", agent.version);
    }
    out
}

fn show(name: &str, context: &Context) -> Result<ExitCode, CliError> {
    const HEAD: Style = Style::new().bold();
    let agent = store::with_existing(context, async |store| Ok(store.agents().get(name).await?))?.flatten();
    let agent = agent.ok_or_else(|| missing(name))?;
    let mut out = String::new();
    if let Some(identity) = &agent.identity {
        let _ = writeln!(out, "{HEAD}identity{HEAD:#}  {}", printable(&identity.to_string()));
    }
    if let Some(soul) = &agent.soul {
        let _ = writeln!(out, "{HEAD}soul{HEAD:#}\n{}", printable(soul).trim_end());
    }
    context.print(&as_json(&agent), || out)
}

fn set(args: &SetArgs, context: &Context) -> Result<ExitCode, CliError> {
    AgentName::new(&args.name)?;
    let soul =
        args.values.soul.as_ref().map(|path| {
            std::fs::read_to_string(path).context(format!("`{}` cannot be read", path.display()))
        });
    let soul = soul.transpose()?;
    let identity = args
        .values
        .identity
        .as_ref()
        .map(|text| serde_json::from_str(text).usage_context("the identity is not valid JSON"));
    let identity: Option<serde_json::Value> = identity.transpose()?;
    identity.as_ref().map_or(Ok(()), check_identity)?;
    let version = store::with(context, async |store| {
        Ok(store.agents().put(&args.name, soul.as_deref(), identity).await?)
    })?;
    context.print_plain(&json!({ "name": args.name, "version": version }), || {
        format!("{}, version {version}\n", args.name)
    })
}

/// Rejects what no prompt would show. The store rejects what is not an object.
fn check_identity(identity: &serde_json::Value) -> Result<(), CliError> {
    for (field, value) in identity.as_object().into_iter().flatten() {
        if !IDENTITY_FIELDS.contains(&field.as_str()) {
            let known = IDENTITY_FIELDS.join(", ");
            let error = CliError::usage(format!("unknown identity field `{field}`"));
            return Err(match nearest(field, IDENTITY_FIELDS) {
                Some(near) => error.hint(format!("did you mean `{near}`?")),
                None => error.hint(format!("the fields are {known}; a longer text belongs into the soul")),
            });
        }
        if !value.is_string() && !value.is_null() {
            return Err(CliError::usage(format!("the identity field `{field}` is not text"))
                .hint(format!("write {{\"{field}\": \"…\"}}, or null to remove it")));
        }
    }
    Ok(())
}

fn remove(name: &str, context: &Context) -> Result<ExitCode, CliError> {
    if store::with_existing(context, async |store| Ok(store.agents().remove(name).await?))? != Some(true) {
        return Err(missing(name));
    }
    context.print_plain(&json!({ "name": name, "state": "removed" }), || format!("removed {name}\n"))
}

fn missing(name: &str) -> CliError {
    CliError::new(format!("the store has no agent `{name}`")).hint("`embody agent list` lists the agents")
}

fn as_json(agent: &Agent) -> serde_json::Value {
    json!({
        "name": agent.name,
        "soul": agent.soul,
        "identity": agent.identity,
        "version": agent.version,
        "changed_at": time::rfc3339(agent.changed_at),
    })
}
