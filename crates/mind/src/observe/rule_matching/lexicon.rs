//! What everyday words can mean, read once from a table of words. It knows no product and no particular tool.

use std::collections::HashMap;
use std::sync::LazyLock;

macro_rules! tags {
    ($($tag:ident = $name:literal),* $(,)?) => {
        /// What a word can be in a sentence that forbids something.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Tag { $($tag),* }
        const TAGS: &[(&str, Tag)] = &[$(($name, Tag::$tag)),*];
    };
}

tags!(
    Filler = "filler",
    Do = "do",
    Not = "not",
    Never = "never",
    No = "no",
    NoOf = "noof",
    Ne = "ne",
    Pas = "pas",
    Gneg = "gneg",
    You = "you",
    I = "i",
    Nobody = "nobody",
    Modal = "modal",
    Strict = "strict",
    Be = "be",
    Get = "get",
    Stop = "stop",
    Ask = "ask",
    Asked = "asked",
    Before = "before",
    After = "after",
    Between = "between",
    From = "from",
    Until = "until",
    Only = "only",
    Keep = "keep",
    Secret = "secret",
    Without = "without",
    Unless = "unless",
    Except = "except",
    But = "but",
    Want = "want",
    Away = "away",
    Taboo = "taboo",
    Because = "because",
    Pronoun = "pronoun",
    Me = "me",
    Det = "det",
    To = "to",
    About = "about",
    Or = "or",
    Generic = "generic",
    Nothing = "nothing",
    Outside = "outside",
    Quiet = "quiet",
    Idiom = "idiom",
    Weekend = "weekend",
    Workday = "workday",
    Night = "night",
    Evening = "evening",
    Morning = "morning",
    Today = "today",
    Tomorrow = "tomorrow",
    Week = "week",
    Month = "month",
    Year = "year",
    Next = "next",
    End = "end",
    This = "this",
    Unit = "unit",
    Am = "am",
    Pm = "pm",
    WorkHours = "workhours",
    Forbidden = "forbidden",
    Knowing = "knowing",
    Permitted = "permitted",
    Afternoon = "afternoon",
    Lunch = "lunch",
    Span = "span",
);

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
    pub(super) number: Option<i32>,
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
    WORDS.get(word).copied().unwrap_or_default()
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
        "tag" => known.tags |= 1_u128 << TAGS.iter().find(|(tag, _)| *tag == name)?.1 as u32,
        "day" => known.day = Some(name.parse().ok()?),
        "month" => known.month = Some(name.parse().ok()?),
        "number" => known.number = Some(name.parse().ok()?),
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
