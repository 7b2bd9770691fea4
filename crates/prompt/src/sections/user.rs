//! Who the user is.

use crate::audience::Visible;
use crate::audience::VisibleInput;
use crate::section::{CacheClass, Frame, Kind, Layer, Section};

pub(crate) static USER: Section = Section {
    kind: Kind::User,
    frame: Frame::Heading("User"),
    cache_class: CacheClass::Stable,
    layer: Layer::User,
    truncation_priority: None,
    when: |view| name(view).is_some(),
    write: |view, block| {
        if let Some(name) = name(view) {
            block.text("The user's name is ");
            block.inline(name);
            block.text(".");
        }
    },
};

fn name<'a>(view: &VisibleInput<'a>) -> Option<Visible<'a, str>> {
    view.reveal_optional(&view.input().user)?.text(|user| user.name.as_deref())
}
