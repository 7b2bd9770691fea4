//! A text as the tokenizer leaves it: words in sentences. Owns questions about neighbourhood; refuses to look past a sentence.

use std::ops::Range;

use crate::lexicon::Classes;

/// What stands between a word and the one before it, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gap {
    Space,
    /// A comma, or the end of a line inside a sentence.
    Soft,
    Colon,
    /// A semicolon, a dash, a bracket.
    Clause,
    Sentence,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quote {
    None,
    Marks,
    /// A line that begins with `>`.
    Block,
    /// Between lines of three backticks.
    Code,
}

#[derive(Debug, Clone)]
pub struct Token<'t> {
    /// As written.
    pub text: &'t str,
    /// As compared: folded, and restored when it was written in disguise.
    pub word: String,
    /// Its first byte in the text.
    pub start: usize,
    pub gap: Gap,
    pub quote: Quote,
    pub sentence: usize,
    pub capital: bool,
    /// Joined to the word before it without a blank, as in `approve_all`.
    pub tight: bool,
    /// More than one blank before it, as between spelled-out words.
    pub wide: bool,
    /// Set by [`crate::lexicon::Lexicon::annotate`].
    pub classes: Classes,
}

impl Token<'_> {
    #[must_use]
    pub fn end(&self) -> usize {
        self.start + self.text.len()
    }
}

#[derive(Debug, Clone, Default)]
pub struct Sentence {
    pub tokens: Range<usize>,
    /// Its bytes, with the marks before its first word and those that end it.
    pub bytes: Range<usize>,
    pub ending: Option<char>,
    /// The sentence that announces this one: "Never do this:".
    pub lead: Option<usize>,
    pub heading: Option<usize>,
    /// An entry of a list.
    pub listed: bool,
    /// Everything that its words mean, taken together.
    pub classes: Classes,
}

#[derive(Debug)]
pub struct Document<'t> {
    pub text: &'t str,
    pub tokens: Vec<Token<'t>>,
    pub sentences: Vec<Sentence>,
}

impl<'t> Document<'t> {
    #[must_use]
    pub fn word(&self, i: usize) -> &str {
        self.tokens.get(i).map_or("", |token| token.word.as_str())
    }

    #[must_use]
    pub fn classes(&self, i: usize) -> Classes {
        self.tokens.get(i).map_or(Classes::NONE, |token| token.classes)
    }

    #[must_use]
    pub fn is(&self, i: usize, any_of: Classes) -> bool {
        self.classes(i).has(any_of)
    }

    /// What stands before word `i`; the end of the text counts as the end of a sentence.
    #[must_use]
    pub fn gap(&self, i: usize) -> Gap {
        self.tokens.get(i).map_or(Gap::Sentence, |token| token.gap)
    }

    /// Whether word `i` is one of `words`, which are separated by single blanks.
    #[must_use]
    pub fn one_of(&self, i: usize, words: &str) -> bool {
        let word = self.word(i);
        !word.is_empty() && words.split(' ').any(|one| one == word)
    }

    #[must_use]
    pub fn sentence(&self, i: usize) -> Option<&Sentence> {
        self.sentences.get(self.tokens.get(i)?.sentence)
    }

    #[must_use]
    pub fn sentence_text(&self, sentence: &Sentence) -> &str {
        self.text.get(sentence.bytes.clone()).unwrap_or_default()
    }

    /// The words after `i` in its sentence, at most `reach` of them.
    pub fn ahead(&self, i: usize, reach: usize) -> impl Iterator<Item = usize> + use<> {
        let end = self.sentence(i).map_or(0, |sentence| sentence.tokens.end);
        i + 1..end.min((i + 1).saturating_add(reach))
    }

    /// The words before `i` in its sentence, nearest first, at most `reach` of them.
    pub fn back(&self, i: usize, reach: usize) -> impl Iterator<Item = usize> + use<> {
        let first = self.sentence(i).map_or(i, |sentence| sentence.tokens.start);
        (first.max(i.saturating_sub(reach))..i).rev()
    }

    /// Exchanges the words; the sentences then have those that name them.
    pub fn set_tokens(&mut self, tokens: Vec<Token<'t>>) {
        for sentence in &mut self.sentences {
            sentence.tokens = 0..0;
        }
        for (i, token) in tokens.iter().enumerate() {
            if let Some(sentence) = self.sentences.get_mut(token.sentence) {
                let start = if sentence.tokens.is_empty() { i } else { sentence.tokens.start };
                sentence.tokens = start..i + 1;
            }
        }
        self.tokens = tokens;
    }

    /// Whether a clause ends right before word `i`.
    #[must_use]
    pub fn ends_before(&self, i: usize) -> bool {
        self.gap(i) >= Gap::Soft
    }

    #[must_use]
    pub fn any_ahead(&self, i: usize, reach: usize, classes: Classes) -> bool {
        self.ahead(i, reach).any(|j| self.is(j, classes))
    }

    #[must_use]
    pub fn any_back(&self, i: usize, reach: usize, classes: Classes) -> bool {
        self.back(i, reach).any(|j| self.is(j, classes))
    }
}
