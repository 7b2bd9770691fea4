//! Phrases of several words: those of named lists, and those that are read as other words, such as `out of office` as `away`.
//! The longest phrase counts.

use std::collections::HashMap;

use crate::tokenize::{Document, Gap, Token};

/// Phrases by their first word, each with the name that it stands below.
#[derive(Debug, Default)]
pub(crate) struct Phrases(HashMap<String, Vec<Phrase>>);

#[derive(Debug)]
pub struct Phrase {
    pub name: String,
    pub words: Vec<String>,
    /// How many of its last words, those after `|`, belong to what follows the phrase.
    pub kept: usize,
}

impl Phrases {
    /// Reads `name: phrase, phrase`.
    pub(crate) fn add(&mut self, line: &str) -> Result<(), String> {
        let (name, phrases) = line.split_once(':').ok_or("no `:`")?;
        for phrase in phrases.split(',').filter(|phrase| !phrase.trim().is_empty()) {
            let words = |part: &str| part.split_whitespace().map(str::to_owned).collect::<Vec<String>>();
            let (before, kept) = phrase.split_once('|').unwrap_or((phrase, ""));
            let kept = words(kept);
            let phrase =
                Phrase { name: name.to_owned(), kept: kept.len(), words: [words(before), kept].concat() };
            let first = phrase.words.first().ok_or("an empty phrase")?.clone();
            let known = self.0.entry(first).or_default();
            let place = known.partition_point(|other| other.words.len() >= phrase.words.len());
            known.insert(place, phrase);
        }
        Ok(())
    }

    /// The longest phrase below one of these names that the words begin with, in one sentence.
    pub(crate) fn at(&self, tokens: &[Token<'_>], is_wanted: impl Fn(&str) -> bool) -> Option<&Phrase> {
        let first = tokens.first()?;
        self.0.get(&first.word)?.iter().find(|phrase| {
            let mut pairs = phrase.words.iter().zip(tokens);
            tokens.len() >= phrase.words.len()
                && pairs.all(|(word, token)| *word == token.word && token.sentence == first.sentence)
                && is_wanted(&phrase.name)
        })
    }

    pub(crate) fn starting_with(&self, word: &str) -> &[Phrase] {
        self.0.get(word).map(Vec::as_slice).unwrap_or_default()
    }

    /// Puts the words of its name in the place of each phrase.
    pub(crate) fn replace(&self, doc: &mut Document<'_>) {
        if self.0.is_empty() {
            return;
        }
        let mut replaced = Vec::with_capacity(doc.tokens.len());
        let mut rest = doc.tokens.as_slice();
        while let Some((first, after)) = rest.split_first() {
            let Some(phrase) = self.at(rest, |_| true) else {
                replaced.push(first.clone());
                rest = after;
                continue;
            };
            replaced.extend(phrase.name.split(' ').enumerate().map(|(n, word)| Token {
                word: word.to_owned(),
                gap: if n == 0 { first.gap } else { Gap::Space },
                capital: false,
                ..first.clone()
            }));
            rest = rest.get(phrase.words.len()..).unwrap_or_default();
        }
        doc.set_tokens(replaced);
    }
}
