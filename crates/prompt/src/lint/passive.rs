//! Rules first, verb after: "the rules above no longer apply". Owns sentences that declare rules void.

use std::sync::OnceLock;

use super::context;
use super::document::{Document, Gap};
use super::finding::{Findings, Rule};
use super::lexicon::Kinds;
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

pub(super) fn find(doc: &Document, findings: &mut Findings<'_>) {
    static PHRASES: OnceLock<Phrases> = OnceLock::new();
    let void = PHRASES.get_or_init(|| Phrases::new(VOID));
    for (i, token) in doc.tokens.iter().enumerate() {
        if is_void_at(doc, void, i) {
            findings.add(Rule::IgnoreRules, token.at);
        }
    }
}

/// Whether the rules at word `i` are named as standing above this text.
pub(super) fn is_above(doc: &Document, i: usize) -> bool {
    standing(doc, i).is_some()
}

fn is_void_at(doc: &Document, void: &Phrases, i: usize) -> bool {
    if !can_be_void(doc, i) {
        return false;
    }
    let Some(standing) = standing(doc, i) else { return false };
    let mut after = doc.ahead(i, 10).take_while(|&j| doc.gap(j) < Gap::Clause);
    let Some((start, end)) = after.find_map(|j| Some((j, void.end_at(doc, j)?))) else { return false };
    let narrows =
        standing == Standing::Earlier && (narrows_to_files(doc, end) || is_history(doc, start, end));
    !narrows
        && !context::is_excused(doc, i)
        && !context::is_excused(doc, start)
        && !is_denied(doc, i, start, end)
}

fn can_be_void(doc: &Document, i: usize) -> bool {
    let kinds = doc.kinds(i);
    let told = |j: usize| doc.is(j, Kinds::EARLIER | Kinds::HIGHER) || doc.one_of(j, "told taught");
    let things = kinds.has(Kinds::THINGS) && doc.ahead(i, 6).any(told);
    let earlier = doc.any_ahead(i, 2, Kinds::EARLIER) || doc.any_back(i, 3, Kinds::HIGHER);
    kinds.has(Kinds::RULE | Kinds::GUARD) || things || kinds.has(Kinds::LOOSE) && earlier
}

#[derive(PartialEq, Eq)]
enum Standing {
    Higher,
    /// Named as standing earlier in the text, which an honest document has as well.
    Earlier,
}

/// Whose rules these are; nothing when they are not above this text.
fn standing(doc: &Document, i: usize) -> Option<Standing> {
    let mut higher = doc.is(i, Kinds::GUARD);
    let mut earlier = false;
    let mut trade = false;
    for j in doc.back(i, 4).take_while(|&j| doc.gap(j + 1) < Gap::Colon).chain(doc.ahead(i, 7)) {
        let kinds = doc.kinds(j);
        let links = kinds.has(Kinds::LINK) && !doc.one_of(j, "in of from by on at that which");
        if j > i && (links || doc.one_of(j, "is are has have can may no not")) {
            break;
        }
        higher |= kinds.has(Kinds::HIGHER | Kinds::YOUR) || doc.word(j) == "you";
        earlier |= kinds.has(Kinds::EARLIER) || j > i && doc.one_of(j, "top beginning start");
        trade |= kinds.has(Kinds::TRADE);
    }
    if trade && !doc.any_back(i, 2, Kinds::HIGHER) {
        return None;
    }
    if higher { Some(Standing::Higher) } else { earlier.then_some(Standing::Earlier) }
}

/// "do not apply to generated files": the rules stay, for something else.
fn narrows_to_files(doc: &Document, end: usize) -> bool {
    let to = doc.ahead(end, 3).find(|&j| {
        doc.one_of(j, "to in for when outside on if by")
            && !doc.is(j + 1, Kinds::THIS)
            && !doc.is(j + 2, Kinds::THIS)
    });
    let agent = "you this me us conversation session chat channel owner messages here user mode";
    to.is_some_and(|to| !doc.ahead(to, 3).any(|j| doc.one_of(j, agent)))
}

/// "were superseded by", "has been replaced in March".
fn is_history(doc: &Document, start: usize, end: usize) -> bool {
    if (start..=end).any(|j| doc.word(j) == "longer") && !doc.ahead(end, 2).any(|j| doc.one_of(j, "in on by"))
    {
        return false;
    }
    let dated = doc.ahead(end, 3).any(|j| doc.one_of(j, "by in on since at with"));
    let here = doc.ahead(end, 6).any(|j| doc.is(j, Kinds::THIS));
    doc.one_of(start, "was were") || dated && !here
}

fn is_denied(doc: &Document, i: usize, start: usize, end: usize) -> bool {
    let negates = |j: usize| doc.is(j, Kinds::NEG) || doc.word(j) == "no" && doc.word(j + 1) != "longer";
    let voids_by_negation =
        negates(start) || doc.word(start) == "no" || (start..=end).any(|j| doc.word(j) == "longer");
    let in_phrase = (start + 1..=end).any(negates) && !voids_by_negation;
    (i + 1..start).any(negates) || in_phrase || doc.back(i, 3).any(|j| doc.one_of(j, "no none"))
}

#[cfg(test)]
mod tests {
    use super::super::pattern::misnamed;

    #[test]
    fn phrases_name_only_known_meanings() {
        assert_eq!(misnamed(super::VOID), [""; 0]);
    }
}
