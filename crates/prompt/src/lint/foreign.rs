//! Setting rules aside and waiving approval in languages other than English that put spaces between words.
//! Owns free word order: verb, rules and direction anywhere in one clause; negation near the verb excuses it.

use super::context;
use super::finding::{Findings, Rule};
use super::kinds::Kinds;
use super::page::{Gap, Page};

const REACH: usize = 9;
const WITHOUT: &str = "ohne zonder sans sin senza sem без bez بدون دون tanpa utan olmadan almadan sormadan onaysiz izinsiz спрашивая";

/// Reports orders against rules and waivers of approval.
pub(super) fn find(page: &Page, findings: &mut Findings<'_>) {
    for (i, token) in page.tokens.iter().enumerate() {
        if is_order(page, i) {
            findings.add(Rule::IgnoreRules, token.at);
        } else if is_waiver(page, i) {
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
    let dismisses = kinds.has(Kinds::DISMISS);
    let complies = kinds.has(Kinds::COMPLY);
    let own = kinds.has(Kinds::FOREIGN);
    let others = clause(page, i).filter(|&j| page.is(j, Kinds::RULE)).collect::<Vec<_>>();
    let rules_foreign = others.iter().any(|&j| page.is(j, Kinds::FOREIGN));
    // "ignore" and "instructions" are spelled alike in several languages: one foreign word is enough.
    let marked = own
        || rules_foreign
        || clause(page, i).any(|j| page.is(j, Kinds::FOREIGN) && page.is(j, Kinds::EARLIER | Kinds::YOUR));
    if !(dismisses || complies && own) || others.is_empty() || !marked {
        return false;
    }
    let all = clause(page, i).fold(Kinds::none(), |all, j| all | page.kinds(j));
    let negated = near_negation(page, i);
    let above = all.has(Kinds::EARLIER | Kinds::YOUR) || all.has(Kinds::HIGHER);
    let sweeping = all.has(Kinds::ALL) && !all.has(Kinds::OUTSIDE | Kinds::TRADE);
    let meant = above || sweeping && dismisses;
    meant && (dismisses && !negated || complies && own && negated) && !context_excuses(page, i)
}

fn near_negation(page: &Page, i: usize) -> bool {
    let near = page.back(i, 3).take_while(|&j| page.gap(j + 1) < Gap::Colon).chain(page.ahead(i, 3));
    near.into_iter().any(|j| page.is(j, Kinds::NEG) || page.one_of(j, "no non")) || page.word(i) == "unutma"
}

/// Quoted as a warning, or told of with an answer.
fn context_excuses(page: &Page, i: usize) -> bool {
    page.tokens.get(i).is_some_and(|token| token.quoted) && context::is_excused(page, i)
}

fn is_waiver(page: &Page, i: usize) -> bool {
    if !page.one_of(i, WITHOUT) {
        return false;
    }
    let consents = page.is(i, Kinds::CONSENT)
        || page.any_ahead(i, 3, Kinds::CONSENT)
        || page.any_back(i, 2, Kinds::CONSENT);
    let acts = clause(page, i).any(|j| page.is(j, Kinds::ACT | Kinds::ALL));
    let negated =
        page.back(i, REACH).take_while(|&j| page.gap(j + 1) < Gap::Colon).chain(page.ahead(i, REACH)).any(
            |j| page.is(j, Kinds::NEG) && page.word(i) != "спрашивая" || page.one_of(j, "no non") && j < i,
        );
    let silent = page.word(i) == "спрашивая" && !page.back(i, 8).any(|j| page.one_of(j, "никогда нельзя"));
    consents && acts && (!negated || silent)
}
