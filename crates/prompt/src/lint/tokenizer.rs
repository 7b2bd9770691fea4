//! Text to words, sentences, quotes and lead-ins, in one pass over its characters.
//! Owns punctuation and line structure; refuses to judge meaning beyond looking each word up.

use super::document::{Document, Gap, Sentence, Token};
use super::fold::{self, Folded};
use super::lexicon::Kinds;
use super::spelling;

const MAX_WORD_CHARS: usize = 64;

/// Reads `text` into a page; sentence summaries are left to the page.
pub(super) fn tokenize(text: &str) -> Document {
    let mut reader = Tokenizer::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|&(_, next)| next);
        reader.take(text, at, c, next);
    }
    reader.end_word();
    spelling::restore(&mut reader.tokens);
    Document { tokens: reader.tokens, sentences: reader.sentences }
}

struct Tokenizer {
    tokens: Vec<Token>,
    sentences: Vec<Sentence>,
    word: String,
    word_at: usize,
    capital: bool,
    gap: Gap,
    blanks: usize,
    dashes: usize,
    /// The mark that opened a quotation and the first word after it.
    quote: Option<(char, usize)>,
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
    last: Option<char>,
}

impl Tokenizer {
    fn new() -> Self {
        Self {
            tokens: Vec::new(),
            sentences: vec![Sentence::default()],
            word: String::new(),
            word_at: 0,
            capital: false,
            gap: Gap::Sentence,
            blanks: 0,
            dashes: 0,
            quote: None,
            line: Line::default(),
            fenced: false,
            was_block_quote: false,
            after_blank_line: true,
            lead: None,
            heading: None,
        }
    }

    fn take(&mut self, text: &str, at: usize, c: char, next: Option<char>) {
        if !self.line.started && !c.is_whitespace() && !fold::is_invisible(c) {
            self.start_line(text.get(at..).unwrap_or_default());
        }
        if c == '\n' {
            return self.end_line();
        }
        if !c.is_whitespace() {
            self.line.last = Some(c);
        }
        match fold::fold(c) {
            Folded::Nothing => {}
            Folded::Two(first, second) => {
                self.letter(at, first, c.is_uppercase());
                self.letter(at, second, false);
            }
            Folded::One('❌' | '🚫' | '⛔' | '✗' | '✘' | '✖') => self.cross(at),
            Folded::One(plain) if fold::is_unspaced(plain) => self.break_word(plain, next),
            Folded::One(plain) if plain.is_alphanumeric() => self.letter(at, plain, c.is_uppercase()),
            Folded::One('’' | '\'') if !self.word.is_empty() && next.is_some_and(char::is_alphabetic) => {
                self.apostrophe();
            }
            Folded::One(plain @ ('@' | '$' | '!'))
                if next.is_some_and(char::is_alphanumeric) && (plain != '!' || self.word.is_empty()) =>
            {
                self.letter(at, plain, false);
            }
            Folded::One(plain) => self.break_word(plain, next),
        }
    }

    fn letter(&mut self, at: usize, plain: char, capital: bool) {
        if self.word.is_empty() {
            (self.word_at, self.capital) = (at, capital);
        }
        if self.word.len() < MAX_WORD_CHARS * 4 {
            self.word.push(plain);
        }
    }

    /// A cross before a list item says what not to do.
    fn cross(&mut self, at: usize) {
        self.end_word();
        "never".chars().for_each(|c| self.letter(at, c, false));
        self.end_word();
    }

    /// `don't` is one word, `n'oublie` is two.
    fn apostrophe(&mut self) {
        if matches!(self.word.as_str(), "n" | "l" | "d" | "qu" | "j" | "s" | "c" | "dell" | "all" | "un") {
            self.end_word();
        }
    }

    fn break_word(&mut self, plain: char, next: Option<char>) {
        // "e.g." and spelled-out letters do not end a sentence.
        let initial = self.word.chars().nth(1).is_none() && !self.word.is_empty();
        self.end_word();
        if plain == '?'
            && let Some(sentence) = self.sentences.last_mut()
        {
            sentence.question = true;
        }
        let ends = next.is_none_or(|next| !next.is_alphanumeric());
        let gap = match plain {
            '.' if initial => Gap::Space,
            '.' | '!' | '?' | '…' | '؟' if ends => Gap::Sentence,
            '。' | '！' | '？' => Gap::Sentence,
            ';' | '؛' | '—' | '–' | '(' | ')' | '[' | ']' | '{' | '}' | '|' => Gap::Clause,
            '-' if self.blanks > 0 && next == Some(' ') => Gap::Clause,
            ':' => Gap::Colon,
            ',' | '،' | '、' | '，' => Gap::Soft,
            _ => Gap::Space,
        };
        self.gap = self.gap.max(gap);
        if plain.is_whitespace() {
            self.blanks += 1;
        }
        self.dashes = if plain == '-' { self.dashes + 1 } else { 0 };
        self.quotation(plain, next);
    }

    fn quotation(&mut self, plain: char, next: Option<char>) {
        let inside_word = plain == '\'' && next.is_some_and(char::is_alphanumeric);
        match self.quote {
            Some((open, first)) if closes(open, plain) && !inside_word => {
                self.tokens.iter_mut().skip(first).for_each(|token| token.quoted = true);
                self.quote = None;
            }
            None if matches!(plain, '"' | '“' | '„' | '«' | '‘' | '`' | '「' | '\'') => {
                self.quote = Some((plain, self.tokens.len()));
            }
            _ => {}
        }
    }

    fn end_word(&mut self) {
        if self.word.is_empty() {
            return;
        }
        if self.gap == Gap::Sentence && !self.tokens.is_empty() {
            self.sentences.push(Sentence::default());
        }
        let sentence = self.sentences.len() - 1;
        if self.gap == Gap::Sentence
            && let Some(started) = self.sentences.last_mut()
        {
            (started.lead, started.heading) = (self.lead, self.heading);
        }
        let word = std::mem::take(&mut self.word);
        let (word, mut kinds) = spelling::normalize_spelling(word);
        // `--system-prompt` in code is the name of an option, whatever its words mean.
        if self.dashes == 2 && (self.fenced || matches!(self.quote, Some(('`', _)))) {
            kinds = kinds | Kinds::OPTION;
        }
        self.tokens.push(Token {
            word,
            kinds,
            at: self.word_at,
            gap: self.gap,
            wide: self.blanks > 1 || self.gap > Gap::Soft,
            quoted: self.fenced || self.line.block_quote,
            capital: self.capital,
            tight: self.blanks == 0 && self.gap == Gap::Space,
            sentence,
        });
        (self.gap, self.blanks, self.dashes) = (Gap::Space, 0, 0);
    }

    fn start_line(&mut self, rest: &str) {
        self.line.started = true;
        let listed = starts_item(rest);
        self.line.block_quote = rest.starts_with('>');
        self.line.heading = rest.starts_with('#') && rest.trim_start_matches('#').starts_with(' ');
        if rest.starts_with("```") || rest.starts_with("~~~") {
            self.fenced = !self.fenced;
        }
        let breaks = listed || self.line.heading || self.line.block_quote != self.was_block_quote;
        if breaks || self.after_blank_line {
            self.gap = Gap::Sentence;
        }
        if self.after_blank_line && !listed && !self.line.block_quote && !self.fenced {
            self.lead = None;
        }
    }

    fn end_line(&mut self) {
        self.end_word();
        let current = self.sentences.len() - 1;
        if self.line.heading {
            (self.heading, self.lead) = (Some(current), None);
            self.gap = Gap::Sentence;
        } else if self.line.last == Some(':') || self.line.last == Some('：') {
            self.lead = Some(current);
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

/// Whether a line starts a list item or a table row.
fn starts_item(rest: &str) -> bool {
    let bullet = ["- ", "* ", "+ ", "• ", "|", "– "].iter().any(|mark| rest.starts_with(mark));
    let after_number = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    bullet
        || after_number.len() < rest.len()
            && (after_number.starts_with(". ") || after_number.starts_with(") "))
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
