//! How an agent works, in its own words; and the legacy `role` that stands for identity and instructions together.

use super::identity::has_identity;
use crate::section::{Frame, Kind, Section, TruncationPriority};

pub(crate) static INSTRUCTIONS: Section = Section {
    truncation_priority: TruncationPriority::new(8, 256),
    when: |view| {
        let agent = &view.input().agent;
        view.text(&agent.role).is_none() && has_identity(view) && view.text(&agent.instructions).is_some()
    },
    write: |view, block| {
        if let Some(instructions) = view.text(&view.input().agent.instructions) {
            block.lines(instructions);
        }
    },
    ..Section::new(Kind::Instructions, Frame::Tag("Instructions"))
};

pub(crate) static ROLE: Section = Section {
    truncation_priority: TruncationPriority::new(8, 256),
    write: |view, block| {
        if let Some(role) = view.text(&view.input().agent.role) {
            block.lines(role);
        }
    },
    ..Section::new(Kind::Role, Frame::Tag("Role"))
};
