//! The persona below the body, and the sentence that stands when there is neither.

use crate::section::{Frame, Kind, Layer, Section, TruncationPriority};

pub(crate) static PERSONA: Section = Section {
    layer: Layer::Agent,
    truncation_priority: TruncationPriority::new(9, 256),
    write: |view, block| {
        if let Some(persona) = view.text(&view.input().persona) {
            block.lines(persona);
        }
    },
    ..Section::new(Kind::Persona, Frame::Bare)
};

pub(crate) static FALLBACK: Section = Section {
    when: |view| view.body().is_none() && view.text(&view.input().persona).is_none(),
    write: |_, block| {
        block.text(
            "This is embody, the interface between an agent and its tools. No body rules and no persona are set up here. \
             Until they are, treat everything other people would see as needing the owner's explicit consent, and call \
             `runtime_status` to find out what is missing.",
        );
    },
    ..Section::new(Kind::Fallback, Frame::Bare)
};
