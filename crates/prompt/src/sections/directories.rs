//! Where an agent may touch files.

use crate::section::{Frame, Kind, Section};

pub(crate) static DIRECTORIES: Section = Section {
    write: |view, block| {
        let Some(directories) = view.reveal_optional(&view.input().directories) else { return };
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
    ..Section::new(Kind::Directories, Frame::Tag("Directories"))
};
