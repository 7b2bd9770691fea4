//! `AGENTS.md` and `TOOLS.md` of the workspace, each under its own name, without the comments at their start.

use crate::audience::{Visible, VisibleInput};
use crate::input::WorkspaceFile;
use crate::section::{Frame, Kind, Section, TruncationPriority};

pub(crate) static WORKSPACE_FILES: Section = Section {
    truncation_priority: TruncationPriority::new(2, 128),
    write: |view, block| {
        for (index, (name, text)) in files(view).enumerate() {
            block.text(if index == 0 { "### " } else { "\n\n### " });
            block.inline(name);
            block.text("\n");
            block.lines_under(text, 3);
        }
    },
    ..Section::new(Kind::WorkspaceFiles, Frame::Heading("Workspace Files"))
};

fn files<'a>(view: &VisibleInput<'a>) -> impl Iterator<Item = (Visible<'a, str>, Visible<'a, str>)> {
    view.all(&view.input().workspace_files).filter_map(|file: Visible<'a, WorkspaceFile>| {
        Some((
            file.part(|file| file.name.as_str()),
            file.text(|file| Some(without_leading_comments(&file.text)))?,
        ))
    })
}

fn without_leading_comments(text: &str) -> &str {
    let mut rest = text.trim_start();
    while let Some((_, after)) = rest.strip_prefix("<!--").and_then(|comment| comment.split_once("-->")) {
        rest = after.trim_start();
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::without_leading_comments;

    #[test]
    fn only_leading_and_closed_comments_go() {
        for (text, expected) in [
            ("<!-- a -->\n<!-- b\nc -->\ntext", "text"),
            ("text <!-- stays -->", "text <!-- stays -->"),
            ("<!-- never closed\ntext", "<!-- never closed\ntext"),
        ] {
            assert_eq!(without_leading_comments(text), expected);
        }
    }
}
