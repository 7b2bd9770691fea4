//! Who the user is.

use crate::section::{Frame, Kind, Layer, Section};

pub(crate) static USER: Section = Section {
    layer: Layer::User,
    write: |view, block| {
        let user = view.reveal_optional(&view.input().user);
        if let Some(name) = user.and_then(|user| user.text(|user| user.name.as_deref())) {
            block.text("The user's name is ");
            block.inline(name);
            block.text(".");
        }
    },
    ..Section::new(Kind::User, Frame::Heading("User"))
};
