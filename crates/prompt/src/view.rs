//! What a section may look at: the input through the eyes of one room. Values that the room may not see are not
//! there, and each of them is noted once.

use std::cell::RefCell;

use crate::audience::Seen;
use crate::escape::is_blank;
use crate::{Audience, Body, Note, NoteKind, PromptInput, Value};

pub(crate) struct View<'a> {
    input: &'a PromptInput,
    with_body: bool,
    notes: RefCell<Vec<Note>>,
}

impl<'a> View<'a> {
    pub(crate) fn new(input: &'a PromptInput, with_body: bool) -> Self {
        Self { input, with_body, notes: RefCell::new(Vec::new()) }
    }

    /// The input itself; its guarded values still need [`View::see`].
    pub(crate) fn input(&self) -> &'a PromptInput {
        self.input
    }

    /// The body, when it is part of this prompt and says something.
    pub(crate) fn body(&self) -> Option<&'a Body> {
        let body = self.input.body.as_ref().filter(|_| self.with_body)?;
        body.parts.iter().any(|part| !is_blank(&part.text)).then_some(body)
    }

    /// The value, if this room may see it.
    pub(crate) fn see<T>(&self, value: &'a Value<T>) -> Option<Seen<'a, T>> {
        let seen = value.reveal(self.input.room);
        if seen.is_none() {
            self.note_withheld(value.source(), value.audience());
        }
        seen
    }

    /// The value, if there is one and this room may see it.
    pub(crate) fn seen<T>(&self, value: &'a Option<Value<T>>) -> Option<Seen<'a, T>> {
        value.as_ref().and_then(|value| self.see(value))
    }

    /// The text, if there is one, this room may see it, and it is not blank.
    pub(crate) fn text(&self, value: &'a Option<Value<String>>) -> Option<Seen<'a, str>> {
        self.seen(value)?.text(|text| Some(text.as_str()))
    }

    /// Those of the values that this room may see.
    pub(crate) fn all<T>(&self, values: &'a [Value<T>]) -> impl Iterator<Item = Seen<'a, T>> {
        values.iter().filter_map(|value| self.see(value))
    }

    pub(crate) fn note(&self, note: Note) {
        let mut notes = self.notes.borrow_mut();
        if !notes.contains(&note) {
            notes.push(note);
        }
    }

    pub(crate) fn into_notes(self) -> Vec<Note> {
        self.notes.into_inner()
    }

    fn note_withheld(&self, source: &crate::Source, audience: Audience) {
        let message = format!(
            "left out: it is meant for `{}` and this prompt is for `{}`",
            audience.name(),
            self.input.room.name()
        );
        self.note(Note::new(NoteKind::Withheld, message, source.clone()));
    }
}
