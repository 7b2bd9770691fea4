//! Rules first, verb after: "the rules above no longer apply". Owns sentences that declare rules void.

use super::context;
use super::finding::{Findings, Rule};
use super::kinds::Kinds;
use super::page::{Gap, Page};
use super::pattern::Phrases;

const VOID: &[&str] = &[
    "is|are|be|being|become|becomes|remain|consider|considered ~2 GONE",
    "is|are|be|being ~1 DISMISS",
    "has|have|been been? ~1 void|nullified|rescinded|revoked|suspended|lifted|cancelled|canceled|superseded|overridden",
    "have|has been ~1 disabled|waived|replaced|deactivated|removed by|with this|these|my|new",
    "no longer apply|applies|bind|binds|matter|matters|count|counts|hold|holds|govern|governs|concern|relevant|valid|binding|needed|exist|exists|stand|stands",
    "is|are no longer ~1 valid|binding|relevant|active|applicable|required|needed|enforced",
    "not|dont|doesnt|never ~1 apply|applies|bind|count|matter|hold|concern",
    "is|are|be ~1 merely|just|only|mere ~1 suggestions|suggestion|advice|optional|guidelines|recommendations",
    "is|are|be ~1 suggestions|optional|voluntary",
    "can|may|should|must|will be ~1 ignored|disregarded|skipped|bypassed|relaxed|overridden|forgotten|dropped|suspended",
    "stop|stops|cease|ceases|ceased to? apply|applying|be|to",
    "is|are off",
    "is|are lies|fake|wrong|mistaken",
];

/// Reports rules above this text that are declared void.
pub(super) fn find(page: &Page, findings: &mut Findings<'_>) {
    let void = Phrases::new(VOID);
    for i in 0..page.tokens.len() {
        if is_void_at(page, &void, i)
            && let Some(token) = page.tokens.get(i)
        {
            findings.add(Rule::IgnoreRules, token.at);
        }
    }
}

fn is_void_at(page: &Page, void: &Phrases, i: usize) -> bool {
    let kinds = page.kinds(i);
    if !kinds.has(Kinds::RULE | Kinds::GUARD)
        && !(kinds.has(Kinds::THINGS | Kinds::LOOSE) && page.any_ahead(i, 2, Kinds::EARLIER))
    {
        return false;
    }
    let Some(standing) = standing(page, i) else { return false };
    let declared = page
        .ahead(i, 9)
        .take_while(|&j| page.gap(j) < Gap::Clause)
        .find_map(|j| Some((j, void.end_at(page, j)?)));
    let Some((start, end)) = declared else { return false };
    let narrows = !standing.firm && (narrows_to_files(page, end) || told_in_past(page, start, end));
    !narrows
        && !context::is_excused(page, i)
        && !context::is_excused(page, start)
        && !is_denied(page, i, start, end)
}

struct Standing {
    /// Named as the system's, not only as standing earlier in the text.
    firm: bool,
}

/// Whose rules these are; nothing when they are not above this text.
fn standing(page: &Page, i: usize) -> Option<Standing> {
    let mut firm = page.is(i, Kinds::GUARD);
    let mut earlier = false;
    let mut trade = false;
    for j in page.back(i, 4).take_while(|&j| page.gap(j + 1) < Gap::Colon).chain(page.ahead(i, 3)) {
        let kinds = page.kinds(j);
        if j > i && kinds.has(Kinds::LINK) && !page.one_of(j, "in of from by") {
            break;
        }
        firm |= kinds.has(Kinds::HIGHER | Kinds::YOUR) || page.word(j) == "you";
        earlier |= kinds.has(Kinds::EARLIER);
        trade |= kinds.has(Kinds::TRADE);
    }
    ((firm || earlier) && (!trade || page.any_back(i, 2, Kinds::HIGHER))).then_some(Standing { firm })
}

/// "do not apply to generated files": the rules stay, for something else.
fn narrows_to_files(page: &Page, end: usize) -> bool {
    let Some(to) = page.ahead(end, 3).find(|&j| page.one_of(j, "to in for when outside on if by")) else {
        return false;
    };
    let agent = "you this me us conversation session chat channel owner messages here user mode";
    !page.ahead(to, 3).any(|j| page.one_of(j, agent))
}

/// "were superseded by", "has been replaced in March": history.
fn told_in_past(page: &Page, start: usize, end: usize) -> bool {
    let dated = page.ahead(end, 3).any(|j| page.one_of(j, "by in on since at with"));
    let here = page.ahead(end, 6).any(|j| page.is(j, Kinds::THIS));
    page.one_of(start, "was were") || dated && !here
}

fn is_denied(page: &Page, i: usize, start: usize, end: usize) -> bool {
    let negates = |j: usize| page.is(j, Kinds::NEG) || page.word(j) == "no" && page.word(j + 1) != "longer";
    let voids_by_negation =
        negates(start) || page.one_of(start, "no") || (start..=end).any(|j| page.word(j) == "longer");
    let in_phrase = (start + 1..=end).any(negates) && !voids_by_negation;
    (i + 1..start).any(negates) || in_phrase || page.back(i, 3).any(|j| page.one_of(j, "no none"))
}
