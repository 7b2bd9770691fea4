//! The configuration as the program uses it: checked, typed, with all defaults and the origin of each key. Uses types instead
//! of strings: a command has a program, a store is one of three, a URL is checked.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use embody_broker::catalogue::ListingLimit;
use embody_broker::upstream::{BodyUsers, IdleShutdown};
use embody_prompt::{Kind, Sandbox};
use embody_wire::{Proxies, Secret};
use embody_workspace::Audiences;

use super::choices::{self, Class, Gate, Instructions, Layout, LogLevel, MindDown, Provider, Sampling, Via};
use super::mask::Address;
use super::tree::Origin;

#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) file: Option<PathBuf>,
    pub(crate) prompt: Prompt,
    pub(crate) persona: Persona,
    pub(crate) sandbox: Option<Sandbox>,
    pub(crate) store: Store,
    pub(crate) mind: Mind,
    pub(crate) bodies: Vec<Body>,
    pub(crate) listing_limit: ListingLimit,
    pub(crate) policy: Policy,
    pub(crate) model: Model,
    pub(crate) telegram: Telegram,
    pub(crate) telemetry: Telemetry,
    pub(crate) audience: Audiences,
    pub(crate) log_level: LogLevel,
    /// The HTTP proxies, from the shared environment variables.
    pub(crate) proxies: Proxies,
    /// Every key that is set or has a default, safe to print.
    pub(crate) keys: Vec<Setting>,
}

impl Config {
    /// The origin of a key such as `prompt.layout` or `body[0].name`.
    pub(crate) fn origin(&self, key: &str) -> &Origin {
        self.keys
            .iter()
            .find(|setting| setting.key == key)
            .map_or(&Origin::Default, |setting| &setting.origin)
    }
}

/// One key for display, with secrets masked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Setting {
    pub(crate) key: String,
    pub(crate) value: toml::Value,
    pub(crate) origin: Origin,
}

#[derive(Debug)]
pub(crate) struct Prompt {
    pub(crate) layout: Layout,
    pub(crate) body: PathBuf,
    pub(crate) fresh_last: bool,
    pub(crate) extra_sections: Vec<Kind>,
    pub(crate) budget_tokens: u32,
    pub(crate) keep_receipts: Duration,
    pub(crate) sections: BTreeMap<String, u32>,
}

/// `[persona]`: remote only if both `url` and `token_command` are set.
#[derive(Debug)]
pub(crate) struct Persona {
    pub(crate) url: Option<Address>,
    pub(crate) token_command: Option<CommandLine>,
    pub(crate) timeout: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandLine {
    pub(crate) program: String,
    pub(crate) args: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Store {
    Workspace {
        path: PathBuf,
    },
    Sqlite {
        url: Address,
    },
    Postgres {
        url: Address,
        /// A URL that bypasses the pooler.
        direct_url: Option<Address>,
    },
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Upstream {
    Stdio {
        command: CommandLine,
    },
    Remote {
        url: Address,
        /// Streamable HTTP, legacy SSE, or unknown.
        dialect: Dialect,
        token_command: Option<CommandLine>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Streamable HTTP, as configured.
    Http,
    /// Legacy HTTP+SSE, as configured or by the URL.
    Sse,
    /// Not configured: streamable HTTP first, then the legacy transport if that fails.
    Guessed,
}

#[derive(Debug)]
pub(crate) struct Mind {
    /// `None` is the embedded mind.
    pub(crate) upstream: Option<Upstream>,
    pub(crate) observe_timeout: Duration,
}

#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) name: String,
    pub(crate) upstream: Upstream,
    pub(crate) env: BTreeMap<String, Secret>,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) allow: Vec<String>,
    /// Hidden tools; overrides `allow`.
    pub(crate) deny: Vec<String>,
    pub(crate) observes: bool,
    pub(crate) trust_annotations: bool,
    pub(crate) arguments_max_bytes: usize,
    pub(crate) forward_methods: Vec<String>,
    pub(crate) sampling: Sampling,
    pub(crate) roots: Roots,
    pub(crate) instructions: Instructions,
    pub(crate) users: BodyUsers,
    pub(crate) idle_shutdown: IdleShutdown,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Roots {
    Host(choices::Roots),
    /// Absolute folders.
    Folders(Vec<PathBuf>),
}

#[derive(Debug)]
pub(crate) struct Policy {
    pub(crate) mind_down: MindDown,
    pub(crate) ask_wait: Duration,
    pub(crate) ask_timeout: Duration,
    /// A call that arrives sooner after the contract counts as made before the model read it.
    pub(crate) contract_delay: Duration,
    pub(crate) rules: Vec<Rule>,
}

#[derive(Debug)]
pub(crate) struct Rule {
    /// Patterns over `tool` or `body/tool`; never empty.
    pub(crate) tools: Vec<String>,
    pub(crate) class: Option<Class>,
    pub(crate) gate: Option<Gate>,
    /// The approval channels; `None` allows all.
    pub(crate) via: Option<Vec<Via>>,
    pub(crate) when: Option<String>,
    pub(crate) reason: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) provider: Provider,
    pub(crate) base_url: Address,
    /// `None` means that no model is configured.
    pub(crate) model: Option<String>,
    pub(crate) api_key_env: String,
    pub(crate) native_tools: bool,
    pub(crate) max_output_tokens: u32,
    pub(crate) timeouts: ModelTimeouts,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ModelTimeouts {
    pub(crate) connect: Option<Duration>,
    /// For the first byte of a response, including the connection.
    pub(crate) first_byte: Option<Duration>,
    pub(crate) idle: Option<Duration>,
    /// For all attempts together.
    pub(crate) total: Option<Duration>,
    pub(crate) retrying: Option<Duration>,
}

#[derive(Debug)]
pub(crate) struct Telegram {
    pub(crate) token_env: String,
    pub(crate) api_url: Address,
    pub(crate) allow_users: Vec<i64>,
    /// Maps Telegram user ids to users.
    pub(crate) users: BTreeMap<i64, String>,
}

#[derive(Debug)]
pub(crate) struct Telemetry {
    /// The URL of the collector; `None` disables the export.
    pub(crate) otlp_url: Option<Address>,
    pub(crate) headers: Vec<(String, Secret)>,
    pub(crate) service_name: String,
    pub(crate) sample_percent: u8,
}
