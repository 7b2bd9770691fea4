//! Facts shared by all agents of a workspace, a line each.

use crate::escape::is_blank;
use crate::section::{Frame, Give, Kind, Layer, Pace, Section};

pub(crate) static MEMORIES: Section = Section {
    kind: Kind::Memories,
    frame: Frame::Tag("Memories"),
    pace: Pace::Stable,
    layer: Layer::Data,
    give: Give::new(3, 64),
    when: |view| {
        view.seen(&view.input().memories).is_some_and(|all| all.value.iter().any(|one| !is_blank(one)))
    },
    write: |view, block| {
        let Some(memories) = view.seen(&view.input().memories) else { return };
        for memory in memories.value.iter().filter(|memory| !is_blank(memory)) {
            block.item();
            block.text("- ");
            block.inline(memories.part(|_| memory.as_str()));
            block.text("\n");
        }
        block.end_items();
    },
};
