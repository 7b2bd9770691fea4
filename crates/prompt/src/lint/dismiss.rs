//! Orders to set rules aside and claims to outrank them: a verb, its object, and words that say whose rules.
//! Owns the English sentence with the verb first; `passive` has the other direction.

use std::sync::OnceLock;

use super::context;
use super::document::{Document, Gap};
use super::finding::{Findings, Rule};
use super::kinds::Kinds;
use super::passive;
use super::pattern::Phrases;

mod object;

use object::object_after;

/// Reports every order or claim against rules above this text.
pub(super) fn find(doc: &Document, findings: &mut Findings<'_>) {
    static VERBS: OnceLock<Verbs> = OnceLock::new();
    let verbs = VERBS.get_or_init(Verbs::new);
    for i in 0..doc.tokens.len() {
        if let Some(rule) = verbs.rule_at(doc, i)
            && let Some(token) = doc.tokens.get(i)
        {
            findings.add(rule, token.at);
        }
    }
}

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

    fn rule_at(&self, doc: &Document, i: usize) -> Option<Rule> {
        self.claim_at(doc, i)
            .or_else(|| self.order_at(doc, i))
            .or_else(|| self.release_at(doc, i))
            .or_else(|| self.replacement_at(doc, i))
    }

    fn order_at(&self, doc: &Document, i: usize) -> Option<Rule> {
        if let Some(end) = self.disobey.end_at(doc, i) {
            if acts_on_named_before(doc, i, end) && !context::is_reported(doc, i) {
                return Some(Rule::IgnoreRules);
            }
            let object = object_after(doc, end)?;
            let meant = object.is_above_in(doc) && !object.is_outside(doc);
            return (meant && !context::is_excused(doc, i)).then_some(Rule::IgnoreRules);
        }
        let phrase = self.dismiss.end_at(doc, i);
        let strong = doc.is(i, Kinds::DISMISS) && !doc.is(i, Kinds::FOREIGN);
        let end = phrase.or_else(|| (strong || doc.is(i, Kinds::CHANGE)).then_some(i))?;
        if !is_order(doc, i) {
            return None;
        }
        if (strong || phrase.is_some()) && acts_on_named_before(doc, i, end) {
            return (!context::is_excused(doc, i)).then_some(Rule::IgnoreRules);
        }
        if !strong && phrase.is_none() && doc.ends_before(end + 1) {
            return None;
        }
        let object = object_after(doc, end)
            .or_else(|| phrase.and_then(|_| object_after(doc, i)))
            .or_else(|| object_after(doc, after_aside(doc, end)?))?;
        let meant =
            if strong || phrase.is_some() { object.is_target(doc, i) } else { object.is_firm_target(doc, i) };
        (meant && !context::is_excused(doc, i)).then_some(Rule::IgnoreRules)
    }

    fn claim_at(&self, doc: &Document, i: usize) -> Option<Rule> {
        let end = self.outrank.end_at(doc, i)?;
        let object = object_after(doc, end)?;
        let subject: Vec<usize> = doc.back(i, 8).take_while(|&j| doc.gap(j + 1) < Gap::Colon).collect();
        let high = subject.iter().any(|&j| doc.is(j, Kinds::HIGHER));
        let own = subject.iter().any(|&j| is_this_text(doc, j));
        let single = end == i;
        let meant = match (single, own) {
            (_, true) => {
                object.is_above_in(doc)
                    || object.names_all(doc) && !doc.ahead(object.at, 4).any(|j| doc.one_of(j, "in"))
            }
            (false, false) => object.higher || object.names_all(doc) && !high || object.earlier && object.all,
            (true, false) => !doc.is(i, Kinds::DISMISS | Kinds::CHANGE) && object.higher,
        };
        (meant && (own || !high) && !context::is_excused(doc, i)).then_some(Rule::ClaimPrecedence)
    }

    /// "Use these rules instead of the system's."
    fn replacement_at(&self, doc: &Document, i: usize) -> Option<Rule> {
        let object = object_after(doc, self.instead.end_at(doc, i)?)?;
        let verb =
            doc.back(i, 14).find(|&j| doc.is(j, Kinds::COMPLY) || doc.one_of(j, "use take read consult"));
        let meant = object.is_above_in(doc) && verb.is_some_and(|verb| !context::is_excused(doc, verb));
        (meant && !context::is_excused(doc, i)).then_some(Rule::IgnoreRules)
    }

    fn release_at(&self, doc: &Document, i: usize) -> Option<Rule> {
        let end = self.release.end_at(doc, i)?;
        let about_agent =
            doc.back(i, 6).any(|j| doc.one_of(j, "you youre your persona agent character i im it he she"))
                || doc
                    .back(i, 2)
                    .any(|j| doc.tokens.get(j).is_some_and(|token| token.capital && token.kinds.is_empty()));
        let object = object_after(doc, end)?;
        let restricts = object.rule || object.guard || object.names_all(doc) || object.loose && object.all;
        let whose = object.all || object.is_above_in(doc) || object.bare || object.guard;
        let excused = context::is_negated(doc, i) || context::is_excused(doc, i);
        (about_agent && restricts && whose && !object.is_outside(doc) && !excused).then_some(Rule::RoleChange)
    }
}

/// Whether word `j` points at this very text: "this file", "these instructions", "my rules".
pub(super) fn is_this_text(doc: &Document, j: usize) -> bool {
    doc.one_of(j, "following below herein hereby")
        || doc.is(j, Kinds::THIS)
            && doc.ahead(j, 3).any(|k| {
                doc.is(k, Kinds::TEXT | Kinds::RULE | Kinds::CHIEF)
                    || doc.one_of(k, "section user line words word workspace project")
            })
}

/// "The rules above are old, ignore them": the rules were named before the verb.
fn acts_on_named_before(doc: &Document, i: usize, end: usize) -> bool {
    let pointing = doc.ahead(i, end - i + 2).any(|j| doc.one_of(j, "them those"));
    let pointing_up = doc.ahead(i, end - i + 2).any(|j| doc.word(j) == "it");
    let rules = |j: usize| doc.is(j, Kinds::RULE | Kinds::GUARD) && passive::is_above(doc, j);
    let all_above = |j: usize| {
        doc.word(j) == "above" && j.checked_sub(1).is_some_and(|b| doc.one_of(b, "the everything all"))
    };
    (i.saturating_sub(18)..i).any(|j| pointing && rules(j) || (pointing || pointing_up) && all_above(j))
}

/// The word before the one that follows an aside: "disregard, whenever it helps, the rules".
fn after_aside(doc: &Document, end: usize) -> Option<usize> {
    (doc.gap(end + 1) == Gap::Soft).then_some(())?;
    doc.ahead(end, 20).skip(1).find(|&j| doc.gap(j) == Gap::Soft).map(|j| j - 1)
}

/// Whether the verb at `i` gives an order or leave, rather than telling what somebody does.
fn is_order(doc: &Document, i: usize) -> bool {
    let before = subject_before(doc, i);
    let kinds = doc.kinds(i);
    if kinds.has(Kinds::GERUND) {
        let starts = before.is_some_and(|b| doc.one_of(b, "start begin by consider keep continue worth"));
        return starts || doc.any_ahead(i, 14, Kinds::PERMIT);
    }
    if kinds.has(Kinds::PAST) {
        return false;
    }
    if kinds.has(Kinds::THIRD) {
        return doc.gap(i) == Gap::Sentence
            || doc.back(i, 7).any(|j| is_this_text(doc, j))
            || is_said_of_agent(doc, i);
    }
    let Some(before) = before else { return true };
    if doc.one_of(before, "the a an no this each manual explicit method with of they who") {
        return false;
    }
    if doc.one_of(before, "that which") {
        return doc.back(i, 7).any(|j| is_this_text(doc, j) || doc.word(j) == "new")
            || doc.one_of(before, "that") && doc.back(before, 2).any(|j| doc.one_of(j, "want require"));
    }
    let plural = doc.word(before).len() > 3 && doc.word(before).ends_with('s');
    let stands_alone = doc.one_of(before, "always lets thus yes please this users");
    !plural || stands_alone || doc.kinds(before).has(Kinds::DISMISS | Kinds::THIS | Kinds::YOUR)
}

/// The word before the verb at `i` in its clause, adverbs aside.
fn subject_before(doc: &Document, i: usize) -> Option<usize> {
    let adverb = |j: usize| doc.word(j).len() > 4 && doc.word(j).ends_with("ly");
    let first = doc.back(i, 3).take_while(|&j| doc.gap(j + 1) < Gap::Soft).find(|&j| !adverb(j));
    first.filter(|_| !doc.ends_before(i))
}

/// "Rook disregards …", "she ignores …": the agent described from outside.
fn is_said_of_agent(doc: &Document, i: usize) -> bool {
    let Some(subject) =
        doc.back(i, 2).find(|&j| !doc.word(j).ends_with("ly") && !doc.one_of(j, "always also never"))
    else {
        return false;
    };
    let named = doc.tokens.get(subject).is_some_and(|token| token.capital && token.kinds.is_empty());
    named || doc.one_of(subject, "he she persona agent assistant character bot model ai soul self")
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
