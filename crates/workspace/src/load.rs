//! Reads everything that a prompt needs in one call, and decides which source wins.

use std::path::{Path, PathBuf};

use embody_prompt::{Audience, Budget, PromptInput, RequestFacts, Sandbox, Source, Task, Tool, Value};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::body::BodyOutcome;
use crate::environment::ModelFacts;
use crate::files::FoundSkill;
use crate::persona_files::User;
use crate::read::Folder;
use crate::{AgentName, agent, body, environment, files, persona_files, tasks};

#[derive(Clone, Debug)]
pub struct LoadRequest {
    /// Need not exist.
    pub workspace: PathBuf,
    /// The body file, relative to the workspace or absolute.
    pub body: PathBuf,
    pub agent: AgentName,
    /// Whether the user is the owner of the workspace: `USER.md`, `memories.json` and `tasks.json` are for no other user.
    pub is_for_owner: bool,
    /// Who reads the replies.
    pub audience: Audience,
    pub audiences: Audiences,
    pub channel: Option<String>,
    pub task: Option<String>,
    pub background: bool,
    /// `None` is now.
    pub now: Option<Timestamp>,
    pub timezone: Option<String>,
    pub project: Option<PathBuf>,
    pub facts: RequestFacts,
    pub model: ModelFacts,
    pub native_tools: bool,
    pub sandbox: Option<Sandbox>,
    pub tools: Vec<Value<Tool>>,
    pub instructions: Option<(String, Source)>,
    pub stored: StoredValues,
    pub budget: Budget,
}

/// Values from the store, each with its source.
#[derive(Clone, Debug, Default)]
pub struct StoredValues {
    /// The agent's soul; wins over the workspace's file, not over the agent's own.
    pub soul: Option<(String, Source)>,
    /// The agent's identity as a JSON object; likewise.
    pub identity: Option<(serde_json::Value, Source)>,
    /// The task that the run is bound to; wins over `tasks.json`.
    pub task: Option<(Task, Source)>,
}

impl LoadRequest {
    /// The audiences; values about the owner are for the owner only if the user is another.
    fn audiences_for_user(&self) -> Audiences {
        let audiences = self.audiences.clone();
        match self.is_for_owner {
            true => audiences,
            false => Audiences { user: Audience::Owner, memories: Audience::Owner, ..audiences },
        }
    }
}

/// The section `[audience]` of `embody.toml`; the comments are its documentation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Audiences {
    /// Who may see the identity.
    pub identity: Audience,
    /// Who may see the soul.
    pub soul: Audience,
    /// Who may see the user's profile.
    pub user: Audience,
    /// Who may see the project's context files.
    pub project: Audience,
    /// Who may see host and sandbox facts.
    pub runtime: Audience,
    /// Who may see the list of skills.
    pub skills: Audience,
    /// Who may see `AGENTS.md` and `TOOLS.md`.
    pub workspace_files: Audience,
    /// Who may see the shared memories.
    pub memories: Audience,
    /// Who may see the standing instructions.
    pub instructions: Audience,
    /// Who may see the task.
    pub task: Audience,
    /// Who may see the remote persona.
    pub persona: Audience,
}

impl Default for Audiences {
    fn default() -> Self {
        Self {
            identity: Audience::Public,
            soul: Audience::Public,
            user: Audience::User,
            project: Audience::Owner,
            runtime: Audience::Owner,
            skills: Audience::Group,
            workspace_files: Audience::Group,
            memories: Audience::User,
            instructions: Audience::User,
            task: Audience::User,
            persona: Audience::Public,
        }
    }
}

#[derive(Clone, Debug)]
pub struct LoadedWorkspace {
    pub input: PromptInput,
    pub layout: Option<String>,
    pub body: BodyOutcome,
    /// The agent's working directory, if it has one of its own. It need not exist.
    pub files: Option<PathBuf>,
    pub zone: String,
    /// A configured time zone that does not exist, and its source.
    pub unknown_zone: Option<(String, Source)>,
    persona_audience: Audience,
}

impl LoadedWorkspace {
    pub fn set_persona(&mut self, text: String, source: Source) {
        self.input.persona = Some(Value::new(text, source, self.persona_audience));
    }
}

/// Errors of the caller. Problems of a file are notes.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "`{name}` cannot be the name of an agent: use letters, digits, `-`, `_` and `.`, no dot first, 1 to 64 bytes"
    )]
    AgentName { name: String },
    #[error("unknown task `{id}`: {}", known_tasks(.known))]
    NoSuchTask { id: String, known: Vec<String> },
    /// For a user who may not see the other tasks.
    #[error("unknown task `{id}`")]
    NoTask { id: String },
    #[error("tasks.json is not read: {reason}")]
    TasksRefused { reason: String },
    #[error("tasks.json cannot be read as a list of tasks")]
    Tasks(#[source] serde_json::Error),
    #[error("the project folder `{}` cannot be used", path.display())]
    Project { path: PathBuf, source: std::io::Error },
}

fn known_tasks(known: &[String]) -> String {
    if known.is_empty() {
        return "tasks.json is missing or empty".into();
    }
    let shown: Vec<&str> = known.iter().take(10).map(String::as_str).collect();
    let more = if known.len() > shown.len() { ", …" } else { "" };
    format!("tasks.json has {}{more}", shown.join(", "))
}

/// The soul that prompts of the agent have, if it has one: that of its folder, the stored one, or that of the workspace.
pub fn read_soul(
    workspace: &Path,
    agent: &AgentName,
    stored: Option<&(String, Source)>,
) -> Option<(String, Source)> {
    let mut notes = Vec::new();
    let workspace = Folder::new(workspace, "");
    let own = workspace.folder(&format!("agents/{}", agent.as_str()), &mut notes);
    persona_files::soul(own.as_ref(), stored, &workspace, &mut notes)
}

pub fn load(request: &LoadRequest) -> Result<LoadedWorkspace, Error> {
    let mut notes = Vec::new();
    let audiences = &request.audiences_for_user();
    let workspace = Folder::new(&request.workspace, "");
    let own = workspace.folder(&format!("agents/{}", request.agent.as_str()), &mut notes);
    let project = request.project.as_deref().map(canonical).transpose()?;
    let folders: Vec<Folder> = own.iter().cloned().chain([workspace.clone()]).collect();

    let (body, outcome) = body::load(&request.workspace, &request.body, &mut notes);
    let found = agent::load(own.as_ref(), project.as_deref(), audiences.soul, &mut notes);
    let user = persona_files::user(&folders, audiences.user, &mut notes);
    let zone = request
        .timezone
        .clone()
        .map(|name| (name, Source::fixed("--timezone")))
        .or_else(|| user.timezone.clone());

    let clock = environment::now(request.now, zone.as_ref(), audiences.user, &mut notes);
    let zone_source = zone.as_ref().map_or(Source::fixed("machine"), |(_, source)| source.clone());
    let unknown_zone = zone.filter(|_| !clock.is_zone_known);
    let mut input = PromptInput::new(clock.now, request.audience);
    input.utc = clock.utc;
    let zone = clock.zone.clone();
    input.body = body;
    let stored = &request.stored;
    input.identity = persona_files::identity(
        own.as_ref(),
        stored.identity.as_ref(),
        &workspace,
        audiences.identity,
        &mut notes,
    );
    let soul = persona_files::soul(own.as_ref(), stored.soul.as_ref(), &workspace, &mut notes);
    input.soul = soul.map(|(text, source)| Value::new(text, source, audiences.soul));
    input.host = host_facts(request, audiences, (clock.zone, zone_source), &user);
    input.user = user.profile;
    input.project =
        project.map(|path| files::project(&path, audiences.project, &mut notes)).unwrap_or_default();
    input.skills = load_skills(own, &workspace, audiences.skills, &mut notes);
    input.workspace_files = files::workspace_files(&folders, audiences.workspace_files, &mut notes);
    input.memories = files::memories(&workspace, audiences.memories, &mut notes);
    input.task = match (&stored.task, &request.task) {
        (Some((task, source)), _) => Some(Value::new(task.clone(), source.clone(), audiences.task)),
        (None, Some(id)) if !request.is_for_owner => return Err(Error::NoTask { id: id.clone() }),
        (None, Some(id)) => Some(tasks::find(&workspace, id, audiences.task)?),
        (None, None) => None,
    };
    let source = found.directories_source.unwrap_or(Source::BUILT_IN);
    input.directories =
        found.directories.map(|directories| Value::new(directories, source, audiences.runtime));
    input.agent = found.agent;
    copy_request_values(&mut input, request);
    input.notes = notes;
    Ok(LoadedWorkspace {
        input,
        layout: found.layout,
        files: found.files,
        body: outcome,
        zone,
        unknown_zone,
        persona_audience: audiences.persona,
    })
}

fn copy_request_values(input: &mut PromptInput, request: &LoadRequest) {
    let audiences = &request.audiences;
    let value = |(text, source): (String, Source), audience| Value::new(text, source, audience);
    input.instructions = request.instructions.clone().map(|text| value(text, audiences.instructions));
    input.channel =
        request.channel.clone().map(|name| value((name, Source::fixed("--channel")), Audience::Public));
    input.sandbox = request
        .sandbox
        .clone()
        .map(|sandbox| Value::new(sandbox, Source::fixed("config [sandbox]"), audiences.runtime));
    input.tools = request.tools.clone();
    input.native_tools = request.native_tools;
    input.background = request.background;
    input.budget = request.budget.clone();
}

fn host_facts(
    request: &LoadRequest,
    audiences: &Audiences,
    zone: (String, Source),
    user: &User,
) -> embody_prompt::HostFacts {
    let audience = audiences.runtime;
    let from_request = |text: &Option<String>| {
        text.clone().map(|text| Value::new(text, Source::fixed("request"), audiences.user))
    };
    let mut facts = environment::host_facts(&request.model, audience);
    facts.session = from_request(&request.facts.session);
    facts.accept_language = from_request(&request.facts.accept_language);
    facts.remote_ip = from_request(&request.facts.remote_ip);
    facts.timezone = Some(Value::new(zone.0, zone.1, audiences.user));
    facts.location = from_request(&request.facts.location)
        .or_else(|| user.location.clone().map(|(text, source)| Value::new(text, source, audiences.user)));
    facts
}

fn load_skills(
    own: Option<Folder>,
    workspace: &Folder,
    audience: Audience,
    notes: &mut Vec<embody_prompt::Note>,
) -> Vec<Value<embody_prompt::Skill>> {
    let value = |found: FoundSkill| Value::new(found.skill, found.source, audience);
    files::skills(&skill_folders(own, workspace), notes).into_iter().map(value).collect()
}

pub(crate) fn skill_folders(own: Option<Folder>, workspace: &Folder) -> Vec<(Folder, &'static str)> {
    own.map(|folder| (folder, "agent")).into_iter().chain([(workspace.clone(), "workspace")]).collect()
}

fn canonical(path: &Path) -> Result<PathBuf, Error> {
    let failed = |source| Error::Project { path: path.to_owned(), source };
    let real = std::fs::canonicalize(path).map_err(failed)?;
    if real.is_dir() { Ok(real) } else { Err(failed(std::io::ErrorKind::NotADirectory.into())) }
}
