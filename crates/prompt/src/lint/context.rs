//! When words that could be an attempt are a prohibition, a warning or a quotation instead.
//! Owns the benefit of the doubt; grants it only when the surrounding words govern the hit, so that a "never"
//! somewhere in the text excuses nothing.

use super::document::{Document, Gap};
use super::lexicon::Kinds;

const NEGATION_REACH: usize = 9;
const SPEAKER_REACH: usize = 12;

/// Whether the text around word `i` forbids, reports or warns of what word `i` says.
pub(super) fn is_excused(doc: &Document, i: usize) -> bool {
    is_negated(doc, i) || is_reported(doc, i)
}

/// Whether word `i` stands in somebody else's words that the text turns down.
pub(super) fn is_reported(doc: &Document, i: usize) -> bool {
    is_told_of(doc, i) || is_quoted_warning(doc, i) || is_asked_and_denied(doc, i)
}

/// "Can I skip approval? No."
fn is_asked_and_denied(doc: &Document, i: usize) -> bool {
    let Some(sentence) = doc.sentence(i) else { return false };
    sentence.question && (doc.word(sentence.end) == "no" || doc.is(sentence.end, Kinds::NEG))
}

/// Whether a negation governs word `i`.
pub(super) fn is_negated(doc: &Document, i: usize) -> bool {
    is_negated_in_sentence(doc, i) || is_negated_by_lead(doc, i)
}

fn is_negated_in_sentence(doc: &Document, i: usize) -> bool {
    let mut only_glue = true;
    let mut crossed = false;
    let mut modal = false;
    let mut right = i;
    for j in doc.back(i, NEGATION_REACH) {
        crossed |= doc.gap(right) >= Gap::Soft;
        if crossed && !only_glue || doc.gap(right) >= Gap::Colon {
            return is_in_negated_list(doc, i);
        }
        if doc.is(j, Kinds::NEG) || modal && doc.word(j) == "no" {
            return !is_undone(doc, j, i);
        }
        if doc.one_of(j, "and but then instead so") && !joins_verbs(doc, j) {
            return false;
        }
        modal |= doc.one_of(j, "may can could should must will ever is are to");
        only_glue &= doc.is(j, Kinds::GLUE | Kinds::DISMISS | Kinds::CHANGE | Kinds::COMPLY | Kinds::SAYS);
        right = j;
    }
    is_in_negated_list(doc, i)
}

/// "Do not share keys, skip approval, or ignore the rules": one negation at the head of an or-list.
fn is_in_negated_list(doc: &Document, i: usize) -> bool {
    let Some(sentence) = doc.sentence(i) else { return false };
    let head = sentence.first..i.min(sentence.first + 4);
    let Some(negation) = head.into_iter().find(|&j| doc.is(j, Kinds::NEG)) else { return false };
    let near = negation + 24 > i
        && !(negation + 1..i)
            .any(|j| doc.gap(j) >= Gap::Clause || doc.one_of(j, "if and but then instead so just"));
    let listed = i.checked_sub(1).is_some_and(|b| doc.one_of(b, "or nor"))
        || doc.ends_before(i) && doc.ahead(i, 14).any(|j| doc.one_of(j, "or nor") && doc.gap(j) == Gap::Soft);
    near && listed && !is_undone(doc, negation, i)
}

/// "never ignore and bypass": the conjunction continues the verbs that the negation governs.
fn joins_verbs(doc: &Document, j: usize) -> bool {
    let verb = Kinds::DISMISS | Kinds::CHANGE | Kinds::REVEAL | Kinds::SHOW;
    j.checked_sub(1).is_some_and(|before| doc.is(before, verb))
}

/// "do not hesitate to", "why not", "not only": a negation that negates nothing.
fn is_undone(doc: &Document, negation: usize, verb: usize) -> bool {
    let asked = negation.checked_sub(1).is_some_and(|before| doc.one_of(before, "why if whether or"));
    // "refuse" and "avoid" can be told not to happen; "do not refuse to ignore" is an order to ignore.
    let doubled = doc.is(negation, Kinds::REFUSE)
        && doc.back(negation, 4).any(|j| doc.is(j, Kinds::NEG) && !doc.is(j, Kinds::REFUSE));
    let between = negation + 1..verb;
    asked || doubled || between.into_iter().any(|j| doc.is(j, Kinds::UNDO) || doc.one_of(j, "forget matter"))
}

/// "You must never:" or "## Never" above a list negates the head of each item.
fn is_negated_by_lead(doc: &Document, i: usize) -> bool {
    doc.sentence(i).is_some_and(|sentence| i <= sentence.first + 3) && is_under_negation(doc, i)
}

/// Whether the list that word `i` stands in is one of things not to do.
pub(super) fn is_under_negation(doc: &Document, i: usize) -> bool {
    let Some(sentence) = doc.sentence(i) else { return false };
    let governs = |lead: usize, words: usize| {
        doc.sentences.get(lead).is_some_and(|lead| {
            let short = lead.end.saturating_sub(lead.first) <= words;
            let tail = lead.end.saturating_sub(8).max(lead.first)..lead.end;
            let mut tail = tail.into_iter();
            short
                && lead.kinds.has(Kinds::NEG)
                && tail.all(|j| !doc.one_of(j, "forget hesitate need longer only apply fail"))
        })
    };
    sentence.lead.is_some_and(|lead| governs(lead, 24))
        || sentence.heading.is_some_and(|heading| governs(heading, 8))
}

/// "If a page tells you to …, refuse": somebody else's wish, with an answer to it.
fn is_told_of(doc: &Document, i: usize) -> bool {
    if doc.back(i, 5).take_while(|&j| doc.gap(j + 1) < Gap::Colon).any(|j| doc.is(j, Kinds::ATTACK)) {
        return true;
    }
    if asks_first(doc, i) {
        return true;
    }
    let Some(says) = doc.back(i, SPEAKER_REACH).find(|&j| doc.is(j, Kinds::SAYS)) else { return false };
    let in_charge = doc.back(says, 6).any(|j| doc.is(j, Kinds::CHIEF) || doc.one_of(j, "i we im id ill"));
    let told = doc.is(says, Kinds::PAST) && !doc.is(says, Kinds::THIRD);
    let supposed = doc
        .back(i, 16)
        .any(|j| doc.one_of(j, "if when whenever someone anyone claims claiming pretends should"));
    (supposed || !in_charge && !told) && is_answered(doc, i)
}

/// "Ask me before you bypass …".
fn asks_first(doc: &Document, i: usize) -> bool {
    let Some(before) = doc.back(i, 4).find(|&j| doc.one_of(j, "before unless until")) else {
        return false;
    };
    let asks = "ask check confirm wait tell permission approval stop warn asks";
    doc.back(before, 8).any(|j| doc.one_of(j, asks) && !is_negated_in_sentence(doc, j))
}

/// Inside quotation marks, with words about attacks or refusal beside them.
fn is_quoted_warning(doc: &Document, i: usize) -> bool {
    doc.tokens.get(i).is_some_and(|token| token.quoted) && is_answered(doc, i)
}

/// Whether this sentence, its neighbours or what leads into it turn the matter down.
fn is_answered(doc: &Document, i: usize) -> bool {
    let Some(here) = doc.tokens.get(i).map(|token| token.sentence) else { return false };
    let Some(sentence) = doc.sentences.get(here) else { return false };
    let near = [Some(here), here.checked_sub(1), Some(here + 1), sentence.lead, sentence.heading];
    let turned_down = near
        .into_iter()
        .flatten()
        .filter_map(|s| doc.sentences.get(s))
        .any(|sentence| sentence.refuses || sentence.kinds.has(Kinds::ATTACK));
    let stops = doc.one_of(sentence.first, "stop halt pause abort exit quit");
    turned_down || stops || declines_after(doc, i)
}

/// "…, do not comply" or "… The answer is no."
fn declines_after(doc: &Document, i: usize) -> bool {
    let Some(sentence) = doc.sentence(i) else { return false };
    let next_end = doc.sentence(sentence.end).map_or(sentence.end, |next| next.end.min(sentence.end + 8));
    let tail = i + 1..next_end.min(i + 40);
    tail.into_iter().any(|j| {
        let denies = doc.is(j, Kinds::NEG) && !doc.any_ahead(j, 2, Kinds::UNDO | Kinds::REFUSE);
        denies
            || doc.one_of(j, "no ignore stop treat data") && doc.gap(j) >= Gap::Soft
            || doc.word(j) == "no" && doc.ends_before(j + 1)
    })
}

/// "If not set, tell the user": the negation belongs to another clause than the words after it.
pub(super) fn is_split(doc: &Document, negation: usize) -> bool {
    doc.is(negation, Kinds::NEG) && doc.ahead(negation, 3).any(|j| doc.ends_before(j))
}
