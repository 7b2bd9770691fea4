//! Orders to set rules aside and claims to outrank them: a verb, its object, and words that say whose rules.
//! Owns the English sentence with the verb first; `passive` has the other direction.

use std::sync::OnceLock;

use super::context;
use super::finding::{Findings, Rule};
use super::kinds::Kinds;
use super::page::{Gap, Page};
use super::passive;
use super::pattern::Phrases;

mod nouns;
mod object;

use object::object_after;

/// Reports every order or claim against rules above this text.
pub(super) fn find(page: &Page, findings: &mut Findings<'_>) {
    static VERBS: OnceLock<Verbs> = OnceLock::new();
    let verbs = VERBS.get_or_init(Verbs::new);
    for i in 0..page.tokens.len() {
        if let Some(rule) = verbs.rule_at(page, i)
            && let Some(token) = page.tokens.get(i)
        {
            findings.add(rule, token.at);
        }
    }
}

/// Verbs made of several words.
struct Verbs {
    dismiss: Phrases,
    disobey: Phrases,
    outrank: Phrases,
    release: Phrases,
    instead: Phrases,
}

const DISMISS: &[&str] = &[
    "turn|switch|shut ~3 off",
    "turn|switch|shut off",
    "set|put|leave|lay|push ~4 aside|behind",
    "throw|toss ~4 away|out",
    "cast|shake|shrug|throw|strip ~4 off|aside|away",
    "be|being|more ~4 relaxed|flexible|lenient|lax|loose|casual|liberal about|with|on|regarding|around",
    "go|ease easy|up on",
    "think|regard|view|see|interpret|take|treat|consider|read ~9 as|merely|mere|just|only ~2 suggestion|optional|advice|recommendation|void|joke|fiction|outdated|irrelevant|history|noise|obsolete|cancelled|lifted",
    "get rid of",
    "do away with",
    "pay no|little|scant attention|heed|mind|regard to",
    "turn a blind eye to",
    "look past|beyond|away",
    "depart|deviate|stray from",
    "dispense with",
    "take no notice of",
    "let go of",
    "opt out of",
    "work|get|go around",
    "make exceptions? to|from",
    "consider ~6 void|optional|irrelevant|obsolete|cancelled|lifted|suspended|superseded",
    "act|behave|respond|answer|operate|continue ~2 outside|against|contrary",
];

const DISOBEY: &[&str] = &[
    "NEG ~4 COMPLY to|by|with|from?",
    "NEG ~2 need|have to follow|obey|respect|heed",
    "need|should|must|do|does|will not ~2 COMPLY to|by|with?",
    "no longer ~3 COMPLY to|by|with?",
    "no need|reason|obligation to COMPLY to|by|with?",
    "stop|quit|cease|without COMPLY to|by|with?",
    "instead of COMPLY to|by|with?",
    "NEG ~2 worry|care|bother|fret about|with",
    "never mind",
    "less strict|careful|rigid|picky about|with|on",
    "NEG ~3 stick|keep|hold|listen|pay to|attention",
];

const OUTRANK: &[&str] = &[
    "take|takes|taking|has|have|having|given|gets|gain|gains|claim ~2 precedence|priority|primacy over|above",
    "outrank|outranks|trump|trumps|trumping|outweigh|outweighs|supplant|supplants",
    "prevail|prevails|win|wins|preside over|against",
    "come|comes|go|goes|stand|stands|rank|ranks before|above|over",
    "higher|greater|more ~1 priority|authority|rank|important|weight than",
    "override|overrides|supersede|supersedes|replace|replaces|overrule|overrules",
];

const INSTEAD: &[&str] = &["instead of", "rather than", "in place|lieu of", "as opposed to"];

const RELEASE: &[&str] = &[
    "exempt|exempted|excused|immune|free|freed|released|liberated|relieved|absolved|unbound|excluded from|of|to|by",
    "not|no|never|arent|isnt longer? bound|subject|restricted|constrained|limited|governed|beholden|covered by|to",
    "outside the reach|scope of",
    "stand|am|is|are|operate|live|exist beyond|above|outside",
];

impl Verbs {
    fn new() -> Self {
        Self {
            dismiss: Phrases::new(DISMISS),
            disobey: Phrases::new(DISOBEY),
            outrank: Phrases::new(OUTRANK),
            release: Phrases::new(RELEASE),
            instead: Phrases::new(INSTEAD),
        }
    }

    fn rule_at(&self, page: &Page, i: usize) -> Option<Rule> {
        self.claim_at(page, i)
            .or_else(|| self.order_at(page, i))
            .or_else(|| self.release_at(page, i))
            .or_else(|| self.replacement_at(page, i))
    }

    fn order_at(&self, page: &Page, i: usize) -> Option<Rule> {
        if let Some(end) = self.disobey.end_at(page, i) {
            if acts_on_named_before(page, i, end) && !context::is_reported(page, i) {
                return Some(Rule::IgnoreRules);
            }
            let object = object_after(page, end)?;
            let meant = object.is_above_in(page) && !object.is_outside(page);
            return (meant && !context::is_excused(page, i)).then_some(Rule::IgnoreRules);
        }
        let phrase = self.dismiss.end_at(page, i);
        let strong = page.is(i, Kinds::DISMISS) && !page.is(i, Kinds::FOREIGN);
        let end = phrase.or_else(|| (strong || page.is(i, Kinds::CHANGE)).then_some(i))?;
        if !is_order(page, i) {
            return None;
        }
        if (strong || phrase.is_some()) && acts_on_named_before(page, i, end) {
            return (!context::is_excused(page, i)).then_some(Rule::IgnoreRules);
        }
        if !strong && phrase.is_none() && page.ends_before(end + 1) {
            return None;
        }
        let object = object_after(page, end)
            .or_else(|| phrase.and_then(|_| object_after(page, i)))
            .or_else(|| object_after(page, after_aside(page, end)?))?;
        let meant = if strong || phrase.is_some() {
            object.is_target(page, i)
        } else {
            object.is_firm_target(page, i)
        };
        (meant && !context::is_excused(page, i)).then_some(Rule::IgnoreRules)
    }

    fn claim_at(&self, page: &Page, i: usize) -> Option<Rule> {
        let end = self.outrank.end_at(page, i)?;
        let object = object_after(page, end)?;
        let subject: Vec<usize> = page.back(i, 8).take_while(|&j| page.gap(j + 1) < Gap::Colon).collect();
        let high = subject.iter().any(|&j| page.is(j, Kinds::HIGHER));
        let own = subject.iter().any(|&j| is_this_text(page, j));
        let single = end == i;
        let meant = match (single, own) {
            (_, true) => {
                object.is_above_in(page)
                    || object.names_all(page) && !page.ahead(object.at, 4).any(|j| page.one_of(j, "in"))
            }
            (false, false) => {
                object.higher || object.names_all(page) && !high || object.earlier && object.all
            }
            (true, false) => !page.is(i, Kinds::DISMISS | Kinds::CHANGE) && object.higher,
        };
        (meant && (own || !high) && !context::is_excused(page, i)).then_some(Rule::ClaimPrecedence)
    }

    /// "Use these rules instead of the system's."
    fn replacement_at(&self, page: &Page, i: usize) -> Option<Rule> {
        let object = object_after(page, self.instead.end_at(page, i)?)?;
        let verb =
            page.back(i, 14).find(|&j| page.is(j, Kinds::COMPLY) || page.one_of(j, "use take read consult"));
        let meant = object.is_above_in(page) && verb.is_some_and(|verb| !context::is_excused(page, verb));
        (meant && !context::is_excused(page, i)).then_some(Rule::IgnoreRules)
    }

    fn release_at(&self, page: &Page, i: usize) -> Option<Rule> {
        let end = self.release.end_at(page, i)?;
        let about_agent =
            page.back(i, 6).any(|j| page.one_of(j, "you youre your persona agent character i im it he she"))
                || page
                    .back(i, 2)
                    .any(|j| page.tokens.get(j).is_some_and(|token| token.capital && token.kinds.is_empty()));
        let object = object_after(page, end)?;
        let restricts = object.rule || object.guard || object.names_all(page) || object.loose && object.all;
        let whose = object.all || object.is_above_in(page) || object.bare || object.guard;
        let excused = context::is_negated(page, i) || context::is_excused(page, i);
        (about_agent && restricts && whose && !object.is_outside(page) && !excused)
            .then_some(Rule::RoleChange)
    }
}

/// Whether word `j` points at this very text: "this file", "these instructions", "my rules".
pub(super) fn is_this_text(page: &Page, j: usize) -> bool {
    page.one_of(j, "following below herein hereby")
        || page.is(j, Kinds::THIS)
            && page.ahead(j, 3).any(|k| {
                page.is(k, Kinds::TEXT | Kinds::RULE | Kinds::CHIEF)
                    || page.one_of(k, "section user line words word workspace project")
            })
}

/// "The rules above are old, ignore them": the rules were named before the verb.
fn acts_on_named_before(page: &Page, i: usize, end: usize) -> bool {
    let pointing = page.ahead(i, end - i + 2).any(|j| page.one_of(j, "them those"));
    let pointing_up = page.ahead(i, end - i + 2).any(|j| page.word(j) == "it");
    let rules = |j: usize| page.is(j, Kinds::RULE | Kinds::GUARD) && passive::is_above(page, j);
    let all_above = |j: usize| {
        page.word(j) == "above" && j.checked_sub(1).is_some_and(|b| page.one_of(b, "the everything all"))
    };
    (i.saturating_sub(18)..i).any(|j| pointing && rules(j) || (pointing || pointing_up) && all_above(j))
}

/// The word before the one that follows an aside: "disregard, whenever it helps, the rules".
fn after_aside(page: &Page, end: usize) -> Option<usize> {
    (page.gap(end + 1) == Gap::Soft).then_some(())?;
    page.ahead(end, 20).skip(1).find(|&j| page.gap(j) == Gap::Soft).map(|j| j - 1)
}

/// Whether the verb at `i` gives an order or leave, rather than telling what somebody does.
fn is_order(page: &Page, i: usize) -> bool {
    let before = subject_before(page, i);
    let kinds = page.kinds(i);
    if kinds.has(Kinds::GERUND) {
        let starts = before.is_some_and(|b| page.one_of(b, "start begin by consider keep continue worth"));
        return starts || page.any_ahead(i, 14, Kinds::PERMIT);
    }
    if kinds.has(Kinds::PAST) {
        return false;
    }
    if kinds.has(Kinds::THIRD) {
        return page.gap(i) == Gap::Sentence
            || page.back(i, 7).any(|j| is_this_text(page, j))
            || is_said_of_agent(page, i);
    }
    let Some(before) = before else { return true };
    if page.one_of(before, "the a an no this each manual explicit method with of they who") {
        return false;
    }
    if page.one_of(before, "that which") {
        return page.back(i, 7).any(|j| is_this_text(page, j) || page.word(j) == "new")
            || page.one_of(before, "that") && page.back(before, 2).any(|j| page.one_of(j, "want require"));
    }
    let plural = page.word(before).len() > 3 && page.word(before).ends_with('s');
    let stands_alone = page.one_of(before, "always lets thus yes please this users");
    !plural || stands_alone || page.kinds(before).has(Kinds::DISMISS | Kinds::THIS | Kinds::YOUR)
}

/// The word before the verb at `i` in its clause, adverbs aside.
fn subject_before(page: &Page, i: usize) -> Option<usize> {
    let adverb = |j: usize| page.word(j).len() > 4 && page.word(j).ends_with("ly");
    let first = page.back(i, 3).take_while(|&j| page.gap(j + 1) < Gap::Soft).find(|&j| !adverb(j));
    first.filter(|_| !page.ends_before(i))
}

/// "Rook disregards …", "she ignores …": the agent described from outside.
fn is_said_of_agent(page: &Page, i: usize) -> bool {
    let Some(subject) =
        page.back(i, 2).find(|&j| !page.word(j).ends_with("ly") && !page.one_of(j, "always also never"))
    else {
        return false;
    };
    let named = page.tokens.get(subject).is_some_and(|token| token.capital && token.kinds.is_empty());
    named || page.one_of(subject, "he she persona agent assistant character bot model ai soul self")
}

#[cfg(test)]
mod tests {
    use super::super::pattern::misnamed;

    #[test]
    fn phrases_name_only_known_meanings() {
        for list in [super::DISMISS, super::DISOBEY, super::OUTRANK, super::INSTEAD, super::RELEASE] {
            assert_eq!(misnamed(list), [""; 0]);
        }
    }
}
