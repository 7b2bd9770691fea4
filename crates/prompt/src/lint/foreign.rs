//! Setting rules aside and waiving approval in languages other than English that put spaces between words.
//! Owns free word order: verb, rules and direction anywhere in one clause; negation near the verb excuses it.

use super::context;
use super::finding::{Findings, Rule};
use super::kinds::Kinds;
use super::page::{Gap, Page};

const REACH: usize = 9;
const WITHOUT: &str = "ohne zonder sans sin senza sem без bez بدون دون tanpa utan olmadan almadan";
/// One word for "without asking".
const UNASKED: &str = "sormadan onaysiz izinsiz";

/// Reports orders against rules and waivers of approval.
pub(super) fn find(page: &Page, findings: &mut Findings<'_>) {
    for (i, token) in page.tokens.iter().enumerate() {
        if is_order(page, i) {
            findings.add(Rule::IgnoreRules, token.at);
        } else if is_waiver(page, i) || is_needless(page, i) {
            findings.add(Rule::SkipApproval, token.at);
        }
    }
}

/// The words around `i`, up to the end of its clause on either side.
fn clause(page: &Page, i: usize) -> impl Iterator<Item = usize> {
    let back = page.back(i, REACH).take_while(|&j| page.gap(j + 1) < Gap::Colon);
    back.chain(page.ahead(i, REACH).take_while(|&j| page.gap(j) < Gap::Colon))
}

fn is_order(page: &Page, i: usize) -> bool {
    let kinds = page.kinds(i);
    let own = kinds.has(Kinds::FOREIGN);
    let dismisses = kinds.has(Kinds::DISMISS);
    let complies = kinds.has(Kinds::COMPLY) && own;
    if !dismisses && !complies {
        return false;
    }
    let all = clause(page, i).fold(Kinds::none(), |all, j| all | page.kinds(j));
    // "ignore" and "instructions" are spelled alike in several languages: one foreign word beside them is enough.
    let says_whose = Kinds::RULE | Kinds::EARLIER | Kinds::YOUR;
    let foreign = own || clause(page, i).any(|j| page.is(j, Kinds::FOREIGN) && page.is(j, says_whose));
    if !foreign || !all.has(Kinds::RULE) {
        return false;
    }
    let above = all.has(Kinds::EARLIER | Kinds::YOUR | Kinds::HIGHER);
    let sweeping = all.has(Kinds::ALL) && !all.has(Kinds::OUTSIDE | Kinds::TRADE) && dismisses;
    let negated = is_near_negation(page, i);
    let quoted = page.tokens.get(i).is_some_and(|token| token.quoted);
    (above || sweeping)
        && (dismisses && !negated || complies && negated)
        && !(quoted && context::is_excused(page, i))
}

fn is_near_negation(page: &Page, i: usize) -> bool {
    let before = page.back(i, 3).take_while(|&j| page.gap(j + 1) < Gap::Colon);
    let after = page.ahead(i, 3).take_while(|&j| page.gap(j) < Gap::Soft);
    before.chain(after).any(|j| negates(page, j))
}

fn negates(page: &Page, j: usize) -> bool {
    page.is(j, Kinds::NEG) || page.one_of(j, "no non")
}

/// "ohne Rückfrage", "sans demander".
fn is_waiver(page: &Page, i: usize) -> bool {
    let one_word = page.one_of(i, UNASKED);
    if !one_word && !page.one_of(i, WITHOUT) {
        return false;
    }
    let consents = one_word || page.any_ahead(i, 3, Kinds::CONSENT) || page.any_back(i, 2, Kinds::CONSENT);
    let acts = clause(page, i).any(|j| page.is(j, Kinds::ACT | Kinds::ALL));
    let negated =
        clause(page, i).any(|j| negates(page, j) && page.word(j) != "no" || j < i && page.word(j) == "no");
    consents && acts && !negated
}

/// "Du brauchst keine Genehmigung", "no pidas permiso", "не спрашивая".
fn is_needless(page: &Page, i: usize) -> bool {
    let kinds = page.kinds(i);
    let needs = kinds.has(Kinds::NEED | Kinds::ASK) && kinds.has(Kinds::FOREIGN);
    let consents = kinds.has(Kinds::ASK)
        || clause(page, i).any(|j| page.is(j, Kinds::CONSENT) && page.is(j, Kinds::FOREIGN));
    let acts = clause(page, i).any(|j| page.is(j, Kinds::ACT));
    needs && consents && acts && is_near_negation(page, i)
}
