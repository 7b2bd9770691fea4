//! Attempts that are told by a phrase rather than by verb and object: roles, authority, approval, secrecy, leaking.
//! Owns running the phrase lists of its files over a page; each list comes with the check that decides a match.

mod approval;
mod authority;
mod leak;
mod role;
mod secrecy;
mod talk;

use super::finding::{Findings, Rule};
use super::page::Page;
use super::pattern::Phrases;

/// Phrases that suggest one rule, and what else must hold.
struct Group {
    rule: Rule,
    phrases: &'static [&'static str],
    /// Decides on a match from its first to its last word.
    holds: fn(&Page, usize, usize) -> bool,
}

/// Reports every phrase that holds.
pub(super) fn find(page: &Page, findings: &mut Findings<'_>) {
    for group in
        [role::GROUPS, authority::GROUPS, approval::GROUPS, secrecy::GROUPS, leak::GROUPS, talk::GROUPS]
            .into_iter()
            .flatten()
    {
        let phrases = Phrases::new(group.phrases);
        for (i, token) in page.tokens.iter().enumerate() {
            if phrases.end_at(page, i).is_some_and(|end| (group.holds)(page, i, end)) {
                findings.add(group.rule, token.at);
            }
        }
    }
}
