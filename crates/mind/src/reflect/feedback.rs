//! Recognises how the owner wants to be served: in bullet points, without emojis, under another name.
//!
//! The owner's own sentence becomes the line of a proposal; only a complaint (`too long`) is turned into the wish it is.
//! What is asked for one occasion only (`answer this mail in German`) is no standing wish.

use embody_text::tokenize::Token;

use super::sentences::{Sentence, has, lower, phrase, reads_at};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FeedbackContext {
    /// It is: any order is one for the future.
    Feedback,
    /// It is said in passing: only what is plainly meant to last counts.
    Conversation,
}

const LONGEST: usize = 300;

/// The line that would go into the standing instructions.
pub(crate) fn find(sentence: &Sentence<'_>, setting: FeedbackContext) -> Option<String> {
    let words = &sentence.words;
    if sentence.text.chars().count() > LONGEST {
        return None;
    }
    if setting == FeedbackContext::Feedback
        && let Some(line) = complaint(words)
    {
        return Some(line.to_owned());
    }
    let begin = courtesy(words);
    if sentence.is_question && begin == 0 {
        return None;
    }
    let wish = words.get(begin..)?;
    let is_wish = is_name(wish)
        || is_short(wish)
        || prefers(words)
        || is_lasting(wish)
        || is_manner(wish)
        || (setting == FeedbackContext::Feedback && is_order(wish));
    is_wish.then(|| line(sentence, begin)).flatten()
}

/// What stands before the wish: `please`, `could you`, `you should`.
fn courtesy(words: &[Token<'_>]) -> usize {
    let mut at = 0;
    while let Some(length) = phrase("courtesy", words, at) {
        at += length;
    }
    at
}

fn complaint(words: &[Token<'_>]) -> Option<&'static str> {
    const COMPLAINTS: [(&str, &str); 9] = [
        ("too long", "Keep answers shorter."),
        ("too wordy", "Keep answers shorter."),
        ("too short", "Give more detail."),
        ("too formal", "Be less formal."),
        ("too technical", "Use plainer words."),
        ("too much jargon", "Use plainer words."),
        ("too many emojis", "Use fewer emojis."),
        ("too many questions", "Ask fewer questions."),
        ("zu lang", "Keep answers shorter."),
    ];
    let line = |at: usize| COMPLAINTS.iter().find(|(words_of, _)| reads_at(words, at, words_of));
    (0..words.len()).find_map(line).map(|(_, line)| *line)
}

/// `call me Ann`, `my name is Ann, not Anna`.
fn is_name(words: &[Token<'_>]) -> bool {
    let Some(length) = phrase("naming", words, 0) else { return false };
    let rest = words.get(length..).unwrap_or_default();
    let is_called = |word: &Token<'_>| {
        word.text.starts_with(char::is_uppercase)
            || matches!(word.word.as_str(), "sir" | "madam" | "boss" | "mate" | "dude")
    };
    let is_named = rest.first().is_some_and(is_called) && rest.len() <= 4;
    let is_correction = !reads_at(words, 0, "my name is") || rest.iter().any(|word| word.word == "not");
    // `Call me Friday` is an appointment.
    let is_time = rest.iter().any(|word| {
        matches!(word.word.as_str(), "on" | "at" | "when" | "if" | "back")
            || (has("EMPTY", &word.word) && word.word != "not")
    });
    is_named && is_correction && !is_time
}

/// `shorter answers`, `less jargon`, `no more tables`: a wish without a verb.
fn is_short(words: &[Token<'_>]) -> bool {
    let is_measure = phrase("measures", words, 0).is_some() || (lower(words, 0) == "no" && words.len() <= 3);
    is_measure && words.len() <= 6 && speaks_of_style(words)
}

fn prefers(words: &[Token<'_>]) -> bool {
    phrase("preferences", words, 0).is_some() && speaks_of_style(words)
}

/// An order that says itself that it lasts: `always`, `never`, `from now on`.
fn is_lasting(words: &[Token<'_>]) -> bool {
    let lasts = (0..words.len()).any(|at| phrase("lasting", words, at).is_some());
    let is_for_me =
        words.iter().any(|word| matches!(word.word.as_str(), "me" | "my" | "mir" | "mich" | "moi"));
    lasts
        && phrase("idioms", words, 0).is_none()
        && !has("PERSONS", lower(words, 0))
        && (opens_lasting(words) || (is_order(words) && (is_for_me || speaks_of_style(words))))
}

/// `From now on, …` and `always …` with something that an assistant does. `Always happy to help` is none of it.
fn opens_lasting(words: &[Token<'_>]) -> bool {
    let Some(length) = phrase("lasting openers", words, 0) else { return false };
    let Some(rest) = words.get(length..) else { return false };
    let next = lower(rest, 0);
    has("DEEDS", next)
        || has("STYLE", next)
        || (is_order(rest)
            && (speaks_of_style(rest)
                || rest.iter().any(|word| matches!(word.word.as_str(), "me" | "my" | "your" | "before"))))
}

/// An order about the manner of answering, not about a single thing.
fn is_manner(words: &[Token<'_>]) -> bool {
    if !is_order(words) || !speaks_of_style(words) || phrase("idioms", words, 0).is_some() {
        return false;
    }
    let to_me = ["write to me", "talk to me", "speak to me"].iter().any(|phrase| reads_at(words, 0, phrase));
    let is_refusal = matches!(lower(words, 0), "don't" | "stop" | "avoid" | "quit");
    // `Answer Bob in German` is for Bob.
    let is_name = |word: &Token<'_>| word.text.starts_with(char::is_uppercase) && !has("STYLE", &word.word);
    let is_single = |word: &Token<'_>| has("SINGLE", &word.word) || is_name(word);
    is_refusal || !words.iter().skip(if to_me { 3 } else { 1 }).any(is_single)
}

fn is_order(words: &[Token<'_>]) -> bool {
    phrase("orders", words, 0).is_some()
}

fn speaks_of_style(words: &[Token<'_>]) -> bool {
    words.iter().any(|word| has("STYLE", &word.word))
}

/// The wish as a line: without courtesy, with a capital letter and a full stop.
fn line(sentence: &Sentence<'_>, begin: usize) -> Option<String> {
    let start = sentence.words.get(begin)?.start;
    let mut text = sentence.text.get(start..)?.trim_end_matches(['.', '!', '?', ' ']).to_owned();
    for tail in [
        ", please",
        " please",
        ", bitte",
        ", thanks",
        " thanks",
        " from now on",
        ", s'il te plaît",
        ", por favor",
    ] {
        text = text.strip_suffix(tail).unwrap_or(&text).to_owned();
    }
    let mut letters = text.chars();
    let first = letters.next()?;
    Some(format!("{}{}.", first.to_uppercase(), letters.as_str()))
}
