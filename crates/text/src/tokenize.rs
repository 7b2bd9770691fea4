//! The one tokenizer: a text as words in sentences, with what stands between them, quotations, and the line that leads
//! into a sentence. One pass over the characters; knows no meanings.

use std::ops::Range;

use crate::calendar;
pub use crate::document::{Document, Gap, Quote, Sentence, Token};
use crate::fold::{fold_char, is_unseen, is_unspaced};
use crate::lexicon::Classes;

/// What counts as one word, and what ends a sentence. The default splits at every mark.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Marks that stay inside a word between two letters, such as `_`.
    pub inner: &'static str,
    /// Keeps the apostrophe of `don't`; otherwise it is `dont`.
    pub apostrophes: bool,
    /// With `apostrophes`: reads `don't` as `do not`, `Bob's` as `Bob`.
    pub contractions: bool,
    /// A comma, and a stronger mark inside a sentence (as `;`), is a word of its own.
    pub marks: bool,
    /// Keeps `9:30`, `2026-11-03` and `1.5` whole.
    pub numbers: bool,
    /// Keeps mail and web addresses whole.
    pub addresses: bool,
    /// Reads `@`, `$` and `!` before a letter as letters.
    pub letter_marks: bool,
    /// The end of a line ends a sentence.
    pub lines: bool,
}

impl Options {
    /// Splits at every mark.
    pub const PLAIN: Self = Self {
        inner: "",
        apostrophes: false,
        contractions: false,
        marks: false,
        numbers: false,
        addresses: false,
        letter_marks: false,
        lines: false,
    };
}

const MAX_WORD_BYTES: usize = 256;
const MAX_ADDRESS_BYTES: usize = 256;

#[must_use]
pub fn tokenize(text: &str, options: Options) -> Document<'_> {
    let mut reader = Reader::new(text, options);
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|&(_, next)| next);
        reader.take(at, c, next);
    }
    reader.end_word();
    reader.end_sentence();
    Document { text, tokens: reader.tokens, sentences: reader.sentences }
}

/// Where single words or substrings are looked for in scripts without spaces: parts of a text that end like sentences, at
/// most 600 bytes each, with their first byte.
pub fn unspaced_sentences(text: &str) -> impl Iterator<Item = (usize, &str)> {
    const MAX_BYTES: usize = 600;
    let mut start = 0;
    let all = std::iter::from_fn(move || {
        let rest = text.get(start..).filter(|rest| !rest.is_empty())?;
        let ends = |&(at, c): &(usize, char)| "。！？\n!?".contains(c) || at >= MAX_BYTES;
        let length = rest.char_indices().find(ends).map_or(rest.len(), |(at, c)| at + c.len_utf8());
        let part = (start, rest.get(..length)?);
        start += length;
        Some(part)
    });
    all.filter(|(_, part)| part.contains(|c| is_unspaced(c) || ('\u{ac00}'..='\u{d7a3}').contains(&c)))
}

struct Reader<'t> {
    text: &'t str,
    options: Options,
    tokens: Vec<Token<'t>>,
    sentences: Vec<Sentence>,
    word: String,
    word_bytes: Range<usize>,
    capital: bool,
    gap: Gap,
    ending: Option<(char, usize)>,
    blanks: usize,
    /// Where the run of characters without blanks begins that is being read.
    run_start: usize,
    /// The end of the marks right after the last word.
    marks_end: usize,
    /// The mark that opened a quotation and the first word after it.
    quote: Option<(char, usize)>,
    /// Up to here all characters belong to one address.
    address_end: usize,
    /// Up to here there is no address.
    no_address_end: usize,
    line: Line,
    fenced: bool,
    was_block_quote: bool,
    after_blank_line: bool,
    lead: Option<usize>,
    heading: Option<usize>,
}

#[derive(Default)]
struct Line {
    started: bool,
    heading: bool,
    block_quote: bool,
    listed: bool,
    /// Up to here the line has only the number of a list entry.
    number_end: usize,
    last: Option<char>,
}

impl<'t> Reader<'t> {
    fn new(text: &'t str, options: Options) -> Self {
        Self {
            text,
            options,
            tokens: Vec::new(),
            sentences: Vec::new(),
            word: String::new(),
            word_bytes: 0..0,
            capital: false,
            gap: Gap::Sentence,
            ending: None,
            blanks: 0,
            run_start: 0,
            marks_end: 0,
            quote: None,
            address_end: 0,
            no_address_end: 0,
            line: Line::default(),
            fenced: false,
            was_block_quote: false,
            after_blank_line: true,
            lead: None,
            heading: None,
        }
    }

    fn take(&mut self, at: usize, c: char, next: Option<char>) {
        if !self.line.started && !c.is_whitespace() && !is_unseen(c) {
            self.start_line(at);
        }
        if c == '\n' {
            return self.end_line();
        }
        if c.is_whitespace() {
            self.run_start = at + c.len_utf8();
        } else {
            self.line.last = Some(c);
        }
        if is_unseen(c) || at < self.line.number_end {
            return;
        }
        if self.word.is_empty() && c.is_alphanumeric() {
            self.find_address(at);
        }
        let joins = |c: char| c.is_alphanumeric();
        let next_joins = next.is_some_and(joins);
        let in_word = !self.word.is_empty();
        match c {
            _ if at < self.address_end => self.letter(at, c),
            '❌' | '🚫' | '⛔' | '✗' | '✘' | '✖' => self.cross(at, c),
            c if is_unspaced(c) => self.unspaced(at, c),
            '’' | '\'' if in_word && next.is_some_and(char::is_alphabetic) => self.apostrophe(at, c),
            '@' | '$' | '!' if self.options.letter_marks && next_joins && (c != '!' || !in_word) => {
                self.letter(at, c);
            }
            ':' | '-' | '/' | '.'
                if self.options.numbers
                    && self.word.ends_with(|c: char| c.is_ascii_digit())
                    && next.is_some_and(|next| next.is_ascii_digit()) =>
            {
                self.letter(at, c);
            }
            c if in_word && next_joins && self.options.inner.contains(c) => self.letter(at, c),
            c if is_letter(c) => self.letter(at, c),
            c => self.break_word(at, c, next),
        }
    }

    /// A run of characters of a script without spaces is one word.
    fn unspaced(&mut self, at: usize, c: char) {
        if !self.word.ends_with(is_unspaced) {
            self.end_word();
        }
        self.letter(at, c);
    }

    fn letter(&mut self, at: usize, c: char) {
        if self.word.ends_with(is_unspaced) && !is_unspaced(c) {
            self.end_word();
        }
        if self.word.is_empty() {
            (self.word_bytes.start, self.capital) = (at, c.is_uppercase());
        }
        self.word_bytes.end = at + c.len_utf8();
        if self.word.len() < MAX_WORD_BYTES {
            let word = &mut self.word;
            fold_char(c, &mut |plain| word.push(plain));
        }
    }

    /// Looks once at each run of characters that an address could be made of.
    fn find_address(&mut self, at: usize) {
        if !self.options.addresses || at < self.no_address_end || at < self.address_end {
            return;
        }
        let rest = self.text.get(at..).unwrap_or_default();
        let limit = rest.floor_char_boundary(MAX_ADDRESS_BYTES);
        let part = rest.get(..limit).unwrap_or(rest);
        let ends = |c: char| c.is_whitespace() || "()<>[]{}\"'`|,“”„«»".contains(c) || is_unspaced(c);
        let part = part.split(ends).next().unwrap_or_default();
        let part = part.trim_end_matches(|c: char| !c.is_alphanumeric() && c != '/');
        if is_address(part) {
            self.address_end = at + part.len();
        } else {
            self.no_address_end = at + part.len();
        }
    }

    /// A cross before a list entry says what not to do.
    fn cross(&mut self, at: usize, c: char) {
        self.end_word();
        self.word.push_str("never");
        self.word_bytes = at..at + c.len_utf8();
        self.end_word();
    }

    /// `don't` is one word, `n'oublie` is two.
    fn apostrophe(&mut self, at: usize, c: char) {
        const ELIDED: [&str; 15] =
            ["n", "l", "d", "qu", "j", "s", "c", "m", "t", "dell", "dall", "nell", "all", "un", "jusqu"];
        if ELIDED.contains(&self.word.as_str()) {
            self.end_word();
        } else if self.options.apostrophes {
            self.letter(at, c);
        }
    }

    fn break_word(&mut self, at: usize, c: char, next: Option<char>) {
        let is_end = next.is_none_or(|next| !next.is_alphanumeric());
        let gap = match c {
            '.' if is_end && !self.is_abbreviation(at) => Gap::Sentence,
            '!' | '?' | '…' | '؟' if is_end => Gap::Sentence,
            '。' | '！' | '？' => Gap::Sentence,
            ';' | '；' | '؛' | '—' | '–' | '(' | ')' | '[' | ']' | '{' | '}' | '|' => Gap::Clause,
            '-' if self.blanks > 0 && self.word.is_empty() && next == Some(' ') => Gap::Clause,
            ':' | '：' => Gap::Colon,
            ',' | '،' | '、' | '，' => Gap::Soft,
            _ => Gap::Space,
        };
        self.end_word();
        if gap == Gap::Sentence && self.ending.is_none() {
            self.ending = Some((c, at + c.len_utf8()));
        }
        self.gap = self.gap.max(gap);
        if c.is_whitespace() {
            self.blanks += 1;
        } else if self.blanks == 0 {
            self.marks_end = at + c.len_utf8();
        }
        self.quotation(c, next);
    }

    /// Whether a full stop belongs to the word before it: `Dr. Weiss`, `e.g. this`, `3. Dezember`, `der 2. Entwurf`.
    fn is_abbreviation(&self, at: usize) -> bool {
        const SHORT: [&str; 15] = [
            "dr", "mr", "mrs", "ms", "prof", "st", "hr", "fr", "sr", "sra", "mme", "vs", "approx", "eg", "ie",
        ];
        const BEFORE_ORDINAL: [&str; 13] =
            ["am", "beim", "das", "dem", "den", "der", "des", "die", "im", "ins", "jeden", "vom", "zum"];
        let after = self.text.get(at + 1..).unwrap_or_default();
        let after = after.get(..after.floor_char_boundary(64)).unwrap_or_default().trim_start();
        let goes_on = after.starts_with(char::is_lowercase);
        let next = after.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        let before = self.tokens.last().filter(|_| self.gap == Gap::Space).map_or("", |token| &token.word);
        if !self.word.is_empty() && self.word.len() <= 2 && self.word.bytes().all(|b| b.is_ascii_digit()) {
            return goes_on || calendar::is_name(next) || BEFORE_ORDINAL.contains(&before);
        }
        if self.word == "m" && matches!(before, "a" | "p") {
            let is_acronym = next.chars().filter(|c| c.is_uppercase()).count() > 1;
            return !next.starts_with(char::is_uppercase) || is_acronym || calendar::is_name(next);
        }
        let is_initial = self.word.chars().nth(1).is_none() && !self.word.is_empty();
        is_initial || SHORT.contains(&self.word.as_str()) || self.word == "etc" && goes_on
    }

    fn quotation(&mut self, c: char, next: Option<char>) {
        let inside_word = matches!(c, '\'' | '’') && next.is_some_and(char::is_alphanumeric);
        match self.quote {
            Some((open, first)) if closes(open, c) && !inside_word => {
                let quoted = self.tokens.iter_mut().skip(first);
                quoted
                    .filter(|token| token.quote == Quote::None)
                    .for_each(|token| token.quote = Quote::Marks);
                self.quote = None;
            }
            None if matches!(c, '"' | '“' | '„' | '«' | '‘' | '`' | '「' | '\'') => {
                self.quote = Some((c, self.tokens.len()));
            }
            _ => {}
        }
    }

    fn end_word(&mut self) {
        if self.word.is_empty() {
            return;
        }
        if self.gap == Gap::Sentence || self.sentences.is_empty() {
            self.end_sentence();
            let before = self.sentences.last().map_or(0, |sentence| sentence.bytes.end);
            let start = self.run_start.max(before).min(self.word_bytes.start);
            self.sentences.push(Sentence {
                tokens: self.tokens.len()..self.tokens.len(),
                bytes: start..self.word_bytes.end,
                lead: self.lead,
                heading: self.heading,
                listed: self.line.listed,
                ..Sentence::default()
            });
        }
        let quote = match () {
            () if self.fenced => Quote::Code,
            () if self.line.block_quote => Quote::Block,
            () => Quote::None,
        };
        let word = std::mem::take(&mut self.word);
        let is_first =
            self.sentences.last().is_some_and(|sentence| sentence.tokens.start == self.tokens.len());
        if self.options.marks && self.gap > Gap::Space && !is_first {
            self.push(if self.gap == Gap::Soft { "," } else { ";" }, false, quote);
        }
        if self.options.contractions {
            // `Frank's on holiday`, not `Frank's mails`.
            let is_verb = matches!(word.as_str(), "on" | "away" | "off" | "out" | "sick");
            if is_verb && self.tokens.last().is_some_and(|before| has_short_verb(before.text)) {
                self.push("is", false, quote);
            }
            let (first, second) = expand(&word);
            self.push(first, self.capital, quote);
            if !second.is_empty() {
                self.push(second, false, quote);
            }
        } else {
            self.push(&word, self.capital, quote);
        }
    }

    fn push(&mut self, word: &str, capital: bool, quote: Quote) {
        self.tokens.push(Token {
            text: self.text.get(self.word_bytes.clone()).unwrap_or_default(),
            word: word.to_owned(),
            start: self.word_bytes.start,
            gap: self.gap,
            quote,
            sentence: self.sentences.len() - 1,
            capital,
            tight: self.blanks == 0 && self.gap == Gap::Space,
            wide: self.blanks > 1 || self.gap > Gap::Soft,
            classes: Classes::NONE,
        });
        (self.gap, self.blanks, self.ending, self.marks_end) = (Gap::Space, 0, None, 0);
    }

    /// Closes the last sentence, which ends with the last word or with the mark after it.
    fn end_sentence(&mut self) {
        let count = self.tokens.len();
        let last_end = self.tokens.last().map_or(0, Token::end);
        let ending = self.ending.take();
        if let Some(sentence) = self.sentences.last_mut() {
            sentence.tokens.end = count;
            sentence.bytes.end = ending.map_or(self.marks_end, |(_, end)| end).max(last_end);
            sentence.ending = ending.map(|(mark, _)| mark);
        }
    }

    fn start_line(&mut self, at: usize) {
        let rest = self.text.get(at..).unwrap_or_default();
        self.line.started = true;
        let number = list_number(rest);
        self.line.number_end = at + number;
        let bullet = ["- ", "* ", "+ ", "• ", "|", "– "].iter().any(|mark| rest.starts_with(mark));
        self.line.listed = bullet || number > 0;
        self.line.block_quote = rest.starts_with('>');
        self.line.heading = rest.starts_with('#') && rest.trim_start_matches('#').starts_with(' ');
        if rest.starts_with("```") || rest.starts_with("~~~") {
            self.fenced = !self.fenced;
        }
        let head = rest.get(..rest.floor_char_boundary(MAX_WORD_BYTES)).unwrap_or_default();
        let is_labelled = head.split_whitespace().next().is_some_and(|first| first.ends_with(':'));
        let breaks = self.line.listed
            || self.line.heading
            || is_labelled
            || self.options.lines
            || self.line.block_quote != self.was_block_quote;
        if breaks || self.after_blank_line {
            self.gap = Gap::Sentence;
        }
        if self.after_blank_line && !self.line.listed && !self.line.block_quote && !self.fenced {
            self.lead = None;
        }
    }

    fn end_line(&mut self) {
        self.end_word();
        let current = self.sentences.len().checked_sub(1);
        if self.line.heading {
            (self.heading, self.lead) = (current, None);
            self.gap = Gap::Sentence;
        } else if matches!(self.line.last, Some(':' | '：')) {
            self.lead = current;
        }
        if self.line.started {
            self.gap = self.gap.max(Gap::Soft);
            self.after_blank_line = false;
        } else {
            self.after_blank_line = true;
            self.quote = None;
        }
        self.blanks += 2;
        self.was_block_quote = self.line.block_quote;
        self.line = Line::default();
    }
}

fn has_short_verb(word: &str) -> bool {
    word.ends_with("'s") || word.ends_with("’s")
}

/// The words of a contraction; the second is empty for a word that is none, and where it says nothing.
fn expand(word: &str) -> (&str, &str) {
    match word.strip_suffix("n't") {
        Some("ca") => return ("can", "not"),
        Some("wo") => return ("will", "not"),
        Some(verb) => return (verb, "not"),
        None => {}
    }
    match (word, word.split_once('\'')) {
        ("cannot", _) => ("can", "not"),
        ("dont", _) => ("do", "not"),
        (_, Some((head, "s" | "ve" | "ll" | "m"))) => (head, ""),
        (_, Some((head, "re"))) => (head, "is"),
        _ => (word, ""),
    }
}

fn is_letter(c: char) -> bool {
    // Marks of a letter: they belong to it, whatever stands around them.
    c.is_alphanumeric()
        || !c.is_ascii() && unicode_normalization::char::is_combining_mark(c)
        || crate::look_alike::plain_letter(c).is_some_and(char::is_alphanumeric)
}

/// The length of `3. ` or `3) ` at the start of a line.
fn list_number(rest: &str) -> usize {
    let digits = rest.bytes().take(4).take_while(u8::is_ascii_digit).count();
    let after = rest.get(digits..).unwrap_or_default();
    let is_number = (1..4).contains(&digits) && (after.starts_with(". ") || after.starts_with(") "));
    // `3. Dezember` at the start of a line is a date.
    let next = after.get(2..after.floor_char_boundary(32).max(2)).unwrap_or_default();
    let is_date = next.split(|c: char| !c.is_alphanumeric()).next().is_some_and(calendar::is_name);
    if is_number && !is_date { digits + 1 } else { 0 }
}

/// Whether a word is a mail or web address.
#[must_use]
pub fn is_address(word: &str) -> bool {
    let is_mail = word.split_once('@').is_some_and(|(name, host)| {
        let top = host.rsplit_once('.').map(|(_, top)| top);
        name.contains(char::is_alphanumeric) && top.is_some_and(|top| top.len() > 1 && !top.contains('@'))
    });
    is_mail || word.contains("://") || word.starts_with("www.")
}

fn closes(open: char, close: char) -> bool {
    match open {
        '“' => close == '”',
        '„' => matches!(close, '“' | '”'),
        '«' => close == '»',
        '‘' => close == '’',
        '「' => close == '」',
        same => close == same,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str, options: Options) -> Vec<Vec<String>> {
        let doc = tokenize(text, options);
        let of = |sentence: &Sentence| {
            doc.tokens[sentence.tokens.clone()].iter().map(|t| t.word.clone()).collect()
        };
        doc.sentences.iter().map(of).collect()
    }

    fn count(text: &str) -> usize {
        tokenize(text, Options::default()).sentences.len()
    }

    #[test]
    fn sentences_end_with_marks_empty_lines_and_list_entries() {
        for (text, expected) in [
            ("One. Two! Three? four", 4),
            ("Paths, e.g. ~/.ssh/id_rsa, are\nread.", 1),
            ("a\n\nb\n- c\n  * d\n  2. e", 5),
            ("Args:\n    path: where it is\n    mode: how it is\n        read", 3),
            (" . . ", 0),
            ("I'll call Dr. Weiss. Bis 3. Dezember!", 2),
            ("Tomorrow at 9. And call.", 2),
            ("1. Call Bob", 1),
            ("der 2. entwurf", 1),
            ("am 3. März", 1),
            ("你好。再见", 2),
        ] {
            assert_eq!(count(text), expected, "{text:?}");
        }
        let doc = tokenize("Ok?  Yes, do. “No”\n- (ok", Options::default());
        let texts: Vec<&str> = doc.sentences.iter().map(|s| doc.sentence_text(s)).collect();
        assert_eq!(texts, ["Ok?", "Yes, do.", "“No”", "(ok"]);
        assert_eq!(doc.sentences[0].ending, Some('?'));
    }

    #[test]
    fn words_are_split_as_the_options_say() {
        let text = "Don’t call send_mail at 9:30, n'oublie pas bob@x.example!";
        assert_eq!(
            words(text, Options::default()),
            [["dont", "call", "send", "mail", "at", "9", "30", "n", "oublie", "pas", "bob", "x", "example"]]
        );
        let whole =
            Options { inner: "_", apostrophes: true, numbers: true, addresses: true, ..Options::default() };
        assert_eq!(
            words(text, whole),
            [["don't", "call", "send_mail", "at", "9:30", "n", "oublie", "pas", "bob@x.example"]]
        );
        assert_eq!(
            words("$ave 1gnore", Options { letter_marks: true, ..Options::default() }),
            [["$ave", "1gnore"]]
        );
        let lines = Options { lines: true, ..Options::default() };
        assert_eq!(words("one\ntwo", lines).len(), 2);
        let expanded = Options { contractions: true, marks: true, ..whole };
        assert_eq!(
            words("Don't: Frank’s on it, Bob's mail", expanded),
            [["do", "not", ";", "frank", "is", "on", "it", ",", "bob", "mail"]]
        );
        assert_eq!(words("[x](https://a.example/b?c=d_e).", whole), [["x", "https://a.example/b?c=d_e"]]);
    }

    #[test]
    fn quotations_leads_and_headings_are_known() {
        let doc = tokenize(
            "## Never\n\nDo not:\n\n- say \"give up\"\n> other words\n\n```\ncode\n```\n5\" is",
            Options::default(),
        );
        let quoted: Vec<(&str, Quote)> =
            doc.tokens.iter().filter(|t| t.quote != Quote::None).map(|t| (t.text, t.quote)).collect();
        let expected = [
            ("give", Quote::Marks),
            ("up", Quote::Marks),
            ("other", Quote::Block),
            ("words", Quote::Block),
            ("code", Quote::Code),
        ];
        assert_eq!(quoted, expected);
        let said = doc.sentence(3).unwrap();
        assert_eq!((said.lead, said.heading, said.listed), (Some(1), Some(0), true));
    }

    #[test]
    fn words_know_their_bytes() {
        let text = "Grüße, ｗｅｌｔ  x\u{200b}y";
        for token in &tokenize(text, Options::default()).tokens {
            assert_eq!(&text[token.start..token.end()], token.text);
        }
        let doc = tokenize(text, Options::default());
        assert_eq!(doc.word(1), "welt");
        assert_eq!((doc.word(2), doc.tokens[2].wide), ("xy", true));
    }
}
