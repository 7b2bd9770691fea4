//! The simple TOML form in which `tests/inputs/*.toml` describe a prompt's input. Unknown keys are errors. Every value
//! is for every room unless `[audience]` narrows it by the name of its field.

use std::collections::BTreeMap;

use embody_prompt::{
    self as p, Audience, Body, BodyPart, Budget, HostFacts, Kind, Layout, Note, NoteKind, PromptInput,
    Source, Value,
};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fixture {
    /// What this input is there to show.
    pub(crate) why: String,
    /// The requirements that it belongs to.
    #[serde(default)]
    pub(crate) spec: Vec<String>,
    layout: String,
    #[serde(default = "yes")]
    with_body: bool,
    #[serde(default)]
    fresh_last: bool,
    #[serde(default)]
    extra_sections: Vec<String>,
    #[serde(default = "owner")]
    room: String,
    #[serde(default)]
    audience: BTreeMap<String, String>,
    #[serde(default)]
    body: Vec<Text>,
    persona: Option<Text>,
    identity: Option<Identity>,
    soul: Option<Text>,
    user: Option<String>,
    /// Where the user is.
    location: Option<String>,
    #[serde(default)]
    agent: Agent,
    #[serde(default)]
    project: Vec<File>,
    #[serde(default)]
    host: BTreeMap<String, String>,
    #[serde(default)]
    sandbox: BTreeMap<String, String>,
    #[serde(default)]
    skills: Vec<Skill>,
    #[serde(default)]
    workspace_files: Vec<File>,
    #[serde(default)]
    tools: Vec<Tool>,
    #[serde(default = "yes")]
    native_tools: bool,
    channel: Option<String>,
    #[serde(default)]
    now: LocalTime,
    instructions: Option<Text>,
    directories: Option<Directories>,
    memories: Option<Vec<String>>,
    task: Option<Task>,
    #[serde(default)]
    background: bool,
    #[serde(default)]
    notes: Vec<SourceNote>,
    #[serde(default)]
    budget: Limits,
}

/// A text as it stands, or a short one repeated.
#[derive(Deserialize)]
#[serde(untagged)]
enum Text {
    Plain(String),
    Repeated { repeat: usize, text: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Identity {
    name: Option<String>,
    emoji: Option<String>,
    creature: Option<String>,
    vibe: Option<String>,
    description: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Agent {
    configured: bool,
    identity: Option<Text>,
    instructions: Option<Text>,
    role: Option<Text>,
    responsibilities: Vec<Responsibility>,
    persists: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Responsibility {
    title: String,
    content: Text,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    path: String,
    text: Text,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Skill {
    name: String,
    source: String,
    path: String,
    description: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tool {
    name: String,
    #[serde(default)]
    description: Option<Text>,
    #[serde(default)]
    schema: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LocalTime {
    local: String,
    zone: String,
}

impl Default for LocalTime {
    fn default() -> Self {
        Self { local: "Sunday, 2026-11-15 21:00".into(), zone: "Europe/Berlin".into() }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Directories {
    cwd: String,
    #[serde(default)]
    extra: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Task {
    id: String,
    title: String,
    description: Option<String>,
    status: Option<String>,
    #[serde(default)]
    steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    text: String,
    state: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SourceNote {
    kind: String,
    message: String,
    source: String,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Limits {
    total: Option<usize>,
    sections: BTreeMap<String, usize>,
}

fn yes() -> bool {
    true
}

fn owner() -> String {
    "owner".into()
}

impl Text {
    fn get(&self) -> String {
        match self {
            Self::Plain(text) => text.clone(),
            Self::Repeated { repeat, text } => text.repeat(*repeat),
        }
    }
}

impl Fixture {
    /// The fixture that the file's text describes.
    pub(crate) fn parse(text: &str) -> Self {
        toml::from_str(text).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The layout that it asks for.
    pub(crate) fn layout(&self) -> Layout {
        let layout = match self.layout.as_str() {
            "simple" => Layout::SIMPLE,
            "minimal" => Layout::MINIMAL,
            name => Layout::from_name(name).unwrap_or_else(|| panic!("no layout `{name}`")),
        };
        let extra: Vec<Kind> =
            self.extra_sections.iter().map(|name| Kind::from_name(name).unwrap()).collect();
        layout.with_body(self.with_body).with_volatile_last(self.fresh_last).with_extra_sections(&extra)
    }

    /// The input that it describes.
    pub(crate) fn input(&self) -> PromptInput {
        let now =
            p::LocalTime { local: self.now.local.clone(), zone: self.now.zone.clone(), zone_source: None };
        let mut input =
            PromptInput::new(self.value(now, "now", Source::fixed("clock")), audience(&self.room));
        input.body = (!self.body.is_empty()).then(|| self.body());
        input.persona = self.text(&self.persona, "persona", "persona");
        input.identity = self.identity.as_ref().map(|identity| self.identity(identity));
        input.soul = self.text(&self.soul, "soul", "SOUL.md");
        input.user = self.user.as_ref().map(|name| {
            let profile = p::UserProfile { name: Some(name.clone()), location: self.location.clone() };
            self.value(profile, "user", Source::file("USER.md"))
        });
        input.agent = self.agent();
        input.host = self.host();
        input.sandbox = (!self.sandbox.is_empty()).then(|| self.sandbox());
        input.native_tools = self.native_tools;
        input.channel =
            self.channel.as_ref().map(|name| self.value(name.clone(), "channel", Source::fixed("--channel")));
        input.instructions = self.text(&self.instructions, "instructions", "instructions");
        input.directories = self.directories.as_ref().map(|directories| {
            let value = p::Directories { cwd: directories.cwd.clone(), extra: directories.extra.clone() };
            self.value(value, "directories", Source::file("agents/nova.toml"))
        });
        input.memories = self
            .memories
            .as_ref()
            .map(|memories| self.value(memories.clone(), "memories", Source::file("memories.json")));
        input.task = self.task.as_ref().map(|task| self.value(task.get(), "task", Source::fixed("store")));
        input.background = self.background;
        input.notes = self.notes.iter().map(SourceNote::get).collect();
        self.fill_lists(&mut input);
        self.limit(&mut input.budget);
        input
    }

    fn fill_lists(&self, input: &mut PromptInput) {
        for file in &self.project {
            let value = p::ProjectFile { path: file.path.clone(), text: file.text.get() };
            input.project.push(self.value(value, "project", Source::file(&file.path)));
        }
        for file in &self.workspace_files {
            let value = p::WorkspaceFile { name: file.path.clone(), text: file.text.get() };
            input.workspace_files.push(self.value(value, "workspace_files", Source::file(&file.path)));
        }
        for Skill { name, source, path, description } in &self.skills {
            let [name, source, path, description] = [name, source, path, description].map(Clone::clone);
            let value = p::Skill { name, source, path, description };
            input.skills.push(self.value(value, "skills", Source::fixed("skills")));
        }
        for tool in &self.tools {
            let description = tool.description.as_ref().map(Text::get).unwrap_or_default();
            let value = p::Tool { name: tool.name.clone(), description, schema: tool.schema.clone() };
            input.tools.push(self.value(value, "tools", Source::fixed("tools")));
        }
    }

    fn value<T>(&self, inner: T, field: &str, source: Source) -> Value<T> {
        let audience = self.audience.get(field).map_or(Audience::Public, |name| audience(name));
        Value::new(inner, source, audience)
    }

    fn text(&self, text: &Option<Text>, field: &str, file: &str) -> Option<Value<String>> {
        text.as_ref().map(|text| self.value(text.get(), field, Source::file(file)))
    }

    fn body(&self) -> Body {
        let part = |(index, text): (usize, &Text)| BodyPart {
            text: text.get(),
            source: Source::file(&format!("prompts/{index}.md")),
        };
        Body { parts: self.body.iter().enumerate().map(part).collect() }
    }

    fn identity(&self, identity: &Identity) -> Value<p::Identity> {
        let Identity { name, emoji, creature, vibe, description } = identity;
        let [name, emoji, creature, vibe, description] =
            [name, emoji, creature, vibe, description].map(Clone::clone);
        self.value(
            p::Identity { name, emoji, creature, vibe, description },
            "identity",
            Source::file("IDENTITY.md"),
        )
    }

    fn agent(&self) -> p::Agent {
        let text = |text: &Option<Text>, field: &str| self.text(text, field, "agents/nova.toml");
        let duty = |duty: &Responsibility| {
            let value = p::Responsibility { title: duty.title.clone(), content: duty.content.get() };
            self.value(value, "agent.responsibilities", Source::file("agents/nova.toml"))
        };
        p::Agent {
            configured: self.agent.configured,
            identity: text(&self.agent.identity, "agent.identity"),
            instructions: text(&self.agent.instructions, "agent.instructions"),
            role: text(&self.agent.role, "agent.role"),
            responsibilities: self.agent.responsibilities.iter().map(duty).collect(),
            persists: self.agent.persists.unwrap_or(true),
        }
    }

    fn host(&self) -> HostFacts {
        let mut facts = self.host.clone();
        let mut take = |key: &str| {
            let words = facts.remove(key)?;
            Some(self.value(words, &format!("host.{key}"), Source::fixed("host")))
        };
        let host = HostFacts {
            host: take("host"),
            os: take("os"),
            arch: take("arch"),
            shell: take("shell"),
            provider: take("provider"),
            model: take("model"),
            session: take("session"),
            sudo_non_interactive: take("sudo_non_interactive"),
            sudo_status: take("sudo_status"),
            timezone: take("timezone"),
            accept_language: take("accept_language"),
            remote_ip: take("remote_ip"),
            location: take("location"),
        };
        assert!(facts.is_empty(), "no host facts: {facts:?}");
        host
    }

    fn sandbox(&self) -> Value<p::Sandbox> {
        let mut rows = self.sandbox.clone();
        let enabled = rows.remove("enabled").map(|on| on == "true");
        let sandbox = p::Sandbox {
            enabled,
            mode: rows.remove("mode"),
            backend: rows.remove("backend"),
            scope: rows.remove("scope"),
            image: rows.remove("image"),
            workspace_mount: rows.remove("workspace_mount"),
            network: rows.remove("network"),
            session_override: rows.remove("session_override"),
        };
        assert!(rows.is_empty(), "no keys of a sandbox: {rows:?}");
        self.value(sandbox, "sandbox", Source::file("embody.toml"))
    }

    fn limit(&self, budget: &mut Budget) {
        if let Some(total) = self.budget.total {
            budget.total = total;
        }
        budget.sections = self
            .budget
            .sections
            .iter()
            .map(|(name, limit)| {
                (Kind::from_name(name).unwrap_or_else(|| panic!("no section `{name}`")), *limit)
            })
            .collect();
    }
}

impl Task {
    fn get(&self) -> p::Task {
        let state = |name: &str| match name {
            "open" => p::StepState::Open,
            "current" => p::StepState::Current,
            "done" => p::StepState::Done,
            name => panic!("no state `{name}`"),
        };
        let steps =
            self.steps.iter().map(|step| p::Step { text: step.text.clone(), state: state(&step.state) });
        p::Task {
            id: self.id.clone(),
            title: self.title.clone(),
            description: self.description.clone(),
            status: self.status.clone(),
            steps: steps.collect(),
        }
    }
}

impl SourceNote {
    fn get(&self) -> Note {
        let kind = [
            NoteKind::MissingInclude,
            NoteKind::RefusedPath,
            NoteKind::Insecure,
            NoteKind::BadFormat,
            NoteKind::UnknownTimezone,
            NoteKind::Duplicate,
            NoteKind::TooMany,
            NoteKind::PersonaUnavailable,
        ]
        .into_iter()
        .find(|kind| kind.name() == self.kind)
        .unwrap_or_else(|| panic!("no note `{}`", self.kind));
        Note::new(kind, self.message.clone(), Source::file(&self.source))
    }
}

fn audience(name: &str) -> Audience {
    Audience::from_name(name).unwrap_or_else(|| panic!("no audience `{name}`"))
}
