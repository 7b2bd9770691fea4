//! A text as the rules see it: words with meanings, in sentences, each sentence with the line that leads into it.
//! Owns questions about neighbourhood; refuses to look past a sentence unless asked for its neighbours.

use super::lexicon::Kinds;
use super::tokenizer;

/// What stands between a word and the one before it, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gap {
    Space,
    Soft,
    Colon,
    Clause,
    Sentence,
}

#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) word: String,
    pub(super) kinds: Kinds,
    pub(super) at: usize,
    pub(super) gap: Gap,
    /// More than one blank before it, as between spelled-out words.
    pub(super) wide: bool,
    pub(super) quoted: bool,
    /// Joined to the word before it without a blank, as in `approve_all`.
    pub(super) tight: bool,
    pub(super) capital: bool,
    pub(super) sentence: usize,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Sentence {
    /// Everything its words mean, taken together; filled by [`Document::read`].
    pub(super) kinds: Kinds,
    /// The sentence that announces this one, such as "Never do this:".
    pub(super) lead: Option<usize>,
    pub(super) heading: Option<usize>,
    /// Turns something down, and is not itself told not to.
    pub(super) refuses: bool,
    pub(super) question: bool,
    pub(super) first: usize,
    pub(super) end: usize,
}

#[derive(Debug, Default)]
pub(super) struct Document {
    pub(super) tokens: Vec<Token>,
    pub(super) sentences: Vec<Sentence>,
}

impl Document {
    pub(super) fn read(text: &str) -> Self {
        let mut doc = tokenizer::tokenize(text);
        doc.mark_topics();
        for sentence in &mut doc.sentences {
            (sentence.first, sentence.end) = (usize::MAX, 0);
        }
        for (i, token) in doc.tokens.iter().enumerate() {
            let before = doc.tokens.get(i.saturating_sub(4)..i).unwrap_or_default();
            let mut same = before.iter().filter(|other| other.sentence == token.sentence);
            let refuses = token.kinds.has(Kinds::REFUSE)
                && !same.any(|other| other.kinds.has(Kinds::NEG) || other.word == "without");
            let Some(sentence) = doc.sentences.get_mut(token.sentence) else { continue };
            sentence.kinds = sentence.kinds | token.kinds;
            sentence.refuses |= refuses;
            sentence.first = sentence.first.min(i);
            sentence.end = i + 1;
        }
        doc
    }

    /// Marks the last word of each phrase that names rules of a higher layer.
    fn mark_topics(&mut self) {
        let heads: Vec<usize> = (0..self.tokens.len()).filter(|&i| self.names_topic(i)).collect();
        for i in heads {
            if let Some(token) = self.tokens.get_mut(i) {
                // "system message" means the prompt; other messages are only messages.
                token.kinds = token.kinds
                    | Kinds::TOPIC
                    | if token.word == "message" { Kinds::RULE } else { Kinds::none() };
            }
        }
    }

    fn names_topic(&self, i: usize) -> bool {
        let kinds = self.kinds(i);
        if kinds.has(Kinds::GUARD) && !self.one_of(i, "safety") {
            return true;
        }
        let part = self.one_of(i, "module modules section message measures features layers");
        if !kinds.has(Kinds::RULE | Kinds::LOOSE) && !part || kinds.has(Kinds::GERUND | Kinds::PAST) {
            return false;
        }
        let of_layer = self.one_of(i + 1, "of in from by")
            && (i + 2..i + 4).any(|j| self.one_of(j, "system body operator platform"));
        if kinds.has(Kinds::RULE) && of_layer {
            return true;
        }
        let before = i.saturating_sub(3)..i;
        let near = |j: &usize| (*j..i).all(|k| self.gap(k + 1) == Gap::Space);
        let mut named = before.into_iter().filter(near);
        named.any(|j| {
            self.one_of(j, "system body safety security")
                || is_content_policy(self, j)
                || kinds.has(Kinds::RULE) && self.is(j, Kinds::HIGHER | Kinds::YOUR)
        })
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

/// "content" as in "content policy", which is a rule about the agent, not about a page.
pub(super) fn is_content_policy(doc: &Document, i: usize) -> bool {
    doc.word(i) == "content"
        && doc.one_of(i + 1, "policy policies filter filters restriction restrictions moderation")
}
