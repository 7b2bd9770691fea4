//! Who may see a value. Only this crate's assembler reads the content of a [`Value`], and only for an audience that the
//! value is meant for: the type enforces it, not the caller.

use std::cell::RefCell;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Body, Note, NoteKind, PromptInput, Source, escape};

/// Who reads the agent's replies, or who a value is meant for; from the narrowest to the widest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Audience {
    Owner,
    User,
    // Several people who can all read what the agent writes.
    Group,
    Public,
}

impl Audience {
    pub const ALL: [Self; 4] = [Self::Owner, Self::User, Self::Group, Self::Public];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::User => "user",
            Self::Group => "group",
            Self::Public => "public",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|audience| audience.name() == name)
    }
}

/// A value with its source and its audience. Its content can be read only while assembling for an audience that is not
/// wider; `Debug` shows the source, never the content.
///
/// ```compile_fail,E0616
/// use embody_prompt::{Audience, Source, Value};
/// let value = Value::new("for the owner".to_owned(), Source::fixed("test"), Audience::Owner);
/// println!("{}", value.inner);
/// ```
#[derive(Clone)]
pub struct Value<T> {
    inner: T,
    source: Source,
    audience: Audience,
}

impl<T> Value<T> {
    /// A value from `source`, meant for `audience` and every narrower one.
    pub fn new(inner: T, source: Source, audience: Audience) -> Self {
        Self { inner, source, audience }
    }

    pub fn source(&self) -> &Source {
        &self.source
    }

    pub fn audience(&self) -> Audience {
        self.audience
    }

    pub(crate) fn reveal(&self, audience: Audience) -> Option<Visible<'_, T>> {
        (self.audience >= audience).then_some(Visible { value: &self.inner, source: &self.source })
    }
}

impl<T> fmt::Debug for Value<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Value")
            .field("source", &self.source)
            .field("audience", &self.audience)
            .finish_non_exhaustive()
    }
}

pub(crate) struct Visible<'a, T: ?Sized> {
    pub(crate) value: &'a T,
    pub(crate) source: &'a Source,
}

impl<T: ?Sized> Clone for Visible<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> Copy for Visible<'_, T> {}

impl<'a, T: ?Sized> Visible<'a, T> {
    pub(crate) fn part<U: ?Sized>(self, part: impl FnOnce(&'a T) -> &'a U) -> Visible<'a, U> {
        Visible { value: part(self.value), source: self.source }
    }

    pub(crate) fn text(self, part: impl FnOnce(&'a T) -> Option<&'a str>) -> Option<Visible<'a, str>> {
        let value = part(self.value)?;
        (!escape::is_blank(value)).then_some(Visible { value, source: self.source })
    }
}

pub(crate) struct VisibleInput<'a> {
    input: &'a PromptInput,
    with_body: bool,
    notes: RefCell<Vec<Note>>,
}

impl<'a> VisibleInput<'a> {
    pub(crate) fn new(input: &'a PromptInput, with_body: bool) -> Self {
        Self { input, with_body, notes: RefCell::new(Vec::new()) }
    }

    /// The input itself; guarded values still need [`VisibleInput::reveal`].
    pub(crate) fn input(&self) -> &'a PromptInput {
        self.input
    }

    /// The body, if it is part of this prompt and not blank.
    pub(crate) fn body(&self) -> Option<&'a Body> {
        let body = self.input.body.as_ref().filter(|_| self.with_body)?;
        body.parts.iter().any(|part| !escape::is_blank(&part.text)).then_some(body)
    }

    pub(crate) fn reveal<T>(&self, value: &'a Value<T>) -> Option<Visible<'a, T>> {
        let seen = value.reveal(self.input.audience);
        if seen.is_none() {
            self.note_withheld(value.source(), value.audience());
        }
        seen
    }

    pub(crate) fn reveal_optional<T>(&self, value: &'a Option<Value<T>>) -> Option<Visible<'a, T>> {
        value.as_ref().and_then(|value| self.reveal(value))
    }

    pub(crate) fn text(&self, value: &'a Option<Value<String>>) -> Option<Visible<'a, str>> {
        self.reveal_optional(value)?.text(|text| Some(text.as_str()))
    }

    pub(crate) fn all<T>(&self, values: &'a [Value<T>]) -> impl Iterator<Item = Visible<'a, T>> {
        values.iter().filter_map(|value| self.reveal(value))
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
            self.input.audience.name()
        );
        self.note(Note::new(NoteKind::Withheld, message, source.clone()));
    }
}
