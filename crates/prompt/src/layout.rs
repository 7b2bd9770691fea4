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
}

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

    const EMPTY: Self =
        Self { name: "", dialect: Dialect::Markdown, sections: &[], body: true, volatile_last: false };

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
        let Self { name, sections, body, volatile_last, .. } = self;
        write!(f, "{name} of {} sections, body {body}, fresh_last {volatile_last}", sections.len())
    }
}
