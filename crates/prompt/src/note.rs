//! What went wrong or was left out while sources were read and a prompt was assembled. Assembly cannot fail: it notes.

use crate::Source;

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
