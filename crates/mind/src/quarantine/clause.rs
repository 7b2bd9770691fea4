//! Sentences as words with what stands between them. Owns where sentences and clauses begin, and takes quotations of
//! others out of the way; knows no meanings.

/// A longer sentence is read in pieces: nobody is told anything in more words.
const MAX_WORDS: usize = 120;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gap {
    Space,
    Comma,
    Colon,
    Start,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) gap: Gap,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sentence {
    pub(super) words: Vec<Word>,
    /// The words in one line, each with a blank behind it, to look for phrases in.
    line: String,
    /// Whether it calls: it ends with an exclamation mark.
    pub(super) calls: bool,
}

impl Sentence {
    pub(super) fn word(&self, at: usize) -> &str {
        self.words.get(at).map_or("", |word| word.text.as_str())
    }

    pub(super) fn gap(&self, at: usize) -> Gap {
        self.words.get(at).map_or(Gap::Start, |word| word.gap)
    }

    pub(super) fn is(&self, at: usize, list: &str) -> bool {
        is_one_of(self.word(at), list)
    }

    pub(super) fn all<'a>(&'a self, list: &'a str) -> impl Iterator<Item = usize> + 'a {
        (0..self.words.len()).filter(move |at| self.is(*at, list))
    }

    /// Whether there is a word of a list from a place on.
    pub(super) fn has_from(&self, from: usize, list: &str) -> bool {
        (from..self.words.len()).any(|at| self.is(at, list))
    }

    pub(super) fn reads(&self, at: usize, phrase: &str) -> bool {
        let mut words = phrase.split(' ').enumerate();
        words.all(|(offset, word)| self.word(at + offset) == word)
    }

    /// The place right behind the first of these phrases, which are separated by `|`.
    pub(super) fn after_phrase(&self, phrases: &str) -> Option<usize> {
        let found = phrases.split('|').filter_map(|phrase| Some((find_words(&self.line, phrase)?, phrase)));
        let (at, phrase) = found.min_by_key(|(at, _)| *at)?;
        let before = self.line.get(..at).unwrap_or_default().matches(' ').count();
        Some(before + phrase.split(' ').count())
    }
}

pub(super) fn is_one_of(word: &str, list: &str) -> bool {
    !word.is_empty() && find_words(list, word).is_some()
}

/// Where whole words stand in others that are separated by blanks.
fn find_words(text: &str, words: &str) -> Option<usize> {
    let ends = |byte: Option<&u8>| byte.is_none_or(|byte| *byte == b' ');
    let whole = |at: &usize| {
        let before = at.checked_sub(1);
        before.is_none_or(|before| ends(text.as_bytes().get(before)))
            && ends(text.as_bytes().get(at + words.len()))
    };
    text.match_indices(words).map(|(at, _)| at).find(whole)
}

/// The sentences of a text, without what they quote.
pub(super) fn sentences(text: &str) -> Vec<Sentence> {
    let text = without_quotations(text);
    let mut reader = Splitter { done: Vec::new(), sentence: Sentence::default(), gap: Gap::Start };
    let mut forbidden = false;
    for line in text.lines() {
        // What is listed under "never:" is what not to do.
        if forbidden && line.trim_start().starts_with(['-', '*', '•', '+']) {
            continue;
        }
        line.split_whitespace().for_each(|piece| reader.take(piece));
        reader.end_sentence(false);
        let denies = || {
            line.to_lowercase()
                .split(|c: char| !c.is_alphanumeric())
                .any(|word| is_one_of(word, "never not don avoid no"))
        };
        forbidden =
            if line.trim().is_empty() { forbidden } else { line.trim_end().ends_with(':') && denies() };
    }
    reader.done
}

struct Splitter {
    done: Vec<Sentence>,
    sentence: Sentence,
    gap: Gap,
}

impl Splitter {
    /// Takes a run of characters without blanks: a word with its punctuation, or several joined by it.
    fn take(&mut self, piece: &str) {
        if is_address(piece) {
            return self.push(piece.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase(), piece);
        }
        let mut word = String::new();
        let mut chars = piece.chars().peekable();
        while let Some(c) = chars.next() {
            let inside = chars.peek().is_some_and(|next| next.is_alphanumeric()) && !word.is_empty();
            match c {
                '\'' | '’' if inside => word.push('\''),
                '-' | '_' | '.' | '/' if inside => word.push(c),
                c if c.is_alphanumeric() || c == '`' => word.extend(c.to_lowercase()),
                // A dot that begins a name ends nothing.
                '.' if chars.peek().is_some_and(|next| next.is_alphanumeric()) => {}
                c => {
                    self.word(std::mem::take(&mut word));
                    self.mark(c);
                }
            }
        }
        self.word(word);
    }

    /// An address is one word, whatever is in it; what ends it may end the sentence.
    fn push(&mut self, word: String, piece: &str) {
        self.word(word);
        piece.chars().next_back().into_iter().for_each(|c| self.mark(c));
    }

    fn word(&mut self, text: String) {
        if !text.is_empty() {
            self.sentence.line.push_str(&text);
            self.sentence.line.push(' ');
            self.sentence.words.push(Word { text, gap: self.gap });
            self.gap = Gap::Space;
            if self.sentence.words.len() == MAX_WORDS {
                self.done.push(std::mem::take(&mut self.sentence));
            }
        }
    }

    fn mark(&mut self, c: char) {
        match c {
            '.' | '?' | '…' | '。' | '？' => self.end_sentence(false),
            '!' | '！' => self.end_sentence(true),
            ':' => self.gap = self.gap.max(Gap::Colon),
            ',' | ';' | '—' | '–' | '-' | '(' | ')' | '[' | ']' | '"' | '“' | '”' | '>' | '*' => {
                self.gap = self.gap.max(Gap::Comma);
            }
            _ => {}
        }
    }

    fn end_sentence(&mut self, calls: bool) {
        let mut sentence = std::mem::take(&mut self.sentence);
        self.gap = Gap::Start;
        if !sentence.words.is_empty() {
            sentence.calls = calls;
            self.done.push(sentence);
        }
    }
}

pub(super) fn is_address(word: &str) -> bool {
    let mail = word.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.'));
    mail || word.contains("://") || word.starts_with("www.")
}

/// Words that say that somebody else is being quoted.
const REPORTS: &str = "wrote writes said says saying asked told quote quoted lyric poem line joke called titled title reads \
     sign song film book motto slogan laughed reported screenshot example subject phrase word words schrieb sagt sagte \
     écrit dit dijo escribió";
/// Whose words count even when they are only quoted.
const CHIEFS: &str = "owner user system admin administrator developer operator";

/// The text without what it quotes, where it says that it does.
pub(super) fn without_quotations(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, quoted, after)) = quotation(rest) {
        out.push_str(before);
        let line = before.rsplit('\n').next().unwrap_or_default().to_lowercase();
        let next = after.split('\n').next().unwrap_or_default().to_lowercase();
        let words = |list: &str| {
            let around =
                line.split(|c: char| !c.is_alphanumeric()).chain(next.split(|c: char| !c.is_alphanumeric()));
            around.into_iter().any(|word| is_one_of(word, list))
        };
        if words(REPORTS) && !words(CHIEFS) {
            out.push(',');
        } else {
            out.push(' ');
            out.push_str(quoted);
            out.push(' ');
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// What stands before, in and after the first quotation marks.
fn quotation(text: &str) -> Option<(&str, &str, &str)> {
    let open = text.find(['"', '“', '„', '«'])?;
    let mark = text.get(open..)?.chars().next()?;
    let inside = text.get(open + mark.len_utf8()..)?;
    let closing: &[char] = match mark {
        '“' => &['”'],
        '„' => &['“', '”'],
        '«' => &['»'],
        _ => &['"'],
    };
    let close = inside.find(closing)?;
    let end = inside.get(close..)?.chars().next()?.len_utf8();
    Some((text.get(..open)?, inside.get(..close)?, inside.get(close + end..)?))
}
