//! Who the user is.

use crate::audience::VisibleInput;
use crate::block::Block;
use crate::section::{Frame, Kind, Layer, Section};

const ROW: Section = Section {
    layer: Layer::User,
    write: |view, block| {
        write_name(view, block);
    },
    ..Section::new(Kind::User, Frame::Heading("User"))
};

pub(crate) static USER: Section = ROW;

/// The name, and where the user is, for a layout without the runtime section.
pub(crate) static USER_PROFILE: Section = Section {
    write: |view, block| {
        let has_name = write_name(view, block);
        let user = view.reveal_optional(&view.input().user);
        if let Some(location) = user.and_then(|user| user.text(|user| user.location.as_deref())) {
            block.text(if has_name { "\nThe user is in " } else { "The user is in " });
            block.inline(location);
            block.text(".");
        }
    },
    ..ROW
};

fn write_name<'a>(view: &VisibleInput<'a>, block: &mut Block<'a>) -> bool {
    let user = view.reveal_optional(&view.input().user);
    let name = user.and_then(|user| user.text(|user| user.name.as_deref()));
    if let Some(name) = name {
        block.text("The user's name is ");
        block.inline(name);
        block.text(".");
    }
    name.is_some()
}
