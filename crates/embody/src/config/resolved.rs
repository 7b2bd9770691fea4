//! Owns the configuration as the rest of the program uses it: checked, typed, every default filled in, each key with its
//! origin. Refuses texts where a type can say it: a command has a program, a store is one of three, an address is
//! checked.
#![allow(dead_code, reason = "each room reads its own keys; not every room is wired yet")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use embody_broker::upstream::BodyUsers;
use embody_wire::{Proxies, Secret};
use embody_workspace::Audiences;

use super::address::Address;
use super::choices::{
    self, Class, Gate, Instructions, Layout, LogLevel, MindDown, Provider, Sampling, Start, Via,
};
use super::origin::Origin;

/// The whole configuration.
#[derive(Debug)]
pub(crate) struct Config {
    /// The file it was read from, if there was one.
    pub(crate) file: Option<PathBuf>,
    /// `[prompt]`.
    pub(crate) prompt: Prompt,
    /// `[persona]`.
    pub(crate) persona: Persona,
    /// `[sandbox]`: the facts that are set, in the order they are shown.
    pub(crate) sandbox: Vec<(&'static str, String)>,
    /// `[store]`.
    pub(crate) store: Store,
    /// `[mind]`.
    pub(crate) mind: Mind,
    /// Each `[[body]]`.
    pub(crate) bodies: Vec<Body>,
    /// `[tools]`.
    pub(crate) tools: Tools,
    /// `[policy]`.
    pub(crate) policy: Policy,
    /// `[model]`.
    pub(crate) model: Model,
    /// `[telegram]`.
    pub(crate) telegram: Telegram,
    /// `[telemetry]`.
    pub(crate) telemetry: Telemetry,
    /// `[audience]`.
    pub(crate) audience: Audiences,
    /// `[log] level`.
    pub(crate) log_level: LogLevel,
    /// The proxies before everything that is reached by HTTP, which variables shared by programs name.
    pub(crate) proxies: Proxies,
    /// Every key that is set or has a default, fit to print.
    pub(crate) keys: Vec<Setting>,
}

impl Config {
    /// Where the value of a key such as `prompt.layout` or `body[0].name` came from.
    pub(crate) fn origin(&self, key: &str) -> &Origin {
        self.keys
            .iter()
            .find(|setting| setting.key == key)
            .map_or(&Origin::Default, |setting| &setting.origin)
    }
}

/// One key as it is shown, secrets masked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Setting {
    /// Its full name.
    pub(crate) key: String,
    /// Its value.
    pub(crate) value: toml::Value,
    /// Where that came from.
    pub(crate) origin: Origin,
}

/// `[prompt]`.
#[derive(Debug)]
pub(crate) struct Prompt {
    /// The layout unless told otherwise.
    pub(crate) layout: Layout,
    /// The body prompt's file.
    pub(crate) body: PathBuf,
    /// Whether fresh sections go behind all stable ones.
    pub(crate) fresh_last: bool,
    /// The most tokens of a prompt.
    pub(crate) budget_tokens: u32,
    /// How long receipts of prompts are kept.
    pub(crate) keep_receipts: Duration,
    /// The most tokens by kind of section.
    pub(crate) sections: BTreeMap<String, u32>,
}

/// `[persona]`: remote only when both `url` and `token_command` are there.
#[derive(Debug)]
pub(crate) struct Persona {
    /// Where it is served.
    pub(crate) url: Option<Address>,
    /// What prints the token.
    pub(crate) token_command: Option<CommandLine>,
    /// How long start-up waits for it.
    pub(crate) timeout: Duration,
}

/// A program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandLine {
    /// The program.
    pub(crate) program: String,
    /// Its arguments.
    pub(crate) args: Vec<String>,
}

/// `[store]`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Store {
    /// SQLite in the workspace.
    Workspace {
        /// The file.
        path: PathBuf,
    },
    /// SQLite elsewhere.
    Sqlite {
        /// Its address as written.
        url: Address,
    },
    /// PostgreSQL.
    Postgres {
        /// Its address.
        url: Address,
        /// An address that bypasses the pooler.
        direct_url: Option<Address>,
    },
}

/// How an upstream is reached.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Upstream {
    /// A child process that speaks over stdio.
    Stdio {
        /// What to start.
        command: CommandLine,
    },
    /// A server.
    Remote {
        /// Where.
        url: Address,
        /// In which dialect.
        dialect: Dialect,
        /// What prints the token.
        token_command: Option<CommandLine>,
    },
}

/// What a remote upstream speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Streamable HTTP, because the operator says so.
    Http,
    /// Legacy HTTP+SSE, because the operator or the address says so.
    Sse,
    /// Nobody said: streamable HTTP is the guess, and the legacy form is worth a try when it fails.
    Guessed,
}

/// `[mind]`.
#[derive(Debug)]
pub(crate) struct Mind {
    /// Where the mind is; none is the embedded one.
    pub(crate) upstream: Option<Upstream>,
    /// How long a call waits for its view.
    pub(crate) observe_timeout: Duration,
}

/// One `[[body]]`.
#[derive(Debug)]
pub(crate) struct Body {
    /// Its name.
    pub(crate) name: String,
    /// Where it is.
    pub(crate) upstream: Upstream,
    /// More environment for its process.
    pub(crate) env: BTreeMap<String, Secret>,
    /// The folder its process starts in.
    pub(crate) cwd: Option<PathBuf>,
    /// Tools that are offered.
    pub(crate) allow: Vec<String>,
    /// Tools that are not; wins.
    pub(crate) deny: Vec<String>,
    /// Whether it observes for itself.
    pub(crate) observes: bool,
    /// Whether its annotations are believed.
    pub(crate) trust_annotations: bool,
    /// Bytes that the arguments of one call may have.
    pub(crate) arguments_max_bytes: usize,
    /// Unknown methods that are forwarded.
    pub(crate) forward_methods: Vec<String>,
    /// Whether it may use the host's model.
    pub(crate) sampling: Sampling,
    /// What becomes of the host's roots, or the folders instead of them.
    pub(crate) roots: Roots,
    /// What becomes of its instructions.
    pub(crate) instructions: Instructions,
    /// Who may use it.
    pub(crate) users: BodyUsers,
    /// When it is started.
    pub(crate) start: Start,
    /// How long it may be idle before it is stopped, if it ever is.
    pub(crate) idle_stop: Option<Duration>,
}

/// Which roots a body is given.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Roots {
    /// The host's, as far as it may have them.
    Host(choices::Roots),
    /// These folders, which are absolute.
    Folders(Vec<PathBuf>),
}

/// `[tools]`.
#[derive(Debug)]
pub(crate) struct Tools {
    /// The most tools that are listed whole.
    pub(crate) max_listed: usize,
    /// Tools that are listed in any case.
    pub(crate) always_listed: Vec<String>,
}

/// `[policy]`.
#[derive(Debug)]
pub(crate) struct Policy {
    /// Writes while the mind is away.
    pub(crate) mind_down: MindDown,
    /// How long one call waits for a person.
    pub(crate) ask_wait: Duration,
    /// When an approval expires.
    pub(crate) ask_timeout: Duration,
    /// How long after the contract a call still counts as made before the model has read it.
    pub(crate) contract_delay: Duration,
    /// The operator's rules, in the order written.
    pub(crate) rules: Vec<Rule>,
}

/// One `[[policy.rule]]`.
#[derive(Debug)]
pub(crate) struct Rule {
    /// Patterns over `tool` or `body/tool`; never empty.
    pub(crate) tools: Vec<String>,
    /// The class it gives.
    pub(crate) class: Option<Class>,
    /// The gate it sets.
    pub(crate) gate: Option<Gate>,
    /// The ways to ask; none is all.
    pub(crate) via: Option<Vec<Via>>,
    /// The condition, as text.
    pub(crate) when: Option<String>,
    /// Why.
    pub(crate) reason: Option<String>,
}

/// `[model]`.
#[derive(Debug)]
pub(crate) struct Model {
    /// Whose wire format.
    pub(crate) provider: Provider,
    /// Where it answers.
    pub(crate) base_url: Address,
    /// Its name; none means that there is no model.
    pub(crate) model: Option<String>,
    /// The variable that holds the key.
    pub(crate) api_key_env: String,
    /// Whether it takes tools in its own format.
    pub(crate) native_tools: bool,
    /// The most tokens of one answer.
    pub(crate) max_output_tokens: u32,
    /// How long it may take.
    pub(crate) patience: Patience,
}

/// How long a model may take for what, where somebody says so.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// For a connection.
    pub(crate) connect: Option<Duration>,
    /// For the first byte of an answer, the connection included.
    pub(crate) first_byte: Option<Duration>,
    /// For the next byte of it.
    pub(crate) idle: Option<Duration>,
    /// For the whole of it, all attempts together.
    pub(crate) total: Option<Duration>,
    /// How long a question that failed is asked again.
    pub(crate) retrying: Option<Duration>,
}

/// `[telegram]`.
#[derive(Debug)]
pub(crate) struct Telegram {
    /// The variable that holds the token.
    pub(crate) token_env: String,
    /// Where the Bot API answers.
    pub(crate) api_url: Address,
    /// Who may write.
    pub(crate) allow_users: Vec<i64>,
    /// Telegram user id to user.
    pub(crate) users: BTreeMap<i64, String>,
}

/// `[telemetry]`.
#[derive(Debug)]
pub(crate) struct Telemetry {
    /// Where the collector is; none means that nothing is sent.
    pub(crate) otlp_url: Option<Address>,
    /// What is sent along.
    pub(crate) headers: Vec<(String, Secret)>,
    /// The name of the service.
    pub(crate) service_name: String,
    /// How many of a hundred traces that begin here are sent.
    pub(crate) sample_percent: u8,
}
