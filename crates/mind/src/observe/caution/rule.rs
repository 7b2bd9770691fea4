//! A rule: what a sentence forbids or restricts. Plain data; `parse` makes it, `matching` applies it.

use super::lexicon::Actions;
use super::when::When;

/// What a sentence restricts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) kind: Kind,
    /// What must not be done.
    pub(super) actions: Actions,
    /// A verb that the lexicon does not know; a tool with this word in its name does it.
    pub(super) verb: Option<String>,
    /// All of them must be in the call.
    pub(super) groups: Vec<Group>,
    /// Who or what is free of the rule.
    pub(super) except: Vec<Object>,
    pub(super) when: When,
    /// Only amounts beyond this.
    pub(super) over: Option<u32>,
    /// It is about what reaches the owner, not others.
    pub(super) to_owner: bool,
}

impl Rule {
    /// Whether it counts when it stands in a memory. Conversations are full of "don't overwork" and "never saw": there, only
    /// verbs that the lexicon knows are orders.
    pub(super) fn is_sure(&self) -> bool {
        self.verb.is_none()
    }
}

/// How it restricts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Not at all.
    Forbid,
    /// Not without being asked.
    Ask,
    /// Nothing else than this.
    Only,
    /// Nobody is to know of it.
    Secret,
    /// Somebody is not there.
    Away,
}

/// One of these must be in the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) any: Vec<Object>,
    /// They are people, or whatever is addressed.
    pub(super) who: bool,
}

/// Somebody or something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Object {
    /// By words: a name, or a thing.
    Words(Vec<String>),
    /// By an address.
    Address(String),
    /// Everybody there.
    Domain(String),
}
