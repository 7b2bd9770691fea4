//! Messages that arrived on a channel, stored until they are answered. Each is processed once: one whose worker was gone
//! before the end is `unknown` and stays so.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use crate::areas::IncomingQueue;
use crate::changes::Topic;
use crate::db::{Conn, Sql, Value, WithFence, args, from_row, names, transaction};
use crate::error::{Error, ErrorKind, Result};
use crate::leases::{
    self, Lease, LeaseStatus, LeasedRow, check_duration, claim_sql, clock, finish_sql, prune_sql, renew_sql,
};
use crate::outgoing::{self, NewOutgoing, add_replies, stored_reason};
use crate::store::{Scope, check_name, check_text, new_id};

const CONTENT_LIMIT: usize = 1024 * 1024;
/// Most messages of one `insert`, and their bytes.
const INSERT_LIMIT: usize = 1000;
const INSERT_BYTES_LIMIT: usize = 16 * 1024 * 1024;
/// Most unfinished messages of one user.
const OPEN_LIMIT: i64 = 10_000;
const REPLIES_LIMIT: usize = 64;
/// Scheduled runs; no user writes on this channel.
const SCHEDULED: &str = "scheduled";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncomingState {
    Waiting,
    Working,
    Done,
    Failed,
    /// The worker was gone before the end.
    Unknown,
}

names! {
    IncomingState {
        Waiting = "waiting", Working = "working", Done = "done", Failed = "failed", Unknown = "unknown",
    }
}

#[derive(Clone, Debug)]
pub struct NewIncoming {
    pub scope: Scope,
    pub channel: String,
    /// Messages of one conversation are processed in order, one at a time, of any user.
    pub conversation: String,
    /// The channel's own id; the same id is stored once.
    pub external: String,
    /// JSON text, at most 1 MiB.
    pub content: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incoming {
    pub user: String,
    pub id: String,
    pub agent: String,
    pub channel: String,
    /// Messages of one conversation are processed in order, one at a time.
    pub conversation: String,
    /// The channel's own id.
    pub external: String,
    /// JSON text.
    pub content: String,
    pub state: IncomingState,
    pub created_at: i64,
    pub started_at: Option<i64>,
    /// Of an `Unknown` message: when that was noticed.
    pub finished_at: Option<i64>,
    pub reason: Option<String>,
}

from_row! {
    Incoming {
        user, id, agent, channel, conversation, external, content, state: read_state, created_at,
        started_at, finished_at, reason,
    }
}

fn read_state(name: String) -> Result<IncomingState> {
    IncomingState::from_name(&name).ok_or_else(|| {
        Error::new(ErrorKind::Corrupt, format!("an incoming message has the unknown state `{name}`"))
    })
}

/// How far a channel has read at its source.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    pub name: &'a str,
    pub value: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncomingClaim {
    pub incoming: Incoming,
    pub fence: i64,
}

impl LeasedRow for IncomingClaim {
    fn key(&self) -> Vec<Value> {
        args![&self.incoming.user, &self.incoming.id, self.fence]
    }
}

#[derive(Clone, Debug)]
pub struct FinishIncoming {
    /// `Done`, `Failed` or `Unknown`.
    pub state: IncomingState,
    /// Truncated to 4 KiB.
    pub reason: Option<String>,
    /// Queued in this order, at most 64. A reply beyond the user's quota is stored as `failed`.
    pub replies: Vec<NewOutgoing>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IncomingChange {
    Changed,
    /// Work on it has started or ended; nothing is changed.
    TooLate(Box<Incoming>),
    Missing,
}

/// The channel and conversation of a user's last message: notices that are no replies are sent there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastSeenChannel {
    pub channel: String,
    pub conversation: String,
    pub at: i64,
}

/// The columns of an `Incoming` and its fence, with the state as it is or as it is to be shown.
macro_rules! columns {
    ($state:literal) => {
        concat!(
            "user_id, id, agent, channel, conversation, external, content, ",
            $state,
            ", created_at, started_at, finished_at, reason, fence",
        )
    };
}
/// The same of a message whose lease may have run out by the time `$1`.
macro_rules! shown {
    () => {
        columns!("CASE WHEN state = 'working' AND lease_until <= $1 THEN 'unknown' ELSE state END")
    };
}

const REPLACE: &str =
    "UPDATE incoming SET content = $3 WHERE channel = $1 AND external = $2 AND state = 'waiting'";
const BY_EXTERNAL: &str =
    concat!("SELECT ", columns!("state"), " FROM incoming WHERE channel = $1 AND external = $2");
const LIST: &str =
    concat!("SELECT ", shown!(), " FROM incoming WHERE user_id = $2 ORDER BY id DESC LIMIT +$3");
/// Only the first unfinished message of each conversation is considered: those behind it wait.
const CLAIM: Sql = claim_sql!(
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
const RENEW: &str = renew_sql!("incoming", " AND state = 'working'");
const FINISH: &str =
    finish_sql!("incoming", "state = $4, reason = $5, finished_at = $6", "state = 'working'");
const EXPIRE: Sql = claim_sql!(
    "WITH picked AS MATERIALIZED (SELECT user_id AS picked_user, id AS picked_id FROM incoming \
     WHERE channel = $3 AND state = 'working' AND lease_until <= $1 ORDER BY lease_until LIMIT +$2",
    concat!(
        ") UPDATE incoming SET state = 'unknown', finished_at = $1, lease_owner = NULL, \
         reason = 'the process that worked on it ended before it was done' FROM picked \
         WHERE user_id = picked_user AND id = picked_id RETURNING ",
        columns!("state")
    ),
);
const LIST_UNKNOWN: &str = concat!(
    "SELECT ",
    shown!(),
    " FROM incoming WHERE state = 'unknown' OR (state = 'working' AND lease_until <= $1) \
     ORDER BY id DESC LIMIT +$2"
);
const PRUNE: Sql = prune_sql!("incoming", "finished_at < $1 ORDER BY finished_at");

impl IncomingQueue<'_> {
    /// Stores messages in this order and moves the channel's cursor, in one transaction; a cursor never goes back. Returns
    /// the messages that were not stored before.
    ///
    /// A message beyond the user's 10,000 unfinished ones is stored without its content and is `Failed` at once, so that
    /// the channel can tell the user. At most 1000 messages of 1 MiB each, and 16 MiB in all.
    pub async fn insert(self, new: Vec<NewIncoming>, cursor: Option<Cursor<'_>>) -> Result<Vec<Incoming>> {
        check(&new)?;
        if let Some(cursor) = &cursor {
            check_name("cursor", cursor.name)?;
        }
        let cursor = cursor.map(|cursor| (cursor.name.to_owned(), cursor.value));
        transaction!(self.store, |conn| insert_all(conn, new, cursor).await)
    }

    pub async fn cursor(self, name: &str) -> Result<Option<i64>> {
        let sql = "SELECT value FROM channel_cursors WHERE name = $1";
        let row: Option<(i64,)> = self.store.fetch_optional(sql, args![name]).await?;
        Ok(row.map(|(value,)| value))
    }

    /// Replaces the content of a message that waits. At most 1 MiB of JSON text.
    pub async fn replace(self, channel: &str, external: &str, content: &str) -> Result<IncomingChange> {
        check_text("incoming message", content, CONTENT_LIMIT)?;
        let (channel, external, content) = (channel.to_owned(), external.to_owned(), content.to_owned());
        transaction!(self.store, |conn| {
            if conn.execute(REPLACE, args![&channel, &external, content]).await? > 0 {
                return Ok(IncomingChange::Changed);
            }
            let there: Option<Incoming> = conn.fetch_optional(BY_EXTERNAL, args![channel, external]).await?;
            Ok(there.map_or(IncomingChange::Missing, |there| IncomingChange::TooLate(Box::new(there))))
        })
    }

    /// The user's messages, newest first. One whose lease ran out is shown as `unknown`.
    pub async fn list(self, user: &str, limit: u32) -> Result<Vec<Incoming>> {
        let mut conn = self.store.reader().await?;
        let now = clock(&mut conn).await?;
        conn.fetch_all(LIST, args![now, user, limit]).await
    }

    /// Claims up to `limit` waiting messages of this channel, of all users, oldest first; of each conversation one at a
    /// time and in order. For the worker of the channel.
    pub async fn claim(self, channel: &str, lease: &Lease, limit: u32) -> Result<Vec<IncomingClaim>> {
        lease.check()?;
        let (channel, lease) = (channel.to_owned(), lease.clone());
        let (_, rows): (_, Vec<WithFence<Incoming>>) = transaction!(self.store, |conn| {
            leases::claim(conn, CLAIM, &lease, limit, args![channel]).await
        })?;
        let claim = |WithFence(incoming, fence)| IncomingClaim { incoming, fence };
        let mut claims: Vec<IncomingClaim> = rows.into_iter().map(claim).collect();
        claims.sort_by(|a, b| a.incoming.id.cmp(&b.incoming.id));
        Ok(claims)
    }

    pub async fn renew(self, claim: &IncomingClaim, duration: Duration) -> Result<LeaseStatus> {
        check_duration(duration)?;
        let claim = claim.clone();
        transaction!(self.store, |conn| leases::renew(conn, RENEW, &claim, duration).await)
    }

    /// Finishes a message and queues the replies, in one transaction. A worker slower than its lease can still finish it
    /// until it has expired.
    pub async fn finish(self, claim: &IncomingClaim, finish: FinishIncoming) -> Result<LeaseStatus> {
        if matches!(finish.state, IncomingState::Waiting | IncomingState::Working) {
            return Err(Error::invalid(format!(
                "an incoming message cannot end in the state `{}`",
                finish.state.name()
            )));
        }
        if finish.replies.len() > REPLIES_LIMIT {
            return Err(Error::invalid(format!(
                "{} replies to one message; {REPLIES_LIMIT} are allowed",
                finish.replies.len()
            )));
        }
        finish.replies.iter().try_for_each(outgoing::check)?;
        let claim = claim.clone();
        transaction!(self.store, |conn| {
            let now = clock(conn).await?;
            let values = args![finish.state.name(), finish.reason.as_deref().map(stored_reason), now];
            let status = leases::update(conn, FINISH, &claim, values).await?;
            if status == LeaseStatus::Kept {
                conn.notify(Topic::Incoming).await?;
                add_replies(conn, finish.replies).await?;
            }
            Ok(status)
        })
    }

    /// Ends up to `limit` messages of this channel whose lease ran out as `unknown`, and returns them: each is returned
    /// once, to one caller, and is never processed again. What `notice` makes of them is queued with the same write. Of
    /// all users; for the worker of the channel.
    pub async fn expire(
        self,
        channel: &str,
        limit: u32,
        notice: impl Fn(&Incoming) -> Option<NewOutgoing> + Send + 'static,
    ) -> Result<Vec<Incoming>> {
        let channel = channel.to_owned();
        transaction!(self.store, |conn| {
            let expired: Vec<Incoming> = leases::expire(conn, EXPIRE, limit, args![channel]).await?;
            if !expired.is_empty() {
                conn.notify(Topic::Incoming).await?;
            }
            let notices: Vec<NewOutgoing> = expired.iter().filter_map(notice).collect();
            notices.iter().try_for_each(outgoing::check)?;
            add_replies(conn, notices).await?;
            Ok(expired)
        })
    }

    /// The messages with an unknown outcome, newest first. Of all users; for the operator.
    pub async fn list_unknown(self, limit: u32) -> Result<Vec<Incoming>> {
        let mut conn = self.store.reader().await?;
        let now = clock(&mut conn).await?;
        conn.fetch_all(LIST_UNKNOWN, args![now, limit]).await
    }

    /// Deletes up to `limit` messages that ended longer ago than `age`, of all users; returns how many. A deleted message
    /// would be stored again: prune no sooner than the channel may send it twice.
    pub async fn prune(self, age: Duration, limit: u32) -> Result<u64> {
        transaction!(self.store, |conn| leases::prune(conn, PRUNE, age, limit).await)
    }

    /// Where this user last wrote to this agent.
    pub async fn last_seen_channel(self, user: &str, agent: &str) -> Result<Option<LastSeenChannel>> {
        let sql = "SELECT channel, conversation, at FROM heard WHERE user_id = $1 AND agent = $2";
        let row: Option<(String, String, i64)> = self.store.fetch_optional(sql, args![user, agent]).await?;
        Ok(row.map(|(channel, conversation, at)| LastSeenChannel { channel, conversation, at }))
    }

    /// The user wrote here just now. For channels whose messages are not stored; `insert` does it by itself. Scheduled
    /// runs do not count.
    pub async fn set_last_seen_channel(self, scope: &Scope, channel: &str, conversation: &str) -> Result<()> {
        check_name("channel", channel)?;
        check_name("conversation", conversation)?;
        let (scope, channel, conversation) = (scope.clone(), channel.to_owned(), conversation.to_owned());
        transaction!(self.store, |conn| {
            let at = clock(conn).await?;
            set_last_seen(conn, &scope, LastSeenChannel { channel, conversation, at }).await
        })
    }
}

fn check(new: &[NewIncoming]) -> Result<()> {
    if new.len() > INSERT_LIMIT {
        return Err(Error::invalid(format!(
            "{} incoming messages at once; {INSERT_LIMIT} are allowed",
            new.len()
        )));
    }
    let bytes: usize = new.iter().map(|new| new.content.len()).sum();
    if bytes > INSERT_BYTES_LIMIT {
        return Err(Error::invalid(format!(
            "incoming messages of {bytes} bytes at once; {INSERT_BYTES_LIMIT} are allowed"
        )));
    }
    new.iter().try_for_each(|new| {
        check_name("channel", &new.channel)?;
        check_name("conversation", &new.conversation)?;
        check_name("external message", &new.external)?;
        check_text("incoming message", &new.content, CONTENT_LIMIT)
    })
}

async fn insert_all(
    conn: &mut Conn,
    new: Vec<NewIncoming>,
    cursor: Option<(String, i64)>,
) -> Result<Vec<Incoming>> {
    // The cursor first: two processes that read the same source take turns, so they take the other locks in one order.
    if let Some((name, value)) = cursor {
        let sql = "INSERT INTO channel_cursors AS this (name, value) VALUES ($1, $2) \
             ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE this.value < excluded.value";
        conn.execute(sql, args![name, value]).await?;
    }
    if new.is_empty() {
        return Ok(Vec::new());
    }
    let conversations = new.iter().map(|new| (new.channel.as_str(), new.conversation.as_str()));
    outgoing::lock_order(conn, "in", conversations).await?;
    let at = clock(conn).await?;
    let mut quotas: HashMap<String, i64> = HashMap::new();
    let mut inserted = Vec::with_capacity(new.len());
    for new in new {
        let left = match quotas.get(new.scope.user()) {
            Some(left) => *left,
            None => quota(conn, new.scope.user()).await?,
        };
        let incoming = waiting_or_failed(new, at, left > 0);
        let added = insert(conn, &incoming).await?;
        let open = added && incoming.state == IncomingState::Waiting;
        quotas.insert(incoming.user.clone(), left - i64::from(open));
        if added {
            inserted.push(incoming);
        }
    }
    if !inserted.is_empty() {
        set_all_last_seen(conn, &inserted).await?;
        conn.notify(Topic::Incoming).await?;
    }
    Ok(inserted)
}

/// How many more messages of this user may be unfinished. Counts no further than the limit.
async fn quota(conn: &mut Conn, user: &str) -> Result<i64> {
    let sql = "SELECT count(*) FROM (SELECT 1 FROM incoming WHERE user_id = $1 AND finished_at IS NULL \
         LIMIT +$2) AS open";
    let (open,): (i64,) = conn.fetch_one(sql, args![user, OPEN_LIMIT]).await?;
    Ok(OPEN_LIMIT - open)
}

fn waiting_or_failed(new: NewIncoming, at: i64, fits: bool) -> Incoming {
    let NewIncoming { scope, channel, conversation, external, content } = new;
    Incoming {
        user: scope.user().to_owned(),
        id: new_id(),
        agent: scope.agent().to_owned(),
        channel,
        conversation,
        external,
        content: if fits { content } else { "null".to_owned() },
        state: if fits { IncomingState::Waiting } else { IncomingState::Failed },
        created_at: at,
        started_at: None,
        finished_at: (!fits).then_some(at),
        reason: (!fits).then(|| format!("{OPEN_LIMIT} messages of this user are already waiting")),
    }
}

async fn insert(conn: &mut Conn, new: &Incoming) -> Result<bool> {
    let sql = "INSERT INTO incoming (user_id, id, agent, channel, conversation, external, content, state, created_at, \
         finished_at, reason, seq) SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 1 + coalesce(\
         (SELECT max(seq) FROM incoming WHERE channel = $4 AND conversation = $5 AND finished_at IS NULL), 0) \
         WHERE true ON CONFLICT (channel, external) DO NOTHING";
    let values = args![
        &new.user,
        &new.id,
        &new.agent,
        &new.channel,
        &new.conversation,
        &new.external,
        &new.content,
        new.state.name(),
        new.created_at,
        new.finished_at,
        new.reason.clone()
    ];
    let added = conn.execute(sql, values).await?;
    Ok(added > 0)
}

/// In one order: two transactions with the same users must not wait for each other.
async fn set_all_last_seen(conn: &mut Conn, inserted: &[Incoming]) -> Result<()> {
    let last: BTreeMap<(&str, &str), &Incoming> =
        inserted.iter().map(|one| ((one.user.as_str(), one.agent.as_str()), one)).collect();
    for ((user, agent), one) in last {
        let (channel, conversation) = (one.channel.clone(), one.conversation.clone());
        let seen = LastSeenChannel { channel, conversation, at: one.created_at };
        set_last_seen(conn, &Scope::new(user, agent)?, seen).await?;
    }
    Ok(())
}

/// A later one stays.
async fn set_last_seen(conn: &mut Conn, scope: &Scope, seen: LastSeenChannel) -> Result<()> {
    if seen.channel == SCHEDULED {
        return Ok(());
    }
    let sql = "INSERT INTO heard AS this (user_id, agent, channel, conversation, at) VALUES ($1, $2, $3, $4, $5) \
         ON CONFLICT (user_id, agent) DO UPDATE SET channel = excluded.channel, \
         conversation = excluded.conversation, at = excluded.at WHERE this.at <= excluded.at";
    conn.execute(sql, args![scope.user(), scope.agent(), seen.channel, seen.conversation, seen.at])
        .await
        .map(drop)
}
