//! Facts shared by all agents of a workspace, a line each.

use crate::escape::is_blank;
use crate::section::{Frame, Kind, Layer, Section, TruncationPriority};

pub(crate) static MEMORIES: Section = Section {
    layer: Layer::Data,
    truncation_priority: TruncationPriority::new(3, 64),
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
    ..Section::new(Kind::Memories, Frame::Tag("Memories"))
};
