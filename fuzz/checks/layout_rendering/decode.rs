//! From bytes to an input and a layout.
//!
//! The bytes are fields, separated by NUL, in the order of `case`. The first one holds a switch per byte. In the others
//! 0x1E separates items and 0x1F the texts of an item; an item's first byte says who it is meant for. An empty field
//! is an absent value. Bytes that are no UTF-8 stand for a fragment.

use embody_prompt::{
    Agent, Audience, Body, BodyPart, Budget, Directories, HostFacts, Identity, Kind, Layout, LocalTime,
    ProjectFile, PromptInput, Responsibility, Sandbox, Server, Skill, Source, Step, StepState, Task, Tool,
    UserProfile, Value, WorkspaceFile,
};

use super::fragments::fragment;

/// Stands in every text that the room may not see, and in no other.
pub(super) const WITHHELD: char = '\u{F8FF}';

/// Fragments stop being added here: counting the tokens of endless words takes long and shows nothing new.
const LONGEST_TEXT: usize = 8 * 1024;

pub(super) struct Case {
    pub(super) input: PromptInput,
    pub(super) layout: Layout,
}

pub(super) fn case(data: &[u8]) -> Case {
    let mut fields = data.split(|byte| *byte == 0);
    let switches = Switches(fields.next().unwrap_or_default());
    let audience = Audience::ALL[switches.choice(3, 4)];
    let mut fields = Fields { fields, audience };
    let body = fields.body();
    let persona = fields.text("persona");
    let identity = fields.one("IDENTITY.md", |words| Identity {
        name: words.option(),
        emoji: words.option(),
        creature: words.option(),
        vibe: words.option(),
        description: words.option(),
    });
    let soul = fields.text("SOUL.md");
    let user = fields.one("USER.md", |words| UserProfile { name: words.option(), location: None });
    let agent = Agent {
        configured: switches.on(5),
        identity: fields.text("agent.toml"),
        instructions: fields.text("agent.toml"),
        role: fields.text("agent.toml"),
        responsibilities: fields
            .many("agent.toml", |words| Responsibility { title: words.next(), content: words.next() }),
        persists: switches.on(6),
    };
    let input = PromptInput {
        audience,
        body,
        persona,
        identity,
        soul,
        user,
        agent,
        project: fields.many("CLAUDE.md", |words| ProjectFile { path: words.next(), text: words.next() }),
        host: fields.host(),
        sandbox: fields.one("[sandbox]", |words| sandbox(words, switches.choice(10, 3))),
        skills: fields.many("SKILL.md", |words| Skill {
            name: words.next(),
            source: words.next(),
            path: words.next(),
            description: words.next(),
        }),
        workspace_files: fields
            .many("AGENTS.md", |words| WorkspaceFile { name: words.next(), text: words.next() }),
        tools: fields.many("tools", |words| Tool {
            name: words.next(),
            description: words.next(),
            schema: words.next(),
        }),
        native_tools: switches.on(4),
        channel: fields.text("--channel"),
        now: fields
            .one("clock", |words| LocalTime { local: words.next(), zone: words.next(), zone_source: None })
            .unwrap_or_else(|| Value::new(LocalTime::default(), Source::fixed("clock"), Audience::Public)),
        utc: String::new(),
        instructions: fields.text("store"),
        directories: fields.one("agent.toml", |words| Directories { cwd: words.next(), extra: words.rest() }),
        memories: fields.one("memories.json", Words::rest),
        task: fields.one("tasks.json", task),
        servers: fields.many("bodies", |words| Server {
            name: words.next(),
            description: words.next(),
            cut: switches.choice(11, 3),
        }),
        missing_servers: Vec::new(),
        background: switches.on(7),
        notes: Vec::new(),
        budget: budget(switches),
    };
    let layout = Layout::ALL[switches.choice(0, Layout::ALL.len())];
    Case { input, layout: layout.with_volatile_last(switches.on(1)).with_body(switches.on(2)) }
}

/// One choice per byte, readable when the bytes are digits.
#[derive(Clone, Copy)]
struct Switches<'a>(&'a [u8]);

impl Switches<'_> {
    fn choice(self, at: usize, choices: usize) -> usize {
        self.0.get(at).map_or(0, |byte| usize::from(byte.wrapping_sub(b'0')) % choices)
    }

    fn on(self, at: usize) -> bool {
        self.choice(at, 2) == 1
    }
}

/// Counting tokens is slow, so most bytes stand for a budget that is never reached.
fn budget(switches: Switches<'_>) -> Budget {
    const TOTALS: [usize; 8] = [100_000, 0, 40, 150, 300, 600, 1_200, 12_000];
    const CAPS: [usize; 4] = [usize::MAX, 0, 30, 120];
    let total = TOTALS.get(switches.choice(8, 64)).copied().unwrap_or(100_000);
    let cap = CAPS.get(switches.choice(9, 64)).copied().unwrap_or(usize::MAX);
    let sections =
        if cap == usize::MAX { Vec::new() } else { Kind::ALL.iter().map(|kind| (*kind, cap)).collect() };
    Budget { total, sections }
}

fn sandbox(words: &mut Words<'_>, enabled: usize) -> Sandbox {
    Sandbox {
        enabled: [None, Some(true), Some(false)][enabled],
        mode: words.option(),
        backend: words.option(),
        scope: words.option(),
        image: words.option(),
        workspace_mount: words.option(),
        network: words.option(),
        session_override: words.option(),
    }
}

fn task(words: &mut Words<'_>) -> Task {
    const STATES: [StepState; 3] = [StepState::Open, StepState::Current, StepState::Done];
    Task {
        id: words.next(),
        title: words.next(),
        description: words.option(),
        status: words.option(),
        steps: words
            .rest()
            .into_iter()
            .map(|text| Step { state: STATES[text.chars().count() % STATES.len()], text })
            .collect(),
    }
}

struct Fields<F> {
    fields: F,
    audience: Audience,
}

impl<'a, F: Iterator<Item = &'a [u8]>> Fields<F> {
    fn text(&mut self, source: &str) -> Option<Value<String>> {
        self.one(source, Words::next)
    }

    fn one<T>(&mut self, source: &str, make: impl FnOnce(&mut Words<'a>) -> T) -> Option<Value<T>> {
        let field = self.fields.next()?;
        self.item(field, source, make)
    }

    fn many<T>(&mut self, source: &str, make: impl Fn(&mut Words<'a>) -> T) -> Vec<Value<T>> {
        let field = self.fields.next().unwrap_or_default();
        field.split(|byte| *byte == 0x1E).filter_map(|item| self.item(item, source, &make)).collect()
    }

    fn item<T>(
        &self,
        item: &'a [u8],
        source: &str,
        make: impl FnOnce(&mut Words<'a>) -> T,
    ) -> Option<Value<T>> {
        let (first, rest) = item.split_first()?;
        let audience = Audience::ALL[usize::from(first.wrapping_sub(b'0')) % 4];
        let mut words = Words { rest: Some(rest), withheld: audience < self.audience };
        Some(Value::new(make(&mut words), Source::file(source), audience))
    }

    fn body(&mut self) -> Option<Body> {
        let field = self.fields.next().filter(|field| !field.is_empty())?;
        let part = |text: &[u8]| BodyPart { text: readable(text), source: Source::file("agent_system.md") };
        Some(Body { parts: field.split(|byte| *byte == 0x1E).map(part).collect() })
    }

    fn host(&mut self) -> HostFacts {
        let field = self.fields.next().unwrap_or_default();
        let mut items = field.split(|byte| *byte == 0x1E);
        let mut fact = || self.item(items.next()?, "host", Words::next);
        HostFacts {
            host: fact(),
            os: fact(),
            arch: fact(),
            shell: fact(),
            provider: fact(),
            model: fact(),
            session: fact(),
            sudo_non_interactive: fact(),
            sudo_status: fact(),
            timezone: fact(),
            accept_language: fact(),
            remote_ip: fact(),
            location: fact(),
        }
    }
}

/// The texts of one item.
struct Words<'a> {
    rest: Option<&'a [u8]>,
    withheld: bool,
}

impl Words<'_> {
    fn next(&mut self) -> String {
        let Some(rest) = self.rest else { return String::new() };
        let end = rest.iter().position(|byte| *byte == 0x1F);
        let (word, rest) = end.map_or((rest, None), |end| (&rest[..end], Some(&rest[end + 1..])));
        self.rest = rest;
        let text = readable(word);
        if self.withheld { format!("{WITHHELD}{text}") } else { text }
    }

    fn option(&mut self) -> Option<String> {
        self.rest?;
        Some(self.next()).filter(|text| !text.is_empty())
    }

    fn rest(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        while self.rest.is_some() {
            all.push(self.next());
        }
        all
    }
}

fn readable(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        if text.len() > LONGEST_TEXT {
            break;
        }
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|byte| fragment(*byte)));
    }
    text.retain(|c| c != WITHHELD);
    text
}
