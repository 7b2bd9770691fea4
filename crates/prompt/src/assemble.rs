//! From input and layout to a prompt: which sections there are, in which order, written and cut to the budget.

use crate::block::{Block, Piece, counted};
use crate::escape::{self, Place};
use crate::section::Frame;
use crate::sections::BODY;
use crate::view::View;
use crate::{Dialect, Layout, Note, NoteKind, Pace, PromptInput, Section, Source, budget};

/// A prompt that is ready to be rendered. It borrows from its input.
pub struct Prompt<'a> {
    /// The layout it was assembled for.
    pub layout: Layout,
    /// What the operator should know.
    pub notes: Vec<Note>,
    pub(crate) sections: Vec<Written<'a>>,
}

#[derive(Clone)]
pub(crate) struct Written<'a> {
    pub(crate) section: &'static Section,
    pub(crate) pieces: Vec<Piece<'a>>,
    /// What gave way to the budget, if anything did.
    pub(crate) cut: Option<&'a Source>,
}

/// Assembles the prompt. Cannot fail: what goes wrong becomes a note.
pub fn assemble<'a>(input: &'a PromptInput, layout: &Layout) -> Prompt<'a> {
    let view = View::new(input, layout.body);
    let mut notes = input.notes.clone();
    let mut sections = Vec::with_capacity(layout.sections.len() + 1);
    for section in in_order(layout) {
        if (section.when)(&view)
            && let Some(written) = write(section, &view, layout.dialect, &mut notes)
        {
            sections.push(written);
        }
    }
    note_body(&view, &mut notes);
    budget::fit(&mut sections, &input.budget, &mut notes);
    for note in view.into_notes() {
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    Prompt { layout: *layout, notes, sections }
}

fn in_order(layout: &Layout) -> impl Iterator<Item = &'static Section> {
    let (sections, fresh_last) = (layout.sections, layout.fresh_last);
    let now = move |section: &&'static Section| !fresh_last || section.pace == Pace::Stable;
    let later = move |section: &&'static Section| fresh_last && section.pace == Pace::Fresh;
    let body = layout.body.then_some(&BODY);
    body.into_iter().chain(sections.iter().copied().filter(now)).chain(sections.iter().copied().filter(later))
}

fn write<'a>(
    section: &'static Section,
    view: &View<'a>,
    dialect: Dialect,
    notes: &mut Vec<Note>,
) -> Option<Written<'a>> {
    let depth = match section.frame {
        Frame::Heading(_) => 2,
        Frame::Bare | Frame::Tag(_) => 0,
    };
    let mut block = Block::new(Place { dialect, depth });
    (section.write)(view, &mut block);
    let (pieces, found) = block.finish();
    notes.extend(found);
    (!pieces.is_empty()).then_some(Written { section, pieces, cut: None })
}

/// The body is the operator's own and stays as it is; what hides in it is still worth knowing.
fn note_body(view: &View<'_>, notes: &mut Vec<Note>) {
    for part in view.body().into_iter().flat_map(|body| &body.parts) {
        let hidden = escape::hidden_characters(&part.text);
        if hidden > 0 {
            let message =
                format!("{} in the body, sent as the body stands", counted(hidden, "invisible character"));
            notes.push(Note::new(NoteKind::HiddenText, message, part.source.clone()));
        }
    }
}
