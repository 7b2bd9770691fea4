//! How the agent is. `full` falls back to the built-in soul, `channel` to a single line.

use crate::audience::{Visible, VisibleInput};
use crate::block::Block;
use crate::section::{Frame, Kind, Layer, Section, TruncationPriority};

/// The soul of an agent that nobody has given one. At most 1,600 characters.
pub const DEFAULT_SOUL: &str = include_str!("default_soul.md").trim_ascii_end();

const SHORT_SOUL: &str = "Be helpful, honest and brief. Say so when you do not know.";

const ROW: Section = Section {
    layer: Layer::Agent,
    truncation_priority: TruncationPriority::new(9, 256),
    ..Section::new(Kind::Soul, Frame::Heading("Soul"))
};

pub(crate) static SOUL_FULL: Section =
    Section { write: |view, block| write(view, block, DEFAULT_SOUL), ..ROW };

pub(crate) static SOUL_CHANNEL: Section =
    Section { write: |view, block| write(view, block, SHORT_SOUL), ..ROW };

/// The agent's soul, or else the remote persona, which stands for it.
pub(super) fn soul<'a>(view: &VisibleInput<'a>) -> Option<Visible<'a, str>> {
    view.text(&view.input().soul).or_else(|| view.text(&view.input().persona))
}

fn write<'a>(view: &VisibleInput<'a>, block: &mut Block<'a>, default: &'static str) {
    match soul(view) {
        Some(soul) => block.lines(soul),
        None => block.text(default),
    }
}
