//! Who the user is.

use crate::audience::Seen;
use crate::section::{Frame, Kind, Layer, Pace, Section};
use crate::view::View;

pub(crate) static USER: Section = Section {
    kind: Kind::User,
    frame: Frame::Heading("User"),
    pace: Pace::Stable,
    layer: Layer::User,
    give: None,
    when: |view| name(view).is_some(),
    write: |view, block| {
        if let Some(name) = name(view) {
            block.text("The user's name is ");
            block.inline(name);
            block.text(".");
        }
    },
};

fn name<'a>(view: &View<'a>) -> Option<Seen<'a, str>> {
    view.seen(&view.input().user)?.text(|user| user.name.as_deref())
}
