//! The words of a rule: what each can mean according to `words.txt`, which has no product and no particular tool, and what
//! the verbs do.

use std::sync::LazyLock;

use embody_text::lexicon::Classes;
use embody_text::rules::RuleSet;
use embody_text::tokenize::{Document, Options, Token, tokenize};

/// A sentence longer than this is cut: a rule is a short thing.
const MAX_WORDS: usize = 80;
const MAX_SENTENCES: usize = 400;

const WORDS: Options =
    Options { inner: "._", apostrophes: true, numbers: true, addresses: true, lines: true, ..Options::PLAIN };

static RULES: LazyLock<RuleSet> = LazyLock::new(|| RuleSet::parse(&[include_str!("words.txt")]));

/// The sentences of a text that could be a rule. Questions are none.
pub(super) fn rule_sentences(text: &str) -> Vec<&str> {
    const BULLETS: &[char] = &['-', '*', '•', '–', '—', '#', '>', ' ', '\t'];
    let doc = tokenize(text, WORDS);
    let told = doc.sentences.iter().filter(|sentence| sentence.ending != Some('?'));
    let parts = told.filter_map(|sentence| text.get(sentence.bytes.clone()));
    let parts = parts.flat_map(|sentence| sentence.split_inclusive(';'));
    let trimmed = parts.map(|part| part.trim().trim_start_matches(BULLETS).trim());
    trimmed.filter(|sentence| !sentence.is_empty()).take(MAX_SENTENCES).collect()
}

/// The words of one sentence, with their meanings. Commas and stronger marks are words of their own.
pub(super) fn read(sentence: &str) -> Document<'_> {
    let mut doc = tokenize(sentence, Options { contractions: true, marks: true, ..WORDS });
    doc.tokens.truncate(MAX_WORDS);
    RULES.annotate(&mut doc);
    doc
}

pub(super) fn is_mark(token: &Token<'_>) -> bool {
    matches!(token.word.as_str(), "," | ";")
}

macro_rules! tags {
    ($($tag:ident)*) => {
        /// What a word can be in a sentence that forbids something: the classes of `words.txt`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Tag { $($tag),* }
        static TAGS: LazyLock<Vec<Classes>> =
            LazyLock::new(|| vec![$(RULES.lexicon.class(&stringify!($tag).to_uppercase())),*]);
    };
}

tags! {
    Filler Do Not Never No NoOf Ne Pas Gneg You I Nobody Modal Strict Be Get Stop Ask Asked Before After
    Between From Until Only Keep Secret Without Unless Except But Want Away Taboo Because Pronoun Me Det
    To About Or Generic Nothing Outside Quiet Idiom Weekend Workday Night Evening Today Tomorrow
    Week Month Next End This WorkHours Forbidden Knowing Permitted Afternoon Lunch
    Command Doing Done Thing
}

impl Tag {
    fn class(self) -> Classes {
        TAGS.get(self as usize).copied().unwrap_or_default()
    }
}

/// What the classes of a word say.
pub(super) trait Meaning: Copy {
    fn is(self, tag: Tag) -> bool;
    fn actions(self) -> Actions;
    /// Whether the action is done to people, so that who follows it is its object.
    fn is_to_people(self) -> bool;
    /// Whether the word is in no table.
    fn is_plain(self) -> bool;

    fn any(self, tags: &[Tag]) -> bool {
        tags.iter().any(|tag| self.is(*tag))
    }
}

impl Meaning for Classes {
    fn is(self, tag: Tag) -> bool {
        self.has(tag.class())
    }

    fn actions(self) -> Actions {
        let groups = ACTIONS.iter().filter(|(class, _)| self.has(*class));
        groups.fold(Actions::NONE, |all, (_, actions)| all.and(*actions))
    }

    fn is_to_people(self) -> bool {
        self.has(*TO_PEOPLE)
    }

    fn is_plain(self) -> bool {
        self.without(Self::SHAPES).is_empty()
    }
}

static TO_PEOPLE: LazyLock<Classes> =
    LazyLock::new(|| RULES.lexicon.classes("MAIL MESSAGE CHAT CONTACT CALL INVITE"));

/// What a rule means by a verb or a noun of a class.
static ACTIONS: LazyLock<Vec<(Classes, Actions)>> = LazyLock::new(|| {
    let message = Actions::MESSAGE.and(Actions::MAIL).and(Actions::POST);
    let groups = [
        ("MAIL", Actions::MAIL),
        ("MESSAGE", message),
        ("CHAT", Actions::MESSAGE),
        ("WRITE", message.and(Actions::CHANGE)),
        ("SEND", message.and(Actions::SHARE)),
        ("CONTACT", Actions::CONTACT),
        ("CALL", Actions::CALL),
        ("POST", Actions::POST),
        ("INVITE", Actions::INVITE),
        ("SHARE", Actions::OUT),
        ("DELETE", Actions::DELETE),
        ("CHANGE", Actions::CHANGE),
        ("CREATE", Actions::CREATE),
        ("PAY", Actions::PAY),
        ("RUN", Actions::RUN),
        ("READ", Actions::READ),
        ("ALL", Actions::ANY),
    ];
    groups.into_iter().map(|(name, actions)| (RULES.lexicon.class(name), actions)).collect()
});

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Actions(u16);

impl Actions {
    pub(super) const NONE: Self = Self(0);
    pub(super) const MAIL: Self = Self(1);
    pub(super) const MESSAGE: Self = Self(1 << 1);
    pub(super) const CALL: Self = Self(1 << 2);
    pub(super) const POST: Self = Self(1 << 3);
    pub(super) const INVITE: Self = Self(1 << 4);
    pub(super) const SHARE: Self = Self(1 << 5);
    pub(super) const DELETE: Self = Self(1 << 6);
    pub(super) const CHANGE: Self = Self(1 << 7);
    pub(super) const CREATE: Self = Self(1 << 8);
    pub(super) const PAY: Self = Self(1 << 9);
    pub(super) const RUN: Self = Self(1 << 10);
    pub(super) const READ: Self = Self(1 << 11);
    /// Anything that is not reading, known or not.
    pub(super) const ANY: Self = Self(0xf7ff);
    pub(super) const CONTACT: Self = Self(0b1_1111);
    pub(super) const OUT: Self = Self(0b11_1111);

    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_well_formed_and_every_class_has_words() {
        assert_eq!(RULES.problems(), [""; 0]);
        assert!(TAGS.iter().chain(ACTIONS.iter().map(|(class, _)| class)).all(|class| !class.is_empty()));
    }

    #[test]
    fn contractions_and_phrases_are_read_as_words_that_mean_something() {
        for (text, words) in [
            ("Don't mail Bob", "do not mail bob"),
            ("He's out of office", "he is away"),
            ("Frank's on leave, not Frank's mails", "frank is on leave , not frank mails"),
            ("Mail nobody; n'écris qu'à Bob", "mail nobody ; n ecris qu a bob"),
        ] {
            let read: Vec<String> = read(text).tokens.into_iter().map(|token| token.word).collect();
            assert_eq!(read.join(" "), words);
        }
    }
}
