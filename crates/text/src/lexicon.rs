//! Word classes: what a word means to the rules of one consumer, as a set of bits. Owns lookup, English inflection and the
//! way back from words that were written so that a person reads them and a filter does not.
//!
//! A line of a table is `CLASS CLASS: words`. A word that ends in `*` stands for everything that begins with it.

use std::collections::HashMap;

use crate::calendar;
use crate::fold::fold;
use crate::spelling::Spelling;
use crate::tokenize::{Document, Quote};

/// A set of word classes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Classes(u128);

impl Classes {
    pub const NONE: Self = Self(0);

    #[must_use]
    pub const fn has(self, any_of: Self) -> bool {
        self.0 & any_of.0 != 0
    }

    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(crate) fn bits(self) -> impl Iterator<Item = usize> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let bit = rest.trailing_zeros();
            rest &= rest.wrapping_sub(1);
            (bit < u128::BITS).then_some(bit as usize)
        })
    }
}

macro_rules! built_in {
    ($($(#[$doc:meta])* $name:ident = $bit:literal;)*) => {
        impl Classes {
            $($(#[$doc])* pub const $name: Self = Self(1 << $bit);)*
        }
        /// The classes that every lexicon has, in the order of their bits.
        const BUILT_IN: &[&str] = &[$(stringify!($name)),*];
    };
}

built_in! {
    /// An English word that ends in -s.
    THIRD = 0;
    /// An English word that ends in -ed.
    PAST = 1;
    /// An English word that ends in -ing.
    GERUND = 2;
    /// A word of a table of another language.
    FOREIGN = 3;
    /// A name with an underscore, such as `send_email`.
    NAME = 4;
    /// A capital word in no table.
    CAPITAL = 5;
    /// Begins with a digit.
    NUMBER = 6;
    /// A mail or web address.
    ADDRESS = 7;
    /// The last word of a question.
    QUESTION = 8;
    /// Quoted, in a quoted line, or code.
    QUOTED = 9;
    /// Written with two hyphens before it, as options are.
    FLAG = 10;
    /// Joined to the word before it, as in `approve_all`.
    JOINED = 11;
    /// With the option `calendar`: the name of a day of the week that is no other word.
    WEEKDAY = 12;
    /// With the option `calendar`: the name of a month.
    MONTH = 13;
}

impl Classes {
    /// What says how a word is written, not what it means.
    pub const SHAPES: Self = Self((1 << 12) - 1);
}

const MAX_CLASSES: usize = 128;
const MAX_STEM_CHARS: usize = 16;
const MIN_STEM_CHARS: usize = 3;

#[derive(Debug, Default)]
pub struct Lexicon {
    names: Vec<String>,
    words: HashMap<String, Classes>,
    stems: HashMap<String, Classes>,
    /// Whether English endings lead back to the word.
    pub(crate) inflects: bool,
    pub(crate) keeps_apostrophes: bool,
    pub(crate) spelling: Option<Spelling>,
}

impl Lexicon {
    pub(crate) fn new() -> Self {
        Self { names: BUILT_IN.iter().map(|name| (*name).to_owned()).collect(), ..Self::default() }
    }

    /// The class of this name; none if there is no such class.
    #[must_use]
    pub fn class(&self, name: &str) -> Classes {
        let bit = self.names.iter().position(|known| known == name);
        bit.map_or(Classes::NONE, |bit| Classes(1 << bit))
    }

    /// Several classes, separated by blanks.
    #[must_use]
    pub fn classes(&self, names: &str) -> Classes {
        names.split_whitespace().fold(Classes::NONE, |all, name| all.with(self.class(name)))
    }

    /// The class of this name, created if it does not exist. `None` if there are too many.
    pub(crate) fn define(&mut self, name: &str) -> Option<Classes> {
        if !self.names.iter().any(|known| known == name) {
            if self.names.len() >= MAX_CLASSES {
                return None;
            }
            self.names.push(name.to_owned());
        }
        Some(self.class(name))
    }

    /// Adds the words of a table line.
    pub(crate) fn add(&mut self, classes: Classes, words: &str) {
        for word in words.split_whitespace() {
            let entry = match word.strip_suffix('*') {
                Some(stem) => self.stems.entry(fold(stem)),
                None if self.keeps_apostrophes => self.words.entry(fold(word)),
                None => self.words.entry(fold(word).replace('\'', "")),
            };
            let known = entry.or_default();
            // An English word keeps its English meaning when another language spells a word the same way.
            let added = if known.is_empty() { classes } else { classes.without(Classes::FOREIGN) };
            *known = known.with(added);
        }
    }

    pub(crate) fn add_calendar(&mut self) {
        calendar::months().for_each(|name| self.add(Classes::MONTH, name));
        // Short names of days are words of other meanings too.
        calendar::weekdays().filter(|name| name.len() > 4).for_each(|name| self.add(Classes::WEEKDAY, name));
    }

    /// What a folded word means; empty for most words.
    #[must_use]
    pub fn lookup(&self, word: &str) -> Classes {
        let exact = self.words.get(word).copied().unwrap_or_default();
        let known = if exact.is_empty() && self.inflects { self.inflected(word) } else { exact };
        // A foreign form can be listed for one meaning and its stem for another.
        if known.is_empty() || known.has(Classes::FOREIGN) { known.with(self.by_stem(word)) } else { known }
    }

    /// Whether a word is in a table, or a form of one that is.
    pub(crate) fn knows(&self, word: &str) -> bool {
        self.words.contains_key(word) || self.inflects && !self.inflected(word).is_empty()
    }

    /// Sets the classes of all words, after restoring those in disguise.
    pub fn annotate(&self, doc: &mut Document<'_>) {
        if let Some(spelling) = &self.spelling {
            spelling.restore(self, doc);
        } else {
            for token in &mut doc.tokens {
                token.classes = self.lookup(&token.word);
            }
        }
        for token in &mut doc.tokens {
            let is_address = crate::tokenize::is_address(token.text);
            let is_flag = token.gap == crate::tokenize::Gap::Space
                && doc.text.get(..token.start).is_some_and(|before| before.ends_with("--"));
            for (holds, class) in [
                (token.capital && token.classes.is_empty(), Classes::CAPITAL),
                (is_identifier(&token.word), Classes::NAME),
                (token.text.starts_with(|c: char| c.is_ascii_digit()), Classes::NUMBER),
                (is_address, Classes::ADDRESS),
                (token.quote != Quote::None, Classes::QUOTED),
                (is_flag, Classes::FLAG),
                (token.tight, Classes::JOINED),
            ] {
                if holds {
                    token.classes = token.classes.with(class);
                }
            }
        }
        for sentence in &mut doc.sentences {
            let Some(tokens) = doc.tokens.get_mut(sentence.tokens.clone()) else { continue };
            if let Some(last) =
                tokens.last_mut().filter(|_| matches!(sentence.ending, Some('?' | '？' | '؟')))
            {
                last.classes = last.classes.with(Classes::QUESTION);
            }
            sentence.classes = tokens.iter().fold(Classes::NONE, |all, token| all.with(token.classes));
        }
    }

    fn by_stem(&self, word: &str) -> Classes {
        let ends = word.char_indices().map(|(at, c)| at + c.len_utf8()).take(MAX_STEM_CHARS);
        ends.skip(MIN_STEM_CHARS - 1)
            .filter_map(|end| self.stems.get(word.get(..end)?))
            .fold(Classes::NONE, |all, &classes| all.with(classes))
    }

    /// English endings: `-s`, `-ed`, `-ing`, with the spelling changes that go with them.
    fn inflected(&self, word: &str) -> Classes {
        const ENDINGS: [(&str, &str, Classes); 8] = [
            ("ies", "y", Classes::THIRD),
            ("s", "", Classes::THIRD),
            ("es", "", Classes::THIRD),
            ("ied", "y", Classes::PAST),
            ("d", "", Classes::PAST),
            ("ed", "", Classes::PAST),
            ("ing", "e", Classes::GERUND),
            ("ing", "", Classes::GERUND),
        ];
        if !word.is_ascii() || word.len() < 4 {
            return Classes::NONE;
        }
        for (ending, restored, form) in ENDINGS {
            let Some(stem) = word.strip_suffix(ending) else { continue };
            let base = format!("{stem}{restored}");
            let undoubled = if form == Classes::THIRD { "" } else { undouble(stem) };
            let found = self.words.get(base.as_str()).or_else(|| self.words.get(undoubled));
            if let Some(&classes) = found.filter(|classes| !classes.has(Classes::FOREIGN)) {
                return classes.with(form);
            }
        }
        Classes::NONE
    }
}

/// `skipp` to `skip`; nothing when the last letter is not doubled.
fn undouble(stem: &str) -> &str {
    let mut back = stem.chars().rev();
    match (back.next(), back.next()) {
        (Some(last), Some(before)) if last == before => {
            stem.get(..stem.len() - last.len_utf8()).unwrap_or_default()
        }
        _ => "",
    }
}

/// Letters on both sides of an underscore.
fn is_identifier(word: &str) -> bool {
    word.split_once('_').is_some_and(|(before, after)| {
        before.ends_with(char::is_alphanumeric) && after.starts_with(char::is_alphanumeric)
    })
}
