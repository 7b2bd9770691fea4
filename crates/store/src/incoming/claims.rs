//! Working on what arrived: one worker has it, and the answer is queued in the transaction that ends it.

use std::time::Duration;

use super::{Incoming, IncomingState, Row, claimed, columns};
use crate::areas::IncomingQueue;
use crate::changes::Topic;
use crate::db::{Conn, Sql, args, transaction};
use crate::error::{Error, Result};
use crate::leases::{Lease, LeaseStatus, check_duration, claim, clock, later};
use crate::outgoing::{NewOutgoing, add_replies, check, told};

const REPLIES_LIMIT: usize = 64;

/// An incoming message that is ours to work on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncomingClaim {
    pub incoming: Incoming,
    pub fence: i64,
}

/// How the work on a message ended.
#[derive(Clone, Debug)]
pub struct FinishIncoming {
    /// `Done`, `Failed` or `Unknown`.
    pub state: IncomingState,
    /// Truncated to 4 KiB.
    pub reason: Option<String>,
    /// Queued in this order, at most 64. A reply beyond the user's quota is stored as `failed`.
    pub replies: Vec<NewOutgoing>,
}

/// Only the first of each conversation is looked for: those behind it wait, be it worked on or not.
const CLAIM: Sql = claim!(
    "WITH heads AS MATERIALIZED (SELECT conversation AS head_conversation, min(seq) AS head_seq FROM incoming \
     WHERE channel = $5 AND finished_at IS NULL GROUP BY conversation), \
     picked AS MATERIALIZED (SELECT one.user_id AS picked_user, one.id AS picked_id FROM heads \
     JOIN incoming AS one ON one.conversation = head_conversation AND one.seq = head_seq \
     WHERE one.channel = $5 AND one.finished_at IS NULL AND one.state = 'waiting' ORDER BY one.id LIMIT +$2",
    concat!(
        ") UPDATE incoming SET state = 'working', started_at = $1, lease_owner = $3, lease_until = $4, \
         fence = fence + 1 FROM picked WHERE user_id = picked_user AND id = picked_id RETURNING ",
        columns!("state")
    ),
);

impl IncomingQueue<'_> {
    /// Takes up to `limit` waiting ones of this channel, of all users, oldest first; never one of a conversation of which
    /// another is being worked on or an older one waits. For the worker of the channel.
    pub async fn claim(self, channel: &str, lease: &Lease, limit: u32) -> Result<Vec<IncomingClaim>> {
        lease.check()?;
        let (channel, lease) = (channel.to_owned(), lease.clone());
        let mut claims: Vec<IncomingClaim> = transaction!(self.store, |conn| {
            let now = clock(conn).await?;
            let values = args![now, limit, &lease.owner, lease.until(now), channel];
            let rows: Vec<Row> = conn.fetch_all(CLAIM, values).await?;
            rows.into_iter().map(claimed).collect()
        })?;
        claims.sort_by(|a, b| a.incoming.id.cmp(&b.incoming.id));
        Ok(claims)
    }

    /// Keeps a claim for so long from now.
    pub async fn renew(self, claim: &IncomingClaim, duration: Duration) -> Result<LeaseStatus> {
        check_duration(duration)?;
        let claim = claim.clone();
        transaction!(self.store, |conn| {
            let now = clock(conn).await?;
            let renewed = conn
                .execute(
                    "UPDATE incoming SET lease_until = $4 WHERE user_id = $1 AND id = $2 AND fence = $3 \
                             AND state = 'working' AND lease_until > $5",
                    args![claim.incoming.user, claim.incoming.id, claim.fence, later(now, duration), now],
                )
                .await?;
            Ok(LeaseStatus::by(renewed))
        })
    }

    /// Gives one back that nobody has begun with, as when the worker is about to end: it waits again, in its place.
    pub async fn release(self, claim: &IncomingClaim) -> Result<LeaseStatus> {
        let claim = claim.clone();
        transaction!(self.store, |conn| give_back(conn, &claim).await)
    }

    /// Ends it and queues the replies, in one transaction. One that is slower than its lease may still end it, unless it
    /// was settled as lost.
    pub async fn finish(self, claim: &IncomingClaim, finish: FinishIncoming) -> Result<LeaseStatus> {
        if matches!(finish.state, IncomingState::Waiting | IncomingState::Working) {
            return Err(Error::invalid(format!("work cannot end as `{}`", finish.state.name())));
        }
        if finish.replies.len() > REPLIES_LIMIT {
            return Err(Error::invalid(format!(
                "{} replies to one message; {REPLIES_LIMIT} are allowed",
                finish.replies.len()
            )));
        }
        finish.replies.iter().try_for_each(check)?;
        let claim = claim.clone();
        transaction!(self.store, |conn| end(conn, &claim, finish).await)
    }
}

async fn give_back(conn: &mut Conn, claim: &IncomingClaim) -> Result<LeaseStatus> {
    let returned = conn
        .execute(
            "UPDATE incoming SET state = 'waiting', started_at = NULL, lease_owner = NULL, lease_until = 0 \
             WHERE user_id = $1 AND id = $2 AND fence = $3 AND state = 'working'",
            args![&claim.incoming.user, &claim.incoming.id, claim.fence],
        )
        .await?;
    if returned > 0 {
        conn.notify(Topic::Incoming).await?;
    }
    Ok(LeaseStatus::by(returned))
}

async fn end(conn: &mut Conn, claim: &IncomingClaim, finish: FinishIncoming) -> Result<LeaseStatus> {
    let now = clock(conn).await?;
    let reason = finish.reason.as_deref().map(told);
    let finished = conn
        .execute(
            "UPDATE incoming SET state = $4, reason = $5, finished_at = $6, lease_owner = NULL, lease_until = 0 \
             WHERE user_id = $1 AND id = $2 AND fence = $3 AND state = 'working'",
            args![
                &claim.incoming.user,
                &claim.incoming.id,
                claim.fence,
                finish.state.name(),
                reason,
                now
            ],
        )
        .await?;
    if finished == 0 {
        return Ok(LeaseStatus::Lost);
    }
    conn.notify(Topic::Incoming).await?;
    add_replies(conn, finish.replies).await?;
    Ok(LeaseStatus::Kept)
}
