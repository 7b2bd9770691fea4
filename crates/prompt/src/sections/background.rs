//! Nobody sees the reply of this run.

use crate::section::{Frame, Kind, Layer, Pace, Section};

pub(crate) static BACKGROUND: Section = Section {
    kind: Kind::Background,
    frame: Frame::Tag("Background"),
    pace: Pace::Stable,
    layer: Layer::Operator,
    give: None,
    when: |view| view.input().background,
    write: |_, block| {
        block.text(
            "This run was started by a schedule or a trigger, and nobody is watching. Your reply is kept but not \
             delivered to the user.\nIf there is something they need to know now, call notify_user; otherwise finish quietly.",
        );
    },
};
