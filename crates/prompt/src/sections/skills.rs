//! Skills on offer, as a small block of markup.

use crate::audience::VisibleInput;
use crate::block::Block;
use crate::section::{Frame, Kind, Layer, Section, TruncationPriority};

const ROW: Section = Section {
    layer: Layer::Data,
    truncation_priority: TruncationPriority::new(4, 64),
    when: |view| view.all(&view.input().skills).next().is_some(),
    write: write_list,
    ..Section::new(Kind::Skills, Frame::Heading("Available Skills"))
};

pub(crate) static SKILLS: Section = ROW;

/// The same, and how to read one.
pub(crate) static SKILLS_TO_READ: Section = Section {
    write: |view, block| {
        if view.all(&view.input().tools).any(|tool| tool.value.name == "read_skill") {
            block.text(
                "A skill says how to do one kind of work. Before you do such work, call `read_skill` with its name.\n",
            );
        }
        write_list(view, block);
    },
    ..ROW
};

fn write_list<'a>(view: &VisibleInput<'a>, block: &mut Block<'a>) {
    block.text("<available_skills>\n");
    for skill in view.all(&view.input().skills) {
        block.item();
        block.text("<skill name=\"");
        block.markup(skill.part(|skill| skill.name.as_str()));
        block.text("\" source=\"");
        block.markup(skill.part(|skill| skill.source.as_str()));
        block.text("\" path=\"");
        block.markup(skill.part(|skill| skill.path.as_str()));
        block.text("\">\n");
        block.markup_line(skill.part(|skill| skill.description.as_str()));
        block.text("\n</skill>\n");
    }
    block.end_items();
    block.text("</available_skills>");
}
