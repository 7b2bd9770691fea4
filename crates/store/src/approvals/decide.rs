//! Deciding, using, expiring and forgetting. Using an approval and the intent of the call are one commit: there is no
//! moment at which a call may run without a record, or an approval be used twice.

use super::{Approval, ApprovalStatus, columns, one};
use crate::areas::Approvals;
use crate::audit::{Action, Actor, Intent, RecordedIntent};
use crate::changes::Topic;
use crate::db::{Conn, Sql, args, audited, transaction};
use crate::error::Result;
use crate::leases::{claim_sql, clock};
use crate::store::check_name;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Approve,
    Deny,
}

#[derive(Clone, Debug)]
pub struct DecideApproval {
    pub user: String,
    pub id: String,
    pub answer: Answer,
    pub by: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecideOutcome {
    Decided(Approval),
    /// Already decided, used or expired.
    NotPending(Approval),
    Missing,
}

/// The call that an approval is to be used for.
#[derive(Clone, Debug)]
pub struct UseApproval {
    pub id: String,
    pub actor: Actor,
    /// Body, tool and arguments digest must be those that were approved.
    pub intent: Intent,
    pub pin: String,
    pub policy: String,
}

#[derive(Debug, PartialEq, Eq)]
pub enum ApprovalUse {
    /// The approval is used up and the intent is durable.
    Used(RecordedIntent),
    /// Nothing is written.
    Refused(Refusal),
}

/// Why an approval does not cover a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    Missing,
    Pending,
    Denied,
    Expired,
    Used,
    /// Approved for another body, tool, arguments, definition or policy.
    OtherCall,
}

const DECIDE: &str = concat!(
    "UPDATE approvals SET status = $3, decided_at = $4, decided_by = $5 \
     WHERE user_id = $1 AND id = $2 AND status = 'pending' AND expires_at > $4 RETURNING ",
    columns!()
);
const USE: &str = "UPDATE approvals SET status = 'used', used_at = $8 \
     WHERE user_id = $1 AND id = $2 AND body = $3 AND tool = $4 AND digest = $5 AND pin = $6 AND policy = $7 \
     AND status = 'approved' AND expires_at > $8";
const EXPIRE: Sql = claim_sql!(
    "WITH picked AS MATERIALIZED (SELECT user_id AS picked_user, id AS picked_id FROM approvals \
     WHERE status IN ('pending', 'approved') AND expires_at <= $1 ORDER BY expires_at LIMIT +$2",
    concat!(
        ") UPDATE approvals SET status = 'expired' FROM picked WHERE user_id = picked_user AND id = picked_id RETURNING ",
        columns!()
    ),
);
const PRUNE: Sql = claim_sql!(
    "WITH picked AS MATERIALIZED (SELECT user_id, id FROM approvals \
     WHERE status IN ('denied', 'used', 'expired') AND expires_at < $1 LIMIT +$2",
    ") DELETE FROM approvals WHERE (user_id, id) IN (SELECT * FROM picked)",
);

impl Approvals<'_> {
    /// Answers an approval that is pending, and puts that on record in the same commit. Who may answer is the caller's to know.
    pub async fn decide(self, decide: DecideApproval) -> Result<DecideOutcome> {
        check_name("person who decides", &decide.by)?;
        let action = match decide.answer {
            Answer::Approve => Action::ApprovalGranted,
            Answer::Deny => Action::ApprovalDenied,
        };
        audited!(self.store, |tx| {
            let decided = answer(&mut tx.conn, decide).await?;
            if let DecideOutcome::Decided(approval) = &decided {
                tx.operation(&approval.user, action, &approval.id, approval.decided_by.as_deref())?;
            }
            Ok(decided)
        })
    }

    /// Uses an approval for a call. When this returns `Used` the intent is durable and the approval is used up, by one
    /// commit; otherwise neither is.
    pub async fn consume(self, wanted: UseApproval) -> Result<ApprovalUse> {
        audited!(self.store, |tx| {
            if let Some(refusal) = spend(&mut tx.conn, &wanted).await? {
                return Ok(ApprovalUse::Refused(refusal));
            }
            let intent = Intent { approval: Some(wanted.id), ..wanted.intent };
            Ok(ApprovalUse::Used(tx.begin_write(&wanted.actor, intent)?))
        })
    }

    /// Ends up to `limit` approvals whose time is over, of all users, and returns them: each is returned once, whoever
    /// asks.
    pub async fn expire(self, limit: u32) -> Result<Vec<Approval>> {
        transaction!(self.store, |conn| {
            let now = clock(conn).await?;
            let expired: Vec<Approval> = conn.fetch_all(EXPIRE, args![now, limit]).await?;
            if !expired.is_empty() {
                conn.notify(Topic::Approvals).await?;
            }
            Ok(expired)
        })
    }

    /// Forgets up to `limit` approvals that were denied, used or expired and whose time was over before `before`, of all
    /// users; how many there were. A denial that still stands is kept, and so is what `expire` has not
    /// returned. For operators.
    pub async fn prune(self, before: i64, limit: u32) -> Result<u64> {
        transaction!(self.store, |conn| {
            let before = before.min(clock(conn).await?);
            conn.execute(PRUNE, args![before, limit]).await
        })
    }
}

async fn answer(conn: &mut Conn, decide: DecideApproval) -> Result<DecideOutcome> {
    let status = match decide.answer {
        Answer::Approve => ApprovalStatus::Approved,
        Answer::Deny => ApprovalStatus::Denied,
    };
    let now = clock(conn).await?;
    let decided: Option<Approval> =
        conn.fetch_optional(DECIDE, args![&decide.user, &decide.id, status.name(), now, decide.by]).await?;
    if let Some(approval) = decided {
        conn.notify(Topic::Approvals).await?;
        return Ok(DecideOutcome::Decided(approval));
    }
    Ok(one(conn, &decide.user, &decide.id).await?.map_or(DecideOutcome::Missing, DecideOutcome::NotPending))
}

/// Uses it up; if it cannot be used, why.
async fn spend(conn: &mut Conn, wanted: &UseApproval) -> Result<Option<Refusal>> {
    let UseApproval { id, actor: Actor { user, .. }, intent: Intent { call, .. }, pin, policy } = wanted;
    let (body, tool, digest) = (call.body.as_str(), call.tool.as_str(), call.args.digest());
    let now = clock(conn).await?;
    let used = conn.execute(USE, args![user, id, body, tool, digest, pin, policy, now]).await?;
    if used > 0 {
        conn.notify(Topic::Approvals).await?;
        return Ok(None);
    }
    let Some(found) = one(conn, user, id).await? else { return Ok(Some(Refusal::Missing)) };
    let bound = (found.body.as_str(), found.tool.as_str(), found.digest.as_str(), &found.pin, &found.policy);
    Ok(Some(match found.status {
        _ if bound != (body, tool, digest, pin, policy) => Refusal::OtherCall,
        ApprovalStatus::Pending => Refusal::Pending,
        ApprovalStatus::Denied => Refusal::Denied,
        ApprovalStatus::Used => Refusal::Used,
        ApprovalStatus::Expired => Refusal::Expired,
        // It ran out between the two looks.
        ApprovalStatus::Approved => Refusal::Expired,
    }))
}
