//! Facts shared by all agents of a workspace, a line each.

use crate::escape::is_blank;
use crate::section::{CacheClass, Frame, Kind, Layer, Section, TruncationPriority};

pub(crate) static MEMORIES: Section = Section {
    kind: Kind::Memories,
    frame: Frame::Tag("Memories"),
    cache_class: CacheClass::Stable,
    layer: Layer::Data,
    truncation_priority: TruncationPriority::new(3, 64),
    when: |view| {
        view.reveal_optional(&view.input().memories)
            .is_some_and(|all| all.value.iter().any(|one| !is_blank(one)))
    },
    write: |view, block| {
        let Some(memories) = view.reveal_optional(&view.input().memories) else { return };
        for memory in memories.value.iter().filter(|memory| !is_blank(memory)) {
            block.item();
            block.text("- ");
            block.inline(memories.part(|_| memory.as_str()));
            block.text("\n");
        }
        block.end_items();
    },
};
