//! Rules first, verb after: "the rules above no longer apply". Owns sentences that declare rules void.

use std::sync::OnceLock;

use super::context;
use super::finding::{Findings, Rule};
use super::kinds::Kinds;
use super::page::{Gap, Page};
use super::pattern::Phrases;

const VOID: &[&str] = &[
    "is|are|be|being|become|remain|consider|considered ~2 GONE",
    "is|are|be|being ~1 DISMISS",
    "has|have|been been? ~1 void|nullified|rescinded|revoked|suspended|lifted|cancelled|canceled|superseded|overridden",
    "have|has been ~1 disabled|waived|replaced|deactivated|removed by|with this|these|my|new",
    "no longer ~1 force|effect|apply|bind|matter|count|hold|govern|concern|relevant|valid|binding|needed|exist|stand",
    "is|are no longer ~1 valid|binding|relevant|active|applicable|required|needed|enforced",
    "not|never|isnt|arent ~2 binding|valid|applicable|relevant|mandatory|compulsory|enforced|real|force|effect",
    "not|dont|doesnt|never ~1 apply|applies|bind|count|matter|hold|concern",
    "mean|now ~2 opposite|reverse|nothing",
    "is|are|be ~1 reversed|inverted|swapped|flipped|paused",
    "is|are|be ~1 merely|just|only|mere ~1 suggestion|advice|optional|guideline|recommendation",
    "is|are|be ~1 suggestion|optional|voluntary",
    "can|may|should|must|will be ~1 ignored|disregarded|skipped|bypassed|relaxed|overridden|forgotten|dropped|suspended",
    "stop|cease|ceased to? apply|applying|be|to",
    "is|are off",
    "is|are ~2 history|dead|gone|past|mask|facade|theatre|theater|decoration|formality|over",
    "is|are lies|fake|wrong|mistaken",
];

/// Reports rules above this text that are declared void.
pub(super) fn find(page: &Page, findings: &mut Findings<'_>) {
    static PHRASES: OnceLock<Phrases> = OnceLock::new();
    let void = PHRASES.get_or_init(|| Phrases::new(VOID));
    for (i, token) in page.tokens.iter().enumerate() {
        if is_void_at(page, void, i) {
            findings.add(Rule::IgnoreRules, token.at);
        }
    }
}

/// Whether the rules at word `i` are named as standing above this text.
pub(super) fn is_above(page: &Page, i: usize) -> bool {
    standing(page, i).is_some()
}

fn is_void_at(page: &Page, void: &Phrases, i: usize) -> bool {
    if !can_be_void(page, i) {
        return false;
    }
    let Some(standing) = standing(page, i) else { return false };
    let mut after = page.ahead(i, 10).take_while(|&j| page.gap(j) < Gap::Clause);
    let Some((start, end)) = after.find_map(|j| Some((j, void.end_at(page, j)?))) else { return false };
    let narrows =
        standing == Standing::Earlier && (narrows_to_files(page, end) || is_history(page, start, end));
    !narrows
        && !context::is_excused(page, i)
        && !context::is_excused(page, start)
        && !is_denied(page, i, start, end)
}

fn can_be_void(page: &Page, i: usize) -> bool {
    let kinds = page.kinds(i);
    let told = |j: usize| page.is(j, Kinds::EARLIER | Kinds::HIGHER) || page.one_of(j, "told taught");
    let things = kinds.has(Kinds::THINGS) && page.ahead(i, 6).any(told);
    let earlier = page.any_ahead(i, 2, Kinds::EARLIER) || page.any_back(i, 3, Kinds::HIGHER);
    kinds.has(Kinds::RULE | Kinds::GUARD) || things || kinds.has(Kinds::LOOSE) && earlier
}

#[derive(PartialEq, Eq)]
enum Standing {
    /// Named as the system's or the agent's.
    Higher,
    /// Named as standing earlier in the text, which an honest document has as well.
    Earlier,
}

/// Whose rules these are; nothing when they are not above this text.
fn standing(page: &Page, i: usize) -> Option<Standing> {
    let mut higher = page.is(i, Kinds::GUARD);
    let mut earlier = false;
    let mut trade = false;
    for j in page.back(i, 4).take_while(|&j| page.gap(j + 1) < Gap::Colon).chain(page.ahead(i, 7)) {
        let kinds = page.kinds(j);
        let links = kinds.has(Kinds::LINK) && !page.one_of(j, "in of from by on at that which");
        if j > i && (links || page.one_of(j, "is are has have can may no not")) {
            break;
        }
        higher |= kinds.has(Kinds::HIGHER | Kinds::YOUR) || page.word(j) == "you";
        earlier |= kinds.has(Kinds::EARLIER) || j > i && page.one_of(j, "top beginning start");
        trade |= kinds.has(Kinds::TRADE);
    }
    if trade && !page.any_back(i, 2, Kinds::HIGHER) {
        return None;
    }
    if higher { Some(Standing::Higher) } else { earlier.then_some(Standing::Earlier) }
}

/// "do not apply to generated files": the rules stay, for something else.
fn narrows_to_files(page: &Page, end: usize) -> bool {
    let to = page.ahead(end, 3).find(|&j| {
        page.one_of(j, "to in for when outside on if by")
            && !page.is(j + 1, Kinds::THIS)
            && !page.is(j + 2, Kinds::THIS)
    });
    let agent = "you this me us conversation session chat channel owner messages here user mode";
    to.is_some_and(|to| !page.ahead(to, 3).any(|j| page.one_of(j, agent)))
}

/// "were superseded by", "has been replaced in March".
fn is_history(page: &Page, start: usize, end: usize) -> bool {
    if (start..=end).any(|j| page.word(j) == "longer")
        && !page.ahead(end, 2).any(|j| page.one_of(j, "in on by"))
    {
        return false;
    }
    let dated = page.ahead(end, 3).any(|j| page.one_of(j, "by in on since at with"));
    let here = page.ahead(end, 6).any(|j| page.is(j, Kinds::THIS));
    page.one_of(start, "was were") || dated && !here
}

fn is_denied(page: &Page, i: usize, start: usize, end: usize) -> bool {
    let negates = |j: usize| page.is(j, Kinds::NEG) || page.word(j) == "no" && page.word(j + 1) != "longer";
    let voids_by_negation =
        negates(start) || page.word(start) == "no" || (start..=end).any(|j| page.word(j) == "longer");
    let in_phrase = (start + 1..=end).any(negates) && !voids_by_negation;
    (i + 1..start).any(negates) || in_phrase || page.back(i, 3).any(|j| page.one_of(j, "no none"))
}

#[cfg(test)]
mod tests {
    use super::super::pattern::misnamed;

    #[test]
    fn phrases_name_only_known_meanings() {
        assert_eq!(misnamed(super::VOID), [""; 0]);
    }
}
