//! `embody soul …`: the text that says who an agent is, in `SOUL.md` of the workspace or of an agent's folder.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use embody_prompt::{DEFAULT_SOUL, Source};
use embody_store::OPERATOR;
use embody_store::audit::{Action, Actor, Event, Operation, Record};
use embody_workspace::{AgentName, FILE_LIMIT, read_soul};
use serde_json::json;

use super::{Context, ScopeArgs, editor};
use crate::config::edit::replace;
use crate::error::{CliError, ErrorContext};
use crate::output;
use crate::store;

const FILE: &str = "SOUL.md";
const EXAMPLES: &str =
    "An agent's own folder wins over what `embody agent set` stored, and that over the workspace's SOUL.md.

Examples:
  embody soul show
  embody soul edit                  the workspace's SOUL.md, in $VISUAL, $EDITOR or vi
  embody soul edit --agent coach    agents/coach/SOUL.md";

#[derive(Subcommand, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) enum SoulCommand {
    /// Print the soul of an agent, and on stderr where it is from
    #[command(after_help = "Examples:\n  embody soul show\n  embody soul show --agent coach --json")]
    Show(SoulArgs),
    /// Change SOUL.md in your editor; the next prompt uses it
    #[command(after_help = "Examples:\n  embody soul edit\n  EDITOR=nano embody soul edit --agent coach")]
    Edit(SoulArgs),
}

#[derive(Args, Debug)]
pub(crate) struct SoulArgs {
    /// The agent whose folder has the file [default: the workspace's own file]
    #[arg(long)]
    agent: Option<String>,
}

pub(crate) fn run(command: &SoulCommand, context: &Context) -> Result<ExitCode, CliError> {
    match command {
        SoulCommand::Show(args) => show(args, context),
        SoulCommand::Edit(args) => edit(args, context),
    }
}

fn agent(args: &SoulArgs) -> Result<AgentName, CliError> {
    let name = args.agent.clone().unwrap_or_else(|| ScopeArgs::default().agent());
    Ok(AgentName::new(&name)?)
}

/// The soul that prompts of the agent have, and where it is from.
fn in_effect(agent: &AgentName, context: &Context) -> Result<Option<(String, Source)>, CliError> {
    let name = agent.as_str();
    let stored = store::with_existing(context, async |store| Ok(store.agents().get(name).await?))?;
    let stored = stored.flatten().and_then(|agent| agent.soul);
    let stored = stored.map(|soul| (soul, Source::named(&format!("store: agent {name}"))));
    Ok(read_soul(&context.workspace, agent, stored.as_ref()))
}

fn show(args: &SoulArgs, context: &Context) -> Result<ExitCode, CliError> {
    let agent = agent(args)?;
    let (text, source) = match in_effect(&agent, context)? {
        Some((text, source)) => (text, source.name().to_owned()),
        None => (DEFAULT_SOUL.to_owned(), "built-in".to_owned()),
    };
    if context.json {
        output::json(&json!({ "agent": agent.as_str(), "source": source, "text": text }))?;
    } else {
        output::raw_bytes(&text)?;
        output::stderr_line(&format!("soul of {}: {source}", agent.as_str()));
    }
    Ok(ExitCode::SUCCESS)
}

fn edit(args: &SoulArgs, context: &Context) -> Result<ExitCode, CliError> {
    let agent = agent(args)?;
    let label = match &args.agent {
        Some(_) => format!("agents/{}/{FILE}", agent.as_str()),
        None => FILE.to_owned(),
    };
    let path = context.workspace.join(&label);
    let before = read(&path)?;
    // Without a soul, the built-in one is where a person starts.
    let start = before.as_deref().filter(|text| !text.trim().is_empty()).unwrap_or(DEFAULT_SOUL);
    let Some(edited) = editor::edit("soul", start, FILE_LIMIT as usize)? else {
        return print(&label, before.as_deref().unwrap_or_default(), false, context);
    };
    if let Err(error) = write(&path, before.as_deref(), &edited.text) {
        return Err(edited.keep(error));
    }
    record(&agent, &label, context)?;
    print(&label, &edited.text, true, context)?;
    let used = in_effect(&agent, context)?.map(|(_, source)| source.name().to_owned());
    if let Some(used) = used.filter(|used| *used != label) {
        output::hint(&format!("the agent `{}` does not use this file: `{used}` wins", agent.as_str()));
    }
    Ok(ExitCode::SUCCESS)
}

fn print(label: &str, text: &str, is_changed: bool, context: &Context) -> Result<ExitCode, CliError> {
    let characters = text.chars().count();
    context.print_plain(&json!({ "file": label, "characters": characters, "changed": is_changed }), || {
        match is_changed {
            true => format!("{label}: {characters} characters\n"),
            false => format!("{label} is unchanged\n"),
        }
    })
}

fn read(path: &Path) -> Result<Option<String>, CliError> {
    let failed = || format!("`{}` cannot be read", path.display());
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(CliError::new(failed()).caused_by(&error)),
        Ok(found) if !found.is_file() => {
            return Err(CliError::new(failed()).hint("it must be a regular file"));
        }
        Ok(found) if found.len() > FILE_LIMIT => {
            return Err(CliError::new(format!("{}: more than {FILE_LIMIT} bytes", failed())));
        }
        Ok(_) => {}
    }
    std::fs::read_to_string(path).context(failed()).map(Some)
}

/// Fails if the file is not as it was when the editor opened.
fn write(path: &Path, before: Option<&str>, text: &str) -> Result<(), CliError> {
    let failed = || format!("`{}` cannot be written", path.display());
    if read(path)?.as_deref() != before {
        return Err(CliError::new(format!("`{}` changed meanwhile; nothing was written", path.display()))
            .hint("run the command again, and take over your text"));
    }
    let folder = path.parent().unwrap_or(path);
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.and_then(|()| replace(path, text)).context(failed())
}

/// A change of an agent's soul is on record, wherever it is stored.
fn record(agent: &AgentName, label: &str, context: &Context) -> Result<(), CliError> {
    let actor = Actor { user: OPERATOR.to_owned(), agent: None, session: None, channel: None };
    let operation = Operation {
        action: Action::SoulEdited,
        subject: agent.as_str().to_owned(),
        note: Some(label.to_owned()),
    };
    let record = Record { actor, event: Event::Operator(operation) };
    store::with(context, async |store| Ok(store.audit().append(record).await?))
}
