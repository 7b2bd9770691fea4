//! Attempts that are told by a phrase rather than by verb and object: roles, authority, approval, secrecy, leaking.
//! Owns running the phrase lists of its files over a page; each list comes with the check that decides a match.

mod approval;
mod authority;
mod leak;

use std::sync::OnceLock;

use super::document::Document;
use super::finding::{Findings, Rule};
use super::pattern::Phrases;

/// Phrases that suggest one rule, and what else must hold.
struct Group {
    rule: Rule,
    phrases: &'static [&'static str],
    /// Decides on a match from its first to its last word.
    holds: fn(&Document, usize, usize) -> bool,
}

pub(super) fn find(doc: &Document, findings: &mut Findings<'_>) {
    let known = known();
    for (i, token) in doc.tokens.iter().enumerate() {
        if !known.all.can_start_at(doc, i) {
            continue;
        }
        for (group, phrases) in &known.groups {
            if phrases.end_at(doc, i).is_some_and(|end| (group.holds)(doc, i, end)) {
                findings.add(group.rule, token.at);
            }
        }
    }
}

struct Known {
    groups: Vec<(&'static Group, Phrases)>,
    /// Every phrase of every group, to pass over words that start none.
    all: Phrases,
}

/// The phrases of all files, read once.
fn known() -> &'static Known {
    static KNOWN: OnceLock<Known> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let lists = [
            authority::ROLE_GROUPS,
            authority::GROUPS,
            approval::GROUPS,
            leak::SECRECY_GROUPS,
            leak::GROUPS,
            authority::TALK_GROUPS,
        ];
        let groups = lists.into_iter().flatten();
        let all: Vec<&'static str> = groups.clone().flat_map(|group| group.phrases.iter().copied()).collect();
        Known {
            groups: groups.map(|group| (group, Phrases::new(group.phrases))).collect(),
            all: Phrases::new(&all),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::pattern::misnamed;

    #[test]
    fn phrases_name_only_known_meanings() {
        for (group, _) in &super::known().groups {
            assert_eq!(misnamed(group.phrases), [""; 0]);
        }
    }
}
