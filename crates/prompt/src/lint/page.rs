//! A text as the rules see it: words with meanings, in sentences, each sentence with the line that leads into it.
//! Owns questions about neighbourhood; refuses to look past a sentence unless asked for its neighbours.

use super::kinds::Kinds;
use super::reader;

/// What stands between a word and the one before it, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gap {
    Space,
    /// A comma or a wrapped line.
    Soft,
    Colon,
    /// A semicolon, dash or bracket.
    Clause,
    Sentence,
}

/// One word.
#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) word: String,
    pub(super) kinds: Kinds,
    /// Byte in the text where the word starts.
    pub(super) at: usize,
    pub(super) gap: Gap,
    /// More than one blank before it, as between spelled-out words.
    pub(super) wide: bool,
    /// Inside quotation marks, code or a block quote.
    pub(super) quoted: bool,
    pub(super) sentence: usize,
}

/// One sentence, list item or heading.
#[derive(Debug, Clone, Default)]
pub(super) struct Sentence {
    /// Everything its words mean, taken together; filled by [`Page::read`].
    pub(super) kinds: Kinds,
    /// The sentence that announces this one, such as "Never do this:".
    pub(super) lead: Option<usize>,
    /// The heading it stands under.
    pub(super) heading: Option<usize>,
    pub(super) first: usize,
    pub(super) end: usize,
}

/// A text, read.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) tokens: Vec<Token>,
    pub(super) sentences: Vec<Sentence>,
}

impl Page {
    pub(super) fn read(text: &str) -> Self {
        let mut page = reader::read(text);
        for sentence in &mut page.sentences {
            (sentence.first, sentence.end) = (usize::MAX, 0);
        }
        for (i, token) in page.tokens.iter().enumerate() {
            let Some(sentence) = page.sentences.get_mut(token.sentence) else { continue };
            sentence.kinds = sentence.kinds | token.kinds;
            sentence.first = sentence.first.min(i);
            sentence.end = i + 1;
        }
        page
    }

    pub(super) fn word(&self, i: usize) -> &str {
        self.tokens.get(i).map_or("", |token| token.word.as_str())
    }

    pub(super) fn is(&self, i: usize, any_of: Kinds) -> bool {
        self.kinds(i).has(any_of)
    }

    pub(super) fn kinds(&self, i: usize) -> Kinds {
        self.tokens.get(i).map_or(Kinds::none(), |token| token.kinds)
    }

    /// What stands before word `i`; the end of the text counts as the end of a sentence.
    pub(super) fn gap(&self, i: usize) -> Gap {
        self.tokens.get(i).map_or(Gap::Sentence, |token| token.gap)
    }

    /// Whether word `i` is one of `words`, which are separated by single blanks.
    pub(super) fn one_of(&self, i: usize, words: &str) -> bool {
        let word = self.word(i);
        !word.is_empty() && words.split(' ').any(|one| one == word)
    }

    pub(super) fn sentence(&self, i: usize) -> Option<&Sentence> {
        self.sentences.get(self.tokens.get(i)?.sentence)
    }

    /// The words after `i` in its sentence, at most `reach` of them.
    pub(super) fn ahead(&self, i: usize, reach: usize) -> impl Iterator<Item = usize> + use<> {
        let end = self.sentence(i).map_or(0, |sentence| sentence.end);
        i + 1..end.min(i + 1 + reach)
    }

    /// The words before `i` in its sentence, nearest first, at most `reach` of them.
    pub(super) fn back(&self, i: usize, reach: usize) -> impl Iterator<Item = usize> + use<> {
        let first = self.sentence(i).map_or(i, |sentence| sentence.first);
        (first.max(i.saturating_sub(reach))..i).rev()
    }

    /// Whether the clause ends right before word `i`.
    pub(super) fn ends_before(&self, i: usize) -> bool {
        self.gap(i) >= Gap::Soft
    }

    pub(super) fn any_back(&self, i: usize, reach: usize, kinds: Kinds) -> bool {
        self.back(i, reach).any(|j| self.is(j, kinds))
    }

    pub(super) fn any_ahead(&self, i: usize, reach: usize, kinds: Kinds) -> bool {
        self.ahead(i, reach).any(|j| self.is(j, kinds))
    }

    /// Everything the sentence of word `i` means.
    pub(super) fn around(&self, i: usize) -> Kinds {
        self.sentence(i).map_or(Kinds::none(), |sentence| sentence.kinds)
    }
}
