//! Changes the standing instructions: the whole text at once, only if the writer knows the current version, shown as a
//! diff. Once the agent has read text that the owner did not write, a change needs the owner's approval, and without one it
//! becomes a proposal.

use embody_store::instructions::{Instructions, InstructionsChange, InstructionsOutcome};
use embody_store::mind_log::{NewLogEntry, NewReflection};
use embody_store::proposals::{NewProposal, Proposal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::{Caller, Mind, Trust, ZonedNow, diff};

/// For a writer that passes no version while others write too.
const MAX_ATTEMPTS: usize = 8;
const EXPOSED: &str = "this agent has read text that the owner did not write";

/// The new instructions.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateInstructions {
    /// The whole new text; empty clears them.
    pub instructions: String,
    /// Only if this is still the version.
    #[serde(default)]
    pub expected_version: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpdateOutcome {
    Written(UpdatedInstructions),
    /// Nothing is written yet: the owner must approve.
    NeedsConfirmation(Confirmation),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UpdatedInstructions {
    pub version: i64,
    /// What changed, for the owner to be told.
    pub diff: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Confirmation {
    /// What would change, all of it.
    pub diff: String,
    pub reason: String,
    /// The version that the diff starts from; pass it to [`Mind::confirm_instructions`], so that the owner's yes is for
    /// what they were shown.
    pub base_version: i64,
}

impl Mind {
    /// Replaces the standing instructions, or returns what the owner must be asked first.
    pub async fn update_instructions(
        &self,
        caller: &Caller,
        args: UpdateInstructions,
        now: &ZonedNow,
    ) -> Result<UpdateOutcome> {
        if caller.trust == Trust::Owner || !self.has_untrusted_read(caller, now).await? {
            return self.replace(caller, args).await.map(UpdateOutcome::Written);
        }
        let confirmation = self.preview_instructions(caller, &args).await?;
        let reason = match &*self.origins_read(caller, now).await? {
            "" => confirmation.reason,
            origins => format!("{EXPOSED} ({origins}), so the owner is asked first"),
        };
        Ok(UpdateOutcome::NeedsConfirmation(Confirmation { reason, ..confirmation }))
    }

    /// What the owner is shown before a change. Writes nothing.
    pub async fn preview_instructions(
        &self,
        caller: &Caller,
        args: &UpdateInstructions,
    ) -> Result<Confirmation> {
        let current = self.store.instructions().get(&caller.scope).await?;
        if args.expected_version.is_some_and(|expected| expected != current.version) {
            return Err(Error::Stale { version: current.version, instructions: current.text });
        }
        Ok(Confirmation {
            diff: diff::full(&current.text, &args.instructions),
            reason: format!("{EXPOSED}, so the owner is asked first"),
            base_version: current.version,
        })
    }

    /// Stores a change that needs the owner's approval as a proposal; `None` if too many proposals are open.
    pub async fn propose_instructions(
        &self,
        caller: &Caller,
        instructions: String,
        confirmation: &Confirmation,
        now: &ZonedNow,
    ) -> Result<Option<Proposal>> {
        let change = full_proposal(instructions, confirmation.diff.clone(), confirmation.base_version);
        let entry = NewLogEntry {
            at: now.micros(),
            session: caller.session.clone(),
            kind: "instructions_proposal".to_owned(),
            writer: caller.writer.clone(),
            trust: self.trust_of(caller, now).await?.to_owned(),
            held: false,
            text: change.line.clone(),
        };
        let new =
            NewReflection { entry, commitments: Vec::new(), settled: Vec::new(), proposals: vec![change] };
        Ok(self.store.mind_log().append(&caller.scope, new).await?.proposals.pop())
    }

    /// Writes what the owner has approved, if the instructions are still what the diff was made from. Only for callers that
    /// have asked the owner.
    pub async fn confirm_instructions(
        &self,
        caller: &Caller,
        instructions: String,
        base_version: i64,
    ) -> Result<UpdatedInstructions> {
        self.replace(caller, UpdateInstructions { instructions, expected_version: Some(base_version) }).await
    }

    /// Each attempt replaces the version that its diff was made from, so the diff is always complete.
    async fn replace(&self, caller: &Caller, args: UpdateInstructions) -> Result<UpdatedInstructions> {
        let mut current = self.store.instructions().get(&caller.scope).await?;
        for _ in 0..MAX_ATTEMPTS {
            if args.expected_version.is_some_and(|expected| expected != current.version) {
                break;
            }
            let change = InstructionsChange {
                text: args.instructions.clone(),
                writer: caller.writer.clone(),
                expected_version: Some(current.version),
            };
            match self.store.instructions().set(&caller.scope, change).await? {
                InstructionsOutcome::Written(now) => {
                    log_change(caller, &now);
                    let diff = diff::unified(&current.text, &now.text);
                    return Ok(UpdatedInstructions { version: now.version, diff });
                }
                InstructionsOutcome::Stale(now) => current = now,
            }
        }
        Err(Error::Stale { version: current.version, instructions: current.text })
    }
}

/// A proposal to replace the whole text. It has no source sentence.
pub(crate) fn full_proposal(text: String, diff: String, base_version: i64) -> NewProposal {
    let hash = blake3::hash(text.as_bytes()).to_hex();
    let line = format!(
        "the whole text is replaced ({} bytes, {})",
        text.len(),
        hash.as_str().get(..8).unwrap_or_default()
    );
    NewProposal { line, text, diff, base_version, sentence: String::new() }
}

/// A line for the owner's log. The text stays in the store, where `embody instructions history --diff` shows it.
fn log_change(caller: &Caller, now: &Instructions) {
    tracing::info!(
        user = caller.scope.user(),
        agent = caller.scope.agent(),
        writer = caller.writer,
        version = now.version,
        bytes = now.text.len(),
        "the standing instructions were changed"
    );
}
