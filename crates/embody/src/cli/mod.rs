//! The command line. One file per subcommand; global flags work before and after the command.

mod agent;
mod approvals;
mod args;
mod audit;
mod config;
mod demo;
mod doctor;
mod init;
mod instructions;
mod man;
mod mcp;
pub(crate) mod memory;
mod pins;
mod policy;
pub(crate) mod prompt;
mod run;
mod schedule;
pub(crate) mod status;
mod store;
mod token;
mod unused_files;
mod up;
mod user;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use serde::Serialize;
use serde_json::{Value, json};
use tracing::level_filters::LevelFilter;

pub(crate) use self::args::ScopeArgs;
use self::config::ConfigCommand;
use self::store::StoreCommand;
use crate::config::env::{self, non_empty};
use crate::config::{Config, Inputs, Override};
use crate::error::{CliError, ErrorContext};
use crate::prompt_loading::PromptArgs;
use crate::{log, output};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

const EXAMPLES: &str = "Examples:
  embody demo                               see it at work, without any set-up
  embody init                               make a workspace in ~/.embody
  embody prompt show --layout tagged        print the prompt, exactly as it is sent
  embody prompt explain                     where each part comes from and what it costs
  embody prompt explain --html prompt.html  the same as a page
  embody prompt lint                        what is wrong with it
  embody instructions set 'Be brief.'       what the agent is told from the next prompt on
  embody memory search 'who likes tea?'     what it remembers, the best answer first
  embody run 'What did I promise Ann?'      say something to the agent
  embody up                                 talk to it in the browser; hosts find everything at /mcp
  embody mcp                                be a host's one MCP server, yours behind it
  embody doctor                             what is wrong with the workspace";

/// Gives an AI agent one self: its prompt, its memory, its rules, and one MCP entry in front of its servers.
#[derive(Parser, Debug)]
#[command(name = "embody", version, styles = STYLES, after_help = EXAMPLES, max_term_width = 100)]
#[command(arg_required_else_help = true, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// The workspace folder [env: EMBODY_WORKSPACE] [default: ~/.embody]
    #[arg(long, global = true, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// The configuration file [env: EMBODY_CONFIG] [default: embody.toml in the workspace]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The store's address [default: SQLite in the workspace]
    #[arg(long, global = true, value_name = "URL")]
    store: Option<String>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    /// How much to say on stderr [default: as configured, else info]
    #[arg(long, global = true, value_name = "LEVEL", value_parser = ["off", "error", "warn", "info", "debug", "trace"])]
    log: Option<String>,
    /// The user that a flag of the command names.
    #[arg(skip)]
    user_flag: Option<String>,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Shows, explains, compares and checks prompts
    #[command(subcommand)]
    Prompt(prompt::PromptCommand),
    /// Saves, finds, lists, forgets, exports and imports memories; what is to be done
    #[command(subcommand)]
    Memory(memory::MemoryCommand),
    /// Shows, sets and reverts standing instructions; decides on proposals
    #[command(subcommand)]
    Instructions(instructions::InstructionsCommand),
    /// Sets souls and identities in the store
    #[command(subcommand)]
    Agent(agent::AgentCommand),
    /// Shows the calls that wait for a person; approves and denies them
    #[command(subcommand)]
    Approvals(approvals::ApprovalsCommand),
    /// Shows the tools' definitions that hold; accepts changed ones
    #[command(subcommand)]
    Pins(pins::PinsCommand),
    /// Says what the rules make of a call
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    /// Shows, verifies and exports the audit chain
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// Makes, lists and revokes tokens
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// Lists users; locks them out and lets them in again
    #[command(subcommand)]
    User(user::UserCommand),
    /// Shows what the store holds; upgrades old ones
    #[command(subcommand)]
    Store(store::StoreCommand),
    /// Runs everything in one process: the broker, the chat page, Telegram, schedules
    Up(up::UpArgs),
    /// Says something to an agent: one turn, its reply on stdout
    Run(run::RunArgs),
    /// Plans, lists, runs and removes what the agent does by itself
    #[command(subcommand)]
    Schedule(schedule::ScheduleCommand),
    /// Serves everything through one MCP entry: what a host runs
    #[command(after_help = mcp::MCP_EXAMPLES)]
    Mcp(mcp::ServeArgs),
    /// Serves the embedded mind alone, as an MCP server
    #[command(after_help = mcp::MIND_EXAMPLES)]
    Mind(mcp::ServeArgs),
    /// Serves the embedded body alone, as an MCP server: messages, tasks, schedules
    #[command(after_help = mcp::BODY_EXAMPLES)]
    Body(mcp::ServeArgs),
    /// Shows what runs, what does not work, and what waits for you
    #[command(after_help = status::EXAMPLES)]
    Status(ScopeArgs),
    /// Makes a workspace: body rules, identity, soul, a skill, a commented configuration
    Init(init::InitArgs),
    /// Shows the real thing at work, in a folder of its own: no model, no host, no set-up
    Demo(demo::DemoArgs),
    /// Checks the workspace and says what is wrong with it
    #[command(after_help = doctor::EXAMPLES)]
    Doctor(PromptArgs),
    /// Shows and checks the configuration
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Prints completions for a shell
    Completions(man::CompletionsArgs),
    /// Prints the manual page, or writes one for every command
    Man(man::ManArgs),
}

pub(crate) struct Context {
    pub(crate) workspace: PathBuf,
    pub(crate) config: Config,
    pub(crate) json: bool,
    global: Global,
}

impl Context {
    /// Loads the configuration and starts the log.
    fn open(global: Global) -> Result<Self, CliError> {
        let (workspace, config) = load(&global)?;
        let config = config?;
        log::start(&workspace, level(&global, &config));
        let context = Self { workspace, config, json: global.json, global };
        context.check_user_flag()?;
        Ok(context)
    }

    /// A name on the command line must be a known user, or must not be confusable with one.
    fn check_user_flag(&self) -> Result<(), CliError> {
        let Some(user) = &self.global.user_flag else { return Ok(()) };
        // An unreadable store fails the command itself, if it needs one.
        let stored = crate::store::with_existing(self, async |store| {
            let is_known = store.users().is_known(user).await?;
            Ok(if is_known { vec![user.clone()] } else { store.users().list_known().await? })
        });
        let Ok(known) = stored else { return Ok(()) };
        // The owner may not be in the store yet.
        let known: Vec<String> = known.unwrap_or_default().into_iter().chain([ScopeArgs::owner()]).collect();
        Ok(embody_store::users::check_user_name(user, &known)?)
    }

    /// Prints the result as JSON with `--json`, otherwise as text with styles.
    pub(crate) fn print(
        &self,
        value: &impl Serialize,
        text: impl FnOnce() -> String,
    ) -> Result<ExitCode, CliError> {
        if self.json {
            output::json(value)?
        } else {
            output::styled(&text())?
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Like [`Self::print`], for a list: `{"NAME": […]}` with `--json`.
    fn print_list<T>(
        &self,
        name: &str,
        items: &[T],
        as_json: impl Fn(&T) -> Value,
        as_text: impl FnOnce(&[T]) -> String,
    ) -> Result<ExitCode, CliError> {
        self.print(&json!({ name: items.iter().map(as_json).collect::<Vec<_>>() }), || as_text(items))
    }

    /// Like [`Self::print`], with text without styles.
    pub(crate) fn print_plain(
        &self,
        value: &impl Serialize,
        text: impl FnOnce() -> String,
    ) -> Result<ExitCode, CliError> {
        if self.json {
            output::json(value)?
        } else {
            output::plain(&text())?
        }
        Ok(ExitCode::SUCCESS)
    }

    /// The same flags in another workspace.
    pub(crate) fn in_folder(&self, folder: &Path) -> Result<Self, CliError> {
        Self::open(Global { workspace: Some(folder.to_owned()), ..self.global.clone() })
    }
}

/// Exits the process on a wrong command line.
pub(crate) fn parse() -> Cli {
    let matches = Cli::command().get_matches();
    let read = Cli::from_arg_matches(&matches);
    let mut cli = read.unwrap_or_else(|error| error.exit());
    cli.global.user_flag = user_flag(&matches);
    cli
}

/// The value of `--user`, whichever command has it.
fn user_flag(matches: &ArgMatches) -> Option<String> {
    let (_, matches) = matches.subcommand()?;
    let here = matches.try_get_one::<String>("user").ok().flatten();
    here.cloned().or_else(|| user_flag(matches))
}

/// Commands that need no configuration work with an invalid one.
pub(crate) fn run(cli: Cli) -> Result<ExitCode, CliError> {
    let Cli { global, command } = cli;
    match command {
        Command::Completions(args) => man::completions(&args),
        Command::Man(args) => man::run(&args),
        Command::Init(args) => init::run(&args, workspace(&global)?, global.json),
        Command::Demo(args) => demo::run(&args, global),
        Command::Store(StoreCommand::MigrateLegacy(args)) => {
            store::migrate(&args, &workspace(&global)?, global.json)
        }
        Command::Store(StoreCommand::Status) => store::status(&Context::open(global)?),
        Command::Config(ConfigCommand::Schema) => config::schema(),
        Command::Config(ConfigCommand::Reference) => config::reference(),
        Command::Config(ConfigCommand::Check) => config::check(load(&global)?, global.json),
        Command::Config(ConfigCommand::Show) => config::show(&Context::open(global)?),
        Command::Prompt(command) => prompt::run(&command, &Context::open(global)?),
        Command::Memory(command) => memory::run(&command, &Context::open(global)?),
        Command::Approvals(command) => approvals::run(&command, &Context::open(global)?),
        Command::Pins(command) => pins::run(&command, &Context::open(global)?),
        Command::Policy(command) => policy::run(&command, &Context::open(global)?),
        Command::Audit(command) => audit::run(&command, &Context::open(global)?),
        Command::Instructions(command) => instructions::run(&command, &Context::open(global)?),
        Command::Agent(command) => agent::run(&command, &Context::open(global)?),
        Command::Token(command) => token::run(&command, &Context::open(global)?),
        Command::User(command) => user::run(&command, &Context::open(global)?),
        Command::Up(args) => up::run(&args, Context::open(global)?),
        Command::Run(args) => run::run(&args, Context::open(global)?),
        Command::Schedule(command) => schedule::run(&command, Context::open(global)?),
        Command::Mcp(args) => mcp::run(&args, Context::open(global)?),
        Command::Status(args) => status::run(&args, &Context::open(global)?),
        Command::Mind(args) => mcp::mind(&args, Context::open(global)?),
        Command::Body(args) => mcp::body(&args, Context::open(global)?),
        Command::Doctor(args) => doctor::run(&args, &Context::open(global)?),
    }
}

type Loaded = (PathBuf, Result<Config, crate::config::ConfigError>);

fn load(global: &Global) -> Result<Loaded, CliError> {
    let workspace = workspace(global)?;
    let overrides = global.store.iter().map(|url| Override {
        key: "store.url".to_owned(),
        value: url.clone().into(),
        flag: "--store".to_owned(),
    });
    let config = Config::load(Inputs {
        file: global.config.clone().or_else(|| non_empty("EMBODY_CONFIG").map(PathBuf::from)),
        workspace: workspace.clone(),
        env: env::of_process(),
        overrides: overrides.collect(),
    });
    Ok((workspace, config))
}

fn workspace(global: &Global) -> Result<PathBuf, CliError> {
    let given = global.workspace.clone().or_else(|| non_empty("EMBODY_WORKSPACE").map(PathBuf::from));
    let path = given.or_else(default_workspace).ok_or_else(|| {
        CliError::usage("there is no home folder to look for a workspace in").hint("pass `--workspace DIR`")
    })?;
    // A missing folder is a workspace without files.
    if path.metadata().is_ok_and(|found| !found.is_dir()) {
        return Err(CliError::usage(format!("the workspace `{}` is a file, not a folder", path.display()))
            .hint("name a folder with `--workspace` or EMBODY_WORKSPACE; a configuration file is named with `--config`"));
    }
    std::path::absolute(&path).usage_context(format!("`{}` is no path", path.display()))
}

fn default_workspace() -> Option<PathBuf> {
    Some(std::env::home_dir()?.join(".embody"))
}

fn level(global: &Global, config: &Config) -> LevelFilter {
    log_flag(global).unwrap_or_else(|| config.log_level.as_str().parse().unwrap_or(LevelFilter::INFO))
}

fn log_flag(global: &Global) -> Option<LevelFilter> {
    global.log.as_deref()?.parse().ok()
}
