//! What a section is: a row of the catalogue. The rows themselves are in `sections/`, one small file each.

use crate::audience::VisibleInput;
use crate::block::Block;

/// A row of the catalogue: how a section is framed, when it appears, how it is written.
pub struct Section {
    pub kind: Kind,
    pub frame: Frame,
    pub cache_class: CacheClass,
    pub layer: Layer,
    /// `None`: it is never cut.
    pub truncation_priority: Option<TruncationPriority>,
    /// A section also leaves no trace if it writes nothing.
    pub(crate) when: fn(&VisibleInput<'_>) -> bool,
    pub(crate) write: for<'a, 'b> fn(&'b VisibleInput<'a>, &'b mut Block<'a>),
}

impl Section {
    /// What most sections are: stable, in the operator's words, never cut, always present. It writes nothing yet.
    pub(crate) const fn new(kind: Kind, frame: Frame) -> Self {
        Self {
            kind,
            frame,
            cache_class: CacheClass::Stable,
            layer: Layer::Operator,
            truncation_priority: None,
            when: |_| true,
            write: |_, _| {},
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TruncationPriority {
    /// Sections with a lower number are cut first.
    pub order: u8,
    /// Tokens of content that are never cut.
    pub floor: usize,
}

impl TruncationPriority {
    pub(crate) const fn new(order: u8, floor: usize) -> Option<Self> {
        Some(Self { order, floor })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Nothing; only for the body, what follows its separator, and the builder's own first sentence.
    Bare,
    /// `## Heading`.
    Heading(&'static str),
    /// `<Tag>` … `</Tag>`.
    Tag(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheClass {
    Stable,
    /// May differ in every turn: the time, the session, the state of a task.
    Volatile,
}

/// Whose words a section carries, from the most trusted to the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// The body rules; nothing below can relax them.
    Body,
    /// The operator, or the builder on the operator's behalf.
    Operator,
    /// The agent's own voice: identity, soul, persona.
    Agent,
    User,
    /// Material: project files, memories, tool descriptions. Never orders.
    Data,
}

impl Layer {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Body => "body",
            Self::Operator => "operator",
            Self::Agent => "agent",
            Self::User => "user",
            Self::Data => "data",
        }
    }
}

macro_rules! kinds {
    ($($variant:ident = $name:literal, $doc:literal;)*) => {
        /// What a section is about. The names are stable: configuration and output use them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind { $(#[doc = $doc] $variant,)* }

        impl Kind {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

kinds! {
    Body = "body", "The body rules.";
    Persona = "persona", "A persona text from elsewhere.";
    Fallback = "fallback", "What stands when there is neither body nor persona.";
    Intro = "intro", "One sentence that sets the scene.";
    Identity = "identity", "Who the agent is.";
    Role = "role", "The legacy form of identity and instructions.";
    Soul = "soul", "How the agent is.";
    User = "user", "Who the user is.";
    ProjectContext = "project_context", "Project instructions.";
    Runtime = "runtime", "The machine, the request, the sandbox.";
    Skills = "skills", "Skills on offer.";
    WorkspaceFiles = "workspace_files", "The workspace's own files.";
    Memory = "memory", "How to use long-term memory.";
    Tools = "tools", "Tools on offer.";
    ToolFormat = "tool_format", "How to call a tool without native support.";
    Guidelines = "guidelines", "How to use tools, when to be silent.";
    Instructions = "instructions", "How the agent works.";
    Responsibilities = "responsibilities", "What the agent looks after.";
    Directories = "directories", "Where the agent may touch files.";
    Storage = "storage", "Where to keep what.";
    Formatting = "formatting", "What the channel can show.";
    Context = "context", "The time.";
    Memories = "memories", "Facts shared by all agents.";
    Task = "task", "The task at hand.";
    Background = "background", "Nobody sees the reply.";
    Channel = "channel", "The channel that the reply goes to.";
    CurrentTime = "current_time", "The time, as a heading of its own.";
    UserInstructions = "user_instructions", "The user's standing instructions.";
}

impl Kind {
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}
