//! Where a byte came from: a file and line, a flag, the clock, or the builder itself; and notes about a source. Assembly
//! cannot fail: what went wrong or was left out becomes a note.

use std::fmt;
use std::sync::Arc;

/// The origin of a value: a name that a person recognises, and the line in it where the value starts.
#[derive(Clone, PartialEq, Eq)]
pub struct Source {
    name: Name,
    line: u32,
}

#[derive(Clone, PartialEq, Eq)]
enum Name {
    Static(&'static str),
    Shared(Arc<str>),
}

impl Source {
    pub const BUILT_IN: Self = Self::fixed("built-in");

    pub const fn fixed(name: &'static str) -> Self {
        Self { name: Name::Static(name), line: 0 }
    }

    /// A file, named as a person would name it (relative to the workspace where possible).
    pub fn file(name: &str) -> Self {
        Self { name: Name::Shared(Arc::from(name)), line: 1 }
    }

    /// Anything else with a name made at run time, such as a URL.
    pub fn named(name: &str) -> Self {
        Self { name: Name::Shared(Arc::from(name)), line: 0 }
    }

    /// The same source, from `line` (counted from 1; 0 if it has no lines).
    #[must_use]
    pub fn at_line(mut self, line: u32) -> Self {
        self.line = line;
        self
    }

    pub fn name(&self) -> &str {
        match &self.name {
            Name::Static(name) => name,
            Name::Shared(name) => name,
        }
    }

    pub fn line(&self) -> u32 {
        self.line
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(self.name()),
            line => write!(f, "{}:{line}", self.name()),
        }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub kind: NoteKind,
    /// For people: names the value and what to do.
    pub message: String,
    pub source: Source,
}

impl Note {
    pub fn new(kind: NoteKind, message: impl Into<String>, source: Source) -> Self {
        Self { kind, message: message.into(), source }
    }
}

/// Kinds of notes; the names are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoteKind {
    MissingInclude,
    /// A path that was refused: outside its folder, a device, too large, not text.
    RefusedPath,
    BadFormat,
    /// Invisible characters were taken out, or stand in the body.
    HiddenText,
    /// Text that looked like one of the prompt's own frames was escaped.
    FrameEscaped,
    Cut,
    /// What may never be cut is larger than the budget.
    OverBudget,
    Withheld,
    UnknownTimezone,
    InstructionsCut,
    Duplicate,
    TooMany,
    PersonaUnavailable,
    Insecure,
    Unused,
}

impl NoteKind {
    pub const fn name(self) -> &'static str {
        match self {
            Self::MissingInclude => "missing_include",
            Self::RefusedPath => "refused_path",
            Self::BadFormat => "bad_format",
            Self::HiddenText => "hidden_text",
            Self::FrameEscaped => "frame_escaped",
            Self::Cut => "cut",
            Self::OverBudget => "over_budget",
            Self::Withheld => "withheld",
            Self::UnknownTimezone => "unknown_timezone",
            Self::InstructionsCut => "instructions_cut",
            Self::Duplicate => "duplicate",
            Self::TooMany => "too_many",
            Self::PersonaUnavailable => "persona_unavailable",
            Self::Insecure => "insecure",
            Self::Unused => "unused",
        }
    }
}
