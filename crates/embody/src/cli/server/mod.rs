//! `embody server …`: adds, lists, tests and removes the servers of `embody.toml`, and shows their tools. `add` and `remove` change
//! the file in place; `test` really starts a server.

mod add;
mod list;
mod test;

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};

use self::add::{AddArgs, RemoveArgs};
use self::list::ToolsArgs;
use super::Context;
use crate::config::Config;
use crate::config::settings::Body;
use crate::error::CliError;

const EXAMPLES: &str = "Examples:
  embody server add files -- npx -y @modelcontextprotocol/server-filesystem ~/notes
  embody server add mail https://mail.example/mcp --token-command 'pass show mail'
  embody server list
  embody server test files
  embody server tools files
  embody server remove files";

#[derive(Subcommand, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) enum ServerCommand {
    /// Add a server to embody.toml, and test it
    Add(AddArgs),
    /// List the configured servers: state, tools, last error
    #[command(after_help = "Examples:\n  embody server list\n  embody server list --json")]
    List,
    /// Start or contact a server and list its tools; without a name all of them
    #[command(after_help = "Examples:\n  embody server test files\n  embody server test --timeout 10 --json")]
    Test(TestArgs),
    /// Remove a server from embody.toml
    Remove(RemoveArgs),
    /// Show the tools of a server, and what the rules decide about them
    Tools(ToolsArgs),
}

#[derive(Args, Debug)]
pub(crate) struct TestArgs {
    /// The server's name [default: all]
    name: Option<String>,
    #[command(flatten)]
    limit: LimitArgs,
}

#[derive(Args, Debug)]
pub(crate) struct LimitArgs {
    /// How long a server may take to list its tools, in seconds; a package may have to be downloaded first
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=600))]
    timeout: u64,
}

impl LimitArgs {
    fn duration(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }
}

pub(crate) fn run(command: &ServerCommand, context: &Context) -> Result<ExitCode, CliError> {
    match command {
        ServerCommand::Add(args) => add::add(args, context),
        ServerCommand::List => list::list(context),
        ServerCommand::Test(args) => test::test(args, context),
        ServerCommand::Remove(args) => add::remove(args, context),
        ServerCommand::Tools(args) => list::tools(args, context),
    }
}

fn find<'a>(config: &'a Config, name: &str) -> Result<&'a Body, CliError> {
    config.bodies.iter().find(|body| body.name == name).ok_or_else(|| unknown(config, name))
}

fn unknown(config: &Config, name: &str) -> CliError {
    let error = CliError::usage(format!("unknown server `{name}`"));
    let names: Vec<String> = config.bodies.iter().map(|body| format!("`{}`", body.name)).collect();
    match names.is_empty() {
        true => error.hint("none is configured; add one: `embody server add NAME -- COMMAND`"),
        false => error.hint(format!("configured servers: {}", names.join(", "))),
    }
}
