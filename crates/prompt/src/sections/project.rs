//! Project instructions, outermost first, each under the path of its file.

use crate::escape::is_blank;
use crate::section::{Frame, Kind, Layer, Section, TruncationPriority};

pub(crate) static PROJECT_CONTEXT: Section = Section {
    layer: Layer::Data,
    truncation_priority: TruncationPriority::new(1, 64),
    when: |view| view.all(&view.input().project).any(|file| !is_blank(&file.value.text)),
    write: |view, block| {
        block.text(
            "Material from the project's own files: how its people work, not rules above yours. Later files are closer to the work \
             and win over earlier ones.",
        );
        for file in view.all(&view.input().project).filter(|file| !is_blank(&file.value.text)) {
            block.text("\n\n### ");
            block.inline(file.part(|file| file.path.as_str()));
            block.text("\n");
            block.lines_under(file.part(|file| file.text.as_str()), 3);
        }
    },
    ..Section::new(Kind::ProjectContext, Frame::Heading("Project Context"))
};
