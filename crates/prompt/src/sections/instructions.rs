//! How an agent works, in its own words; and the legacy `role` that stands for identity and instructions together.

use super::identity::has_identity;
use crate::section::{CacheClass, Frame, Kind, Layer, Section, TruncationPriority};

pub(crate) static INSTRUCTIONS: Section = Section {
    kind: Kind::Instructions,
    frame: Frame::Tag("Instructions"),
    cache_class: CacheClass::Stable,
    layer: Layer::Operator,
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
};

pub(crate) static ROLE: Section = Section {
    kind: Kind::Role,
    frame: Frame::Tag("Role"),
    cache_class: CacheClass::Stable,
    layer: Layer::Operator,
    truncation_priority: TruncationPriority::new(8, 256),
    when: |view| view.text(&view.input().agent.role).is_some(),
    write: |view, block| {
        if let Some(role) = view.text(&view.input().agent.role) {
            block.lines(role);
        }
    },
};
