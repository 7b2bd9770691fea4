//! What a prompt is made of, as plain data. Somebody else has read the files, asked the clock and chosen between
//! sources; here are only the results, each with its source and its audience.

use crate::{Audience, Budget, Note, Source, Value, escape};

/// Everything that any layout may need. Absent values leave no trace in the prompt.
#[derive(Clone, Debug)]
pub struct PromptInput {
    /// Who will see what the agent writes; wider rooms see less.
    pub room: Audience,
    /// The body rules. They hold in every room, so they carry no audience.
    pub body: Option<Body>,
    /// A persona text from elsewhere, layered below the body.
    pub persona: Option<Value<String>>,
    /// Who the agent is.
    pub identity: Option<Value<Identity>>,
    /// How the agent is.
    pub soul: Option<Value<String>>,
    /// Who the user is.
    pub user: Option<Value<UserProfile>>,
    /// What the agent's own file says.
    pub agent: Agent,
    /// Project instructions, outermost first.
    pub project: Vec<Value<ProjectFile>>,
    /// Facts about the machine and the request.
    pub host: HostFacts,
    /// The sandbox, when one is configured.
    pub sandbox: Option<Value<Sandbox>>,
    /// Skills on offer.
    pub skills: Vec<Value<Skill>>,
    /// `AGENTS.md` and `TOOLS.md` of the workspace.
    pub workspace_files: Vec<Value<WorkspaceFile>>,
    /// Tools on offer, in the order in which they are listed.
    pub tools: Vec<Value<Tool>>,
    /// What the servers behind those tools say about themselves.
    pub servers: Vec<Value<Server>>,
    /// Whether the model's provider takes tools natively.
    pub native_tools: bool,
    /// The channel that the answer goes to.
    pub channel: Option<Value<String>>,
    /// The time, already in the user's time zone.
    pub now: Value<Now>,
    /// The same moment in UTC, for rooms that may not know where the user is.
    pub utc: String,
    /// The user's standing instructions.
    pub instructions: Option<Value<String>>,
    /// Where the agent may touch files.
    pub directories: Option<Value<Directories>>,
    /// Facts shared by all agents.
    pub memories: Option<Value<Vec<String>>>,
    /// The task that this run is bound to.
    pub task: Option<Value<Task>>,
    /// Whether nobody sees the reply.
    pub background: bool,
    /// What the sources had to say; carried into the prompt's own notes.
    pub notes: Vec<Note>,
    /// What the prompt may cost.
    pub budget: Budget,
}

impl PromptInput {
    /// An input with nothing but the time, for a room that the caller has to name.
    pub fn new(now: Value<Now>, room: Audience) -> Self {
        Self {
            room,
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
    /// The text, part by part.
    pub parts: Vec<BodyPart>,
}

/// A run of the body that comes from one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyPart {
    /// The text as it stands in its file.
    pub text: String,
    /// Where it stands.
    pub source: Source,
}

/// Who the agent is, as its front matter says. All optional.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Its name.
    pub name: Option<String>,
    /// The sign that goes with the name.
    pub emoji: Option<String>,
    /// What sort of being it is.
    pub creature: Option<String>,
    /// How it comes across.
    pub vibe: Option<String>,
    /// What it is for.
    pub description: Option<String>,
}

impl Identity {
    /// Whether nothing is known. A sign without a name says nothing.
    pub fn is_empty(&self) -> bool {
        [&self.name, &self.creature, &self.vibe, &self.description]
            .into_iter()
            .all(|field| field.as_deref().is_none_or(escape::is_blank))
    }
}

/// Who the user is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserProfile {
    /// The name to call them by.
    pub name: Option<String>,
}

/// What an agent's own file says.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Whether somebody has set this agent up. Nobody has: it gets the built-in identity.
    pub configured: bool,
    /// Who it is, in its own text.
    pub identity: Option<Value<String>>,
    /// How it works.
    pub instructions: Option<Value<String>>,
    /// The legacy form that stands for identity and instructions together.
    pub role: Option<Value<String>>,
    /// What it looks after.
    pub responsibilities: Vec<Value<Responsibility>>,
    /// Whether it can keep anything beyond this run.
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

/// One duty with the title by which the agent can refer to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Responsibility {
    /// Its name.
    pub title: String,
    /// What it asks for.
    pub content: String,
}

/// A file of project instructions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectFile {
    /// The path to show.
    pub path: String,
    /// Its content.
    pub text: String,
}

/// A file that belongs to the workspace, shown under its own name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkspaceFile {
    /// `AGENTS.md` or `TOOLS.md`.
    pub name: String,
    /// Its content.
    pub text: String,
}

/// A skill that the agent can open when it needs it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skill {
    /// Its name.
    pub name: String,
    /// Who provides it.
    pub source: String,
    /// Where to open it.
    pub path: String,
    /// When to use it.
    pub description: String,
}

/// A tool on offer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tool {
    /// The name to call it by.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Its parameters as JSON Schema, compact JSON text.
    pub schema: String,
}

/// A server's description of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Server {
    /// The server's name.
    pub name: String,
    /// Its text.
    pub description: String,
    /// How many characters of the text were cut before it came here.
    pub cut: usize,
}

/// A moment, already turned into the user's local time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// The local date and time, formatted.
    pub local: String,
    /// The name of the time zone.
    pub zone: String,
    /// Where the time zone was found, when it is not where the time was.
    pub zone_source: Option<Source>,
}

/// Where an agent may touch files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directories {
    /// Its own folder.
    pub cwd: String,
    /// Further folders.
    pub extra: Vec<String>,
}

/// The task that a run is bound to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// Its number or key.
    pub id: String,
    /// Its title.
    pub title: String,
    /// What is to be done.
    pub description: Option<String>,
    /// Where it stands.
    pub status: Option<String>,
    /// The way there.
    pub steps: Vec<Step>,
}

/// One step of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// What it is.
    pub text: String,
    /// How far it is.
    pub state: StepState,
}

/// How far a step is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StepState {
    /// Not begun.
    #[default]
    Open,
    /// Being worked on.
    Current,
    /// Finished.
    Done,
}

/// Facts about the machine and the request; empty ones are left out.
#[derive(Clone, Debug, Default)]
pub struct HostFacts {
    /// The machine's name.
    pub host: Option<Value<String>>,
    /// The operating system.
    pub os: Option<Value<String>>,
    /// The processor architecture.
    pub arch: Option<Value<String>>,
    /// The user's shell.
    pub shell: Option<Value<String>>,
    /// The model's provider.
    pub provider: Option<Value<String>>,
    /// The model.
    pub model: Option<Value<String>>,
    /// The session's key.
    pub session: Option<Value<String>>,
    /// Whether `sudo` works without a password.
    pub sudo_non_interactive: Option<Value<String>>,
    /// What is known about `sudo`.
    pub sudo_status: Option<Value<String>>,
    /// The user's time zone.
    pub timezone: Option<Value<String>>,
    /// The languages that the request asked for.
    pub accept_language: Option<Value<String>>,
    /// The request's address.
    pub remote_ip: Option<Value<String>>,
    /// Where the user is.
    pub location: Option<Value<String>>,
}

/// The sandbox as configured; empty fields are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sandbox {
    /// Whether commands run in it.
    pub enabled: Option<bool>,
    /// Which commands do.
    pub mode: Option<String>,
    /// What provides it.
    pub backend: Option<String>,
    /// How long it lives.
    pub scope: Option<String>,
    /// What it is made from.
    pub image: Option<String>,
    /// How the workspace is mounted in it.
    pub workspace_mount: Option<String>,
    /// Whether it reaches the network.
    pub network: Option<String>,
    /// What this session changed about it.
    pub session_override: Option<String>,
}
