//! The input of a prompt as plain data: the caller has read files and clock and chosen between sources. Each value has its
//! source and its audience.

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

use crate::{Audience, Budget, Note, Source, Value, escape};

/// Everything that any layout may need. Absent values leave no trace in the prompt.
#[derive(Clone, Debug)]
pub struct PromptInput {
    /// Who reads the agent's replies; a wider audience sees fewer values.
    pub audience: Audience,
    /// The body rules. They apply to every audience.
    pub body: Option<Body>,
    /// A persona text from elsewhere, layered below the body.
    pub persona: Option<Value<String>>,
    pub identity: Option<Value<Identity>>,
    pub soul: Option<Value<String>>,
    pub user: Option<Value<UserProfile>>,
    pub agent: Agent,
    pub project: Vec<Value<ProjectFile>>,
    pub host: HostFacts,
    pub sandbox: Option<Value<Sandbox>>,
    pub skills: Vec<Value<Skill>>,
    pub workspace_files: Vec<Value<WorkspaceFile>>,
    pub tools: Vec<Value<Tool>>,
    /// The instructions of the servers behind those tools.
    pub servers: Vec<Value<Server>>,
    /// Servers whose tools are not available now.
    pub missing_servers: Vec<Value<MissingServer>>,
    pub native_tools: bool,
    pub channel: Option<Value<String>>,
    pub now: Value<LocalTime>,
    /// The same time in UTC, for audiences that may not know the user's location.
    pub utc: String,
    pub instructions: Option<Value<String>>,
    pub directories: Option<Value<Directories>>,
    pub memories: Option<Value<Vec<String>>>,
    pub task: Option<Value<Task>>,
    pub background: bool,
    /// Notes of the sources; copied into the prompt's notes.
    pub notes: Vec<Note>,
    pub budget: Budget,
}

impl PromptInput {
    pub fn new(now: Value<LocalTime>, audience: Audience) -> Self {
        Self {
            audience,
            body: None,
            persona: None,
            identity: None,
            soul: None,
            user: None,
            agent: Agent::default(),
            project: Vec::new(),
            host: HostFacts::default(),
            sandbox: None,
            skills: Vec::new(),
            workspace_files: Vec::new(),
            tools: Vec::new(),
            servers: Vec::new(),
            missing_servers: Vec::new(),
            native_tools: true,
            channel: None,
            now,
            utc: String::new(),
            instructions: None,
            directories: None,
            memories: None,
            task: None,
            background: false,
            notes: Vec::new(),
            budget: Budget::default(),
        }
    }
}

/// The body prompt with its includes expanded; the parts follow each other without gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    pub parts: Vec<BodyPart>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyPart {
    pub text: String,
    pub source: Source,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    pub name: Option<String>,
    pub emoji: Option<String>,
    pub creature: Option<String>,
    pub vibe: Option<String>,
    pub description: Option<String>,
}

impl Identity {
    /// An emoji without a name does not count.
    pub fn is_empty(&self) -> bool {
        [&self.name, &self.creature, &self.vibe, &self.description]
            .into_iter()
            .all(|field| field.as_deref().is_none_or(escape::is_blank))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserProfile {
    pub name: Option<String>,
    pub location: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Agent {
    /// An agent without configuration gets the built-in identity.
    pub configured: bool,
    pub identity: Option<Value<String>>,
    pub instructions: Option<Value<String>>,
    /// The legacy form that stands for identity and instructions together.
    pub role: Option<Value<String>>,
    pub responsibilities: Vec<Value<Responsibility>>,
    pub persists: bool,
}

impl Default for Agent {
    fn default() -> Self {
        Self {
            configured: false,
            identity: None,
            instructions: None,
            role: None,
            responsibilities: Vec::new(),
            persists: true,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Responsibility {
    pub title: String,
    pub content: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectFile {
    pub path: String,
    pub text: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkspaceFile {
    pub name: String,
    pub text: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skill {
    pub name: String,
    pub source: String,
    pub path: String,
    pub description: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tool {
    pub name: String,
    pub description: String,
    pub schema: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MissingServer {
    pub name: String,
    /// Whether its first start is in progress; otherwise it has failed.
    pub is_starting: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Server {
    pub name: String,
    pub description: String,
    /// How many characters of the text were cut before it came here.
    pub cut: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalTime {
    pub local: String,
    pub zone: String,
    /// Where the time zone was found, when it is not where the time was.
    pub zone_source: Option<Source>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directories {
    pub cwd: String,
    pub extra: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Task {
    pub id: String,
    pub title: String,
    pub description: Option<String>,
    pub status: Option<String>,
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    pub text: String,
    pub state: StepState,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StepState {
    #[default]
    Open,
    Current,
    Done,
}

/// What a request says about the person who made it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestFacts {
    pub session: Option<String>,
    pub accept_language: Option<String>,
    pub remote_ip: Option<String>,
    /// Wins over `USER.md`.
    pub location: Option<String>,
}

/// Facts about the machine and the request; empty ones are left out.
#[derive(Clone, Debug, Default)]
pub struct HostFacts {
    pub host: Option<Value<String>>,
    pub os: Option<Value<String>>,
    pub arch: Option<Value<String>>,
    pub shell: Option<Value<String>>,
    pub provider: Option<Value<String>>,
    pub model: Option<Value<String>>,
    pub session: Option<Value<String>>,
    pub sudo_non_interactive: Option<Value<String>>,
    pub sudo_status: Option<Value<String>>,
    pub timezone: Option<Value<String>>,
    pub accept_language: Option<Value<String>>,
    pub remote_ip: Option<Value<String>>,
    pub location: Option<Value<String>>,
}

/// The section `[sandbox]` of `embody.toml`; the comments are its documentation. Empty fields are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(transform = allow_flags)]
pub struct Sandbox {
    /// Whether tools run in a sandbox.
    pub enabled: Option<bool>,
    /// Which commands it holds, for example `all`.
    pub mode: Option<String>,
    /// What provides it, for example `docker`.
    pub backend: Option<String>,
    /// How long one sandbox lives, for example `session`.
    pub scope: Option<String>,
    /// The image it starts from.
    pub image: Option<String>,
    /// How the workspace is mounted, for example `ro`.
    pub workspace_mount: Option<String>,
    /// Whether it reaches the network, for example `disabled`.
    pub network: Option<String>,
    /// Whether this session departs from the general setting.
    pub session_override: Option<String>,
}

/// The texts are only shown, so that `true` and `"true"` mean the same.
fn allow_flags(schema: &mut Schema) {
    let properties = schema.get_mut("properties").and_then(|properties| properties.as_object_mut());
    for property in properties.into_iter().flat_map(|properties| properties.values_mut()) {
        if property.get("type") == Some(&["string", "null"].into()) {
            property["type"] = ["string", "boolean"].into();
        }
    }
}
