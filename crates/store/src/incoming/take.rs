//! Taking what arrived on a channel, each once, together with how far the channel has read at its source.

use std::collections::{BTreeMap, HashMap};

use super::{Incoming, IncomingState};
use crate::areas::IncomingQueue;
use crate::changes::Topic;
use crate::db::{Conn, args, transaction};
use crate::error::{Error, Result};
use crate::last_seen_channel::{LastSeenChannel, note};
use crate::leases::clock;
use crate::ordering_locks::{Queue, lock};
use crate::store::{Scope, check_name, check_text, new_id};

pub(super) const CONTENT_LIMIT: usize = 1024 * 1024;
/// Taken at once, and their bytes.
const TAKE_LIMIT: usize = 1000;
const TAKE_BYTES_LIMIT: usize = 16 * 1024 * 1024;
/// So many of one user may wait or be worked on.
const OPEN_LIMIT: i64 = 10_000;

/// Something that somebody said on a channel.
#[derive(Clone, Debug)]
pub struct NewIncoming {
    pub scope: Scope,
    pub channel: String,
    /// Messages of one conversation are processed in order, one at a time, whoever wrote them.
    pub conversation: String,
    /// The channel's own id; the same id is stored once.
    pub external: String,
    /// JSON text, at most 1 MiB.
    pub content: String,
}

/// How far a channel has read at its source.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    pub name: &'a str,
    pub value: i64,
}

impl IncomingQueue<'_> {
    /// Takes what arrived, in this order, and moves the channel's cursor, in one transaction. Those that were taken before
    /// are left out of the answer. A cursor never goes back.
    ///
    /// Of one user 10,000 may be open; what comes beyond that is taken without its content and is `Failed` at once: the
    /// answer says so, for the channel to tell the user. At most 1000 of 1 MiB each, and 16 MiB in all.
    pub async fn insert(self, new: Vec<NewIncoming>, cursor: Option<Cursor<'_>>) -> Result<Vec<Incoming>> {
        check(&new)?;
        if let Some(cursor) = &cursor {
            check_name("cursor", cursor.name)?;
        }
        let cursor = cursor.map(|cursor| (cursor.name.to_owned(), cursor.value));
        transaction!(self.store, |conn| take(conn, new, cursor).await)
    }

    /// How far the channel of this cursor has read; `None`: it never did.
    pub async fn cursor(self, name: &str) -> Result<Option<i64>> {
        let row: Option<(i64,)> = self
            .store
            .reader()
            .await?
            .fetch_optional("SELECT value FROM channel_cursors WHERE name = $1", args![name])
            .await?;
        Ok(row.map(|(value,)| value))
    }
}

fn check(new: &[NewIncoming]) -> Result<()> {
    if new.len() > TAKE_LIMIT {
        return Err(Error::invalid(format!(
            "{} incoming messages at once; {TAKE_LIMIT} are allowed",
            new.len()
        )));
    }
    let bytes: usize = new.iter().map(|new| new.content.len()).sum();
    if bytes > TAKE_BYTES_LIMIT {
        return Err(Error::invalid(format!(
            "incoming messages of {bytes} bytes at once; {TAKE_BYTES_LIMIT} are allowed"
        )));
    }
    new.iter().try_for_each(|new| {
        check_name("channel", &new.channel)?;
        check_name("conversation", &new.conversation)?;
        check_name("external message", &new.external)?;
        check_text("incoming message", &new.content, CONTENT_LIMIT)
    })
}

async fn take(
    conn: &mut Conn,
    new: Vec<NewIncoming>,
    cursor: Option<(String, i64)>,
) -> Result<Vec<Incoming>> {
    // The cursor first: two who read the same source take turns, and lock all else in the order of one of them.
    if let Some((name, value)) = cursor {
        conn.execute(
            "INSERT INTO channel_cursors AS this (name, value) VALUES ($1, $2) \
             ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE this.value < excluded.value",
            args![name, value],
        )
        .await?;
    }
    if new.is_empty() {
        return Ok(Vec::new());
    }
    lock(conn, Queue::In, new.iter().map(|new| (new.channel.as_str(), new.conversation.as_str()))).await?;
    let at = clock(conn).await?;
    let mut room: HashMap<String, i64> = HashMap::new();
    let mut taken = Vec::with_capacity(new.len());
    for new in new {
        let left = match room.get(new.scope.user()) {
            Some(left) => *left,
            None => room_of(conn, new.scope.user()).await?,
        };
        let incoming = fresh(new, at, left > 0);
        let added = insert(conn, &incoming).await?;
        let open = added && incoming.state == IncomingState::Waiting;
        room.insert(incoming.user.clone(), left - i64::from(open));
        if added {
            taken.push(incoming);
        }
    }
    if !taken.is_empty() {
        hear(conn, &taken).await?;
        conn.notify(Topic::Incoming).await?;
    }
    Ok(taken)
}

/// How many more of this user may be open. Counts no further than the limit.
async fn room_of(conn: &mut Conn, user: &str) -> Result<i64> {
    let (open,): (i64,) = conn
        .fetch_one(
            "SELECT count(*) FROM (SELECT 1 FROM incoming WHERE user_id = $1 AND finished_at IS NULL LIMIT +$2) AS open",
            args![user, OPEN_LIMIT],
        )
        .await?;
    Ok(OPEN_LIMIT - open)
}

fn fresh(new: NewIncoming, at: i64, has_room: bool) -> Incoming {
    let NewIncoming { scope, channel, conversation, external, content } = new;
    Incoming {
        user: scope.user().to_owned(),
        id: new_id(),
        agent: scope.agent().to_owned(),
        channel,
        conversation,
        external,
        content: if has_room { content } else { "null".to_owned() },
        state: if has_room { IncomingState::Waiting } else { IncomingState::Failed },
        created_at: at,
        started_at: None,
        finished_at: (!has_room).then_some(at),
        reason: (!has_room).then(|| format!("{OPEN_LIMIT} messages of this user wait already")),
    }
}

async fn insert(conn: &mut Conn, new: &Incoming) -> Result<bool> {
    let added = conn
        .execute(
            "INSERT INTO incoming (user_id, id, agent, channel, conversation, external, content, state, created_at, \
             finished_at, reason, seq) SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 1 + coalesce(\
             (SELECT max(seq) FROM incoming WHERE channel = $4 AND conversation = $5 AND finished_at IS NULL), 0) \
             WHERE true ON CONFLICT (channel, external) DO NOTHING",
            args![
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
            ],
        )
        .await?;
    Ok(added > 0)
}

/// Notes where each user was heard last, in one order: two that note the same users must not wait for each other.
async fn hear(conn: &mut Conn, taken: &[Incoming]) -> Result<()> {
    let last: BTreeMap<(&str, &str), &Incoming> =
        taken.iter().map(|one| ((one.user.as_str(), one.agent.as_str()), one)).collect();
    for ((user, agent), one) in last {
        let heard = LastSeenChannel {
            channel: one.channel.clone(),
            conversation: one.conversation.clone(),
            at: one.created_at,
        };
        note(conn, &Scope::new(user, agent)?, heard).await?;
    }
    Ok(())
}
