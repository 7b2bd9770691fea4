//! Notices to users: what an agent says outside of any conversation, with its date, its origin and an unread mark. A notice can go
//! out as a message on a channel too; both are stored together. The newest of each user are kept.

use crate::areas::Notices;
use crate::changes::Topic;
use crate::db::{args, from_row, transaction};
use crate::error::{Error, Result};
use crate::leases::clock;
use crate::outgoing::{self, NewOutgoing};
use crate::store::{Scope, check_name, check_text, new_id};

/// Notices of one user that are kept; the oldest are deleted first, read or not.
pub const KEPT: u32 = 500;
const TEXT_LIMIT: usize = 256 * 1024;

#[derive(Clone, Debug)]
pub struct NewNotice {
    pub scope: Scope,
    /// Not empty, at most 256 KiB.
    pub text: String,
    /// `low`, `normal` or `high`.
    pub urgency: String,
    pub origin: NoticeOrigin,
}

/// What wrote a notice, besides its agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoticeOrigin {
    /// The channel of the conversation or run; `budget` for a notice of the program about a budget.
    pub channel: String,
    pub thread: Option<String>,
    pub schedule: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub id: String,
    pub agent: String,
    pub text: String,
    /// `low`, `normal` or `high`.
    pub urgency: String,
    pub origin: NoticeOrigin,
    /// The title of the thread of its origin, if there still is one.
    pub title: Option<String>,
    pub created_at: i64,
    /// `None` of an unread notice.
    pub read_at: Option<i64>,
}

from_row! {
    Notice {
        id, agent, text, urgency, channel, thread, schedule, title, created_at, read_at,
    } => {
        let origin = NoticeOrigin { channel, thread, schedule };
        Ok(Self { id, agent, text, urgency, origin, title, created_at, read_at })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadNotices {
    pub count: i64,
    /// The id of the newest one.
    pub newest: Option<String>,
}

from_row! { UnreadNotices { count, newest } }

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeFilter {
    All,
    Unread,
}

macro_rules! list {
    ($which:literal) => {
        concat!(
            "SELECT this.id, this.agent, this.text, this.urgency, this.channel, this.thread_id, this.schedule_id, \
             threads.title, this.created_at, this.read_at FROM notices AS this LEFT JOIN threads \
             ON threads.user_id = this.user_id AND threads.id = this.thread_id WHERE this.user_id = $1",
            $which,
            " ORDER BY CASE WHEN this.read_at IS NULL THEN 0 ELSE 1 END, this.id DESC LIMIT +$2"
        )
    };
}
const ADD: &str = "INSERT INTO notices (user_id, id, agent, text, urgency, channel, thread_id, schedule_id, created_at) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
const PRUNE: &str = "DELETE FROM notices WHERE user_id = $1 AND id < (SELECT min(id) FROM (SELECT id FROM notices \
     WHERE user_id = $1 ORDER BY id DESC LIMIT +$2) AS kept)";
const READ_ONE: &str = "UPDATE notices SET read_at = $3 WHERE user_id = $1 AND id = $2 AND read_at IS NULL";
const READ_ALL: &str = "UPDATE notices SET read_at = $2 WHERE user_id = $1 AND read_at IS NULL";

impl Notices<'_> {
    /// Adds a notice, and queues the message that brings it to a channel: both or neither. Returns its id.
    pub async fn add(self, new: NewNotice, message: Option<NewOutgoing>) -> Result<String> {
        check(&new)?;
        message.as_ref().map_or(Ok(()), outgoing::check)?;
        transaction!(self.store, |conn| {
            let NewNotice { scope, text, urgency, origin } = new;
            let NoticeOrigin { channel, thread, schedule } = origin;
            let (user, id, at) = (scope.user(), new_id(), clock(conn).await?);
            let values = args![user, &id, scope.agent(), text, urgency, channel, thread, schedule, at];
            conn.execute(ADD, values).await?;
            conn.execute(PRUNE, args![user, KEPT]).await?;
            if let Some(message) = message {
                outgoing::enqueue(conn, message).await?;
            }
            conn.notify(Topic::Notices).await?;
            Ok(id)
        })
    }

    /// The user's notices: the unread ones first, and of each kind the newest first.
    pub async fn list(self, user: &str, filter: NoticeFilter, limit: u32) -> Result<Vec<Notice>> {
        let sql = match filter {
            NoticeFilter::All => list!(""),
            NoticeFilter::Unread => list!(" AND this.read_at IS NULL"),
        };
        self.store.fetch_all(sql, args![user, limit]).await
    }

    pub async fn unread(self, user: &str) -> Result<UnreadNotices> {
        let sql = "SELECT count(*), max(id) FROM notices WHERE user_id = $1 AND read_at IS NULL";
        self.store.fetch_one(sql, args![user]).await
    }

    /// Marks these notices of the user as read, and returns how many were unread. Other ids are ignored.
    pub async fn mark_read(self, user: &str, ids: Vec<String>) -> Result<u64> {
        if ids.len() > KEPT as usize {
            return Err(Error::invalid(format!("{} notices at once; {KEPT} are allowed", ids.len())));
        }
        let user = user.to_owned();
        transaction!(self.store, |conn| {
            let at = clock(conn).await?;
            let mut count = 0;
            for id in ids {
                count += conn.execute(READ_ONE, args![&user, id, at]).await?;
            }
            if count > 0 {
                conn.notify(Topic::Notices).await?;
            }
            Ok(count)
        })
    }

    /// Marks every notice of the user as read, and returns how many were unread.
    pub async fn mark_all_read(self, user: &str) -> Result<u64> {
        let user = user.to_owned();
        transaction!(self.store, |conn| {
            let at = clock(conn).await?;
            let count = conn.execute(READ_ALL, args![&user, at]).await?;
            if count > 0 {
                conn.notify(Topic::Notices).await?;
            }
            Ok(count)
        })
    }
}

fn check(new: &NewNotice) -> Result<()> {
    check_name("urgency of the notice", &new.urgency)?;
    if !new.origin.channel.is_empty() {
        check_name("channel", &new.origin.channel)?;
    }
    if new.text.is_empty() {
        return Err(Error::invalid("the notice is empty"));
    }
    check_text("notice", &new.text, TEXT_LIMIT)
}
