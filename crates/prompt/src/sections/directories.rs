//! Where an agent may touch files.

use crate::section::{Frame, Kind, Layer, Pace, Section};

pub(crate) static DIRECTORIES: Section = Section {
    kind: Kind::Directories,
    frame: Frame::Tag("Directories"),
    pace: Pace::Stable,
    layer: Layer::Operator,
    give: None,
    when: |view| view.seen(&view.input().directories).is_some(),
    write: |view, block| {
        let Some(directories) = view.seen(&view.input().directories) else { return };
        block.text("Your working directory is: ");
        block.inline(directories.part(|directories| directories.cwd.as_str()));
        block.text("\nIt may hold files already: check before creating new ones.");
        if !directories.value.extra.is_empty() {
            block.text("\n\nYou can also use these directories:");
        }
        for directory in &directories.value.extra {
            block.text("\n- ");
            block.inline(directories.part(|_| directory.as_str()));
        }
    },
};
