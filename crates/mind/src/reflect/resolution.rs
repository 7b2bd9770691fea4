//! Recognises that something is settled: done, or no longer wanted. Refuses to guess: it names at most one commitment,
//! and none if two could be meant.

use std::collections::BTreeSet;

use embody_text::tokenize::Token;

use super::sentences::{
    Sentence, base_of_past, has, is_after_break, lower, normalize_word, phrase, reads_at, stem,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResolutionKind {
    Done,
    Dropped,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resolution {
    pub(crate) kind: ResolutionKind,
    /// What it is about; empty if it was not said.
    about: BTreeSet<String>,
    /// The deed, which must be the one that was promised.
    action: Option<String>,
}

/// What the sentence may settle, in the order in which it says so.
pub(crate) fn find(sentence: &Sentence<'_>) -> Vec<Resolution> {
    if sentence.is_question {
        return Vec::new();
    }
    let small =
        sentence.words.iter().take_while(|word| has("SMALL_TALK", &word.word) && !is_opening(word)).count();
    let words = sentence.words.get(small..).unwrap_or_default();
    if let Some(dropped) = dropped(words) {
        return vec![dropped];
    }
    if words.iter().any(|word| has("UNSETTLED", &word.word)) {
        return Vec::new();
    }
    bare(words).into_iter().chain(by_me(words)).chain(passive(words)).chain(with(words)).collect()
}

/// The one matter that is meant, by its place in the list; nothing if none or several could be.
pub(crate) fn match_open(closing: &Resolution, open: &[BTreeSet<String>]) -> Option<usize> {
    let mut fitting = open.iter().enumerate().filter(|(_, topic)| closing.fits(topic));
    let (place, _) = fitting.next()?;
    fitting.next().is_none().then_some(place)
}

impl Resolution {
    fn new(kind: ResolutionKind, about: BTreeSet<String>, action: Option<String>) -> Self {
        Self { kind, about, action }
    }

    fn fits(&self, topic: &BTreeSet<String>) -> bool {
        if self.action.as_ref().is_some_and(|action| !topic.contains(action)) {
            return false;
        }
        // `I sent Bob the final report` settles `send the report`; `I sent Bob a card` does not.
        let told: BTreeSet<String> = self.about.iter().cloned().chain(self.action.clone()).collect();
        self.about.is_subset(topic)
            || (topic.is_subset(&told) && topic.len() > usize::from(self.action.is_some()))
    }
}

/// `Just` may open the sentence that settles something.
fn is_opening(word: &Token<'_>) -> bool {
    matches!(word.word.as_str(), "just" | "good")
}

fn about(words: &[Token<'_>]) -> BTreeSet<String> {
    words.iter().filter_map(|word| normalize_word(&word.word)).collect()
}

/// The words until the next comma or the like.
fn until_break<'w, 't>(words: &'w [Token<'t>]) -> &'w [Token<'t>] {
    let end = words.iter().skip(1).position(is_after_break).map_or(words.len(), |place| place + 1);
    words.get(..end).unwrap_or(words)
}

/// `forget about the invoice`, `never mind the flights`, `you don't need to remind me to call`.
fn dropped(words: &[Token<'_>]) -> Option<Resolution> {
    let rest = words.get(phrase("drops", words, 0)?..)?;
    // `Forget it, I'll send it anyway` takes something upon itself.
    if rest.iter().any(|word| has("UNSETTLED", &word.word)) {
        return None;
    }
    let about = about(until_break(rest));
    (!about.is_empty()).then(|| Resolution::new(ResolutionKind::Dropped, about, None))
}

/// `done`, and nothing else.
fn bare(words: &[Token<'_>]) -> Option<Resolution> {
    let is_bare = phrase("done", words, 0) == Some(words.len());
    is_bare.then(|| Resolution::new(ResolutionKind::Done, BTreeSet::new(), None))
}

/// `I sent the report`, `I've already booked it`, `ich habe die Rechnung bezahlt`.
fn by_me(words: &[Token<'_>]) -> Vec<Resolution> {
    let is_start = |at: &usize| *at == 0 || words.get(*at).is_some_and(is_after_break);
    let mine = (0..words.len()).filter(is_start).filter_map(|start| {
        let mut verb = start;
        match lower(words, start) {
            "i" | "i've" | "we" | "we've" => verb += 1,
            "just" | "already" | "finally" => {}
            "ich" if lower(words, start + 1) == "habe" => {
                let about = about(words.get(start + 2..)?);
                return (!about.is_empty()).then(|| Resolution::new(ResolutionKind::Done, about, None));
            }
            _ => return None,
        }
        while matches!(lower(words, verb), "have" | "just" | "already" | "finally" | "now" | "also") {
            verb += 1;
        }
        let action = base_of_past(lower(words, verb))?;
        let about = about(until_break(words.get(verb + 1..).unwrap_or_default()));
        // To finish something is to have done it, whatever it was.
        let is_finish = ["finish", "complete", "do"].iter().any(|finish| action == stem(finish));
        let says_what = !is_finish || !about.is_empty();
        says_what.then(|| Resolution::new(ResolutionKind::Done, about, (!is_finish).then_some(action)))
    });
    mine.collect()
}

/// `The rent is paid`, `the flights have been booked`.
fn passive(words: &[Token<'_>]) -> Option<Resolution> {
    let is =
        words.iter().position(|word| matches!(word.word.as_str(), "is" | "are" | "been" | "was" | "were"))?;
    let verb = is + 1 + usize::from(matches!(lower(words, is + 1), "now" | "already" | "finally"));
    let action = base_of_past(lower(words, verb))?;
    let subject = words.get(..is)?;
    // `Call me when you are done` is an order, and nobody's report.
    let is_clause = |word: &Token<'_>| {
        matches!(
            word.word.as_str(),
            "when" | "once" | "until" | "that" | "because" | "you" | "who" | "what" | "how" | "before"
        )
    };
    if subject.iter().any(is_clause) || has("DEEDS", lower(words, 0)) {
        return None;
    }
    let about = about(subject);
    let is_finish = action == stem("do") || action == stem("finish");
    (!about.is_empty()).then(|| Resolution::new(ResolutionKind::Done, about, (!is_finish).then_some(action)))
}

/// `done with the report`.
fn with(words: &[Token<'_>]) -> Option<Resolution> {
    let starts = |at: &usize| reads_at(words, *at, "done with") || reads_at(words, *at, "finished with");
    let at = (0..words.len().min(4)).find(starts)?;
    let about = about(words.get(at + 2..)?);
    (!about.is_empty()).then(|| Resolution::new(ResolutionKind::Done, about, None))
}
