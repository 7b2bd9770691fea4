//! Nobody sees the reply of this run.

use crate::section::{CacheClass, Frame, Kind, Layer, Section};

pub(crate) static BACKGROUND: Section = Section {
    kind: Kind::Background,
    frame: Frame::Tag("Background"),
    cache_class: CacheClass::Stable,
    layer: Layer::Operator,
    truncation_priority: None,
    when: |view| view.input().background,
    write: |_, block| {
        block.text(
            "This run was started by a schedule or a trigger, and nobody is watching. Your reply is kept but not \
             delivered to the user.\nIf there is something they need to know now, call notify_user; otherwise finish quietly.",
        );
    },
};
