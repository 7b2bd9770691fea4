//! The command line. One file per subcommand; global flags work before and after the command.

mod agent;
mod approvals;
mod args;
mod audit;
mod config;
mod demo;
mod doctor;
mod editor;
mod ids;
mod init;
mod instructions;
mod man;
mod mcp;
mod memory;
mod model;
mod notices;
mod open;
mod pins;
mod policy;
mod prompt;
mod reload;
mod run;
mod schedule;
mod server;
mod soul;
mod status;
mod store;
mod terminal;
mod thread;
mod today;
mod token;
mod unused_files;
mod up;
mod upgrade_check;
mod usage;
mod user;

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::builder::styling::{AnsiColor, Styles};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use serde::Serialize;
use serde_json::{Value, json};
use tracing::level_filters::LevelFilter;

use self::args::ScopeArgs;
use self::config::ConfigCommand;
use self::store::StoreCommand;
use crate::config::env::{self, non_empty};
use crate::config::{Config, Inputs, Override, nearest};
use crate::error::{CliError, ErrorContext};
use crate::settings::Settings;
use crate::{log, output};

/// Each has its own guidance in a prompt, or is where hosts connect.
const CHANNELS: [&str; 4] = ["web", "telegram", "scheduled", "mcp"];

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

const EXAMPLES: &str = "Examples:
  embody demo                               run the demo, without any set-up
  embody init                               create a workspace in ~/.embody
  embody doctor                             check the workspace
  embody prompt show --layout tagged        print the system prompt exactly as it is sent
  embody prompt explain                     show the source and the tokens of each section
  embody prompt explain --html prompt.html  write the same as a page
  embody prompt lint                        check the prompt for problems
  embody instructions set 'Be brief.'       set standing instructions, effective in the next prompt
  embody memory search 'who likes tea?'     search memories, best match first
  embody run 'What did I promise Ann?'      run one turn of the agent
  embody up                                 serve the web chat, and MCP at /mcp
  embody open                               print a link to sign in to its console
  embody mcp                                serve MCP on stdio: the command for a host's server list";

/// Keep an AI agent's rules, persona and memory in one place, and enforce the rules as an MCP server in front of your
/// other MCP servers
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
    /// The store's URL [default: SQLite in the workspace]
    #[arg(long, global = true, value_name = "URL")]
    store: Option<String>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    /// The log level on stderr [default: warn; for `up`, `mcp`, `mind` and `body` `log.level`]
    #[arg(long, global = true, value_name = "LEVEL", value_parser = ["off", "error", "warn", "info", "debug", "trace"])]
    log: Option<String>,
    /// The names that flags of the command give, whichever command has them.
    #[arg(skip)]
    names: NameFlags,
    /// The command runs until it is stopped.
    #[arg(skip)]
    is_server: bool,
}

#[derive(Clone, Debug, Default)]
struct NameFlags {
    user: Option<String>,
    agent: Option<String>,
    channel: Option<String>,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Show, explain, compare and check prompts
    #[command(subcommand)]
    Prompt(prompt::PromptCommand),
    /// Save, search, show, edit, forget, erase, export and import memories; list commitments
    #[command(subcommand)]
    Memory(memory::MemoryCommand),
    /// Show, set, edit and revert standing instructions; accept or dismiss proposals
    #[command(subcommand)]
    Instructions(instructions::InstructionsCommand),
    /// Show an agent's soul, and change SOUL.md in your editor
    #[command(subcommand)]
    Soul(soul::SoulCommand),
    /// Set souls and identities in the store
    #[command(subcommand)]
    Agent(agent::AgentCommand),
    /// List, approve and deny calls that wait for approval
    #[command(subcommand)]
    Approvals(approvals::ApprovalsCommand),
    /// Show pinned tool definitions; accept changed ones
    #[command(subcommand)]
    Pins(pins::PinsCommand),
    /// Add, list, test and remove MCP servers; show their tools
    #[command(subcommand)]
    Server(server::ServerCommand),
    /// Test the model of embody's own agent, or find one on this machine
    #[command(subcommand)]
    Model(model::ModelCommand),
    /// Test what the rules decide about a call
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    /// Show, verify and export the audit chain
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// Show in sentences what the agent did, asked and was denied today, and what waits for you
    Today(today::TodayArgs),
    /// Create, list and revoke tokens
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// List, disable and enable users
    #[command(subcommand)]
    User(user::UserCommand),
    /// Back up, restore and copy the store; show its status; upgrade old databases
    #[command(subcommand)]
    Store(store::StoreCommand),
    /// Run everything in one process: broker, web chat, Telegram, schedules
    Up(up::UpArgs),
    /// Print a link that signs you in to the console of the running `embody up`
    #[command(visible_alias = "login")]
    Open(open::OpenArgs),
    /// Make running `embody up` and `embody mcp` processes read the configuration again
    #[command(after_help = reload::EXAMPLES)]
    Reload,
    /// Run one turn of the agent and print its reply
    Run(run::RunArgs),
    /// List, show, rename, delete and export conversations
    #[command(subcommand)]
    Thread(thread::ThreadCommand),
    /// Add, list, run and remove schedules
    #[command(subcommand)]
    Schedule(schedule::ScheduleCommand),
    /// List the notices of agents to their user, and mark them as read
    #[command(subcommand)]
    Notices(notices::NoticesCommand),
    /// Serve the broker as an MCP server: the command for a host's server list
    #[command(after_help = mcp::MCP_EXAMPLES)]
    Mcp(mcp::ServeArgs),
    /// Serve only the embedded mind as an MCP server
    #[command(after_help = mcp::MIND_EXAMPLES)]
    Mind(mcp::ServeArgs),
    /// Serve only the embedded body as an MCP server: messages, tasks, schedules
    #[command(after_help = mcp::BODY_EXAMPLES)]
    Body(mcp::ServeArgs),
    /// Show sessions, problems and pending approvals
    #[command(after_help = status::EXAMPLES)]
    Status(ScopeArgs),
    /// Show the tokens and the money that models took, and what is left of the budgets
    #[command(after_help = usage::EXAMPLES)]
    Usage(usage::UsageArgs),
    /// Create a workspace: rules, identity, soul, a skill, a commented configuration
    Init(init::InitArgs),
    /// Show the broker at work in a temporary folder, without a model, a host or set-up
    Demo(demo::DemoArgs),
    /// Check the workspace and the configured connections
    #[command(after_help = doctor::EXAMPLES)]
    Doctor(prompt::PromptArgs),
    /// Check whether this version can open the store and the configuration, without changing anything
    #[command(after_help = upgrade_check::EXAMPLES)]
    UpgradeCheck,
    /// Show and check the configuration
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Print shell completions
    Completions(man::CompletionsArgs),
    /// Print the manual page, or write one for every command
    Man(man::ManArgs),
}

impl Command {
    fn is_server(&self) -> bool {
        matches!(self, Self::Up(_) | Self::Mcp(_) | Self::Mind(_) | Self::Body(_))
    }
}

pub(crate) struct Context {
    settings: Arc<Settings>,
    pub(crate) json: bool,
    global: Global,
}

impl Deref for Context {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        &self.settings
    }
}

impl Context {
    /// Loads the configuration and starts the log.
    fn open(global: Global) -> Result<Self, CliError> {
        let (workspace, config) = load(&global)?;
        let config = config?;
        let (on_stderr, in_file) = log_levels(&global, &config);
        log::start(&workspace, on_stderr, in_file);
        let settings = Arc::new(Settings { workspace, config });
        let context = Self { settings, json: global.json, global };
        context.check_user_flag()?;
        context.hint_at_typos();
        Ok(context)
    }

    /// A name on the command line must be a known user, or must not be confusable with one.
    fn check_user_flag(&self) -> Result<(), CliError> {
        let Some(user) = &self.global.names.user else { return Ok(()) };
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

    /// New agents and channels are legal. One that is close to a known name may be a slip.
    fn hint_at_typos(&self) {
        let NameFlags { agent, channel, .. } = &self.global.names;
        let hint = |what: &str, given: &str, known: &[String]| {
            let known = || known.iter().map(String::as_str);
            if known().any(|known| known == given) {
                return;
            }
            if let Some(near) = nearest(given, known()) {
                output::hint(&format!("the {what} `{given}` is new; did you mean `{near}`?"));
            }
        };
        if let Some(agent) = agent {
            hint("agent", agent, &self.known_agents());
        }
        if let Some(channel) = channel {
            hint("channel", channel, &CHANNELS.map(str::to_owned));
        }
    }

    /// The default agent, and those with a folder or anything in the store. An unreadable store fails the command itself.
    fn known_agents(&self) -> Vec<String> {
        let stored = crate::store::with_existing(self, async |store| Ok(store.agents().list_known().await?));
        let folders = std::fs::read_dir(self.workspace.join("agents")).into_iter().flatten().flatten();
        let folders = folders.filter_map(|entry| entry.file_name().into_string().ok());
        let stored = stored.ok().flatten().unwrap_or_default();
        std::iter::once(ScopeArgs::default().agent()).chain(folders).chain(stored).collect()
    }

    /// The sources of the configuration, to read it again.
    pub(crate) fn inputs(&self) -> Result<Inputs, CliError> {
        inputs(&self.global)
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

    /// The arguments with which a host starts `embody mcp` on the same workspace, as the same user and agent.
    fn entry_arguments(&self, scope: &ScopeArgs) -> Vec<String> {
        let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let path = |path: &PathBuf| absolute(path).display().to_string();
        let flags = [
            ("--workspace", self.global.workspace.as_ref().map(path)),
            ("--config", self.global.config.as_ref().map(path)),
            ("--store", self.global.store.as_ref().map(|url| crate::config::mask::address(url).to_string())),
            ("--user", scope.user.clone()),
            ("--agent", scope.agent.clone()),
        ];
        let given = flags.into_iter().filter_map(|(flag, value)| Some([flag.to_owned(), value?]));
        std::iter::once("mcp".to_owned()).chain(given.flatten()).collect()
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
    let flag = |name| name_flag(&matches, name);
    cli.global.names = NameFlags { user: flag("user"), agent: flag("agent"), channel: flag("channel") };
    cli
}

/// The value of a flag that was given, whichever command has it.
fn name_flag(matches: &ArgMatches, name: &str) -> Option<String> {
    let (_, matches) = matches.subcommand()?;
    let here = matches.try_get_one::<String>(name).ok().flatten();
    let is_given = || matches.value_source(name) == Some(ValueSource::CommandLine);
    here.filter(|_| is_given()).cloned().or_else(|| name_flag(matches, name))
}

/// Commands that need no configuration work with an invalid one.
pub(crate) fn run(cli: Cli) -> Result<ExitCode, CliError> {
    let Cli { mut global, command } = cli;
    global.is_server = command.is_server();
    match command {
        Command::Completions(args) => man::completions(&args),
        Command::Man(args) => man::run(&args),
        Command::Init(args) => init::run(&args, workspace(&global)?, global.json),
        Command::Demo(args) => demo::run(&args, global),
        Command::Store(StoreCommand::MigrateLegacy(args)) => {
            store::migrate(&args, &workspace(&global)?, global.json)
        }
        Command::Store(StoreCommand::Copy { from, to }) => {
            store::copy(&from, &to, &workspace(&global)?, global.json)
        }
        Command::Store(StoreCommand::Status) => store::status(&Context::open(global)?),
        Command::Store(StoreCommand::Backup { file }) => store::backup(&file, &Context::open(global)?),
        Command::Store(StoreCommand::Restore { file, replace }) => {
            store::restore(&file, replace, &Context::open(global)?)
        }
        Command::Config(ConfigCommand::Schema) => config::schema(),
        Command::Config(ConfigCommand::Reference) => config::reference(),
        Command::Config(ConfigCommand::Check) => config::check(load(&global)?, global.json),
        Command::Config(ConfigCommand::Show) => config::show(&Context::open(global)?),
        Command::Prompt(command) => prompt::run(&command, &Context::open(global)?),
        Command::Memory(command) => memory::run(&command, &Context::open(global)?),
        Command::Approvals(command) => approvals::run(&command, &Context::open(global)?),
        Command::Pins(command) => pins::run(&command, &Context::open(global)?),
        Command::Server(command) => server::run(&command, &Context::open(global)?),
        Command::Model(command) => model::run(&command, &Context::open(global)?),
        Command::Policy(command) => policy::run(&command, &Context::open(global)?),
        Command::Audit(command) => audit::run(&command, &Context::open(global)?),
        Command::Today(args) => today::run(&args, &Context::open(global)?),
        Command::Instructions(command) => instructions::run(&command, &Context::open(global)?),
        Command::Soul(command) => soul::run(&command, &Context::open(global)?),
        Command::Thread(command) => thread::run(&command, &Context::open(global)?),
        Command::UpgradeCheck => upgrade_check::run(global),
        Command::Agent(command) => agent::run(&command, &Context::open(global)?),
        Command::Token(command) => token::run(&command, &Context::open(global)?),
        Command::User(command) => user::run(&command, &Context::open(global)?),
        Command::Up(args) => up::run(&args, Context::open(global)?),
        Command::Reload => reload::run(&Context::open(global)?),
        Command::Open(args) => open::run(&args, &Context::open(global)?),
        Command::Run(args) => run::run(&args, Context::open(global)?),
        Command::Schedule(command) => schedule::run(&command, Context::open(global)?),
        Command::Notices(command) => notices::run(&command, &Context::open(global)?),
        Command::Mcp(args) => mcp::run(&args, Context::open(global)?),
        Command::Status(args) => status::run(&args, &Context::open(global)?),
        Command::Usage(args) => usage::run(&args, &Context::open(global)?),
        Command::Mind(args) => mcp::mind(&args, Context::open(global)?),
        Command::Body(args) => mcp::body(&args, Context::open(global)?),
        Command::Doctor(args) => doctor::run(&args, &Context::open(global)?),
    }
}

type Loaded = (PathBuf, Result<Config, crate::config::ConfigError>);

fn load(global: &Global) -> Result<Loaded, CliError> {
    let inputs = inputs(global)?;
    Ok((inputs.workspace.clone(), Config::load(inputs)))
}

/// The sources of the configuration of this process.
fn inputs(global: &Global) -> Result<Inputs, CliError> {
    let overrides = global.store.iter().map(|url| Override {
        key: "store.url".to_owned(),
        value: url.clone().into(),
        flag: "--store".to_owned(),
    });
    Ok(Inputs {
        file: global.config.clone().or_else(|| non_empty("EMBODY_CONFIG").map(PathBuf::from)),
        workspace: workspace(global)?,
        env: env::of_process(),
        overrides: overrides.collect(),
    })
}

fn workspace(global: &Global) -> Result<PathBuf, CliError> {
    let given = global.workspace.clone().or_else(|| non_empty("EMBODY_WORKSPACE").map(PathBuf::from));
    let path = given.or_else(default_workspace).ok_or_else(|| {
        CliError::usage("no home folder found, so there is no default workspace")
            .hint("pass `--workspace DIR`")
    })?;
    // A missing folder is a workspace without files.
    if path.metadata().is_ok_and(|found| !found.is_dir()) {
        return Err(CliError::usage(format!("the workspace `{}` is a file, not a folder", path.display()))
            .hint(
                "pass a folder with `--workspace` or EMBODY_WORKSPACE; `--config` takes a configuration file",
            ));
    }
    std::path::absolute(&path).usage_context(format!("`{}` is not a valid path", path.display()))
}

fn default_workspace() -> Option<PathBuf> {
    Some(std::env::home_dir()?.join(".embody"))
}

/// The levels on stderr and in the file. The output of a command that ends is not mixed with routine log lines.
fn log_levels(global: &Global, config: &Config) -> (LevelFilter, LevelFilter) {
    let configured = config.log.level.parse().unwrap_or(LevelFilter::INFO);
    let default = if global.is_server { configured } else { configured.min(LevelFilter::WARN) };
    (log_flag(global).unwrap_or(default), log_flag(global).unwrap_or(configured))
}

fn log_flag(global: &Global) -> Option<LevelFilter> {
    global.log.as_deref()?.parse().ok()
}
