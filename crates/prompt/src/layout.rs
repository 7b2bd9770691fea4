//! The layouts, as data: an ordered list of sections and the dialect that frames them.

use crate::sections as s;
use std::fmt;

use crate::{Frame, Kind, PromptInput, Section};

/// What stands between the body and everything below it. It cannot occur below the body.
pub const SEPARATOR: &str = "\n\n---\n\n";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Tagged,
    Markdown,
}

/// An ordered list of sections and the dialect that frames them. What a model is sent is the body, the separator and
/// these sections.
#[derive(Clone, Copy)]
pub struct Layout {
    pub name: &'static str,
    pub dialect: Dialect,
    pub sections: &'static [&'static Section],
    pub body: bool,
    pub(crate) volatile_last: bool,
    /// Which of [`EXTRA`] follow the layout's own sections.
    extra: [bool; EXTRA.len()],
}

/// The sections that `channel` has only on request, in this order behind its own.
static EXTRA: [&Section; 3] = [&s::USER_PROFILE, &s::WORKSPACE_FILES, &s::SKILLS_TO_READ];

impl Layout {
    pub const BODY: Self = Self {
        name: "body",
        dialect: Dialect::Markdown,
        sections: &[&s::PERSONA, &s::FALLBACK],
        ..Self::EMPTY
    };

    pub const FULL: Self = Self {
        name: "full",
        dialect: Dialect::Markdown,
        sections: &[
            &s::INTRO,
            &s::IDENTITY_FULL,
            &s::SOUL_FULL,
            &s::USER,
            &s::PROJECT_CONTEXT,
            &s::RUNTIME,
            &s::SKILLS,
            &s::WORKSPACE_FILES,
            &s::MEMORY_HINT,
            &s::TOOLS_FULL,
            &s::TOOL_FORMAT,
            &s::GUIDELINES,
        ],
        ..Self::EMPTY
    };

    pub const SIMPLE: Self = Self {
        name: "full",
        dialect: Dialect::Markdown,
        sections: &[&s::INTRO, &s::PROJECT_CONTEXT, &s::TOOLS_FULL, &s::TOOL_FORMAT, &s::GUIDELINES],
        ..Self::EMPTY
    };

    pub const MINIMAL: Self =
        Self { name: "full", dialect: Dialect::Markdown, sections: &[&s::INTRO_PLAIN], ..Self::EMPTY };

    /// Ten tagged sections, slow ones first.
    pub const TAGGED: Self = Self {
        name: "tagged",
        dialect: Dialect::Tagged,
        sections: &[
            &s::ROLE,
            &s::IDENTITY_TAGGED,
            &s::INSTRUCTIONS,
            &s::RESPONSIBILITIES,
            &s::DIRECTORIES,
            &s::STORAGE,
            &s::FORMATTING,
            &s::CONTEXT,
            &s::MEMORIES,
            &s::TASK,
            &s::BACKGROUND,
        ],
        ..Self::EMPTY
    };

    /// Seven headings for an agent that answers on a channel.
    pub const CHANNEL: Self = Self {
        name: "channel",
        dialect: Dialect::Markdown,
        sections: &[
            &s::IDENTITY_CHANNEL,
            &s::SOUL_CHANNEL,
            &s::CHANNEL,
            &s::CURRENT_TIME,
            &s::MEMORY_CHANNEL,
            &s::USER_INSTRUCTIONS,
            &s::TOOLS_CHANNEL,
        ],
        ..Self::EMPTY
    };

    /// Who the agent is and for whom, for a mind to hand out: nothing that changes by the hour, no tools.
    pub const CONTRACT: Self = Self {
        name: "contract",
        dialect: Dialect::Markdown,
        sections: &[&s::IDENTITY_FULL, &s::SOUL_FULL, &s::USER, &s::MEMORY_CHANNEL, &s::USER_INSTRUCTIONS],
        ..Self::EMPTY
    };

    /// The four seed layouts, the two shorter entry points of `full`, and the mind's contract.
    pub const ALL: [Self; 7] =
        [Self::BODY, Self::FULL, Self::SIMPLE, Self::MINIMAL, Self::TAGGED, Self::CHANNEL, Self::CONTRACT];

    const EMPTY: Self = Self {
        name: "",
        dialect: Dialect::Markdown,
        sections: &[],
        body: true,
        volatile_last: false,
        extra: [false; EXTRA.len()],
    };

    pub fn from_name(name: &str) -> Option<Self> {
        [Self::BODY, Self::FULL, Self::TAGGED, Self::CHANNEL].into_iter().find(|layout| layout.name == name)
    }

    /// Whether a persona text would be used: below the body, or as the soul of an agent that has none of its own.
    pub fn wants_persona(&self, input: &PromptInput) -> bool {
        self.sections.iter().any(|section| match section.kind {
            Kind::Persona => true,
            Kind::Soul => input.soul.is_none(),
            Kind::Identity if section.frame == Frame::Tag("Identity") => {
                input.soul.is_none() && input.agent.identity.is_none() && input.agent.role.is_none()
            }
            _ => false,
        })
    }

    /// The sections of these kinds behind those of `channel`. The other layouts have their sections fixed.
    #[must_use]
    pub fn with_extra_sections(mut self, kinds: &[Kind]) -> Self {
        if self.name == Self::CHANNEL.name {
            self.extra = EXTRA.map(|section| kinds.contains(&section.kind));
        }
        self
    }

    /// The kinds that [`Layout::with_extra_sections`] knows.
    pub fn extra_kinds() -> impl Iterator<Item = Kind> {
        EXTRA.iter().map(|section| section.kind)
    }

    /// Its sections and the extra ones, in the layout's order.
    pub fn all_sections(&self) -> impl Iterator<Item = &'static Section> + Clone {
        let extra = EXTRA.iter().zip(self.extra).filter(|(_, is_wanted)| *is_wanted);
        self.sections.iter().chain(extra.map(|(section, _)| section)).copied()
    }

    pub fn has_section(&self, kind: Kind) -> bool {
        self.all_sections().any(|section| section.kind == kind)
    }

    /// Whether it shows where the user is.
    pub fn has_location(&self) -> bool {
        let is_profile = |section: &Section| std::ptr::eq(section, &s::USER_PROFILE);
        self.has_section(Kind::Runtime) || self.all_sections().any(is_profile)
    }

    #[must_use]
    pub fn with_body(mut self, body: bool) -> Self {
        self.body = body;
        self
    }

    /// The same layout with fresh sections last, or in the seed's order.
    #[must_use]
    pub fn with_volatile_last(mut self, volatile_last: bool) -> Self {
        self.volatile_last = volatile_last;
        self
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, body, volatile_last, .. } = self;
        let count = self.all_sections().count();
        write!(f, "{name} of {count} sections, body {body}, fresh_last {volatile_last}")
    }
}
