//! What a word can mean to this lint, as a set of bits. Owns the names; the words themselves live in `lexicon`.

use std::ops::BitOr;

/// A set of meanings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Kinds(u64);

impl Kinds {
    pub(super) const fn none() -> Self {
        Self(0)
    }

    pub(super) const fn has(self, any_of: Self) -> bool {
        self.0 & any_of.0 != 0
    }

    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The set that a table or pattern calls `name`.
    pub(super) fn named(name: &str) -> Option<Self> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, kinds)| *kinds)
    }
}

impl BitOr for Kinds {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.with(other)
    }
}

macro_rules! kinds {
    ($($(#[$why:meta])* $name:ident = $bit:literal;)*) => {
        impl Kinds {
            $($(#[$why])* pub(super) const $name: Self = Self(1 << $bit);)*
        }
        const NAMES: &[(&str, Kinds)] = &[$((stringify!($name), Kinds::$name)),*];
    };
}

kinds! {
    /// To set aside: ignore, disregard, bypass.
    DISMISS = 0;
    /// To set aside or to edit, depending on what: skip, replace, remove.
    CHANGE = 1;
    /// To keep to: follow, obey.
    COMPLY = 2;
    /// Turns what follows into its opposite: never, refuse.
    NEG = 3;
    /// Turns a negation back: hesitate, afraid, only.
    UNDO = 4;
    /// Rules as such: instructions, guidelines.
    RULE = 5;
    /// Rules only in context: orders, commands, filters.
    LOOSE = 6;
    /// Protections: guardrails, safeguards.
    GUARD = 7;
    /// Belongs to a higher layer: system, body, safety.
    HIGHER = 8;
    /// Stands before this text: above, previous.
    EARLIER = 9;
    /// The agent's own.
    YOUR = 10;
    /// Without exception: all, any.
    ALL = 11;
    /// Things at large: everything, whatever.
    THINGS = 12;
    /// Consent: approval, asking.
    CONSENT = 13;
    /// Acts on the world: send, delete, pay.
    ACT = 14;
    /// Acts on nothing that matters: read, format, test.
    MILD = 15;
    /// Speaks of attacks.
    ATTACK = 16;
    /// Turns something down.
    REFUSE = 17;
    /// Says what somebody wants: asks, tells, tries.
    SAYS = 18;
    /// People who may decide: owner, administrator.
    CHIEF = 19;
    /// Credentials.
    SECRET = 20;
    /// Makes public: reveal, leak.
    REVEAL = 21;
    /// Moves or shows: send, print.
    SHOW = 22;
    /// Text like this one: file, persona, note.
    TEXT = 23;
    /// Sources that are data: pages, e-mails, tool output.
    OUTSIDE = 24;
    /// Trades that have rules of their own: CSS, tax, chess.
    TRADE = 25;
    /// Settings and flags.
    OPTION = 26;
    /// A word of a language with free word order.
    FOREIGN = 27;
    /// Ends in -s.
    THIRD = 28;
    /// Ends in -ed or is irregular.
    PAST = 29;
    /// Ends in -ing.
    GERUND = 30;
    /// Gives leave: allowed, fine.
    PERMIT = 31;
    /// Writes a record: log, audit.
    LOG = 32;
    /// Without bounds: unrestricted, jailbroken.
    UNBOUND = 33;
    /// No longer in force: void, cancelled.
    GONE = 34;
    /// Between a negation and its verb without meaning of its own.
    GLUE = 35;
    /// Pointing words: this, these.
    THIS = 36;
    /// Introduces an object or circumstance: when, in, for.
    LINK = 37;
    /// A phrase ends here that names rules of a higher layer: "the system prompt", "your rules".
    TOPIC = 40;
    /// Says that something is needed.
    NEED = 38;
    /// Asks for leave, in languages other than English.
    ASK = 39;
}
