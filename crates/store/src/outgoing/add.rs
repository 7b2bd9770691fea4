//! Queueing messages that are to leave. Of one user only so many may wait.

use super::{Outgoing, OutgoingState};
use crate::areas::OutgoingQueue;
use crate::changes::Topic;
use crate::db::{Conn, args, transaction};
use crate::error::{Error, ErrorKind, Result};
use crate::leases::clock;
use crate::ordering_locks::{Queue, lock};
use crate::store::{Scope, check_name, check_text, new_id};

const TEXT_LIMIT: usize = 256 * 1024;
/// So many of one user may wait or be on their way.
const OPEN_LIMIT: i64 = 10_000;

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

impl OutgoingQueue<'_> {
    /// Queues a message. Where 10,000 of the user wait already the error is of the kind `Full`.
    pub async fn enqueue(self, new: NewOutgoing) -> Result<Outgoing> {
        check(&new)?;
        transaction!(self.store, |conn| add_one(conn, new).await)
    }
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

async fn add_one(conn: &mut Conn, new: NewOutgoing) -> Result<Outgoing> {
    let user = new.scope.user().to_owned();
    lock(conn, Queue::Out, std::iter::once((new.channel.as_str(), new.to.as_str()))).await?;
    if !has_room(conn, &user).await? {
        return Err(Error::new(ErrorKind::Full, format!("{OPEN_LIMIT} messages of `{user}` wait to leave"))
            .hint("see the log for why the channel does not send them"));
    }
    let outgoing = fresh(new, clock(conn).await?);
    insert(conn, &outgoing).await?;
    conn.notify(Topic::Outgoing).await?;
    Ok(outgoing)
}

/// Queues replies inside the caller's transaction. One that has no room is kept as `failed`: the work that it answers
/// has ended all the same.
pub(crate) async fn add_replies(conn: &mut Conn, replies: Vec<NewOutgoing>) -> Result<()> {
    if replies.is_empty() {
        return Ok(());
    }
    lock(conn, Queue::Out, replies.iter().map(|new| (new.channel.as_str(), new.to.as_str()))).await?;
    let at = clock(conn).await?;
    for new in replies {
        let mut outgoing = fresh(new, at);
        if !has_room(conn, &outgoing.user).await? {
            outgoing.state = OutgoingState::Failed;
            outgoing.reason = Some(format!("{OPEN_LIMIT} messages of this user wait to leave"));
            outgoing.finished_at = Some(at);
        }
        insert(conn, &outgoing).await?;
    }
    conn.notify(Topic::Outgoing).await
}

/// Counts no further than the limit. Replicas that add at once may pass it by what they add.
async fn has_room(conn: &mut Conn, user: &str) -> Result<bool> {
    let (open,): (i64,) = conn
        .fetch_one(
            "SELECT count(*) FROM (SELECT 1 FROM outgoing WHERE user_id = $1 AND finished_at IS NULL LIMIT +$2) AS open",
            args![user, OPEN_LIMIT],
        )
        .await?;
    Ok(open < OPEN_LIMIT)
}

fn fresh(new: NewOutgoing, at: i64) -> Outgoing {
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
    conn.execute(
        "INSERT INTO outgoing (user_id, id, agent, channel, recipient, text, kind, urgency, about, state, reason, \
         created_at, finished_at, seq) SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 1 + coalesce(\
         (SELECT max(seq) FROM outgoing WHERE channel = $4 AND recipient = $5 AND finished_at IS NULL), 0)",
        args![
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
        ],
    )
    .await
    .map(drop)
}
