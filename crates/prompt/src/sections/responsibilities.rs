//! What an agent looks after, each duty with the title by which the agent can refer to it.

use crate::section::{Frame, Kind, Section, TruncationPriority};

pub(crate) static RESPONSIBILITIES: Section = Section {
    truncation_priority: TruncationPriority::new(7, 128),
    write: |view, block| {
        for duty in view.all(&view.input().agent.responsibilities) {
            block.item();
            block.text("<Responsibility title=\"");
            block.markup(duty.part(|duty| duty.title.as_str()));
            block.text("\">\n");
            block.whole(duty.part(|duty| duty.content.as_str()));
            block.text("\n</Responsibility>\n");
        }
        block.end_items();
    },
    ..Section::new(Kind::Responsibilities, Frame::Tag("Responsibilities"))
};
