//! Proposals for the standing instructions: the whole new text, its difference, and the owner's decision.

use embody_store::{
    DecideProposal, Error, Instructions, NewProposal, Proposal, ProposalOutcome, ProposalStatus, Scope, Store,
};

use super::sentences::fold;
use crate::{Caller, Moment};

/// The most wishes of one observation: each becomes a line of the same proposal's text.
const MOST_LINES: usize = 4;
/// The most proposals that are listed.
const MOST_OPEN: u32 = 100;

/// What became of an acceptance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProposalDecision {
    /// The line is part of the standing instructions, which are these now.
    Accepted(Instructions),
    /// The instructions had changed since; the proposal was made anew on top of them and waits for another word.
    Renewed(Proposal),
    /// It was accepted or dismissed before.
    Decided(Proposal),
}

/// The proposals that wait, oldest first.
pub async fn open_proposals(store: &Store, scope: &Scope) -> Result<Vec<Proposal>, Error> {
    store.proposals(scope, ProposalStatus::Open, MOST_OPEN).await
}

/// Makes a proposal the standing instructions, on the owner's word. Who may give it is for the caller to check.
pub async fn accept_proposal(
    store: &Store,
    caller: &Caller,
    id: &str,
    now: &Moment,
) -> Result<ProposalDecision, Error> {
    match store.accept_proposal(&caller.scope, decide(caller, id, now)).await? {
        ProposalOutcome::Accepted(instructions) => Ok(ProposalDecision::Accepted(instructions)),
        ProposalOutcome::Decided(proposal) => Ok(ProposalDecision::Decided(proposal)),
        ProposalOutcome::Stale(instructions) => {
            let Some(old) = store.proposal(&caller.scope, id).await? else {
                return store
                    .dismiss_proposal(&caller.scope, decide(caller, id, now))
                    .await
                    .map(ProposalDecision::Decided);
            };
            // The line may have come into the instructions on another way: then there is nothing left to ask.
            let Some(change) = change(old.change.line, old.change.sentence, &instructions) else {
                return store
                    .dismiss_proposal(&caller.scope, decide(caller, id, now))
                    .await
                    .map(ProposalDecision::Decided);
            };
            store.renew_proposal(&caller.scope, id, change).await.map(ProposalDecision::Renewed)
        }
    }
}

/// Puts a proposal away.
pub async fn dismiss_proposal(
    store: &Store,
    caller: &Caller,
    id: &str,
    now: &Moment,
) -> Result<Proposal, Error> {
    store.dismiss_proposal(&caller.scope, decide(caller, id, now)).await
}

fn decide(caller: &Caller, id: &str, now: &Moment) -> DecideProposal {
    DecideProposal { id: id.to_owned(), by: caller.writer.clone(), at: now.micros() }
}

/// A proposal for each wish that the instructions do not have yet.
pub(super) fn draft(lines: Vec<(String, String)>, instructions: &Instructions) -> Vec<NewProposal> {
    let wishes = lines.into_iter().take(MOST_LINES);
    wishes.filter_map(|(line, sentence)| change(line, sentence, instructions)).collect()
}

fn change(line: String, sentence: String, instructions: &Instructions) -> Option<NewProposal> {
    let same = |there: &str| {
        fold(there.trim_start_matches(['-', '*', ' '])).trim_end_matches('.')
            == fold(&line).trim_end_matches('.')
    };
    if instructions.text.lines().any(same) {
        return None;
    }
    let before = instructions.text.trim_end();
    let line_end = if before.is_empty() { "" } else { "\n" };
    let text = format!("{before}{line_end}{line}");
    let diff = difference(before, &line, instructions.version);
    Some(NewProposal { line, text, diff, base_version: instructions.version, sentence })
}

/// What would change, as people know it: the last lines as they are, and the new one.
fn difference(before: &str, line: &str, version: i64) -> String {
    const AROUND: usize = 3;
    let count = before.lines().count();
    let around: Vec<&str> = before.lines().skip(count.saturating_sub(AROUND)).collect();
    let first = if around.is_empty() { 0 } else { count - around.len() + 1 };
    let mut diff = format!("--- instructions, version {version}\n+++ instructions, proposed\n");
    diff.push_str(&format!("@@ -{first},{} +{},{} @@\n", around.len(), first.max(1), around.len() + 1));
    for line in around {
        diff.push_str(&format!(" {line}\n"));
    }
    diff.push_str(&format!("+{line}\n"));
    diff
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instructions(text: &str) -> Instructions {
        Instructions { text: text.into(), version: 3, changed_at: 0 }
    }

    #[test]
    fn the_new_line_stands_below_the_old_ones() {
        let change = change("Be brief.".into(), "be brief".into(), &instructions("One.\nTwo.\n")).unwrap();
        assert_eq!((change.text.as_str(), change.base_version), ("One.\nTwo.\nBe brief.", 3));
        assert_eq!(
            change.diff,
            "--- instructions, version 3\n+++ instructions, proposed\n@@ -1,2 +1,3 @@\n One.\n Two.\n+Be brief.\n"
        );
    }

    #[test]
    fn what_is_there_is_not_proposed() {
        assert!(change("Be brief.".into(), String::new(), &instructions("- be brief")).is_none());
        assert_eq!(change("Be brief.".into(), String::new(), &instructions("")).unwrap().text, "Be brief.");
    }
}
