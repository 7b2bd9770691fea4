//! The user's standing instructions, up to their limit, and how they change.

use crate::audience::VisibleInput;
use crate::block::Block;
use crate::section::{Frame, Kind, Layer, Section};
use crate::{Note, NoteKind};

pub const INSTRUCTIONS_LIMIT: usize = 2_000;

pub(crate) static USER_INSTRUCTIONS: Section = Section {
    layer: Layer::User,
    write,
    ..Section::new(Kind::UserInstructions, Frame::Heading("User Instructions"))
};

const NOT_FOR_THIS_ROOM: &str = "(Not shown in this conversation.)";

fn write<'a>(view: &VisibleInput<'a>, block: &mut Block<'a>) {
    match view.text(&view.input().instructions) {
        None if is_withheld(view) => block.text(NOT_FOR_THIS_ROOM),
        None => block.text("(No custom instructions set.)"),
        Some(instructions) => match instructions.value.char_indices().nth(INSTRUCTIONS_LIMIT) {
            None => block.whole(instructions),
            Some((end, _)) => {
                block.whole(instructions.part(|text| text.get(..end).unwrap_or(text)));
                block.text(
                    "\n<!-- embody: only the first 2,000 characters are shown; \
                     call read_memory with kind \"instructions\" for the rest -->",
                );
                let length = instructions.value.chars().count();
                let message = format!(
                    "the standing instructions have {length} characters; a prompt shows the first {INSTRUCTIONS_LIMIT}: shorten them"
                );
                view.note(Note::new(NoteKind::InstructionsCut, message, instructions.source.clone()));
            }
        },
    }
    block.text(
        "\nThe user changes these by saying things like \"always do X\" or \"never do Y\". \
         When they do, call update_instructions so that it lasts.",
    );
}

fn is_withheld(view: &VisibleInput<'_>) -> bool {
    view.input().instructions.is_some() && view.reveal_optional(&view.input().instructions).is_none()
}
