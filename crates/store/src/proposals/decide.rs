//! What becomes of a proposal: accepted, dismissed, or based anew.

use super::{DecideProposal, NewProposal, Proposal, ProposalOutcome, ProposalStatus, check, missing, one};
use crate::areas::Proposals;
use crate::audit::Action;
use crate::db::{Conn, WriteTx, args, audited, transaction};
use crate::error::Result;
use crate::instructions::{self, InstructionsChange, InstructionsOutcome};
use crate::store::{Scope, check_name};

impl Proposals<'_> {
    /// Makes an open proposal the standing instructions, if they still are what it was made from. It is put on record
    /// with them.
    pub async fn accept(self, scope: &Scope, decide: DecideProposal) -> Result<ProposalOutcome> {
        check_name("writer", &decide.by)?;
        let scope = scope.clone();
        audited!(self.store, |unit| accept(unit, &scope, decide).await)
    }

    /// Puts an open proposal away; one that was decided before stays as it is.
    pub async fn dismiss(self, scope: &Scope, decide: DecideProposal) -> Result<Proposal> {
        check_name("writer", &decide.by)?;
        let scope = scope.clone();
        transaction!(self.store, |conn| {
            set(conn, &scope, &decide, ProposalStatus::Dismissed).await?;
            one(conn, &scope, &decide.id).await?.ok_or_else(|| missing(&decide.id))
        })
    }

    /// Bases an open proposal on other instructions than before.
    pub async fn renew(self, scope: &Scope, id: &str, change: NewProposal) -> Result<Proposal> {
        check(&change)?;
        let (scope, id) = (scope.clone(), id.to_owned());
        transaction!(self.store, |conn| {
            let NewProposal { line, text, diff, base_version, .. } = change;
            let values = args![scope.user(), scope.agent(), &id, line, text, diff, base_version];
            conn.execute(
                "UPDATE instruction_proposals SET line = $4, text = $5, diff = $6, base_version = $7 \
                         WHERE user_id = $1 AND agent = $2 AND id = $3 AND status = 'open'",
                values,
            )
            .await?;
            one(conn, &scope, &id).await?.ok_or_else(|| missing(&id))
        })
    }
}

async fn accept(unit: &mut WriteTx, scope: &Scope, decide: DecideProposal) -> Result<ProposalOutcome> {
    let conn = &mut unit.conn;
    // Deciding first locks the row: of two who accept at once, the second finds it decided.
    if !set(conn, scope, &decide, ProposalStatus::Accepted).await? {
        let there = one(conn, scope, &decide.id).await?.ok_or_else(|| missing(&decide.id))?;
        return Ok(ProposalOutcome::Decided(there));
    }
    let proposal = one(conn, scope, &decide.id).await?.ok_or_else(|| missing(&decide.id))?;
    let by = decide.by.clone();
    let change = InstructionsChange {
        text: proposal.change.text,
        writer: decide.by,
        expected_version: Some(proposal.change.base_version),
    };
    match instructions::write(conn, scope, change).await? {
        InstructionsOutcome::Written(now) => {
            let note = format!("version {} by {by}", now.version);
            unit.operation(scope.user(), Action::InstructionsSet, scope.agent(), Some(&note))?;
            Ok(ProposalOutcome::Accepted(now))
        }
        InstructionsOutcome::Stale(now) => {
            let values = args![scope.user(), scope.agent(), &decide.id];
            conn.execute(
                "UPDATE instruction_proposals SET status = 'open', decided_at = NULL, decided_by = NULL \
                 WHERE user_id = $1 AND agent = $2 AND id = $3",
                values,
            )
            .await?;
            Ok(ProposalOutcome::Stale(now))
        }
    }
}

/// Decides an open proposal; whether it was open.
async fn set(
    conn: &mut Conn,
    scope: &Scope,
    decide: &DecideProposal,
    status: ProposalStatus,
) -> Result<bool> {
    let values = args![scope.user(), scope.agent(), &decide.id, status.name(), decide.at, &decide.by];
    let changed = conn
        .execute(
            "UPDATE instruction_proposals SET status = $4, decided_at = $5, decided_by = $6 \
             WHERE user_id = $1 AND agent = $2 AND id = $3 AND status = 'open'",
            values,
        )
        .await?;
    Ok(changed > 0)
}
