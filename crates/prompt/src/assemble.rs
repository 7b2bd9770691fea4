//! From input and layout to a prompt: selects the sections, orders them, writes them and cuts them to the budget.

use crate::audience::VisibleInput;
use crate::block::{Block, Piece, counted};
use crate::escape::{self, TextPosition};
use crate::section::Frame;
use crate::sections::BODY;
use crate::{CacheClass, Dialect, Layout, Note, NoteKind, PromptInput, Section, Source, budget};

pub struct Prompt<'a> {
    pub layout: Layout,
    pub notes: Vec<Note>,
    pub(crate) sections: Vec<RenderedSection<'a>>,
}

#[derive(Clone)]
pub(crate) struct RenderedSection<'a> {
    pub(crate) section: &'static Section,
    pub(crate) pieces: Vec<Piece<'a>>,
    /// The source that was cut to fit the budget, if any.
    pub(crate) cut: Option<&'a Source>,
}

/// Cannot fail: problems become notes.
pub fn assemble<'a>(input: &'a PromptInput, layout: &Layout) -> Prompt<'a> {
    let view = VisibleInput::new(input, layout.body);
    let mut notes = input.notes.clone();
    let mut sections = Vec::with_capacity(layout.sections.len() + 1);
    for section in in_order(layout) {
        if (section.when)(&view)
            && let Some(rendered) = write(section, &view, layout.dialect, &mut notes)
        {
            sections.push(rendered);
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
    let (sections, volatile_last) = (layout.all_sections(), layout.volatile_last);
    let now = move |section: &&'static Section| !volatile_last || section.cache_class == CacheClass::Stable;
    let later =
        move |section: &&'static Section| volatile_last && section.cache_class == CacheClass::Volatile;
    let body = layout.body.then_some(&BODY);
    body.into_iter().chain(sections.clone().filter(now)).chain(sections.filter(later))
}

fn write<'a>(
    section: &'static Section,
    view: &VisibleInput<'a>,
    dialect: Dialect,
    notes: &mut Vec<Note>,
) -> Option<RenderedSection<'a>> {
    let depth = match section.frame {
        Frame::Heading(_) => 2,
        Frame::Bare | Frame::Tag(_) => 0,
    };
    let mut block = Block::new(TextPosition { dialect, depth });
    (section.write)(view, &mut block);
    let (pieces, found) = block.finish();
    notes.extend(found);
    (!pieces.is_empty()).then_some(RenderedSection { section, pieces, cut: None })
}

/// The body is the operator's text and is not changed; invisible characters in it are noted.
fn note_body(view: &VisibleInput<'_>, notes: &mut Vec<Note>) {
    for part in view.body().into_iter().flat_map(|body| &body.parts) {
        let hidden = escape::hidden_characters(&part.text);
        if hidden > 0 {
            let message =
                format!("{} in the body, sent as the body stands", counted(hidden, "invisible character"));
            notes.push(Note::new(NoteKind::HiddenText, message, part.source.clone()));
        }
    }
}
