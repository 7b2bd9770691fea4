//! Sending messages: one sender has a message, and says how it ended.

use std::time::Duration;

use super::{Outgoing, Row, claimed, columns, told};
use crate::areas::OutgoingQueue;
use crate::changes::Topic;
use crate::db::{Conn, Sql, args, transaction};
use crate::error::Result;
use crate::leases::{Lease, LeaseStatus, check_duration, claim, clock, later};
use crate::threads::{self, NewMessage};

/// A message that is ours to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingClaim {
    /// Its first `parts_sent` parts were sent before.
    pub outgoing: Outgoing,
    pub fence: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutgoingEnd {
    /// Every part that was begun was sent, and there are no more.
    Sent,
    /// The last begun part was certainly not sent, and never will be.
    Failed(String),
    /// The last begun part was certainly not sent, and is retried.
    Again { at: i64, reason: String },
    /// The last begun part may have been sent or not.
    Unknown(String),
}

/// Only the first to each recipient is looked for: those behind it wait, be it due or not.
const CLAIM: Sql = claim!(
    "WITH heads AS MATERIALIZED (SELECT recipient AS head_recipient, min(seq) AS head_seq FROM outgoing \
     WHERE channel = $5 AND finished_at IS NULL GROUP BY recipient), \
     picked AS MATERIALIZED (SELECT one.user_id AS picked_user, one.id AS picked_id FROM heads \
     JOIN outgoing AS one ON one.recipient = head_recipient AND one.seq = head_seq \
     WHERE one.channel = $5 AND one.finished_at IS NULL AND one.state = 'waiting' AND one.available_at <= $1 \
     ORDER BY one.id LIMIT +$2",
    concat!(
        ") UPDATE outgoing SET state = 'sending', attempts = attempts + 1, lease_owner = $3, lease_until = $4, \
         fence = fence + 1 FROM picked WHERE user_id = picked_user AND id = picked_id RETURNING ",
        columns!("state")
    ),
);

impl OutgoingQueue<'_> {
    /// Takes up to `limit` due ones of this channel, of all users, oldest first; to each recipient one at a time and in
    /// order. For the sender of the channel.
    pub async fn claim(self, channel: &str, lease: &Lease, limit: u32) -> Result<Vec<OutgoingClaim>> {
        lease.check()?;
        let (channel, lease) = (channel.to_owned(), lease.clone());
        let mut claims: Vec<OutgoingClaim> = transaction!(self.store, |conn| {
            let now = clock(conn).await?;
            let values = args![now, limit, &lease.owner, lease.until(now), channel];
            let rows: Vec<Row> = conn.fetch_all(CLAIM, values).await?;
            rows.into_iter().map(claimed).collect()
        })?;
        claims.sort_by(|a, b| a.outgoing.id.cmp(&b.outgoing.id));
        Ok(claims)
    }

    /// Keeps a claim for so long from now.
    pub async fn renew(self, claim: &OutgoingClaim, duration: Duration) -> Result<LeaseStatus> {
        check_duration(duration)?;
        let claim = claim.clone();
        transaction!(self.store, |conn| {
            let now = clock(conn).await?;
            let renewed = conn
                .execute(
                    "UPDATE outgoing SET lease_until = $4 WHERE user_id = $1 AND id = $2 AND fence = $3 \
                             AND state = 'sending' AND lease_until > $5",
                    args![claim.outgoing.user, claim.outgoing.id, claim.fence, later(now, duration), now],
                )
                .await?;
            Ok(LeaseStatus::by(renewed))
        })
    }

    /// Writes down how sending ended. One that is slower than its lease may still say so, unless it was settled as lost.
    pub async fn finish(self, claim: &OutgoingClaim, end: OutgoingEnd) -> Result<LeaseStatus> {
        let claim = claim.clone();
        transaction!(self.store, |conn| finish(conn, &claim, &end).await)
    }

    /// Writes down that it was sent, together with the message that it becomes in a thread of its user: a crash leaves
    /// both or neither.
    pub async fn finish_in_thread(
        self,
        claim: &OutgoingClaim,
        thread: &str,
        message: NewMessage,
    ) -> Result<LeaseStatus> {
        let messages = vec![message];
        threads::check(&messages)?;
        let (claim, thread) = (claim.clone(), thread.to_owned());
        transaction!(self.store, |conn| {
            let ended = finish(conn, &claim, &OutgoingEnd::Sent).await?;
            if ended == LeaseStatus::Kept {
                threads::append(conn, &claim.outgoing.user, &thread, messages).await?;
            }
            Ok(ended)
        })
    }
}

/// What is known of the last part: that it left, that it did not, or neither.
const SENT: &str = "UPDATE outgoing SET state = 'sent', parts_sent = parts_begun, reason = $4, finished_at = $5, \
     lease_owner = NULL, lease_until = 0 WHERE user_id = $1 AND id = $2 AND fence = $3 AND state = 'sending'";
const FAILED: &str = "UPDATE outgoing SET state = 'failed', parts_begun = parts_sent, reason = $4, finished_at = $5, \
     lease_owner = NULL, lease_until = 0 WHERE user_id = $1 AND id = $2 AND fence = $3 AND state = 'sending'";
const UNKNOWN: &str = "UPDATE outgoing SET state = 'unknown', reason = $4, finished_at = $5, \
     lease_owner = NULL, lease_until = 0 WHERE user_id = $1 AND id = $2 AND fence = $3 AND state = 'sending'";
const AGAIN: &str = "UPDATE outgoing SET state = 'waiting', parts_begun = parts_sent, reason = $4, available_at = $5, \
     lease_owner = NULL, lease_until = 0 WHERE user_id = $1 AND id = $2 AND fence = $3 AND state = 'sending'";

async fn finish(conn: &mut Conn, claim: &OutgoingClaim, end: &OutgoingEnd) -> Result<LeaseStatus> {
    let now = clock(conn).await?;
    let (statement, reason, at) = match end {
        OutgoingEnd::Sent => (SENT, None, now),
        OutgoingEnd::Failed(reason) => (FAILED, Some(reason), now),
        OutgoingEnd::Unknown(reason) => (UNKNOWN, Some(reason), now),
        OutgoingEnd::Again { at, reason } => (AGAIN, Some(reason), *at),
    };
    let reason = reason.map(|reason| told(reason));
    let values = args![&claim.outgoing.user, &claim.outgoing.id, claim.fence, reason, at];
    let ended = conn.execute(statement, values).await?;
    if ended > 0 {
        conn.notify(Topic::Outgoing).await?;
    }
    Ok(LeaseStatus::by(ended))
}
