//! The persona below the body, and the sentence that stands when there is neither.

use crate::audience::VisibleInput;
use crate::block::Block;
use crate::section::{CacheClass, Frame, Kind, Layer, Section, TruncationPriority};

pub(crate) static PERSONA: Section = Section {
    kind: Kind::Persona,
    frame: Frame::Bare,
    cache_class: CacheClass::Stable,
    layer: Layer::Agent,
    truncation_priority: TruncationPriority::new(9, 256),
    when: |view| view.text(&view.input().persona).is_some(),
    write: write_persona,
};

pub(crate) static FALLBACK: Section = Section {
    kind: Kind::Fallback,
    frame: Frame::Bare,
    cache_class: CacheClass::Stable,
    layer: Layer::Operator,
    truncation_priority: None,
    when: |view| view.body().is_none() && view.text(&view.input().persona).is_none(),
    write: write_fallback,
};

fn write_persona<'a>(view: &VisibleInput<'a>, block: &mut Block<'a>) {
    if let Some(persona) = view.text(&view.input().persona) {
        block.lines(persona);
    }
}

fn write_fallback<'a>(_: &VisibleInput<'a>, block: &mut Block<'a>) {
    block.text(
        "This is embody, the interface between an agent and its tools. No body rules and no persona are set up here. \
         Until they are, treat everything other people would see as needing the owner's explicit consent, and call \
         `runtime_status` to find out what is missing.",
    );
}
