//! Setting rules aside and waiving approval in languages other than English that put spaces between words.
//! Owns free word order: verb, rules and direction anywhere in one clause; negation near the verb excuses it.

use super::context;
use super::document::{Document, Gap};
use super::finding::{Findings, Rule};
use super::kinds::Kinds;

const REACH: usize = 9;
const WITHOUT: &str = "ohne zonder sans sin senza sem без bez بدون دون tanpa utan olmadan almadan";
/// One word for "without asking".
const UNASKED: &str = "sormadan onaysiz izinsiz";

pub(super) fn find(doc: &Document, findings: &mut Findings<'_>) {
    for (i, token) in doc.tokens.iter().enumerate() {
        if is_order(doc, i) {
            findings.add(Rule::IgnoreRules, token.at);
        } else if is_waiver(doc, i) || is_needless(doc, i) {
            findings.add(Rule::SkipApproval, token.at);
        }
    }
}

/// The words around `i`, up to the end of its clause on either side.
fn clause(doc: &Document, i: usize) -> impl Iterator<Item = usize> {
    let back = doc.back(i, REACH).take_while(|&j| doc.gap(j + 1) < Gap::Colon);
    back.chain(doc.ahead(i, REACH).take_while(|&j| doc.gap(j) < Gap::Colon))
}

fn is_order(doc: &Document, i: usize) -> bool {
    let kinds = doc.kinds(i);
    let own = kinds.has(Kinds::FOREIGN);
    let dismisses = kinds.has(Kinds::DISMISS);
    let complies = kinds.has(Kinds::COMPLY) && own;
    if !dismisses && !complies {
        return false;
    }
    let all = clause(doc, i).fold(Kinds::none(), |all, j| all | doc.kinds(j));
    // "ignore" and "instructions" are spelled alike in several languages: one foreign word beside them is enough.
    let says_whose = Kinds::RULE | Kinds::EARLIER | Kinds::YOUR;
    let foreign = own || clause(doc, i).any(|j| doc.is(j, Kinds::FOREIGN) && doc.is(j, says_whose));
    if !foreign || !all.has(Kinds::RULE) {
        return false;
    }
    let above = all.has(Kinds::EARLIER | Kinds::YOUR | Kinds::HIGHER);
    let sweeping = all.has(Kinds::ALL) && !all.has(Kinds::OUTSIDE | Kinds::TRADE) && dismisses;
    let negated = is_near_negation(doc, i);
    let quoted = doc.tokens.get(i).is_some_and(|token| token.quoted);
    (above || sweeping)
        && (dismisses && !negated || complies && negated)
        && !(quoted && context::is_excused(doc, i))
}

fn is_near_negation(doc: &Document, i: usize) -> bool {
    let before = doc.back(i, 3).take_while(|&j| doc.gap(j + 1) < Gap::Colon);
    let after = doc.ahead(i, 3).take_while(|&j| doc.gap(j) < Gap::Soft);
    before.chain(after).any(|j| negates(doc, j))
}

fn negates(doc: &Document, j: usize) -> bool {
    doc.is(j, Kinds::NEG) || doc.one_of(j, "no non")
}

/// "ohne Rückfrage", "sans demander".
fn is_waiver(doc: &Document, i: usize) -> bool {
    let one_word = doc.one_of(i, UNASKED);
    if !one_word && !doc.one_of(i, WITHOUT) {
        return false;
    }
    let consents = one_word || doc.any_ahead(i, 3, Kinds::CONSENT) || doc.any_back(i, 2, Kinds::CONSENT);
    let acts = clause(doc, i).any(|j| doc.is(j, Kinds::ACT | Kinds::ALL));
    let negated =
        clause(doc, i).any(|j| negates(doc, j) && doc.word(j) != "no" || j < i && doc.word(j) == "no");
    consents && acts && !negated
}

/// "Du brauchst keine Genehmigung", "no pidas permiso", "не спрашивая".
fn is_needless(doc: &Document, i: usize) -> bool {
    let kinds = doc.kinds(i);
    let needs = kinds.has(Kinds::NEED | Kinds::ASK) && kinds.has(Kinds::FOREIGN);
    let consents = kinds.has(Kinds::ASK)
        || clause(doc, i).any(|j| doc.is(j, Kinds::CONSENT) && doc.is(j, Kinds::FOREIGN));
    let acts = clause(doc, i).any(|j| doc.is(j, Kinds::ACT));
    needs && consents && acts && is_near_negation(doc, i)
}
