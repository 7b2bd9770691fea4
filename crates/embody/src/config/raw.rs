//! `embody.toml` as written: every section and key with its type, fixed default and description. The JSON schema, the
//! reference page and the key checks are derived from here. `resolve` checks keys that depend on each other.
//!
//! Nothing here derives `Debug`: URLs and `env` values may contain secrets.

use std::borrow::Cow;
use std::collections::BTreeMap;

use embody_broker::arguments::ARGUMENTS_MAX_BYTES;
use embody_broker::catalogue::MAX_LISTED;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::choices::{
    Audience, Class, ExtraSection, Gate, Instructions, Layout, LogLevel, MindDown, Provider, Roots, Sampling,
    Start, Transport, Users, Via, section_kinds,
};

/// Configuration of embody. Every key is optional.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(title = "embody.toml")]
pub(crate) struct Raw {
    /// How the prompt is put together.
    pub(crate) prompt: Prompt,
    /// A remote persona text, layered below the body prompt. Used only when both `url` and `token_command` are set.
    pub(crate) persona: Persona,
    /// Facts about the sandbox that tools run in, shown in the runtime section of the prompt.
    pub(crate) sandbox: Sandbox,
    /// Where embody keeps its state.
    pub(crate) store: Store,
    /// The mind: an MCP server that remembers. Without `url` and `command` the embedded one is used.
    pub(crate) mind: Mind,
    /// One body: an MCP server that acts on the world. Repeat the section for each; each has a `name` and either a
    /// `command` or a `url`.
    #[schemars(length(max = 64))]
    pub(crate) body: Vec<Body>,
    /// Which tools hosts are shown.
    pub(crate) tools: Tools,
    /// What may be done, and who is asked first.
    pub(crate) policy: Policy,
    /// The model that embody's own agent talks to.
    pub(crate) model: Model,
    /// The Telegram channel. It is on when the token variable is set.
    pub(crate) telegram: Telegram,
    /// Where traces of calls are sent. Nothing is sent unless `otlp_url` is set.
    pub(crate) telemetry: Telemetry,
    /// The widest audience that may see each part of the prompt.
    pub(crate) audience: Audiences,
    /// What embody writes about its own work.
    pub(crate) log: Log,
}

/// `[prompt]`.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Prompt {
    /// What agents and `prompt show` use unless told otherwise.
    pub(crate) layout: Layout,
    /// The body prompt's file, relative to the workspace.
    pub(crate) body: String,
    /// Moves what changes every turn behind all that stays the same, so that more of the prompt can be cached.
    pub(crate) fresh_last: bool,
    /// Sections that the layout `channel` gets behind its own: `user` (name and location), `workspace_files` (AGENTS.md
    /// and TOOLS.md), `skills` (the list of skills).
    pub(crate) extra_sections: Vec<ExtraSection>,
    /// The most tokens a prompt may take.
    #[schemars(range(min = 200, max = 10_000_000))]
    pub(crate) budget_tokens: u32,
    /// How long receipts of prompts are kept, in days.
    #[schemars(range(min = 1, max = 36_500))]
    pub(crate) keep_receipts_days: u32,
    /// The most tokens that one kind of section may take.
    #[schemars(extend("propertyNames" = { "enum": section_kinds() }))]
    #[schemars(extend("additionalProperties" = { "type": "integer", "minimum": 1, "maximum": 10_000_000 }))]
    pub(crate) sections: BTreeMap<String, u32>,
}

/// `[persona]`.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Persona {
    /// Where the persona is served. Streamable HTTP is tried first, then the same address with `/sse`.
    #[schemars(extend("format" = "uri"))]
    pub(crate) url: Option<String>,
    /// The command that prints the access token.
    pub(crate) token_command: Option<Vec<String>>,
    /// How long start-up waits for the persona, in seconds.
    #[schemars(range(min = 1, max = 120))]
    pub(crate) timeout_s: u32,
}

/// `[sandbox]`.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Sandbox {
    /// Whether tools run in a sandbox.
    pub(crate) enabled: Option<bool>,
    /// Which commands it holds, for example `all`.
    pub(crate) mode: Option<TextOrFlag>,
    /// What provides it, for example `docker`.
    pub(crate) backend: Option<TextOrFlag>,
    /// How long one sandbox lives, for example `session`.
    pub(crate) scope: Option<TextOrFlag>,
    /// The image it starts from.
    pub(crate) image: Option<TextOrFlag>,
    /// How the workspace is mounted, for example `ro`.
    pub(crate) workspace_mount: Option<TextOrFlag>,
    /// Whether it reaches the network, for example `disabled`.
    pub(crate) network: Option<TextOrFlag>,
    /// Whether this session departs from the general setting.
    pub(crate) session_override: Option<TextOrFlag>,
}

/// A fact that is only shown, so that `true` and `"true"` say the same.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum TextOrFlag {
    Flag(bool),
    Text(String),
}

impl JsonSchema for TextOrFlag {
    fn schema_name() -> Cow<'static, str> {
        "TextOrFlag".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "boolean"] })
    }
}

/// `[store]`.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Store {
    /// The database: `postgres://…` or `sqlite://FILE`. Unset: SQLite in the workspace.
    #[schemars(extend("format" = "uri"))]
    pub(crate) url: Option<String>,
    /// A direct PostgreSQL address for LISTEN and locks when `url` goes through a transaction pooler. Unset: embody
    /// polls.
    #[schemars(extend("format" = "uri"))]
    pub(crate) direct_url: Option<String>,
}

/// `[mind]`.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Mind {
    /// Where the mind is served.
    #[schemars(extend("format" = "uri"))]
    pub(crate) url: Option<String>,
    /// The command that starts the mind, instead of `url`.
    pub(crate) command: Option<Vec<String>>,
    /// How the mind is reached. Unset: `stdio` for a command; for a url `sse` if it ends in `/sse`, else `http`.
    pub(crate) transport: Option<Transport>,
    /// The command that prints the access token for `url`.
    pub(crate) token_command: Option<Vec<String>>,
    /// How long a call waits for the mind's view of it, in milliseconds.
    #[schemars(range(min = 1, max = 60_000))]
    pub(crate) observe_timeout_ms: u32,
}

/// `[[body]]`.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Body {
    /// The body's own name: 1 to 32 of `a` to `z`, `0` to `9`, `_` and `-`.
    #[schemars(extend("pattern" = "^[a-z0-9_-]{1,32}$"))]
    pub(crate) name: Option<String>,
    /// The command that starts the body.
    pub(crate) command: Option<Vec<String>>,
    /// Where the body is served, instead of `command`.
    #[schemars(extend("format" = "uri"))]
    pub(crate) url: Option<String>,
    /// How the body is reached. Unset: `stdio` for a command; for a url `sse` if it ends in `/sse`, else `http`.
    pub(crate) transport: Option<Transport>,
    /// More environment for the command. Values are never shown.
    #[schemars(extend("additionalProperties" = { "type": "string", "writeOnly": true }))]
    pub(crate) env: BTreeMap<String, String>,
    /// The folder the command starts in, relative to the workspace.
    pub(crate) cwd: Option<String>,
    /// The command that prints the access token for `url`.
    pub(crate) token_command: Option<Vec<String>>,
    /// Patterns of tools that are offered.
    pub(crate) allow: Vec<String>,
    /// Patterns of tools that are not offered; wins over `allow`.
    pub(crate) deny: Vec<String>,
    /// Whether this body reports its calls to the mind itself.
    pub(crate) observes: bool,
    /// Whether what the body says about its own tools is believed. Unset: yes for a command, no for a url.
    pub(crate) trust_annotations: Option<bool>,
    /// Bytes that the arguments of one call may have; larger ones are refused.
    #[schemars(range(min = 1024, max = 16_777_216))]
    pub(crate) arguments_max_bytes: u32,
    /// Unknown request methods that are passed on; all others are answered with error -32601.
    pub(crate) forward_methods: Vec<String>,
    /// Whether this body may ask the host's model for text.
    pub(crate) sampling: Sampling,
    /// Which roots this body is given: the host's, none, or these absolute folders. `auto` withholds the host's roots from a
    /// command that names an existing folder as an argument, and forwards them otherwise.
    pub(crate) roots: RootsOrFolders,
    /// What becomes of the instructions that the body sends: `rules` puts them into the contract whole, `data` shows them as
    /// its description of itself, cut after 2,000 characters, `drop` leaves them out.
    pub(crate) instructions: Instructions,
    /// Who may use this body: `owner`, which is the owner alone, `all`, or the names of users.
    pub(crate) users: UsersOrNames,
    /// When the body is started: with the session, or when it is first needed. A body whose tools nobody has seen yet is
    /// started with the session either way.
    pub(crate) start: Start,
    /// How long nobody may use the body before it is stopped, in seconds; the next call starts it again. 0: it runs as
    /// long as the session.
    #[schemars(range(min = 0, max = 604_800))]
    pub(crate) idle_stop_s: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum RootsOrFolders {
    Host(Roots),
    Folders(Vec<String>),
}

impl JsonSchema for RootsOrFolders {
    fn schema_name() -> Cow<'static, str> {
        "RootsOrFolders".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let roots = Roots::json_schema(generator);
        let folders = json_schema!({
            "title": "folders", "type": "array", "items": { "type": "string" }, "maxItems": 64
        });
        json_schema!({ "type": ["string", "array"], "anyOf": [roots, folders] })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum UsersOrNames {
    Group(Users),
    Names(Vec<String>),
}

impl JsonSchema for UsersOrNames {
    fn schema_name() -> Cow<'static, str> {
        "UsersOrNames".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let group = Users::json_schema(generator);
        let names = json_schema!({
            "title": "names", "type": "array", "items": { "type": "string" }, "minItems": 1
        });
        json_schema!({ "type": ["string", "array"], "anyOf": [group, names] })
    }
}

/// `[tools]`.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Tools {
    /// With more tools than this, hosts are shown `find_tools` instead of the whole list.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) max_listed: u32,
    /// Patterns over `tool` or `body/tool`: these are listed however many tools there are.
    pub(crate) always_listed: Vec<String>,
}

/// `[policy]`.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Policy {
    /// What happens to writes while the mind is away.
    pub(crate) mind_down: MindDown,
    /// How long one call waits for a person, in seconds; at most `ask_timeout_s`.
    #[schemars(range(min = 0, max = 604_800), extend("default" = ASK_WAIT_S))]
    pub(crate) ask_wait_s: Option<u32>,
    /// When the approval itself expires, in seconds.
    #[schemars(range(min = 1, max = 604_800), extend("default" = ASK_TIMEOUT_S))]
    pub(crate) ask_timeout_s: Option<u32>,
    /// A write that arrives so soon after the contract was made before the model had read it, and bounces; in milliseconds.
    /// No hosted model answers sooner. 0 if programs without a model are your only hosts.
    #[schemars(range(min = 0, max = 60_000))]
    pub(crate) contract_delay_ms: u32,
    /// One rule. Repeat the section for each. Where several rules match a call, the strictest class and the strictest
    /// gate win.
    pub(crate) rule: Vec<Rule>,
}

/// `[[policy.rule]]`.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Rule {
    /// Patterns over `tool` or `body/tool`.
    pub(crate) tools: Option<Vec<String>>,
    /// What these tools do to the world.
    pub(crate) class: Option<Class>,
    /// What happens to a call of them.
    pub(crate) gate: Option<Gate>,
    /// The ways a person may be asked. Unset: all of them.
    pub(crate) via: Option<Vec<Via>>,
    /// A CEL condition over `tool`, `body`, `args`, `channel`, `user` and `session`.
    pub(crate) when: Option<String>,
    /// Why, for the person who is asked and for the record.
    pub(crate) reason: Option<String>,
    /// Calls that the rule must be about, each as `TOOL` or `BODY/TOOL` and JSON arguments. Checked when it is read.
    pub(crate) examples: Vec<String>,
    /// Calls that it must not be about.
    pub(crate) counterexamples: Vec<String>,
}

/// `[model]`.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Model {
    /// Whose wire format the model speaks.
    pub(crate) provider: Provider,
    /// Where the model answers. Unset: the provider's own address. For `anthropic` without `/v1`.
    #[schemars(extend("format" = "uri"))]
    pub(crate) base_url: Option<String>,
    /// The model's name.
    pub(crate) model: Option<String>,
    /// The environment variable that holds the key. Unset: `OPENAI_API_KEY` or `ANTHROPIC_API_KEY`.
    #[schemars(extend("pattern" = "^[A-Za-z_][A-Za-z0-9_]*$"))]
    pub(crate) api_key_env: Option<String>,
    /// Whether the model takes tools in its own format. If not, the prompt explains them.
    pub(crate) native_tools: bool,
    /// The most tokens of one answer.
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
    /// How long a question is asked again while the model cannot be reached or is overloaded, in seconds. 0: never.
    /// Unset: 30, and 40 for `embody run` and `embody schedule run`, and eight attempts at most.
    #[schemars(range(min = 0, max = 3_600))]
    pub(crate) retry_s: Option<u32>,
}

/// `[telegram]`.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Telegram {
    /// The environment variable that holds the bot's token.
    #[schemars(extend("pattern" = "^[A-Za-z_][A-Za-z0-9_]*$"))]
    pub(crate) token_env: String,
    /// Where the Bot API answers.
    #[schemars(extend("format" = "uri"))]
    pub(crate) api_url: String,
    /// The Telegram user ids that may write. Each becomes user `telegram:ID` unless `users` names another.
    pub(crate) allow_users: Vec<i64>,
    /// Telegram user id to the name of a user of embody.
    pub(crate) users: BTreeMap<String, String>,
}

/// `[telemetry]`.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Telemetry {
    /// Where an OTLP collector listens for HTTP, for example `http://127.0.0.1:4318`. `/v1/traces` is added to it.
    #[schemars(extend("format" = "uri"))]
    pub(crate) otlp_url: Option<String>,
    /// Headers that are sent along. Values are never shown.
    #[schemars(extend("additionalProperties" = { "type": "string", "writeOnly": true }))]
    pub(crate) headers: BTreeMap<String, String>,
    /// The name under which the traces are found.
    pub(crate) service_name: String,
    /// How many of a hundred traces that begin here are sent. Of one that a host began, the host decides.
    #[schemars(range(min = 0, max = 100))]
    pub(crate) sample_percent: u32,
}

/// `[audience]`.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Audiences {
    /// Who may see the identity.
    pub(crate) identity: Audience,
    /// Who may see the soul.
    pub(crate) soul: Audience,
    /// Who may see the user's profile.
    pub(crate) user: Audience,
    /// Who may see the project's context files.
    pub(crate) project: Audience,
    /// Who may see host and sandbox facts.
    pub(crate) runtime: Audience,
    /// Who may see the list of skills.
    pub(crate) skills: Audience,
    /// Who may see `AGENTS.md` and `TOOLS.md`.
    pub(crate) workspace_files: Audience,
    /// Who may see the shared memories.
    pub(crate) memories: Audience,
    /// Who may see the standing instructions.
    pub(crate) instructions: Audience,
    /// Who may see the task.
    pub(crate) task: Audience,
    /// Who may see the remote persona.
    pub(crate) persona: Audience,
}

/// `[log]`.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Log {
    /// How much is logged.
    pub(crate) level: LogLevel,
}

/// How long one call waits for a person. Not in `Default`, because a shorter `ask_timeout_s` shortens it.
pub(super) const ASK_WAIT_S: u32 = 45;
/// When an approval expires. Not in `Default`, because the message about a longer wait differs if it is not configured.
pub(super) const ASK_TIMEOUT_S: u32 = 300;

impl Default for Prompt {
    fn default() -> Self {
        Self {
            layout: Layout::Channel,
            body: "prompts/agent_system.md".to_owned(),
            fresh_last: false,
            extra_sections: Vec::new(),
            budget_tokens: 12_000,
            keep_receipts_days: 30,
            sections: BTreeMap::new(),
        }
    }
}

impl Default for Persona {
    fn default() -> Self {
        Self { url: None, token_command: None, timeout_s: 12 }
    }
}

impl Default for Mind {
    fn default() -> Self {
        Self { url: None, command: None, transport: None, token_command: None, observe_timeout_ms: 250 }
    }
}

impl Default for Body {
    fn default() -> Self {
        Self {
            name: None,
            command: None,
            url: None,
            transport: None,
            env: BTreeMap::new(),
            cwd: None,
            token_command: None,
            allow: vec!["*".to_owned()],
            deny: Vec::new(),
            observes: false,
            trust_annotations: None,
            arguments_max_bytes: u32::try_from(ARGUMENTS_MAX_BYTES).unwrap_or(u32::MAX),
            forward_methods: Vec::new(),
            sampling: Sampling::Deny,
            roots: RootsOrFolders::Host(Roots::Auto),
            instructions: Instructions::Data,
            users: UsersOrNames::Group(Users::Owner),
            start: Start::Eager,
            idle_stop_s: 0,
        }
    }
}

impl Default for Tools {
    fn default() -> Self {
        Self { max_listed: u32::try_from(MAX_LISTED).unwrap_or(u32::MAX), always_listed: Vec::new() }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            mind_down: MindDown::Block,
            ask_wait_s: None,
            ask_timeout_s: None,
            contract_delay_ms: 250,
            rule: Vec::new(),
        }
    }
}

impl Default for Model {
    fn default() -> Self {
        Self {
            provider: Provider::Openai,
            base_url: None,
            model: None,
            api_key_env: None,
            native_tools: true,
            max_output_tokens: 8192,
            connect_timeout_s: None,
            first_byte_timeout_s: None,
            idle_timeout_s: None,
            total_timeout_s: None,
            retry_s: None,
        }
    }
}

impl Default for Telegram {
    fn default() -> Self {
        Self {
            token_env: "TELEGRAM_BOT_TOKEN".to_owned(),
            api_url: "https://api.telegram.org".to_owned(),
            allow_users: Vec::new(),
            users: BTreeMap::new(),
        }
    }
}

impl Default for Telemetry {
    fn default() -> Self {
        Self {
            otlp_url: None,
            headers: BTreeMap::new(),
            service_name: "embody".to_owned(),
            sample_percent: 100,
        }
    }
}

impl Default for Log {
    fn default() -> Self {
        Self { level: LogLevel::Info }
    }
}

impl Default for Audiences {
    fn default() -> Self {
        let default = embody_workspace::Audiences::default();
        Self {
            identity: default.identity.into(),
            soul: default.soul.into(),
            user: default.user.into(),
            project: default.project.into(),
            runtime: default.runtime.into(),
            skills: default.skills.into(),
            workspace_files: default.workspace_files.into(),
            memories: default.memories.into(),
            instructions: default.instructions.into(),
            task: default.task.into(),
            persona: default.persona.into(),
        }
    }
}
