//! Finds what somebody takes upon themselves or asks for. Refuses questions, negations, the past, what is only
//! supposed, and what others are said to do.

use embody_text::tokenize::Token;
use jiff::{Timestamp, Zoned};

use super::due_time::{self, DueTime};
use super::openers::{Force, OpenerMatch, Party, find_openers};
use super::sentences::{Sentence, has, is_after_break, lower, phrase, reads_at};

const MOST: usize = 4;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommitmentDraft {
    pub(crate) who: Party,
    pub(crate) text: String,
    pub(crate) due: Option<Timestamp>,
}

pub(crate) fn find(sentence: &Sentence<'_>, now: &Zoned) -> Vec<CommitmentDraft> {
    let words = &sentence.words;
    let found = find_openers(words);
    if found.is_empty() || due_time::is_past(words, now) || is_hypothetical(words) {
        return Vec::new();
    }
    let mut said = Vec::new();
    for (index, opening) in found.iter().enumerate() {
        let begin = if index == 0 { 0 } else { opening.start };
        let end = found.get(index + 1).map_or(words.len(), |next| next.start);
        let Some(clause) = words.get(begin..end) else { continue };
        let opening = OpenerMatch {
            start: opening.start - begin,
            content_start: opening.content_start - begin,
            ..*opening
        };
        said.extend(read(sentence, clause, opening, now));
    }
    said.truncate(MOST);
    said
}

/// Whether the sentence only supposes: `if it rains`, `maybe`, `I hope`.
fn is_hypothetical(words: &[Token<'_>]) -> bool {
    (0..words.len()).any(|at| match lower(words, at) {
        "if" | "wenn" | "falls" | "si" => !is_harmless_condition(words, at),
        word if has("REPORTING", word) => at == 0 || !matches!(lower(words, at - 1), "i" | "i've" | "we"),
        _ => phrase("supposed", words, at).is_some(),
    })
}

/// `If that's okay` is courtesy, `check if` is a task.
fn is_harmless_condition(words: &[Token<'_>], at: usize) -> bool {
    let back = |steps: usize| at.checked_sub(steps).map_or("", |place| lower(words, place));
    let is_task = matches!(back(1), "check" | "see" | "ask" | "confirm" | "verify" | "test")
        || (back(1) == "out" && back(2) == "find")
        || (matches!(back(1), "him" | "her" | "them") && back(2) == "ask");
    let rest = words.get(at + 1..).unwrap_or_default();
    let is_courtesy = |word: &Token<'_>| {
        matches!(word.word.as_str(), "ok" | "okay" | "fine" | "alright" | "possible" | "please" | "like")
    };
    is_task || rest.iter().take(4).any(is_courtesy) || back(1) == "s" || reads_at(words, at, "if needed")
}

fn read(
    sentence: &Sentence<'_>,
    clause: &[Token<'_>],
    opening: OpenerMatch,
    now: &Zoned,
) -> Option<CommitmentDraft> {
    let is_tag = |last: &Token<'_>| is_after_break(last) && has("TAGS", &last.word);
    if sentence.is_question && opening.who != Party::Listener && !sentence.words.last().is_some_and(is_tag) {
        return None;
    }
    // `How can you`, `the day when I'll`: a clause that belongs to another.
    let begin = (0..=opening.start).rev().find(|at| clause.get(*at).is_some_and(is_after_break)).unwrap_or(0);
    let before = clause.get(begin..opening.start).unwrap_or_default();
    let is_asking = |word: &Token<'_>| {
        matches!(
            word.word.as_str(),
            "how" | "what" | "when" | "who" | "why" | "where" | "whether" | "that" | "until"
        )
    };
    if before.iter().any(is_asking) {
        return None;
    }
    let mut verb = opening.content_start;
    while has("ADVERBS", lower(clause, verb)) || reads_at(clause, verb, "try to") {
        verb += 1;
    }
    if is_negated(clause, opening, verb) {
        return None;
    }
    let when = due_time::find(clause, opening.content_start, now);
    if !binds(clause, opening, verb, when.as_ref()) {
        return None;
    }
    let begin = if opening.kept > 0 { opening.content_start - opening.kept } else { verb };
    let text = commitment_text(sentence, clause, begin, when.as_ref());
    (!text.is_empty()).then(|| CommitmentDraft { who: opening.who, text, due: when.map(|when| when.due) })
}

fn is_negated(clause: &[Token<'_>], opening: OpenerMatch, verb: usize) -> bool {
    if has("NEGATIONS", lower(clause, verb)) {
        return true;
    }
    // German and French put it behind the verb, Spanish before it.
    let behind = clause.get(verb..).unwrap_or_default();
    let is_behind = |word: &Token<'_>| {
        has("NEGATIONS", &word.word) && !matches!(word.word.as_str(), "no" | "not" | "never")
    };
    let before = opening.start.checked_sub(1).map_or("", |place| lower(clause, place));
    behind.iter().any(is_behind) || matches!(before, "no" | "nunca" | "not" | "don't" | "never" | "didn't")
}

fn binds(clause: &[Token<'_>], opening: OpenerMatch, verb: usize, when: Option<&DueTime>) -> bool {
    let (word, next) = (lower(clause, verb), lower(clause, verb + 1));
    let is_limit = when.is_some_and(|when| when.is_limit);
    if opening.kept == 0
        && (word.is_empty()
            || is_place(clause, verb)
            || is_idle(word, next, is_limit || opening.who == Party::Both))
    {
        return false;
    }
    match opening.force {
        // `Remind me what that was` is a question.
        Force::Reminder => !has("QUESTIONS", lower(clause, opening.content_start)),
        Force::Promise => true,
        Force::Dated if opening.who == Party::Listener && reads_at(clause, verb, "remind me") => true,
        Force::Plan => when.is_some() || is_weighty(clause, verb),
        Force::Limited => is_limit,
        Force::Dated if opening.who == Party::Listener && has("AT_ONCE", word) => is_limit,
        // `We must have`, `I should have`: about what was.
        Force::Dated => when.is_some() && !(word == "have" && next.ends_with("ed")),
    }
}

/// `I'm going to Paris`, `to the gym`, `to bed`.
fn is_place(clause: &[Token<'_>], verb: usize) -> bool {
    let is_after_to = verb > 0 && lower(clause, verb - 1) == "to";
    let is_name = clause.get(verb).is_some_and(|word| word.text.starts_with(char::is_uppercase));
    (is_after_to && is_name)
        || matches!(lower(clause, verb), "the" | "a" | "my" | "bed" | "work" | "school" | "town" | "church")
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
        _ => has("IDLE", word) || (has("IDLE_WITHOUT_LIMIT", word) && !is_limit),
    }
}

/// A deed that others wait for, or something done to a certain thing: `water the plants`.
fn is_weighty(clause: &[Token<'_>], verb: usize) -> bool {
    let is_certain = matches!(lower(clause, verb + 1), "the" | "your" | "our" | "his" | "her" | "my");
    let word = lower(clause, verb);
    is_deed(word) || phrase("weighty", clause, verb).is_some() || (is_certain && !has("VAGUE", word))
}

fn is_deed(word: &str) -> bool {
    let base = word.strip_suffix("ing").unwrap_or(word);
    has("DEEDS", word) || has("DEEDS", base) || has("DEEDS", &format!("{base}e"))
}

/// The matter in the words of whoever said it, without its time.
fn commitment_text(
    sentence: &Sentence<'_>,
    clause: &[Token<'_>],
    begin: usize,
    when: Option<&DueTime>,
) -> String {
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
        last = Some(word.end());
    }
    for tail in [" and", " so", " but", " please", " ok", " okay", " und", " bitte"] {
        let cut = text.trim_end_matches([',', ' ']);
        text = cut.strip_suffix(tail).unwrap_or(cut).to_owned();
    }
    text.trim_matches(|letter: char| letter.is_whitespace() || matches!(letter, ',' | ';' | ':' | '-' | '—'))
        .to_owned()
}
