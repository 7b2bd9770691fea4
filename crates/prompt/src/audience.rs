//! Who may see a value. A [`Value`] gives its content to nobody but this crate's assembler, and to it only for a
//! room that the value is meant for: leaving something out is the type's work, not the caller's care.

use std::fmt;

use crate::{Source, escape};

/// Who is in the room, or who a value is meant for; from the narrowest to the widest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Audience {
    /// The person who runs the agent.
    Owner,
    /// One authenticated person, alone with the agent.
    User,
    /// Several people who can all read what the agent writes.
    Group,
    /// Anybody, guests included.
    Public,
}

impl Audience {
    /// All of them, narrowest first.
    pub const ALL: [Self; 4] = [Self::Owner, Self::User, Self::Group, Self::Public];

    /// The name used in configuration and output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::User => "user",
            Self::Group => "group",
            Self::Public => "public",
        }
    }

    /// The audience of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|audience| audience.name() == name)
    }
}

/// A value with its source and its audience. What it holds can be read only while assembling for a room that is
/// no wider than the audience; `Debug` shows where it came from, never what it is.
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

    /// Where it came from.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Who it is meant for.
    pub fn audience(&self) -> Audience {
        self.audience
    }

    pub(crate) fn reveal(&self, room: Audience) -> Option<Seen<'_, T>> {
        (self.audience >= room).then_some(Seen { value: &self.inner, source: &self.source })
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

/// A value that the room may see.
pub(crate) struct Seen<'a, T: ?Sized> {
    pub(crate) value: &'a T,
    pub(crate) source: &'a Source,
}

impl<T: ?Sized> Clone for Seen<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> Copy for Seen<'_, T> {}

impl<'a, T: ?Sized> Seen<'a, T> {
    /// A part of the value, with the same source.
    pub(crate) fn part<U: ?Sized>(self, part: impl FnOnce(&'a T) -> &'a U) -> Seen<'a, U> {
        Seen { value: part(self.value), source: self.source }
    }

    /// A part that may be missing or blank.
    pub(crate) fn text(self, part: impl FnOnce(&'a T) -> Option<&'a str>) -> Option<Seen<'a, str>> {
        let value = part(self.value)?;
        (!escape::is_blank(value)).then_some(Seen { value, source: self.source })
    }
}
