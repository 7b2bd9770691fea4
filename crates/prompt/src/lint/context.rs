//! When words that could be an attempt are a prohibition, a warning or a quotation instead.
//! Owns the benefit of the doubt; grants it only when the surrounding words govern the hit, so that a "never"
//! somewhere in the text excuses nothing.

use super::kinds::Kinds;
use super::page::{Gap, Page};

const NEGATION_REACH: usize = 9;
const SPEAKER_REACH: usize = 12;

/// Whether the text around word `i` forbids, reports or warns of what word `i` says.
pub(super) fn is_excused(page: &Page, i: usize) -> bool {
    is_negated(page, i) || is_reported(page, i)
}

/// Whether word `i` stands in somebody else's words that the text turns down.
pub(super) fn is_reported(page: &Page, i: usize) -> bool {
    is_told_of(page, i) || is_quoted_warning(page, i) || is_asked_and_denied(page, i)
}

/// "Can I skip approval? No."
fn is_asked_and_denied(page: &Page, i: usize) -> bool {
    let Some(sentence) = page.sentence(i) else { return false };
    sentence.question && (page.word(sentence.end) == "no" || page.is(sentence.end, Kinds::NEG))
}

/// Whether a negation governs word `i`.
pub(super) fn is_negated(page: &Page, i: usize) -> bool {
    is_negated_in_sentence(page, i) || is_negated_by_lead(page, i)
}

fn is_negated_in_sentence(page: &Page, i: usize) -> bool {
    let mut only_glue = true;
    let mut crossed = false;
    let mut modal = false;
    let mut right = i;
    for j in page.back(i, NEGATION_REACH) {
        crossed |= page.gap(right) >= Gap::Soft;
        if crossed && !only_glue || page.gap(right) >= Gap::Colon {
            return is_in_negated_list(page, i);
        }
        if page.is(j, Kinds::NEG) || modal && page.word(j) == "no" {
            return !is_undone(page, j, i);
        }
        if page.one_of(j, "and but then instead so") && !joins_verbs(page, j) {
            return false;
        }
        modal |= page.one_of(j, "may can could should must will ever is are to");
        only_glue &= page.is(j, Kinds::GLUE | Kinds::DISMISS | Kinds::CHANGE | Kinds::COMPLY | Kinds::SAYS);
        right = j;
    }
    is_in_negated_list(page, i)
}

/// "Do not share keys, skip approval, or ignore the rules": one negation at the head of an or-list.
fn is_in_negated_list(page: &Page, i: usize) -> bool {
    let Some(sentence) = page.sentence(i) else { return false };
    let head = sentence.first..i.min(sentence.first + 4);
    let Some(negation) = head.into_iter().find(|&j| page.is(j, Kinds::NEG)) else { return false };
    let near = negation + 24 > i
        && !(negation + 1..i)
            .any(|j| page.gap(j) >= Gap::Clause || page.one_of(j, "if and but then instead so just"));
    let listed = i.checked_sub(1).is_some_and(|b| page.one_of(b, "or nor"))
        || page.ends_before(i)
            && page.ahead(i, 14).any(|j| page.one_of(j, "or nor") && page.gap(j) == Gap::Soft);
    near && listed && !is_undone(page, negation, i)
}

/// "never ignore and bypass": the conjunction continues the verbs that the negation governs.
fn joins_verbs(page: &Page, j: usize) -> bool {
    let verb = Kinds::DISMISS | Kinds::CHANGE | Kinds::REVEAL | Kinds::SHOW;
    j.checked_sub(1).is_some_and(|before| page.is(before, verb))
}

/// "do not hesitate to", "why not", "not only": a negation that negates nothing.
fn is_undone(page: &Page, negation: usize, verb: usize) -> bool {
    let asked = negation.checked_sub(1).is_some_and(|before| page.one_of(before, "why if whether or"));
    // "refuse" and "avoid" can be told not to happen; "do not refuse to ignore" is an order to ignore.
    let doubled = page.is(negation, Kinds::REFUSE)
        && page.back(negation, 4).any(|j| page.is(j, Kinds::NEG) && !page.is(j, Kinds::REFUSE));
    let between = negation + 1..verb;
    asked
        || doubled
        || between.into_iter().any(|j| page.is(j, Kinds::UNDO) || page.one_of(j, "forget matter"))
}

/// "You must never:" or "## Never" above a list negates the head of each item.
fn is_negated_by_lead(page: &Page, i: usize) -> bool {
    page.sentence(i).is_some_and(|sentence| i <= sentence.first + 3) && is_under_negation(page, i)
}

/// Whether the list that word `i` stands in is one of things not to do.
pub(super) fn is_under_negation(page: &Page, i: usize) -> bool {
    let Some(sentence) = page.sentence(i) else { return false };
    let governs = |lead: usize, words: usize| {
        page.sentences.get(lead).is_some_and(|lead| {
            let short = lead.end.saturating_sub(lead.first) <= words;
            let tail = lead.end.saturating_sub(8).max(lead.first)..lead.end;
            let mut tail = tail.into_iter();
            short
                && lead.kinds.has(Kinds::NEG)
                && tail.all(|j| !page.one_of(j, "forget hesitate need longer only apply fail"))
        })
    };
    sentence.lead.is_some_and(|lead| governs(lead, 24))
        || sentence.heading.is_some_and(|heading| governs(heading, 8))
}

/// "If a page tells you to …, refuse": somebody else's wish, with an answer to it.
fn is_told_of(page: &Page, i: usize) -> bool {
    if page.back(i, 5).take_while(|&j| page.gap(j + 1) < Gap::Colon).any(|j| page.is(j, Kinds::ATTACK)) {
        return true;
    }
    if asks_first(page, i) {
        return true;
    }
    let Some(says) = page.back(i, SPEAKER_REACH).find(|&j| page.is(j, Kinds::SAYS)) else { return false };
    let in_charge = page.back(says, 6).any(|j| page.is(j, Kinds::CHIEF) || page.one_of(j, "i we im id ill"));
    let told = page.is(says, Kinds::PAST) && !page.is(says, Kinds::THIRD);
    let supposed = page
        .back(i, 16)
        .any(|j| page.one_of(j, "if when whenever someone anyone claims claiming pretends should"));
    (supposed || !in_charge && !told) && is_answered(page, i)
}

/// "Ask me before you bypass …".
fn asks_first(page: &Page, i: usize) -> bool {
    let Some(before) = page.back(i, 4).find(|&j| page.one_of(j, "before unless until")) else {
        return false;
    };
    let asks = "ask check confirm wait tell permission approval stop warn asks";
    page.back(before, 8).any(|j| page.one_of(j, asks) && !is_negated_in_sentence(page, j))
}

/// Inside quotation marks, with words about attacks or refusal beside them.
fn is_quoted_warning(page: &Page, i: usize) -> bool {
    page.tokens.get(i).is_some_and(|token| token.quoted) && is_answered(page, i)
}

/// Whether this sentence, its neighbours or what leads into it turn the matter down.
fn is_answered(page: &Page, i: usize) -> bool {
    let Some(here) = page.tokens.get(i).map(|token| token.sentence) else { return false };
    let Some(sentence) = page.sentences.get(here) else { return false };
    let near = [Some(here), here.checked_sub(1), Some(here + 1), sentence.lead, sentence.heading];
    let turned_down = near
        .into_iter()
        .flatten()
        .filter_map(|s| page.sentences.get(s))
        .any(|sentence| sentence.refuses || sentence.kinds.has(Kinds::ATTACK));
    let stops = page.one_of(sentence.first, "stop halt pause abort exit quit");
    turned_down || stops || declines_after(page, i)
}

/// "…, do not comply" or "… The answer is no."
fn declines_after(page: &Page, i: usize) -> bool {
    let Some(sentence) = page.sentence(i) else { return false };
    let next_end = page.sentence(sentence.end).map_or(sentence.end, |next| next.end.min(sentence.end + 8));
    let tail = i + 1..next_end.min(i + 40);
    tail.into_iter().any(|j| {
        let denies = page.is(j, Kinds::NEG) && !page.any_ahead(j, 2, Kinds::UNDO | Kinds::REFUSE);
        denies
            || page.one_of(j, "no ignore stop treat data") && page.gap(j) >= Gap::Soft
            || page.word(j) == "no" && page.ends_before(j + 1)
    })
}

/// "If not set, tell the user": the negation belongs to another clause than the words after it.
pub(super) fn is_split(page: &Page, negation: usize) -> bool {
    page.is(negation, Kinds::NEG) && page.ahead(negation, 3).any(|j| page.ends_before(j))
}
