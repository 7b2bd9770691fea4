//! Messages to be sent on a channel, stored before the first attempt. A message that may have been sent is never sent
//! again: one whose sender was gone while a part was on its way is `unknown`.

use std::time::Duration;

use crate::areas::OutgoingQueue;
use crate::changes::Topic;
use crate::db::{Conn, Sql, Value, WithFence, args, from_row, names, transaction};
use crate::error::{Error, ErrorKind, Result};
use crate::leases::{
    self, Lease, LeaseStatus, LeasedRow, check_duration, claim_sql, clock, finish_sql, prune_sql, renew_sql,
};
use crate::store::{Scope, check_name, check_text, new_id};

const TEXT_LIMIT: usize = 256 * 1024;
/// A reason is truncated to this length.
const REASON_LIMIT: usize = 4 * 1024;
/// Most unfinished messages of one user.
const OPEN_LIMIT: i64 = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutgoingState {
    Waiting,
    Sending,
    Sent,
    Failed,
    Unknown,
}

names! {
    OutgoingState {
        Waiting = "waiting", Sending = "sending", Sent = "sent", Failed = "failed", Unknown = "unknown",
    }
}

#[derive(Clone, Debug)]
pub struct NewOutgoing {
    pub scope: Scope,
    pub channel: String,
    /// The channel's id of the recipient; messages to one recipient are sent in order, one at a time.
    pub to: String,
    /// Not empty, at most 256 KiB.
    pub text: String,
    /// `reply`, `message`, `notice` …
    pub kind: String,
    /// `low`, `normal`, `high` …
    pub urgency: String,
    /// External id of the message that it answers.
    pub about: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    pub user: String,
    pub id: String,
    pub agent: String,
    pub channel: String,
    /// The channel's id of the recipient; messages to one recipient are sent in order, one at a time.
    pub to: String,
    pub text: String,
    /// `reply`, `message`, `notice` …
    pub kind: String,
    /// `low`, `normal`, `high` …
    pub urgency: String,
    /// External id of the message that it answers.
    pub about: Option<String>,
    pub state: OutgoingState,
    /// Number of parts that were certainly sent, and index of the next part.
    pub parts_sent: i64,
    pub attempts: i64,
    pub reason: Option<String>,
    pub created_at: i64,
    /// Of an `Unknown` message: when that was noticed.
    pub finished_at: Option<i64>,
}

from_row! {
    Outgoing {
        user, id, agent, channel, to, text, kind, urgency, about, state: read_state, parts_sent, attempts,
        reason, created_at, finished_at,
    }
}

fn read_state(name: String) -> Result<OutgoingState> {
    OutgoingState::from_name(&name).ok_or_else(|| {
        Error::new(ErrorKind::Corrupt, format!("an outgoing message has the unknown state `{name}`"))
    })
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingClaim {
    /// Its first `parts_sent` parts were sent before.
    pub outgoing: Outgoing,
    pub fence: i64,
}

impl LeasedRow for OutgoingClaim {
    fn key(&self) -> Vec<Value> {
        args![&self.outgoing.user, &self.outgoing.id, self.fence]
    }
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

/// The columns of an `Outgoing` and its fence, with the state as it is or as it is to be shown.
macro_rules! columns {
    ($state:literal) => {
        concat!(
            "user_id, id, agent, channel, recipient, text, kind, urgency, about, ",
            $state,
            ", parts_sent, attempts, reason, created_at, finished_at, fence",
        )
    };
}
/// The same of a message whose lease may have run out by the time `$1`.
macro_rules! shown {
    () => {
        columns!(
            "CASE WHEN state = 'sending' AND lease_until <= $1 AND parts_begun > parts_sent THEN 'unknown' \
             WHEN state = 'sending' AND lease_until <= $1 THEN 'waiting' ELSE state END"
        )
    };
}

const LIST: &str =
    concat!("SELECT ", shown!(), " FROM outgoing WHERE user_id = $2 ORDER BY id DESC LIMIT +$3");
/// Only the first unfinished message to each recipient is considered: those behind it wait, whether it is due or not.
const CLAIM: Sql = claim_sql!(
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
const RENEW: &str = renew_sql!("outgoing", " AND state = 'sending'");
const SENT: &str = finish_sql!(
    "outgoing",
    "state = 'sent', parts_sent = parts_begun, reason = $4, finished_at = $5",
    "state = 'sending'"
);
const FAILED: &str = finish_sql!(
    "outgoing",
    "state = 'failed', parts_begun = parts_sent, reason = $4, finished_at = $5",
    "state = 'sending'"
);
const UNKNOWN: &str =
    finish_sql!("outgoing", "state = 'unknown', reason = $4, finished_at = $5", "state = 'sending'");
const AGAIN: &str = finish_sql!(
    "outgoing",
    "state = 'waiting', parts_begun = parts_sent, reason = $4, available_at = $5",
    "state = 'sending'"
);
const EXPIRE: Sql = claim_sql!(
    "WITH picked AS MATERIALIZED (SELECT user_id AS picked_user, id AS picked_id FROM outgoing \
     WHERE channel = $3 AND state = 'sending' AND lease_until <= $1 ORDER BY lease_until LIMIT +$2",
    concat!(
        ") UPDATE outgoing SET state = CASE WHEN parts_begun > parts_sent THEN 'unknown' ELSE 'waiting' END, \
         finished_at = CASE WHEN parts_begun > parts_sent THEN $1 ELSE NULL END, \
         reason = 'the process that sent it ended before it was done', lease_owner = NULL, lease_until = 0 FROM picked \
         WHERE user_id = picked_user AND id = picked_id RETURNING ",
        columns!("state")
    ),
);
const LIST_UNKNOWN: &str = concat!(
    "SELECT ",
    shown!(),
    " FROM outgoing WHERE state = 'unknown' \
     OR (state = 'sending' AND lease_until <= $1 AND parts_begun > parts_sent) ORDER BY id DESC LIMIT +$2"
);
const PRUNE: Sql = prune_sql!("outgoing", "finished_at < $1 ORDER BY finished_at");
const LOCK_CLAIMED: &str = "UPDATE outgoing SET fence = fence WHERE user_id = $1 AND id = $2 AND fence = $3 \
     AND state = 'sending' AND lease_until > $4 RETURNING parts_begun";
const BEGIN_PART: &str =
    "UPDATE outgoing SET parts_sent = $3, parts_begun = $3 + 1 WHERE user_id = $1 AND id = $2";
const FINISH_PART: &str = "UPDATE outgoing SET parts_sent = parts_begun WHERE user_id = $1 AND id = $2 \
     AND fence = $3 AND state = 'sending' AND parts_begun = $4 + 1";

impl OutgoingQueue<'_> {
    /// Queues a message. When 10,000 of the user wait already, the error is of the kind `Full`.
    pub async fn enqueue(self, new: NewOutgoing) -> Result<Outgoing> {
        check(&new)?;
        transaction!(self.store, |conn| enqueue(conn, new).await)
    }

    /// The user's messages, newest first. One whose lease ran out is shown as it will be when it has expired.
    pub async fn list(self, user: &str, limit: u32) -> Result<Vec<Outgoing>> {
        let mut conn = self.store.reader().await?;
        let now = clock(&mut conn).await?;
        conn.fetch_all(LIST, args![now, user, limit]).await
    }

    /// Claims up to `limit` due messages of this channel, of all users, oldest first; to each recipient one at a time and
    /// in order. For the sender of the channel.
    pub async fn claim(self, channel: &str, lease: &Lease, limit: u32) -> Result<Vec<OutgoingClaim>> {
        lease.check()?;
        let (channel, lease) = (channel.to_owned(), lease.clone());
        let (_, rows): (_, Vec<WithFence<Outgoing>>) = transaction!(self.store, |conn| {
            leases::claim(conn, CLAIM, &lease, limit, args![channel]).await
        })?;
        let claim = |WithFence(outgoing, fence)| OutgoingClaim { outgoing, fence };
        let mut claims: Vec<OutgoingClaim> = rows.into_iter().map(claim).collect();
        claims.sort_by(|a, b| a.outgoing.id.cmp(&b.outgoing.id));
        Ok(claims)
    }

    pub async fn renew(self, claim: &OutgoingClaim, duration: Duration) -> Result<LeaseStatus> {
        check_duration(duration)?;
        let claim = claim.clone();
        transaction!(self.store, |conn| leases::renew(conn, RENEW, &claim, duration).await)
    }

    /// Records durably that a part is about to be handed to the channel; send it only if this was `Kept`. Parts are
    /// counted from 0, and the first one to begin is the claim's `parts_sent`. Beginning a part implies that the one
    /// before was sent. After a crash a part that was begun is never begun again: the message ends `unknown`.
    pub async fn begin_part(self, claim: &OutgoingClaim, part: i64) -> Result<LeaseStatus> {
        let claim = claim.clone();
        transaction!(self.store, |conn| {
            let now = clock(conn).await?;
            let (user, id) = (&claim.outgoing.user, &claim.outgoing.id);
            // Locks the message: it cannot expire before the part is recorded.
            let ours: Option<(i64,)> =
                conn.fetch_optional(LOCK_CLAIMED, args![user, id, claim.fence, now]).await?;
            match ours {
                None => Ok(LeaseStatus::Lost),
                Some((begun,)) if begun == part => {
                    conn.execute(BEGIN_PART, args![user, id, part]).await?;
                    Ok(LeaseStatus::Kept)
                }
                Some((begun,)) => Err(Error::new(
                    ErrorKind::Conflict,
                    format!(
                        "the part `{part}` of the message `{id}` cannot be sent: the next part is `{begun}`"
                    ),
                )),
            }
        })
    }

    /// Records that the channel has a part, so that a crash before the next one loses nothing. Needed only where some time
    /// passes between two parts. `Lost` too if it is not the part that was begun last.
    pub async fn finish_part(self, claim: &OutgoingClaim, part: i64) -> Result<LeaseStatus> {
        let claim = claim.clone();
        transaction!(self.store, |conn| leases::update(conn, FINISH_PART, &claim, args![part]).await)
    }

    /// Records how sending ended. A sender slower than its lease can still do so until the message has expired.
    pub async fn finish(self, claim: &OutgoingClaim, end: OutgoingEnd) -> Result<LeaseStatus> {
        let claim = claim.clone();
        transaction!(self.store, |conn| finish(conn, &claim, &end).await)
    }

    /// Expires up to `limit` messages of this channel whose lease ran out, and returns them, each once, to one caller. A
    /// message with a part on its way ends as `unknown`; any other waits again. Of all users; for the sender.
    pub async fn expire(self, channel: &str, limit: u32) -> Result<Vec<Outgoing>> {
        let channel = channel.to_owned();
        transaction!(self.store, |conn| {
            let expired: Vec<Outgoing> = leases::expire(conn, EXPIRE, limit, args![channel]).await?;
            if !expired.is_empty() {
                conn.notify(Topic::Outgoing).await?;
            }
            Ok(expired)
        })
    }

    /// The messages with an unknown outcome, newest first. Of all users; for the operator.
    pub async fn list_unknown(self, limit: u32) -> Result<Vec<Outgoing>> {
        let mut conn = self.store.reader().await?;
        let now = clock(&mut conn).await?;
        conn.fetch_all(LIST_UNKNOWN, args![now, limit]).await
    }

    /// Deletes up to `limit` messages that ended longer ago than `age`, of all users; returns how many.
    pub async fn prune(self, age: Duration, limit: u32) -> Result<u64> {
        transaction!(self.store, |conn| leases::prune(conn, PRUNE, age, limit).await)
    }
}

/// Queues a message that was checked inside the caller's transaction.
pub(crate) async fn enqueue(conn: &mut Conn, new: NewOutgoing) -> Result<Outgoing> {
    let user = new.scope.user().to_owned();
    lock_order(conn, "out", std::iter::once((new.channel.as_str(), new.to.as_str()))).await?;
    if is_full(conn, &user).await? {
        let message = format!("{OPEN_LIMIT} messages of `{user}` wait to be sent");
        return Err(
            Error::new(ErrorKind::Full, message).hint("see the log for why the channel does not send them")
        );
    }
    let outgoing = waiting(new, clock(conn).await?);
    insert(conn, &outgoing).await?;
    conn.notify(Topic::Outgoing).await?;
    Ok(outgoing)
}

async fn finish(conn: &mut Conn, claim: &OutgoingClaim, end: &OutgoingEnd) -> Result<LeaseStatus> {
    let now = clock(conn).await?;
    let (sql, reason, at) = match end {
        OutgoingEnd::Sent => (SENT, None, now),
        OutgoingEnd::Failed(reason) => (FAILED, Some(reason), now),
        OutgoingEnd::Unknown(reason) => (UNKNOWN, Some(reason), now),
        OutgoingEnd::Again { at, reason } => (AGAIN, Some(reason), *at),
    };
    let reason = reason.map(|reason| stored_reason(reason));
    let status = leases::update(conn, sql, claim, args![reason, at]).await?;
    if status == LeaseStatus::Kept {
        conn.notify(Topic::Outgoing).await?;
    }
    Ok(status)
}

pub(crate) fn check(new: &NewOutgoing) -> Result<()> {
    check_name("channel", &new.channel)?;
    check_name("recipient", &new.to)?;
    check_name("kind of the message", &new.kind)?;
    check_name("urgency of the message", &new.urgency)?;
    new.about.as_ref().map_or(Ok(()), |about| check_name("external message", about))?;
    if new.text.is_empty() {
        return Err(Error::invalid("the outgoing message is empty"));
    }
    check_text("outgoing message", &new.text, TEXT_LIMIT)
}

/// Queues replies inside the caller's transaction. One beyond the user's quota is stored as `failed`: the work that it
/// answers has ended all the same.
pub(crate) async fn add_replies(conn: &mut Conn, replies: Vec<NewOutgoing>) -> Result<()> {
    if replies.is_empty() {
        return Ok(());
    }
    lock_order(conn, "out", replies.iter().map(|new| (new.channel.as_str(), new.to.as_str()))).await?;
    let at = clock(conn).await?;
    for new in replies {
        let mut outgoing = waiting(new, at);
        if is_full(conn, &outgoing.user).await? {
            outgoing.state = OutgoingState::Failed;
            outgoing.reason = Some(format!("{OPEN_LIMIT} messages of this user wait to be sent"));
            outgoing.finished_at = Some(at);
        }
        insert(conn, &outgoing).await?;
    }
    conn.notify(Topic::Outgoing).await
}

/// Counts no further than the limit. Replicas that add at the same time may exceed it by what they add.
async fn is_full(conn: &mut Conn, user: &str) -> Result<bool> {
    let sql = "SELECT count(*) FROM (SELECT 1 FROM outgoing WHERE user_id = $1 AND finished_at IS NULL \
         LIMIT +$2) AS open";
    let (open,): (i64,) = conn.fetch_one(sql, args![user, OPEN_LIMIT]).await?;
    Ok(open >= OPEN_LIMIT)
}

fn waiting(new: NewOutgoing, at: i64) -> Outgoing {
    let NewOutgoing { scope, channel, to, text, kind, urgency, about } = new;
    Outgoing {
        user: scope.user().to_owned(),
        id: new_id(),
        agent: scope.agent().to_owned(),
        channel,
        to,
        text,
        kind,
        urgency,
        about,
        state: OutgoingState::Waiting,
        parts_sent: 0,
        attempts: 0,
        reason: None,
        created_at: at,
        finished_at: None,
    }
}

async fn insert(conn: &mut Conn, new: &Outgoing) -> Result<()> {
    let sql = "INSERT INTO outgoing (user_id, id, agent, channel, recipient, text, kind, urgency, about, state, reason, \
         created_at, finished_at, seq) SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 1 + coalesce(\
         (SELECT max(seq) FROM outgoing WHERE channel = $4 AND recipient = $5 AND finished_at IS NULL), 0)";
    let values = args![
        &new.user,
        &new.id,
        &new.agent,
        &new.channel,
        &new.to,
        &new.text,
        &new.kind,
        &new.urgency,
        new.about.clone(),
        new.state.name(),
        new.reason.clone(),
        new.created_at,
        new.finished_at
    ];
    conn.execute(sql, values).await.map(drop)
}

/// Keeps the messages of one conversation (`in`), or to one recipient (`out`), in order: locks these pairs of a channel
/// and a name until the transaction ends, so that a number is visible before the next one is assigned and no message is
/// inserted before one that was already claimed. SQLite has a single writer.
pub(crate) async fn lock_order(
    conn: &mut Conn,
    queue: &str,
    pairs: impl Iterator<Item = (&str, &str)>,
) -> Result<()> {
    if !conn.is_postgres() {
        return Ok(());
    }
    // Names contain no control characters: two pairs never share a key.
    let keys: Vec<String> =
        pairs.map(|(channel, name)| format!("{queue}\u{1f}{channel}\u{1f}{name}")).collect();
    let sql = "SELECT pg_advisory_xact_lock(key) FROM (SELECT DISTINCT hashtextextended(name, 7717) AS key \
         FROM unnest($1::text[]) AS name ORDER BY key) AS lanes";
    conn.execute(sql, args![keys]).await.map(drop)
}

/// A reason as it is stored: a long or odd text must not keep a message from being finished.
pub(crate) fn stored_reason(reason: &str) -> String {
    let end = reason.floor_char_boundary(REASON_LIMIT);
    reason.get(..end).unwrap_or_default().replace('\0', "\u{fffd}")
}
