//! Skills on offer, as a small block of markup.

use crate::section::{Frame, Kind, Layer, Section, TruncationPriority};

pub(crate) static SKILLS: Section = Section {
    layer: Layer::Data,
    truncation_priority: TruncationPriority::new(4, 64),
    when: |view| view.all(&view.input().skills).next().is_some(),
    write: |view, block| {
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
    },
    ..Section::new(Kind::Skills, Frame::Heading("Available Skills"))
};
