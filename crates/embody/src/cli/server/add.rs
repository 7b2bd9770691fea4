//! `embody server add` and `embody server remove`: change `embody.toml` in place. A file that would be wrong is not written.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use embody_text::truncate;
use serde_json::json;

use super::test::{self, TestResult};
use super::{Context, LimitArgs, find};
use crate::cli::inputs;
use crate::config::edit::{self, ConfigFile, EditError, NewBody};
use crate::config::mask::Address;
use crate::config::{Config, validate};
use crate::error::{CliError, ErrorContext};
use crate::output::{self, one_line};
use crate::store;

const EXAMPLES: &str = "Examples:
  embody server add files -- npx -y @modelcontextprotocol/server-filesystem ~/notes
  embody server add github --env GITHUB_TOKEN -- docker run -i --rm -e GITHUB_TOKEN ghcr.io/github/github-mcp-server
  embody server add mail https://mail.example/mcp --token-command 'pass show mail'
  embody server add notes --cwd ~/notes --no-test -- ./server.py";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AddArgs {
    /// Your name for it: 1 to 32 of a to z, 0 to 9, `_` and `-`
    name: String,
    /// The address of a server on the web
    #[arg(value_name = "URL", conflicts_with = "command", required_unless_present = "command")]
    url: Option<String>,
    /// The program that is the server, and its arguments, behind `--`
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// A variable for the command: KEY passes on the one of embody's own environment, KEY=VALUE is written into the file
    #[arg(long, value_name = "KEY[=VALUE]", requires = "command")]
    env: Vec<String>,
    /// The folder that the command starts in [default: the one that embody is started in]
    #[arg(long, value_name = "DIR", requires = "command")]
    cwd: Option<PathBuf>,
    /// A command that prints the access token, as in a shell but without its features
    #[arg(long, value_name = "COMMAND", requires = "url")]
    token_command: Option<String>,
    /// How it is reached [default: found out]
    #[arg(long, value_parser = ["http", "sse"], requires = "url")]
    transport: Option<String>,
    /// Do not start it now
    #[arg(long)]
    no_test: bool,
    #[command(flatten)]
    limit: LimitArgs,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  embody server remove files")]
pub(crate) struct RemoveArgs {
    /// The server's name
    name: String,
}

pub(super) fn add(args: &AddArgs, context: &Context) -> Result<ExitCode, CliError> {
    let name = &args.name;
    if let Some((reason, hint)) = validate::name_problem(name) {
        return Err(CliError::usage(format!("`{}` {reason}", one_line(&truncate(name, 80)))).hint(hint));
    }
    let body = new_body(args)?;
    let (config, path) = add_entry(&body, context)?;
    let body = find(&config, name)?;
    if args.no_test {
        let value = json!({ "added": name, "file": path, "test": null });
        return context
            .print_plain(&value, || format!("added {name} to {path}\nTest it: embody server test {name}\n"));
    }
    if !context.json {
        output::plain(&format!("added {name} to {path}\n"))?;
        output::stderr_line(&format!("starting {name}, for at most {} s", args.limit.timeout));
    }
    let results = test::run(&[body], &config, args.limit.duration(), context)?;
    let is_ok = results.iter().all(TestResult::is_ok);
    let test = results.first().map(TestResult::json);
    let value = json!({ "added": name, "file": path, "test": test });
    context.print(&value, || added_text(name, &results, is_ok))?;
    Ok(output::exit_code(is_ok))
}

/// Returns the configuration with the new entry, and the file that has it.
fn add_entry(body: &NewBody, context: &Context) -> Result<(Config, String), CliError> {
    let file = ConfigFile::lock(context)?;
    let name = &body.name;
    // Another process may have added it since the configuration was loaded.
    if file.config(&file.text, inputs(&context.global)?)?.bodies.iter().any(|other| other.name == *name) {
        return Err(CliError::usage(format!("there is a server `{name}` already"))
            .hint(format!("take another name, or remove it first: `embody server remove {name}`")));
    }
    let changed = edit::add_body(&file.text, body).map_err(|error| file.error(&error))?;
    Ok((file.write(&changed, inputs(&context.global)?)?, file.shown()))
}

fn added_text(name: &str, results: &[TestResult], is_ok: bool) -> String {
    let found: String = results.iter().map(TestResult::text).collect();
    let next = match is_ok {
        true => format!(
            "Next:\n  embody server tools {name}    each tool, and what the rules decide about it\n  \
             Running hosts and `embody up` have it at once.\n"
        ),
        false => format!(
            "The entry stays. Next:\n  embody server test {name}      after you have changed something\n  \
             embody server remove {name}    to take it back\n"
        ),
    };
    found + &next
}

pub(super) fn remove(args: &RemoveArgs, context: &Context) -> Result<ExitCode, CliError> {
    let name = &args.name;
    find(&context.config, name)?;
    let file = ConfigFile::lock(context)?;
    let changed = edit::remove_body(&file.text, name).map_err(|error| match error {
        EditError::Missing => CliError::usage(format!("the server `{name}` is not in {}", file.shown()))
            .hint("it is set by environment variables that begin with EMBODY_BODY__: unset them"),
        error => file.error(&error),
    })?;
    file.write(&changed, inputs(&context.global)?)?;
    let path = file.shown();
    drop(file);
    // The entry is removed already; `server list` shows only configured servers.
    let forgotten =
        store::with_existing(context, async |store| Ok(store.server_health().remove(name).await?));
    if let Err(error) = forgotten {
        let (reason, _) = error.summary();
        output::stderr_line(&format!("warning: the last test of {name} stays in the database: {reason}"));
    }
    let value = json!({ "removed": name, "file": path });
    context.print_plain(&value, || {
        format!("removed {name} from {path}\nRunning hosts and `embody up` no longer have it.\n")
    })
}

fn new_body(args: &AddArgs) -> Result<NewBody, CliError> {
    let mut body =
        NewBody { name: args.name.clone(), transport: args.transport.clone(), ..NewBody::default() };
    if let Some(url) = &args.url {
        let address = Address::new(url);
        address.check_http().map_err(|reason| {
            let error = CliError::usage(format!("`{address}` {reason}"));
            error.hint(format!("a program goes behind `--`: `embody server add {} -- COMMAND`", args.name))
        })?;
        body.url = Some(url.clone());
    }
    if let Some(command) = &args.token_command {
        let words = shlex::split(command).filter(|words| !words.is_empty());
        body.token_command = words.ok_or_else(|| {
            CliError::usage("`--token-command` is not a command")
                .hint("write it like --token-command 'pass show mail'")
        })?;
    }
    for given in &args.env {
        let (key, value) =
            given.split_once('=').map_or((given.as_str(), None), |(key, value)| (key, Some(value)));
        let is_good = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if key.is_empty() || !key.chars().all(is_good) || key.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(CliError::usage("`--env` does not begin with the name of an environment variable")
                .hint("write --env KEY, or --env KEY=VALUE"));
        }
        match value {
            Some(value) => body.env.push((key.to_owned(), value.to_owned())),
            None => body.env_vars.push(key.to_owned()),
        }
    }
    if let Some(cwd) = &args.cwd {
        body.cwd = Some(absolute(cwd)?);
    }
    body.command.clone_from(&args.command);
    match body.command.first_mut() {
        Some(program) if program.trim().is_empty() => {
            return Err(CliError::usage("the command names no program").hint("write it behind `--`"));
        }
        // Later it is started in another folder.
        Some(program) if args.cwd.is_none() && program.contains('/') => {
            *program = absolute(Path::new(program))?
        }
        _ => {}
    }
    Ok(body)
}

fn absolute(path: &Path) -> Result<String, CliError> {
    let shown = path.display().to_string();
    let path = std::path::absolute(path).usage_context(format!("`{shown}` is not a path"))?;
    path.into_os_string().into_string().map_err(|_| CliError::usage(format!("`{shown}` is not valid UTF-8")))
}
