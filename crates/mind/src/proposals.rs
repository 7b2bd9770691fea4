//! Proposals for the standing instructions: a line for each wish of the owner, and the owner's decision about it. Refuses to
//! change the instructions by itself.

use embody_store::instructions::Instructions;
use embody_store::proposals::{DecideProposal, NewProposal, Proposal, ProposalOutcome, ProposalStatus};
use embody_text::fold::fold;

use crate::error::{Error, Result};
use crate::instructions::full_proposal;
use crate::{Caller, Mind, Trust, ZonedNow, diff};

/// The most wishes of one observation: each becomes a line of the same proposal's text.
const MAX_LINES: usize = 4;
const MAX_OPEN: u32 = 100;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProposalDecision {
    /// The line is part of the standing instructions, which are these now.
    Accepted(Instructions),
    /// The instructions had changed since; the proposal was made anew on top of them and waits for another word.
    Renewed(Proposal),
    Decided(Proposal),
}

impl Mind {
    pub async fn open_proposals(&self, caller: &Caller) -> Result<Vec<Proposal>> {
        Ok(self.store.proposals().list(&caller.scope, ProposalStatus::Open, MAX_OPEN).await?)
    }

    /// Makes a proposal the standing instructions. Only the owner's own hand can; a model is refused.
    pub async fn accept_proposal(
        &self,
        caller: &Caller,
        id: &str,
        now: &ZonedNow,
    ) -> Result<ProposalDecision> {
        owner_only(caller, "accepting", id)?;
        let (store, scope) = (&self.store, &caller.scope);
        let instructions = match store.proposals().accept(scope, decide(caller, id, now)).await? {
            ProposalOutcome::Accepted(instructions) => return Ok(ProposalDecision::Accepted(instructions)),
            ProposalOutcome::Decided(proposal) => return Ok(ProposalDecision::Decided(proposal)),
            ProposalOutcome::Stale(instructions) => instructions,
        };
        let old = store.proposals().get(scope, id).await?.map(|old| old.change);
        let renewed = old.and_then(|old| renewed(old, &instructions));
        match renewed {
            Some(change) => Ok(ProposalDecision::Renewed(store.proposals().renew(scope, id, change).await?)),
            // The line came into the instructions on another way: nothing is left to ask.
            None => self.dismiss_proposal(caller, id, now).await.map(ProposalDecision::Decided),
        }
    }

    /// Puts a proposal away. Only the owner's own hand can.
    pub async fn dismiss_proposal(&self, caller: &Caller, id: &str, now: &ZonedNow) -> Result<Proposal> {
        owner_only(caller, "dismissing", id)?;
        Ok(self.store.proposals().dismiss(&caller.scope, decide(caller, id, now)).await?)
    }
}

fn owner_only(caller: &Caller, deed: &str, id: &str) -> Result<()> {
    match caller.trust {
        Trust::Owner => Ok(()),
        Trust::Agent => Err(Error::OwnerOnly { what: format!("{deed} the proposal `{id}`") }),
    }
}

fn decide(caller: &Caller, id: &str, now: &ZonedNow) -> DecideProposal {
    DecideProposal { id: id.to_owned(), by: caller.writer.clone(), at: now.micros() }
}

/// The proposal over the instructions as they are now; none if they say it already.
fn renewed(old: NewProposal, instructions: &Instructions) -> Option<NewProposal> {
    if !old.sentence.is_empty() {
        return change(old.line, old.sentence, instructions);
    }
    let diff = diff::full(&instructions.text, &old.text);
    (!diff.is_empty()).then(|| full_proposal(old.text, diff, instructions.version))
}

/// A proposal for each wish that the instructions do not have yet.
pub(crate) fn draft(lines: Vec<(String, String)>, instructions: &Instructions) -> Vec<NewProposal> {
    let wishes = lines.into_iter().take(MAX_LINES);
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
    let diff = diff::unified(&instructions.text, &text);
    Some(NewProposal { line, text, diff, base_version: instructions.version, sentence })
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
        assert_eq!(change.diff, "@@ -1 +1 @@\n One.\n Two.\n+Be brief.\n");
    }

    #[test]
    fn what_is_there_is_not_proposed() {
        assert!(change("Be brief.".into(), String::new(), &instructions("- be brief")).is_none());
        assert_eq!(change("Be brief.".into(), String::new(), &instructions("")).unwrap().text, "Be brief.");
    }
}
