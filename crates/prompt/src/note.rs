//! What went wrong or was left out while sources were read and a prompt was assembled. Assembly cannot fail: it notes.

use crate::Source;

/// One thing the operator should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// What kind of thing.
    pub kind: NoteKind,
    /// For people: names the value and what to do.
    pub message: String,
    /// Where it was found.
    pub source: Source,
}

impl Note {
    /// A note about `source`.
    pub fn new(kind: NoteKind, message: impl Into<String>, source: Source) -> Self {
        Self { kind, message: message.into(), source }
    }
}

/// Kinds of notes; the names are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoteKind {
    /// An `@include` whose target does not exist.
    MissingInclude,
    /// A path that was refused: outside its folder, a device, too large, not text.
    RefusedPath,
    /// A file whose content could not be understood.
    BadFormat,
    /// Invisible characters were taken out, or stand in the body.
    HiddenText,
    /// Text that looked like one of the prompt's own frames was escaped.
    FrameEscaped,
    /// Text was cut to fit a budget.
    Cut,
    /// What may never be cut is larger than the budget.
    OverBudget,
    /// A value was left out because the room may not see it.
    Withheld,
    /// A time zone that nobody knows.
    UnknownTimezone,
    /// The standing instructions are longer than their limit.
    InstructionsCut,
    /// The same file was reached twice.
    Duplicate,
    /// Not everything was read because there was too much of it.
    TooMany,
    /// The remote persona could not be had.
    PersonaUnavailable,
    /// A token would travel in the open.
    Insecure,
    /// A part of a file that nothing uses.
    Unused,
}

impl NoteKind {
    /// The stable name used in output.
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
