//! Finds what somebody takes upon themselves or asks for. Refuses questions, negations, the past, what is only
//! supposed, and what others are said to do.

use jiff::{Timestamp, Zoned};

use super::lexicon::{has, phrase};
use super::openers::{Force, Who};
use super::opening::{Opening, openings};
use super::sentences::{Sentence, Word, low, stands};
use super::when::{self, When};

/// The most that one sentence can hold.
const MOST: usize = 4;

/// A commitment as it was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    /// Whose matter it is.
    pub(crate) who: Who,
    /// The matter, without its time.
    pub(crate) text: String,
    /// The last moment that is in time.
    pub(crate) due: Option<Timestamp>,
}

/// The commitments in a sentence.
pub(crate) fn find(sentence: &Sentence<'_>, now: &Zoned) -> Vec<Said> {
    let words = &sentence.words;
    let found = openings(words);
    if found.is_empty() || when::is_past(words, now) || is_supposed(words) {
        return Vec::new();
    }
    let mut said = Vec::new();
    for (index, opening) in found.iter().enumerate() {
        let begin = if index == 0 { 0 } else { opening.start };
        let end = found.get(index + 1).map_or(words.len(), |next| next.start);
        let Some(clause) = words.get(begin..end) else { continue };
        let opening = Opening { start: opening.start - begin, matter: opening.matter - begin, ..*opening };
        said.extend(read(sentence, clause, opening, now));
    }
    said.truncate(MOST);
    said
}

/// Whether the sentence only supposes: `if it rains`, `maybe`, `I hope`.
fn is_supposed(words: &[Word<'_>]) -> bool {
    (0..words.len()).any(|at| match low(words, at) {
        "if" | "wenn" | "falls" | "si" => !is_mild(words, at),
        word if has("reporting", word) => at == 0 || !matches!(low(words, at - 1), "i" | "i've" | "we"),
        _ => phrase("supposed", words, at).is_some(),
    })
}

/// `If that's okay` is courtesy, `check if` is a task.
fn is_mild(words: &[Word<'_>], at: usize) -> bool {
    let back = |steps: usize| at.checked_sub(steps).map_or("", |place| low(words, place));
    let is_task = matches!(back(1), "check" | "see" | "ask" | "confirm" | "verify" | "test")
        || (back(1) == "out" && back(2) == "find")
        || (matches!(back(1), "him" | "her" | "them") && back(2) == "ask");
    let rest = words.get(at + 1..).unwrap_or_default();
    let is_courtesy = |word: &Word<'_>| {
        matches!(word.low.as_str(), "ok" | "okay" | "fine" | "alright" | "possible" | "please" | "like")
    };
    is_task || rest.iter().take(4).any(is_courtesy) || back(1) == "s" || stands(words, at, "if needed")
}

fn read(sentence: &Sentence<'_>, clause: &[Word<'_>], opening: Opening, now: &Zoned) -> Option<Said> {
    let is_tag = |last: &Word<'_>| last.broken && has("tags", &last.low);
    if sentence.asks && opening.who != Who::Listener && !sentence.words.last().is_some_and(is_tag) {
        return None;
    }
    // `How can you`, `the day when I'll`: a clause that belongs to another.
    let begin =
        (0..=opening.start).rev().find(|at| clause.get(*at).is_some_and(|word| word.broken)).unwrap_or(0);
    let before = clause.get(begin..opening.start).unwrap_or_default();
    let is_asking = |word: &Word<'_>| {
        matches!(
            word.low.as_str(),
            "how" | "what" | "when" | "who" | "why" | "where" | "whether" | "that" | "until"
        )
    };
    if before.iter().any(is_asking) {
        return None;
    }
    let mut verb = opening.matter;
    while has("adverbs", low(clause, verb)) || stands(clause, verb, "try to") {
        verb += 1;
    }
    if is_negated(clause, opening, verb) {
        return None;
    }
    let when = when::find(clause, opening.matter, now);
    if !binds(clause, opening, verb, when.as_ref()) {
        return None;
    }
    let begin = if opening.kept > 0 { opening.matter - opening.kept } else { verb };
    let text = told(sentence, clause, begin, when.as_ref());
    (!text.is_empty()).then(|| Said { who: opening.who, text, due: when.map(|when| when.due) })
}

fn is_negated(clause: &[Word<'_>], opening: Opening, verb: usize) -> bool {
    if has("negations", low(clause, verb)) {
        return true;
    }
    // German and French put it behind the verb, Spanish before it.
    let behind = clause.get(verb..).unwrap_or_default();
    let is_behind =
        |word: &Word<'_>| has("negations", &word.low) && !matches!(word.low.as_str(), "no" | "not" | "never");
    let before = opening.start.checked_sub(1).map_or("", |place| low(clause, place));
    behind.iter().any(is_behind) || matches!(before, "no" | "nunca" | "not" | "don't" | "never" | "didn't")
}

/// Whether what was said binds anybody.
fn binds(clause: &[Word<'_>], opening: Opening, verb: usize, when: Option<&When>) -> bool {
    let (word, next) = (low(clause, verb), low(clause, verb + 1));
    let is_limit = when.is_some_and(|when| when.is_limit);
    if opening.kept == 0
        && (word.is_empty()
            || is_place(clause, verb)
            || is_idle(word, next, is_limit || opening.who == Who::Both))
    {
        return false;
    }
    match opening.force {
        // `Remind me what that was` is a question.
        Force::Reminder => !has("questions", low(clause, opening.matter)),
        Force::Promise => true,
        Force::Dated if opening.who == Who::Listener && stands(clause, verb, "remind me") => true,
        Force::Plan => when.is_some() || is_weighty(clause, verb),
        Force::Limited => is_limit,
        Force::Dated if opening.who == Who::Listener && has("at once", word) => is_limit,
        // `We must have`, `I should have`: about what was.
        Force::Dated => when.is_some() && !(word == "have" && next.ends_with("ed")),
    }
}

/// `I'm going to Paris`, `to the gym`, `to bed`.
fn is_place(clause: &[Word<'_>], verb: usize) -> bool {
    let is_after_to = verb > 0 && low(clause, verb - 1) == "to";
    let is_name = clause.get(verb).is_some_and(|word| word.text.starts_with(char::is_uppercase));
    (is_after_to && is_name)
        || matches!(low(clause, verb), "the" | "a" | "my" | "bed" | "work" | "school" | "town" | "church")
}

/// What follows `I'll` and is no commitment.
fn is_idle(word: &str, next: &str, is_limit: bool) -> bool {
    match word {
        "be" if next == "in" => !is_limit,
        // `I'll be sending it` is sending it.
        "be" if next.ends_with("ing") => !is_deed(next),
        "be" => !matches!(next, "there" | "back" | "ready" | "on" | "done" | "finished" | "over" | "home"),
        "see" => !matches!(next, "to" | "you" | "if" | "what" | "him" | "her" | "them" | "whether"),
        "get" => matches!(next, "better" | "used" | "over" | "there"),
        // To check something out is to have a look at it some day.
        "check" => matches!(next, "it" | "them" | "that" | "this" | "those" | "these" | "out") && !is_limit,
        "take" => !matches!(next, "care" | "it" | "the" | "my" | "out" | "you" | "them") && !is_limit,
        _ => has("idle", word) || (has("idle without limit", word) && !is_limit),
    }
}

/// A deed that others wait for, or something done to a certain thing: `water the plants`.
fn is_weighty(clause: &[Word<'_>], verb: usize) -> bool {
    let is_certain = matches!(low(clause, verb + 1), "the" | "your" | "our" | "his" | "her" | "my");
    let word = low(clause, verb);
    is_deed(word) || phrase("weighty", clause, verb).is_some() || (is_certain && !has("vague", word))
}

fn is_deed(word: &str) -> bool {
    let base = word.strip_suffix("ing").unwrap_or(word);
    has("deeds", word) || has("deeds", base) || has("deeds", &format!("{base}e"))
}

/// The matter in the words of whoever said it, without its time.
fn told(sentence: &Sentence<'_>, clause: &[Word<'_>], begin: usize, when: Option<&When>) -> String {
    let is_time = |place: usize| when.is_some_and(|when| when.words.contains(&place));
    let mut text = String::new();
    let mut last: Option<usize> = None;
    for (place, word) in clause.iter().enumerate().skip(begin).filter(|(place, _)| !is_time(*place)) {
        let between = match last {
            // What stands between two neighbours is kept as it was written.
            Some(end) if !is_time(place - 1) => sentence.text.get(end..word.start).unwrap_or(" "),
            Some(_) => " ",
            None => "",
        };
        text.push_str(between);
        text.push_str(word.text);
        last = Some(word.end);
    }
    for tail in [" and", " so", " but", " please", " ok", " okay", " und", " bitte"] {
        let cut = text.trim_end_matches([',', ' ']);
        text = cut.strip_suffix(tail).unwrap_or(cut).to_owned();
    }
    text.trim_matches(|letter: char| letter.is_whitespace() || matches!(letter, ',' | ';' | ':' | '-' | '—'))
        .to_owned()
}
