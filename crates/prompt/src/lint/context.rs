//! When words that could be an attempt are a prohibition, a warning or a quotation instead, and when they are an order.
//! Owns the benefit of the doubt; grants it only when the surrounding words govern the hit, so that a "never"
//! somewhere in the text excuses nothing.

use std::sync::LazyLock;

use embody_text::lexicon::Classes;
use embody_text::tokenize::{Document, Gap, Quote, Sentence};

use super::RULES;

const NEGATION_REACH: usize = 9;
const SPEAKER_REACH: usize = 12;

/// The word classes that decide.
struct Words {
    neg: Classes,
    undo: Classes,
    glue: Classes,
    refuse: Classes,
    attack: Classes,
    says: Classes,
    chief: Classes,
    verb: Classes,
    option: Classes,
}

static WORDS: LazyLock<Words> = LazyLock::new(|| {
    let classes = |names: &str| RULES.lexicon.classes(names);
    Words {
        neg: classes("NEG"),
        undo: classes("UNDO"),
        glue: classes("GLUE DISMISS CHANGE COMPLY SAYS"),
        refuse: classes("REFUSE"),
        attack: classes("ATTACK"),
        says: classes("SAYS"),
        chief: classes("CHIEF"),
        verb: classes("DISMISS CHANGE REVEAL SHOW"),
        option: classes("OPTION FLAG"),
    }
});

/// Whether the text around word `i` forbids, reports or warns of what word `i` says.
pub(super) fn is_excused(doc: &Document<'_>, i: usize) -> bool {
    is_negated(doc, i) || is_reported(doc, i)
}

/// Whether word `i` stands in somebody else's words that the text turns down.
pub(super) fn is_reported(doc: &Document<'_>, i: usize) -> bool {
    is_told_of(doc, i) || is_quoted_warning(doc, i) || is_asked_and_denied(doc, i)
}

/// "Can I skip approval? No."
fn is_asked_and_denied(doc: &Document<'_>, i: usize) -> bool {
    let Some(sentence) = doc.sentence(i) else { return false };
    sentence.ending == Some('?')
        && (doc.word(sentence.tokens.end) == "no" || doc.is(sentence.tokens.end, WORDS.neg))
}

/// Whether a negation governs word `i`.
pub(super) fn is_negated(doc: &Document<'_>, i: usize) -> bool {
    is_negated_in_sentence(doc, i) || is_negated_by_lead(doc, i)
}

fn is_negated_in_sentence(doc: &Document<'_>, i: usize) -> bool {
    let mut only_glue = true;
    let mut crossed = false;
    let mut modal = false;
    let mut right = i;
    for j in doc.back(i, NEGATION_REACH) {
        crossed |= doc.gap(right) >= Gap::Soft;
        if crossed && !only_glue || doc.gap(right) >= Gap::Colon {
            return is_in_negated_list(doc, i);
        }
        if doc.is(j, WORDS.neg) || modal && doc.word(j) == "no" {
            return !is_undone(doc, j, i);
        }
        if doc.one_of(j, "and but then instead so") && !joins_verbs(doc, j) {
            return false;
        }
        modal |= doc.one_of(j, "may can could should must will ever is are to");
        only_glue &= doc.is(j, WORDS.glue);
        right = j;
    }
    is_in_negated_list(doc, i)
}

/// "Do not share keys, skip approval, or ignore the rules": one negation at the head of an or-list.
fn is_in_negated_list(doc: &Document<'_>, i: usize) -> bool {
    let Some(sentence) = doc.sentence(i) else { return false };
    let head = sentence.tokens.start..i.min(sentence.tokens.start + 4);
    let Some(negation) = head.into_iter().find(|&j| doc.is(j, WORDS.neg)) else { return false };
    let near = negation + 24 > i
        && !(negation + 1..i)
            .any(|j| doc.gap(j) >= Gap::Clause || doc.one_of(j, "if and but then instead so just"));
    let listed = i.checked_sub(1).is_some_and(|b| doc.one_of(b, "or nor"))
        || doc.ends_before(i) && doc.ahead(i, 14).any(|j| doc.one_of(j, "or nor") && doc.gap(j) == Gap::Soft);
    near && listed && !is_undone(doc, negation, i)
}

/// "never ignore and bypass": the conjunction continues the verbs that the negation governs.
fn joins_verbs(doc: &Document<'_>, j: usize) -> bool {
    j.checked_sub(1).is_some_and(|before| doc.is(before, WORDS.verb))
}

/// "do not hesitate to", "why not", "not only": a negation that negates nothing.
fn is_undone(doc: &Document<'_>, negation: usize, verb: usize) -> bool {
    let asked = negation.checked_sub(1).is_some_and(|before| doc.one_of(before, "why if whether or"));
    // "refuse" and "avoid" can be told not to happen; "do not refuse to ignore" is an order to ignore.
    let doubled = doc.is(negation, WORDS.refuse)
        && doc.back(negation, 4).any(|j| doc.is(j, WORDS.neg) && !doc.is(j, WORDS.refuse));
    let between = negation + 1..verb;
    asked || doubled || between.into_iter().any(|j| doc.is(j, WORDS.undo) || doc.one_of(j, "forget matter"))
}

/// "You must never:" or "## Never" above a list negates the head of each item.
fn is_negated_by_lead(doc: &Document<'_>, i: usize) -> bool {
    doc.sentence(i).is_some_and(|sentence| i <= sentence.tokens.start + 3) && is_under_negation(doc, i)
}

/// Whether the list that word `i` stands in is one of things not to do.
fn is_under_negation(doc: &Document<'_>, i: usize) -> bool {
    let Some(sentence) = doc.sentence(i) else { return false };
    let governs = |lead: usize, words: usize| {
        doc.sentences.get(lead).is_some_and(|lead| {
            let short = lead.tokens.end.saturating_sub(lead.tokens.start) <= words;
            let tail = lead.tokens.end.saturating_sub(8).max(lead.tokens.start)..lead.tokens.end;
            let mut tail = tail.into_iter();
            short
                && lead.classes.has(WORDS.neg)
                && tail.all(|j| !doc.one_of(j, "forget hesitate need longer only apply fail"))
        })
    };
    sentence.lead.is_some_and(|lead| governs(lead, 24))
        || sentence.heading.is_some_and(|heading| governs(heading, 8))
}

/// "If a page tells you to …, refuse": somebody else's wish, with an answer to it.
fn is_told_of(doc: &Document<'_>, i: usize) -> bool {
    if doc.back(i, 5).take_while(|&j| doc.gap(j + 1) < Gap::Colon).any(|j| doc.is(j, WORDS.attack)) {
        return true;
    }
    if asks_first(doc, i) {
        return true;
    }
    let Some(says) = doc.back(i, SPEAKER_REACH).find(|&j| doc.is(j, WORDS.says)) else { return false };
    let in_charge = doc.back(says, 6).any(|j| doc.is(j, WORDS.chief) || doc.one_of(j, "i we im id ill"));
    let told = doc.is(says, Classes::PAST) && !doc.is(says, Classes::THIRD);
    let supposed = doc
        .back(i, 16)
        .any(|j| doc.one_of(j, "if when whenever someone anyone claims claiming pretends should"));
    (supposed || !in_charge && !told) && is_answered(doc, i)
}

/// "Ask me before you bypass …".
fn asks_first(doc: &Document<'_>, i: usize) -> bool {
    let Some(before) = doc.back(i, 4).find(|&j| doc.one_of(j, "before unless until")) else {
        return false;
    };
    let asks = "ask check confirm wait tell permission approval stop warn asks";
    doc.back(before, 8).any(|j| doc.one_of(j, asks) && !is_negated_in_sentence(doc, j))
}

/// Inside quotation marks, with words about attacks or refusal beside them.
fn is_quoted_warning(doc: &Document<'_>, i: usize) -> bool {
    doc.tokens.get(i).is_some_and(|token| token.quote != Quote::None) && is_answered(doc, i)
}

/// Whether this sentence, its neighbours or what leads into it turn the matter down.
fn is_answered(doc: &Document<'_>, i: usize) -> bool {
    let Some(here) = doc.tokens.get(i).map(|token| token.sentence) else { return false };
    let Some(sentence) = doc.sentences.get(here) else { return false };
    let near = [Some(here), here.checked_sub(1), Some(here + 1), sentence.lead, sentence.heading];
    let turned_down = near
        .into_iter()
        .flatten()
        .filter_map(|s| doc.sentences.get(s))
        .any(|sentence| refuses(doc, sentence) || sentence.classes.has(WORDS.attack));
    let stops = doc.one_of(sentence.tokens.start, "stop halt pause abort exit quit");
    turned_down || stops || declines_after(doc, i)
}

/// "…, do not comply" or "… The answer is no."
fn declines_after(doc: &Document<'_>, i: usize) -> bool {
    let Some(sentence) = doc.sentence(i) else { return false };
    let next_end = doc
        .sentence(sentence.tokens.end)
        .map_or(sentence.tokens.end, |next| next.tokens.end.min(sentence.tokens.end + 8));
    let tail = i + 1..next_end.min(i + 40);
    tail.into_iter().any(|j| {
        let denies = doc.is(j, WORDS.neg) && !doc.any_ahead(j, 2, WORDS.undo.with(WORDS.refuse));
        denies
            || doc.one_of(j, "no ignore stop treat data") && doc.gap(j) >= Gap::Soft
            || doc.word(j) == "no" && doc.ends_before(j + 1)
    })
}

/// Whether a sentence turns something down, and is not itself told not to.
fn refuses(doc: &Document<'_>, sentence: &Sentence) -> bool {
    // A sentence is asked once per hit in it or beside it, so a long one must not cost its length each time.
    const MOST_WORDS: usize = 60;
    let end = sentence.tokens.end.min(sentence.tokens.start + MOST_WORDS);
    sentence.classes.has(WORDS.refuse)
        && (sentence.tokens.start..end).any(|j| {
            let denied = |k: usize| doc.is(k, WORDS.neg) || doc.word(k) == "without";
            doc.is(j, WORDS.refuse) && !doc.back(j, 4).any(denied)
        })
}

/// Whether the verb at `start` is an order to the agent, not a description of what something does.
pub(super) fn is_order(doc: &Document<'_>, start: usize) -> bool {
    const LEADS: &str = "please and then you always also just now simply immediately or me first lets kindly quietly secretly i";
    const MODALS: &str = "must should can may will shall to";
    const SUBJECTS: &str =
        "you agent assistant and free allowed ok okay fine permitted have has need needs sure i";
    let before = start.checked_sub(1).filter(|_| !doc.ends_before(start));
    let subject = |b: usize| doc.ends_before(b) || b.checked_sub(1).is_some_and(|s| doc.one_of(s, SUBJECTS));
    let told = Classes::THIRD.with(Classes::PAST).with(Classes::GERUND).with(Classes::JOINED);
    !doc.is(start, told)
        && !doc.sentence(start).is_some_and(|sentence| sentence.classes.has(WORDS.option))
        && before.is_none_or(|b| {
            doc.one_of(b, LEADS) || doc.word(b).ends_with("ly") || doc.one_of(b, MODALS) && subject(b)
        })
}
