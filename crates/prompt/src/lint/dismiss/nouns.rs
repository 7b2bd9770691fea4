//! Words that name rules only in some places: "safety", "the body", "the above". Owns telling those places apart.

use super::super::kinds::Kinds;
use super::super::page::{Gap, Page};

/// "Ignore the above": the word stands for everything there.
pub(super) fn is_bare_above(page: &Page, j: usize) -> bool {
    let noun = page.is(j, Kinds::EARLIER)
        && j.checked_sub(1).is_some_and(|b| page.one_of(b, "the all everything what"));
    let alone = page.ends_before(j + 1) || page.one_of(j + 1, "and or but instead when then");
    noun && alone
}

/// A word that could be the object itself.
pub(super) fn is_content(page: &Page, j: usize) -> bool {
    let word = page.word(j);
    const SMALL: &str = "the a an of and or my its their this that these those completely such own other simply so called built very now please following current old silly boring just entirely";
    let known =
        Kinds::HIGHER | Kinds::EARLIER | Kinds::YOUR | Kinds::ALL | Kinds::LINK | Kinds::DISMISS | Kinds::NEG;
    let adverb = word.len() > 4 && word.ends_with("ly");
    !page.one_of(j, SMALL) && !page.is(j, known) && !adverb
}

/// "turn off safety", but not "safety glasses".
pub(super) fn is_safety_itself(page: &Page, j: usize) -> bool {
    let next = j + 1;
    let names_more = Kinds::RULE | Kinds::LOOSE;
    let alone = page.ends_before(next)
        || page.one_of(next, "and or for entirely completely when while now measures features systems mode");
    page.word(j) == "safety" && alone && !page.is(next, names_more)
}

/// "the body", "the system" at the end of a clause, where it stands for its rules.
pub(super) fn is_layer_itself(page: &Page, j: usize) -> bool {
    let next = j + 1;
    let ends = page.gap(next) >= Gap::Clause
        || page.ends_before(next) && !page.is(next, Kinds::HIGHER)
        || page.one_of(next, "says tells wants demands asks");
    let the = j.checked_sub(1).is_some_and(|b| page.one_of(b, "the your our"));
    the && ends && page.one_of(j, "body system operator platform")
}

/// The audit trail and its parts.
pub(super) fn is_record(page: &Page, j: usize) -> bool {
    let next = j + 1;
    let parts = "entry entries record records log logs trail step note notes line lines";
    let tool = j
        .checked_sub(1)
        .is_some_and(|b| page.one_of(b, "npm cargo pip yarn security dependency annual license"));
    page.one_of(j, "audit auditing")
        && !tool
        && (page.one_of(next, parts) || page.ends_before(next) || page.one_of(next, "when if for and or"))
}
