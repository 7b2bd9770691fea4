//! The rules: wordings that make a definition suspicious. A test checks the examples of each rule: sentences that it finds,
//! and similar sentences that pass. `matcher` explains the pattern syntax.

mod consent;
mod handing_over;
mod languages;
mod other_tools;
mod overriding;
mod secrecy;

use super::Suspicion;

pub(super) struct Rule {
    pub(super) suspicion: Suspicion,
    /// Any of them matches.
    pub(super) patterns: &'static [&'static str],
    /// One of these words shortly before the match makes it harmless.
    pub(super) unless_after: &'static str,
    /// One of these words anywhere in the sentence makes it harmless.
    pub(super) unless: &'static str,
    /// Sentences that this rule finds.
    #[cfg_attr(not(test), expect(dead_code, reason = "examples are for readers and for the test"))]
    pub(super) quarantined: &'static [&'static str],
    /// Sentences like them that pass the whole scan.
    #[cfg_attr(not(test), expect(dead_code, reason = "examples are for readers and for the test"))]
    pub(super) passes: &'static [&'static str],
}

/// All rules, in the order in which they are tried.
pub(super) fn all() -> impl Iterator<Item = &'static Rule> {
    let groups = [
        overriding::RULES,
        secrecy::RULES,
        consent::RULES,
        handing_over::RULES,
        other_tools::RULES,
        languages::RULES,
    ];
    groups.into_iter().flatten()
}
