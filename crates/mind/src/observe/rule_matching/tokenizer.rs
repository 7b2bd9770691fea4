//! Sentences and words: splitting, folding, and what each word can mean according to the lexicon, which is read from a table
//! and contains no product and no particular tool.

use std::collections::HashMap;
use std::sync::LazyLock;

use embody_text::calendar;
pub(in crate::observe) use embody_text::fold::fold;
use embody_text::tokenize::{Gap, Options};

/// A sentence longer than this is cut: a rule is a short thing.
const MAX_WORDS: usize = 80;
const MAX_SENTENCES: usize = 400;

#[derive(Clone, Debug, Default)]
pub(super) struct Token {
    /// Folded, contractions written out.
    pub(super) fold: String,
    pub(super) known: WordInfo,
    pub(super) capital: bool,
    pub(super) mark: Option<char>,
}

const OPTIONS: Options = Options {
    inner: "._",
    apostrophes: true,
    numbers: true,
    addresses: true,
    letter_marks: false,
    lines: true,
};

/// The sentences of a text that could be a rule. Questions are none.
pub(super) fn sentences(text: &str) -> Vec<&str> {
    const BULLETS: &[char] = &['-', '*', '•', '–', '—', '#', '>', ' ', '\t'];
    let doc = embody_text::tokenize::tokenize(text, OPTIONS);
    let told = doc.sentences.iter().filter(|sentence| sentence.ending != Some('?'));
    let parts = told.filter_map(|sentence| text.get(sentence.bytes.clone()));
    let parts = parts.flat_map(|sentence| sentence.split_inclusive(';'));
    let trimmed = parts.map(|part| part.trim().trim_start_matches(BULLETS).trim());
    trimmed.filter(|sentence| !sentence.is_empty()).take(MAX_SENTENCES).collect()
}

pub(super) fn tokenize(sentence: &str) -> Vec<Token> {
    let doc = embody_text::tokenize::tokenize(sentence, OPTIONS);
    let mut tokens: Vec<Token> = Vec::new();
    for (at, read) in doc.tokens.iter().take(MAX_WORDS).enumerate() {
        if at > 0 && read.gap > Gap::Space {
            let mark = if read.gap == Gap::Soft { ',' } else { ';' };
            tokens.push(Token { mark: Some(mark), ..Token::default() });
        }
        word(&mut tokens, &read.word, read.capital);
        // `Frank's on holiday`, not `Frank's mails`.
        if read.word.ends_with("'s") && doc.one_of(at + 1, "on away off out sick") {
            word(&mut tokens, "is", false);
        }
    }
    join_phrases(tokens)
}

fn word(tokens: &mut Vec<Token>, part: &str, capital: bool) {
    let mut push = |part: &str, capital: bool| {
        tokens.push(Token { fold: part.to_owned(), known: lookup(part), capital, mark: None });
    };
    if let Some(verb) = part.strip_suffix("n't").or_else(|| (part == "dont").then_some("do")) {
        push(
            match verb {
                "ca" => "can",
                "wo" => "will",
                verb => verb,
            },
            capital,
        );
        push("not", false);
    } else if part == "cannot" {
        push("can", capital);
        push("not", false);
    } else if let Some((head, tail)) = part.split_once('\'') {
        // Elision before, possession or a short verb behind.
        match (head.len() <= 2 || head == "jusqu" || head == "aujourd", tail) {
            (_, "s" | "re" | "ve" | "ll" | "m") => {
                push(head, capital);
                if tail == "re" {
                    push("is", false);
                }
            }
            (true, tail) => {
                push(head, false);
                push(tail, false);
            }
            (false, _) => push(part, capital),
        }
    } else {
        push(part, capital);
    }
}

fn join_phrases(tokens: Vec<Token>) -> Vec<Token> {
    let mut joined: Vec<Token> = Vec::with_capacity(tokens.len());
    let mut rest = tokens.as_slice();
    while let Some((first, after)) = rest.split_first() {
        let found = phrases(&first.fold).iter().find(|phrase| {
            rest.len() >= phrase.words.len()
                && phrase
                    .words
                    .iter()
                    .zip(rest)
                    .all(|(word, token)| token.mark.is_none() && *word == token.fold)
        });
        match found {
            Some(phrase) => {
                for part in phrase.means.split(' ') {
                    joined.push(Token {
                        fold: part.to_owned(),
                        known: lookup(part),
                        capital: false,
                        mark: None,
                    });
                }
                rest = rest.get(phrase.words.len()..).unwrap_or_default();
            }
            None => {
                joined.push(first.clone());
                rest = after;
            }
        }
    }
    joined
}

pub(in crate::observe) fn words(text: &str) -> Vec<String> {
    let split = fold(text);
    let parts = split.split(|letter: char| !letter.is_alphanumeric());
    parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

pub(in crate::observe) fn stem(word: &str) -> &str {
    let plural = word.strip_suffix('s').filter(|one| one.chars().count() >= 3 && !one.ends_with('s'));
    plural.unwrap_or(word)
}

macro_rules! tags {
    ($($tag:ident)*) => {
        /// What a word can be in a sentence that forbids something; in `lexicon.txt`, in small letters.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Tag { $($tag),* }
        const TAGS: &[(&str, Tag)] = &[$((stringify!($tag), Tag::$tag)),*];
    };
}

tags! {
    Filler Do Not Never No NoOf Ne Pas Gneg You I Nobody Modal Strict Be Get Stop Ask Asked Before
    After Between From Until Only Keep Secret Without Unless Except But Want Away Taboo Because
    Pronoun Me Det To About Or Generic Nothing Outside Quiet Idiom Weekend Workday Night Evening
    Morning Today Tomorrow Week Month Year Next End This Unit Am Pm WorkHours Forbidden Knowing
    Permitted Afternoon Lunch Span
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Actions(pub(super) u16);

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

    /// What a rule means by a word of this group.
    fn of_group(group: &str) -> Option<Self> {
        let message = Self::MESSAGE.and(Self::MAIL).and(Self::POST);
        Some(match group {
            "mail" => Self::MAIL,
            "message" => message,
            "chat" => Self::MESSAGE,
            "write" => message.and(Self::CHANGE),
            "send" => message.and(Self::SHARE),
            "contact" => Self::CONTACT,
            "call" => Self::CALL,
            "post" => Self::POST,
            "invite" => Self::INVITE,
            "share" => Self::OUT,
            "delete" => Self::DELETE,
            "change" => Self::CHANGE,
            "create" => Self::CREATE,
            "pay" => Self::PAY,
            "run" => Self::RUN,
            "read" => Self::READ,
            "all" => Self::ANY,
            _ => return None,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Command = 1,
    Doing = 2,
    Done = 4,
    Thing = 8,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WordInfo {
    tags: u128,
    pub(super) actions: Actions,
    forms: u8,
    /// The action is done to people, so that who follows it is its object.
    pub(super) to_people: bool,
    pub(super) day: Option<i8>,
    pub(super) month: Option<i8>,
}

impl WordInfo {
    pub(super) fn is(self, tag: Tag) -> bool {
        self.tags & (1_u128 << tag as u32) != 0
    }

    pub(super) fn any(self, tags: &[Tag]) -> bool {
        tags.iter().any(|tag| self.is(*tag))
    }

    pub(super) fn form(self, form: Form) -> bool {
        self.forms & form as u8 != 0
    }

    pub(super) fn is_plain(self) -> bool {
        self.tags == 0 && self.forms == 0 && self.day.is_none() && self.month.is_none()
    }
}

#[derive(Debug)]
pub(super) struct Phrase {
    pub(super) words: Vec<&'static str>,
    pub(super) means: &'static str,
}

pub(super) fn lookup(word: &str) -> WordInfo {
    let known = WORDS.get(word).copied().unwrap_or_default();
    // Short names of days are words of other meanings too.
    let day = calendar::weekday(word).filter(|_| word.len() > 4);
    WordInfo { day, month: calendar::month(word), ..known }
}

/// The phrases that begin with a folded word, longest first.
pub(super) fn phrases(first: &str) -> &'static [Phrase] {
    PHRASES.get(first).map(Vec::as_slice).unwrap_or_default()
}

static WORDS: LazyLock<HashMap<&'static str, WordInfo>> =
    LazyLock::new(|| read(include_str!("lexicon.txt")).0);
static PHRASES: LazyLock<HashMap<&'static str, Vec<Phrase>>> = LazyLock::new(|| {
    let mut phrases: HashMap<&'static str, Vec<Phrase>> = HashMap::new();
    for (means, list) in lines(include_str!("phrases.txt")) {
        for phrase in list.split('|') {
            let words: Vec<&str> = phrase.split_whitespace().collect();
            if let Some(first) = words.first() {
                phrases.entry(first).or_default().push(Phrase { words, means });
            }
        }
    }
    phrases.values_mut().for_each(|list| list.sort_by_key(|phrase| std::cmp::Reverse(phrase.words.len())));
    phrases
});

fn lines(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(": "))
}

/// The table, and the lines of it that mean nothing.
fn read(text: &'static str) -> (HashMap<&'static str, WordInfo>, Vec<&'static str>) {
    let (mut words, mut unknown): (HashMap<&'static str, WordInfo>, _) = (HashMap::new(), Vec::new());
    for (head, list) in lines(text) {
        let (sort, name) = head.split_once(' ').unwrap_or((head, ""));
        for word in list.split_whitespace() {
            if note(words.entry(word).or_default(), sort, name).is_none() {
                unknown.push(head);
            }
        }
    }
    (words, unknown)
}

fn note(known: &mut WordInfo, sort: &str, name: &str) -> Option<()> {
    match sort {
        "tag" => {
            known.tags |= 1_u128 << TAGS.iter().find(|(tag, _)| tag.eq_ignore_ascii_case(name))?.1 as u32
        }
        group => {
            let form = match name {
                "command" => Form::Command,
                "doing" => Form::Doing,
                "done" => Form::Done,
                "thing" => Form::Thing,
                _ => return None,
            };
            known.forms |= form as u8;
            known.actions = known.actions.and(Actions::of_group(group)?);
            known.to_people |= matches!(group, "mail" | "message" | "chat" | "contact" | "call" | "invite");
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_means_something_and_every_tag_has_words() {
        let (words, unknown) = read(include_str!("lexicon.txt"));
        assert!(unknown.is_empty(), "{unknown:?}");
        for (name, tag) in TAGS {
            assert!(words.values().any(|known| known.is(*tag)), "{name}");
        }
        assert!(TAGS.len() <= 128);
    }

    #[test]
    fn phrases_are_read_as_words_that_mean_something() {
        for phrase in PHRASES.values().flatten() {
            assert!(phrase.means.split(' ').any(|word| !lookup(word).is_plain()), "{phrase:?}");
        }
    }
}
