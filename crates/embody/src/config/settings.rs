//! `embody.toml`: every section and key with its type, limits, default and description. The JSON schema, the reference page and
//! the checks of single keys are derived from here; `validate` checks keys that depend on each other and sets the defaults that do.

use std::collections::BTreeMap;
use std::path::PathBuf;

use embody_agent::model::Provider;
use embody_agent::usage::{Budget, Price};
use embody_broker::InstructionsMode;
use embody_broker::arguments::ARGUMENTS_MAX_BYTES;
use embody_broker::catalogue::{ListingLimit, MAX_LISTED};
use embody_broker::gate::MindDown;
use embody_broker::policy::{Class, Gate, Glob, Via};
use embody_broker::upstream::{BodyUsers, Start};
use embody_prompt::{Kind, Sandbox};
use embody_wire::{Proxies, Secret};
use embody_workspace::Audiences;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smart_default::SmartDefault;

use super::mask::Address;
use super::reference::Setting;
use super::tree::Origin;

/// Configuration of embody. Every key is optional.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(title = "embody.toml")]
pub(crate) struct Config {
    /// How the prompt is put together.
    pub(crate) prompt: Prompt,
    /// A remote persona text, placed after the rules file. Used only when both `url` and `token_command` are set.
    pub(crate) persona: Persona,
    /// Facts about the sandbox that tools run in, shown in the runtime section of the prompt.
    pub(crate) sandbox: Option<Sandbox>,
    /// Where embody keeps its state.
    pub(crate) store: Store,
    /// The mind: an MCP server that remembers. Without `url` and `command` the embedded one is used.
    pub(crate) mind: Mind,
    /// One body: an MCP server that acts on the world. Repeat the section for each; each has a `name` and either a
    /// `command` or a `url`.
    #[serde(rename = "body")]
    #[schemars(length(max = 64))]
    pub(crate) bodies: Vec<Body>,
    /// Which tools are listed for hosts.
    pub(crate) tools: Tools,
    /// Which calls are allowed, and which need approval.
    pub(crate) policy: Policy,
    /// The model that embody's own agent talks to.
    pub(crate) model: Model,
    /// What models cost, by the name of the model. A model without a price is counted in tokens only.
    pub(crate) prices: BTreeMap<String, Price>,
    /// What embody's own agents may use in a day, which begins at midnight in the owner's time zone. A limit stops the next
    /// request to the model.
    pub(crate) budget: Budget,
    /// The Telegram channel. It is on when the token variable is set.
    pub(crate) telegram: Telegram,
    /// Where traces of calls are sent. Nothing is sent unless `otlp_url` is set.
    pub(crate) telemetry: Telemetry,
    /// The widest audience that may see each part of the prompt.
    pub(crate) audience: Audiences,
    /// embody's own log.
    pub(crate) log: Log,
    /// The file that was read.
    #[serde(skip)]
    pub(crate) file: Option<PathBuf>,
    /// The HTTP proxies, from the shared environment variables.
    #[serde(skip)]
    pub(crate) proxies: Proxies,
    /// Every key that is set or has a default, safe to print.
    #[serde(skip)]
    pub(crate) keys: Vec<Setting>,
}

impl Config {
    /// The origin of a key such as `prompt.layout` or `body[0].name`.
    pub(crate) fn origin(&self, key: &str) -> &Origin {
        let setting = self.keys.iter().find(|setting| setting.key == key);
        setting.map_or(&Origin::Default, |setting| &setting.origin)
    }

    pub(crate) fn listing_limit(&self) -> ListingLimit {
        ListingLimit {
            max_listed: self.tools.max_listed,
            always: self.tools.always_listed.iter().map(|pattern| Glob::new(pattern)).collect(),
        }
    }
}

#[derive(Debug, PartialEq, SmartDefault, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Prompt {
    /// The default layout of agents and of `prompt show`.
    #[default("channel")]
    #[schemars(extend("enum" = ["body", "full", "tagged", "channel"]))]
    pub(crate) layout: String,
    /// The rules file, relative to the workspace.
    #[default("prompts/agent_system.md")]
    pub(crate) body: PathBuf,
    /// Moves the text that changes with every turn to the end, so that more of the prompt can be cached.
    pub(crate) fresh_last: bool,
    /// Sections that the layout `channel` gets behind its own: `user` (name and location), `workspace_files` (AGENTS.md
    /// and TOOLS.md), `skills` (the list of skills).
    pub(crate) extra_sections: Vec<ExtraSection>,
    /// The most tokens a prompt may take.
    #[default(12_000)]
    #[schemars(range(min = 200, max = 10_000_000))]
    pub(crate) budget_tokens: u32,
    /// How long receipts of prompts are kept, in days.
    #[default(30)]
    #[schemars(range(min = 1, max = 36_500))]
    pub(crate) keep_receipts_days: u32,
    /// The most tokens that one kind of section may take.
    #[schemars(extend("propertyNames" = { "enum": section_kinds() }))]
    #[schemars(extend("additionalProperties" = { "type": "integer", "minimum": 1, "maximum": 10_000_000 }))]
    pub(crate) sections: BTreeMap<String, u32>,
}

/// The kinds of section that may have a limit of their own: the legal keys of `[prompt.sections]`.
pub(super) fn section_kinds() -> Vec<&'static str> {
    let cuttable = |kind: &&Kind| !matches!(kind, Kind::Body | Kind::Fallback);
    Kind::ALL.iter().filter(cuttable).map(|kind| kind.name()).collect()
}

/// Remote only if both `url` and `token_command` are set.
#[derive(Debug, PartialEq, SmartDefault, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Persona {
    /// Where the persona is served. Streamable HTTP is tried first, then the same address with `/sse`.
    pub(crate) url: Option<Address>,
    /// The command that prints the access token.
    pub(crate) token_command: Option<CommandLine>,
    /// How long start-up waits for the persona, in seconds.
    #[default(12)]
    #[schemars(range(min = 1, max = 120))]
    pub(crate) timeout_s: u32,
}

/// A program and its arguments, written as one list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Vec<String>", into = "Vec<String>")]
pub(crate) struct CommandLine {
    pub(crate) program: String,
    pub(crate) args: Vec<String>,
}

impl From<Vec<String>> for CommandLine {
    fn from(words: Vec<String>) -> Self {
        let mut words = words.into_iter();
        Self { program: words.next().unwrap_or_default(), args: words.collect() }
    }
}

impl From<CommandLine> for Vec<String> {
    fn from(command: CommandLine) -> Self {
        std::iter::once(command.program).chain(command.args).collect()
    }
}

#[derive(Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Store {
    /// The database: `postgres://…` or `sqlite://FILE`. Unset: SQLite in the workspace.
    pub(crate) url: Option<Address>,
    /// A direct PostgreSQL address for LISTEN and locks when `url` goes through a transaction pooler. Unset: embody
    /// polls.
    pub(crate) direct_url: Option<Address>,
}

#[derive(Debug, PartialEq, SmartDefault, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Mind {
    /// Where the mind is served.
    pub(super) url: Option<Address>,
    /// The command that starts the mind, instead of `url`.
    pub(super) command: Option<CommandLine>,
    /// How the mind is reached. Unset: `stdio` for a command; for a url `sse` if it ends in `/sse`, else `http`.
    pub(super) transport: Option<Transport>,
    /// The command that prints the access token for `url`.
    pub(super) token_command: Option<CommandLine>,
    /// How long a call waits for the mind's view of it, in milliseconds.
    #[default(250)]
    #[schemars(range(min = 1, max = 60_000))]
    pub(crate) observe_timeout_ms: u32,
    /// `None` is the embedded mind.
    #[serde(skip)]
    pub(crate) upstream: Option<Upstream>,
}

/// How a mind or a body is reached, from its four keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Upstream {
    Stdio {
        command: CommandLine,
    },
    Remote {
        url: Address,
        /// `None` tries streamable HTTP first, then the legacy transport.
        transport: Option<Transport>,
        token_command: Option<CommandLine>,
    },
}

impl Default for Upstream {
    /// A placeholder: a body without an endpoint is rejected.
    fn default() -> Self {
        Self::Stdio { command: CommandLine::default() }
    }
}

/// A section that the layout `channel` has only on request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ExtraSection {
    User,
    WorkspaceFiles,
    Skills,
}

impl From<ExtraSection> for Kind {
    fn from(section: ExtraSection) -> Self {
        match section {
            ExtraSection::User => Self::User,
            ExtraSection::WorkspaceFiles => Self::WorkspaceFiles,
            ExtraSection::Skills => Self::Skills,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Transport {
    Http,
    Sse,
    Stdio,
}

#[derive(Debug, PartialEq, SmartDefault, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Body {
    /// The body's own name: 1 to 32 of `a` to `z`, `0` to `9`, `_` and `-`.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("pattern" = "^[a-z0-9_-]{1,32}$"))]
    pub(crate) name: String,
    /// The command that starts the body.
    pub(super) command: Option<CommandLine>,
    /// Where the body is served, instead of `command`.
    pub(super) url: Option<Address>,
    /// How the body is reached. Unset: `stdio` for a command; for a url `sse` if it ends in `/sse`, else `http`.
    pub(super) transport: Option<Transport>,
    /// More environment for the command. Values are never shown.
    #[serde(skip_serializing)]
    #[schemars(with = "BTreeMap<String, String>", extend("default" = {}))]
    #[schemars(extend("additionalProperties" = { "type": "string", "writeOnly": true }))]
    pub(crate) env: BTreeMap<String, Secret>,
    /// Variables that the command also gets from embody's own environment, for secrets that must not be in this file.
    pub(crate) env_vars: Vec<String>,
    /// The folder the command starts in, relative to the workspace.
    pub(crate) cwd: Option<PathBuf>,
    /// The command that prints the access token for `url`.
    pub(super) token_command: Option<CommandLine>,
    /// Patterns of tools that are offered.
    #[default(vec!["*".to_owned()])]
    pub(crate) allow: Vec<String>,
    /// Patterns of tools that are not offered; wins over `allow`.
    pub(crate) deny: Vec<String>,
    /// Whether this body reports its calls to the mind itself.
    pub(crate) observes: bool,
    /// Whether the annotations of the body's tools are trusted. Unset: yes for a command, no for a url.
    pub(crate) trust_annotations: Option<bool>,
    /// The maximum bytes of the arguments of one call; a call with larger arguments is rejected.
    #[default(ARGUMENTS_MAX_BYTES)]
    #[schemars(range(min = 1024, max = 16_777_216))]
    pub(crate) arguments_max_bytes: usize,
    /// Unknown request methods that are passed on; all others are answered with error -32601.
    pub(crate) forward_methods: Vec<String>,
    /// Whether this body may ask the host's model for text.
    pub(crate) sampling: Sampling,
    /// Which roots this body gets: the host's, none, or these absolute folders. `auto` withholds the host's roots from a
    /// command that names an existing folder as an argument, and forwards them otherwise.
    pub(crate) roots: Roots,
    /// How the instructions that the body sends are used: `rules` adds all of them to the contract, `data` shows them
    /// as a description of the body, cut after 2,000 characters, `drop` ignores them.
    pub(crate) instructions: InstructionsMode,
    /// Who may use this body: `owner`, which is the owner alone, `all`, or the names of users.
    pub(crate) users: BodyUsers,
    /// When the body is started: with the session, or when it is first needed. A body whose tools are not known yet is
    /// always started with the session.
    pub(crate) start: Start,
    /// How long the body may be idle before it is stopped, in seconds; the next call starts it again. 0: it runs as
    /// long as the session.
    #[schemars(range(min = 0, max = 604_800))]
    pub(crate) idle_stop_s: u32,
    #[serde(skip)]
    pub(crate) upstream: Upstream,
}

impl Body {
    /// One that sets nothing else.
    pub(crate) fn at(name: &str, upstream: Upstream) -> Self {
        Self { name: name.to_owned(), upstream, ..Self::default() }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Sampling {
    #[default]
    Deny,
    Allow,
}

#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(extend("type" = ["string", "array"]))]
pub(crate) enum Roots {
    #[default]
    Auto,
    Forward,
    Withhold,
    #[serde(untagged)]
    #[schemars(title = "folders", extend("maxItems" = 64))]
    Folders(Vec<PathBuf>),
}

#[derive(Debug, PartialEq, SmartDefault, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Tools {
    /// With more tools than this, hosts get `find_tools` instead of the whole list.
    #[default(MAX_LISTED)]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(super) max_listed: usize,
    /// Patterns over `tool` or `body/tool`: these are always listed.
    pub(super) always_listed: Vec<String>,
}

#[derive(Debug, PartialEq, SmartDefault, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Policy {
    /// What happens to writes while the mind is unavailable.
    pub(crate) mind_down: MindDown,
    /// How long one call waits for a person, in seconds; at most `ask_timeout_s`.
    #[default(45)]
    #[schemars(range(min = 0, max = 604_800))]
    pub(crate) ask_wait_s: u32,
    /// When the approval itself expires, in seconds.
    #[default(300)]
    #[schemars(range(min = 1, max = 604_800))]
    pub(crate) ask_timeout_s: u32,
    /// A write that arrives within this time after the contract bounces, because the model cannot have read the
    /// contract yet; in milliseconds. Set 0 only if all hosts are programs without a model.
    #[default(250)]
    #[schemars(range(min = 0, max = 60_000))]
    pub(crate) contract_delay_ms: u32,
    /// One rule. Repeat the section for each. Where several rules match a call, the strictest class and the strictest
    /// gate win.
    #[serde(rename = "rule")]
    pub(crate) rules: Vec<Rule>,
}

#[derive(Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Rule {
    /// Patterns over `tool` or `body/tool`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) tools: Vec<String>,
    /// What these tools do.
    pub(crate) class: Option<Class>,
    /// The decision about their calls.
    pub(crate) gate: Option<Gate>,
    /// The places where a person can approve. Unset: all of them.
    pub(crate) via: Option<Vec<Via>>,
    /// A CEL condition over `tool`, `body`, `args`, `channel`, `user` and `session`.
    pub(crate) when: Option<String>,
    /// The reason that approvals, refusals and the audit show.
    pub(crate) reason: Option<String>,
    /// Calls that the rule must match, each as `TOOL` or `BODY/TOOL` and JSON arguments. Checked when it is read.
    pub(super) examples: Vec<String>,
    /// Calls that the rule must not match, in the same form.
    pub(super) counterexamples: Vec<String>,
}

#[derive(Debug, PartialEq, SmartDefault, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Model {
    /// The provider whose API format the model uses.
    pub(crate) provider: Provider,
    /// The URL of the model's API. Unset: the provider's own address. For `anthropic` without `/v1`.
    #[serde(skip_serializing_if = "Address::is_empty")]
    pub(crate) base_url: Address,
    /// The model's name.
    pub(crate) model: Option<String>,
    /// The environment variable that holds the key. Unset: `OPENAI_API_KEY` or `ANTHROPIC_API_KEY`.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("pattern" = "^[A-Za-z_][A-Za-z0-9_]*$"))]
    pub(crate) api_key_env: String,
    /// A file that holds the key instead, relative to the workspace. Only its owner may be able to read it.
    pub(crate) api_key_file: Option<PathBuf>,
    /// Whether the model takes tools in its own format. If not, the prompt explains them.
    #[default(true)]
    pub(crate) native_tools: bool,
    /// The most tokens of one answer.
    #[default(8192)]
    #[schemars(range(min = 16, max = 1_000_000))]
    pub(crate) max_output_tokens: u32,
    /// How long to wait for a connection, in seconds. Unset: 10.
    #[schemars(range(min = 1, max = 600))]
    pub(crate) connect_timeout_s: Option<u32>,
    /// How long to wait for the first byte of an answer, in seconds, the connection included. Unset: 120, and 50 for
    /// `embody run` and `embody schedule run`; with a `connect_timeout_s` above 10, as much longer.
    #[schemars(range(min = 1, max = 86_400))]
    pub(crate) first_byte_timeout_s: Option<u32>,
    /// How long to wait for each further byte, in seconds. Unset: as long as for the first.
    #[schemars(range(min = 1, max = 86_400))]
    pub(crate) idle_timeout_s: Option<u32>,
    /// How long a whole answer may take, in seconds, all attempts together. Unset: 600, or `retry_s`,
    /// `first_byte_timeout_s` and `idle_timeout_s` together if that is more.
    #[schemars(range(min = 1, max = 86_400))]
    pub(crate) total_timeout_s: Option<u32>,
    /// How long a request is retried while the model cannot be reached or is overloaded, in seconds. 0: never.
    /// Unset: 30, and 40 for `embody run` and `embody schedule run`, and eight attempts at most.
    #[schemars(range(min = 0, max = 3_600))]
    pub(crate) retry_s: Option<u32>,
}

#[derive(Debug, PartialEq, SmartDefault, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Telegram {
    /// The environment variable that holds the bot's token.
    #[default("TELEGRAM_BOT_TOKEN")]
    #[schemars(extend("pattern" = "^[A-Za-z_][A-Za-z0-9_]*$"))]
    pub(crate) token_env: String,
    /// Where the Bot API answers.
    #[default(Address::new("https://api.telegram.org"))]
    pub(crate) api_url: Address,
    /// The Telegram user ids that may write. Each becomes user `telegram:ID` unless `users` names another.
    pub(crate) allow_users: Vec<i64>,
    /// Telegram user id to the name of a user of embody.
    #[serde(deserialize_with = "user_ids", serialize_with = "ids_as_text")]
    #[schemars(with = "BTreeMap<String, String>")]
    pub(crate) users: BTreeMap<i64, String>,
}

/// Skips what is not an id, which `validate` reports.
fn user_ids<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<i64, String>, D::Error> {
    let users = BTreeMap::<String, String>::deserialize(deserializer)?;
    Ok(users.into_iter().filter_map(|(id, name)| Some((user_id(&id)?, name))).collect())
}

/// TOML has only texts as keys.
fn ids_as_text<S: Serializer>(users: &BTreeMap<i64, String>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(users.iter().map(|(id, name)| (id.to_string(), name)))
}

/// `7` and `07` would be one user with two names.
pub(super) fn user_id(text: &str) -> Option<i64> {
    text.parse().ok().filter(|id: &i64| id.to_string() == text)
}

#[derive(Debug, PartialEq, SmartDefault, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Telemetry {
    /// Where an OTLP collector listens for HTTP, for example `http://127.0.0.1:4318`. `/v1/traces` is added to it.
    pub(crate) otlp_url: Option<Address>,
    /// Headers that are sent along. Values are never shown.
    #[serde(skip_serializing)]
    #[schemars(with = "BTreeMap<String, String>", extend("default" = {}))]
    #[schemars(extend("additionalProperties" = { "type": "string", "writeOnly": true }))]
    pub(crate) headers: BTreeMap<String, Secret>,
    /// The service name of the traces.
    #[default("embody")]
    pub(crate) service_name: String,
    /// The percentage of traces that are sent. For a trace that a host started, the host decides.
    #[default(100)]
    #[schemars(range(min = 0, max = 100))]
    pub(crate) sample_percent: u8,
}

#[derive(Debug, PartialEq, SmartDefault, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Log {
    /// The level of the log: of `logs/embody.jsonl`, which has at least `info`, and of stderr, where commands other than
    /// `up`, `mcp`, `mind` and `body` print at most `warn`.
    #[default("info")]
    #[schemars(extend("enum" = ["error", "warn", "info", "debug", "trace"]))]
    pub(crate) level: String,
}
