//! Threads of conversation and their messages, in order. A message is stored as the JSON text that was received.

use crate::areas::Threads;
use crate::audit::Action;
use crate::db::{Conn, args, audited, from_row, transaction};
use crate::error::{Error, ErrorKind, Result};
use crate::store::{Scope, check_controls, check_name, check_text, new_id, now};

const TITLE_LIMIT: usize = 1024;
const CONTENT_LIMIT: usize = 4 * 1024 * 1024;
/// Of one append.
const APPEND_LIMIT: usize = 1000;
const APPEND_BYTES_LIMIT: usize = 16 * 1024 * 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    pub id: String,
    pub agent: String,
    pub channel: String,
    /// The channel's own id, such as a chat number.
    pub external: Option<String>,
    pub title: Option<String>,
    /// Number of messages.
    pub messages: i64,
    pub created_at: i64,
    pub changed_at: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMessage {
    /// `user`, `assistant`, `tool` …
    pub role: String,
    /// JSON text, kept byte for byte.
    pub content: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub id: String,
    /// Position in the thread, from 1.
    pub seq: i64,
    pub message: NewMessage,
    pub created_at: i64,
}

#[derive(Clone, Debug)]
pub struct NewThread {
    pub channel: String,
    /// The channel's own id; the same id opens the same thread.
    pub external: Option<String>,
    pub title: Option<String>,
}

from_row! { Thread { id, agent, channel, external, title, messages, created_at, changed_at } }

from_row! {
    Message { id, seq, role, content, created_at } => {
        Ok(Self { id, seq, message: NewMessage { role, content }, created_at })
    }
}

macro_rules! columns {
    () => {
        "id, agent, channel, external, title, messages, created_at, changed_at"
    };
}

/// The update changes nothing; it makes the statement return a row that exists.
const OPEN: &str = concat!(
    "INSERT INTO threads AS this (user_id, id, agent, channel, external, title, created_at, changed_at) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $7) \
     ON CONFLICT (user_id, agent, channel, external) DO UPDATE SET channel = this.channel RETURNING ",
    columns!()
);
const ONE: &str = concat!("SELECT ", columns!(), " FROM threads WHERE user_id = $1 AND id = $2");
const TAKE_EXTERNAL: &str = concat!(
    "UPDATE threads SET external = NULL WHERE user_id = $1 AND agent = $2 AND channel = $3 AND external = $4 RETURNING ",
    columns!()
);
const CLEAR_EXTERNAL: &str = "UPDATE threads SET external = NULL WHERE user_id = $1 AND agent = $2 AND id <> $3 \
     AND external = $4 AND channel = (SELECT channel FROM threads WHERE user_id = $1 AND id = $3)";
const SET_EXTERNAL: &str = "UPDATE threads SET external = $4 WHERE user_id = $1 AND agent = $2 AND id = $3";
const LIST: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM threads WHERE user_id = $1 AND agent = $2 ORDER BY changed_at DESC, id DESC LIMIT +$3"
);
const RENAME: &str =
    concat!("UPDATE threads SET title = $3 WHERE user_id = $1 AND id = $2 RETURNING ", columns!());
const DELETE: &str = concat!("DELETE FROM threads WHERE user_id = $1 AND id = $2 RETURNING ", columns!());
const MESSAGES: &str = "SELECT id, seq, role, content, created_at FROM messages \
     WHERE user_id = $1 AND thread_id = $2 AND seq > $3 ORDER BY seq LIMIT +$4";
const LAST_MESSAGES: &str = "SELECT id, seq, role, content, created_at FROM messages \
     WHERE user_id = $1 AND thread_id = $2 ORDER BY seq DESC LIMIT +$3";

impl Threads<'_> {
    /// Begins a thread, or finds the one with this external id.
    pub async fn open(self, scope: &Scope, new: NewThread) -> Result<Thread> {
        check_name("channel", &new.channel)?;
        new.external.as_ref().map_or(Ok(()), |name| check_name("external thread", name))?;
        new.title.as_ref().map_or(Ok(()), |title| check_text("title", title, TITLE_LIMIT))?;
        let scope = scope.clone();
        transaction!(self.store, |conn| {
            let NewThread { channel, external, title } = new;
            let values = args![scope.user(), new_id(), scope.agent(), channel, external, title, now()];
            conn.fetch_one(OPEN, values).await
        })
    }

    pub async fn get(self, user: &str, id: &str) -> Result<Option<Thread>> {
        self.store.fetch_optional(ONE, args![user, id]).await
    }

    /// Finds the thread with this external id and takes the id from it, so that no other request continues it.
    pub async fn take_external(self, scope: &Scope, channel: &str, external: &str) -> Result<Option<Thread>> {
        let (scope, channel, external) = (scope.clone(), channel.to_owned(), external.to_owned());
        transaction!(self.store, |conn| {
            conn.fetch_optional(TAKE_EXTERNAL, args![scope.user(), scope.agent(), channel, external]).await
        })
    }

    /// Removes the external id of a thread.
    pub async fn clear_external(self, user: &str, id: &str) -> Result<()> {
        let (user, id) = (user.to_owned(), id.to_owned());
        transaction!(self.store, |conn| {
            let sql = "UPDATE threads SET external = NULL WHERE user_id = $1 AND id = $2";
            conn.execute(sql, args![user, id]).await.map(drop)
        })
    }

    /// Gives a thread an external id. A thread that has it loses it.
    pub async fn set_external(self, scope: &Scope, id: &str, external: &str) -> Result<()> {
        check_name("external thread", external)?;
        let (scope, id, external) = (scope.clone(), id.to_owned(), external.to_owned());
        transaction!(self.store, |conn| {
            let (user, agent) = (scope.user(), scope.agent());
            conn.execute(CLEAR_EXTERNAL, args![user, agent, &id, &external]).await?;
            conn.execute(SET_EXTERNAL, args![user, agent, &id, &external]).await?;
            Ok(())
        })
    }

    /// The threads of this user and agent, the latest first.
    pub async fn list(self, scope: &Scope, limit: u32) -> Result<Vec<Thread>> {
        self.store.fetch_all(LIST, args![scope.user(), scope.agent(), limit]).await
    }

    /// Gives a thread a title. For operators.
    pub async fn rename(self, user: &str, id: &str, title: &str) -> Result<Thread> {
        let title = title.trim();
        if title.is_empty() {
            return Err(Error::invalid("the title is empty"));
        }
        check_text("title", title, TITLE_LIMIT)?;
        check_controls("title", title)?;
        let (user, id, title) = (user.to_owned(), id.to_owned(), title.to_owned());
        audited!(self.store, |tx| {
            let renamed: Option<Thread> = tx.conn.fetch_optional(RENAME, args![&user, &id, title]).await?;
            let renamed = renamed.ok_or_else(|| missing(&id))?;
            tx.operation(&user, Action::ThreadRenamed, &id, Some(&renamed.agent))?;
            Ok(renamed)
        })
    }

    /// Deletes a thread with its messages and its calls that wait for approval; returns what it was. For operators.
    pub async fn delete(self, user: &str, id: &str) -> Result<Thread> {
        let (user, id) = (user.to_owned(), id.to_owned());
        audited!(self.store, |tx| {
            let thread: Option<Thread> = tx.conn.fetch_optional(DELETE, args![&user, &id]).await?;
            let thread = thread.ok_or_else(|| missing(&id))?;
            for sql in [
                "DELETE FROM messages WHERE user_id = $1 AND thread_id = $2",
                "DELETE FROM held_calls WHERE user_id = $1 AND thread = $2",
            ] {
                tx.conn.execute(sql, args![&user, &id]).await?;
            }
            let note = format!("{}, {} messages", thread.agent, thread.messages);
            tx.operation(&user, Action::ThreadDeleted, &id, Some(&note))?;
            Ok(thread)
        })
    }

    /// Appends messages, all or none, in this order. At most 1000 of 4 MiB each, and 16 MiB in all.
    pub async fn append(self, user: &str, thread: &str, messages: Vec<NewMessage>) -> Result<Vec<Message>> {
        check(&messages)?;
        let (user, thread) = (user.to_owned(), thread.to_owned());
        transaction!(self.store, |conn| append(conn, &user, &thread, messages).await)
    }

    /// Messages of a thread in order, from the one after `after`.
    pub async fn messages(self, user: &str, thread: &str, after: i64, limit: u32) -> Result<Vec<Message>> {
        self.store.fetch_all(MESSAGES, args![user, thread, after, limit]).await
    }

    /// The newest messages of a thread, in order.
    pub async fn last_messages(self, user: &str, thread: &str, limit: u32) -> Result<Vec<Message>> {
        let mut messages = self.store.fetch_all(LAST_MESSAGES, args![user, thread, limit]).await?;
        messages.reverse();
        Ok(messages)
    }
}

fn missing(id: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("unknown thread `{id}`"))
        .hint("`embody thread list` shows the ids; `--user` and `--agent` select the user and the agent")
}

pub(crate) fn check(messages: &[NewMessage]) -> Result<()> {
    if messages.len() > APPEND_LIMIT {
        let count = messages.len();
        return Err(Error::invalid(format!("{count} messages at once; {APPEND_LIMIT} are allowed")));
    }
    let bytes: usize = messages.iter().map(|message| message.content.len()).sum();
    if bytes > APPEND_BYTES_LIMIT {
        return Err(Error::invalid(format!(
            "messages of {bytes} bytes at once; {APPEND_BYTES_LIMIT} are allowed"
        )));
    }
    for message in messages {
        check_name("role", &message.role)?;
        check_text("message", &message.content, CONTENT_LIMIT)?;
    }
    Ok(())
}

async fn append(
    conn: &mut Conn,
    user: &str,
    thread: &str,
    messages: Vec<NewMessage>,
) -> Result<Vec<Message>> {
    let count = i64::try_from(messages.len()).unwrap_or(i64::MAX);
    let at = now();
    let sql = "UPDATE threads SET messages = messages + $3, changed_at = $4 WHERE user_id = $1 AND id = $2 \
         RETURNING messages";
    let last: Option<(i64,)> = conn.fetch_optional(sql, args![user, thread, count, at]).await?;
    let (last,) = last.ok_or_else(|| missing(thread))?;
    let messages: Vec<Message> = messages
        .into_iter()
        .zip(last - count + 1..)
        .map(|(message, seq)| Message { id: new_id(), seq, message, created_at: at })
        .collect();
    let rows = messages.iter().map(|message| {
        let NewMessage { role, content } = &message.message;
        args![user, thread, message.seq, &message.id, role, content, at]
    });
    conn.insert_rows(
        "INSERT INTO messages (user_id, thread_id, seq, id, role, content, created_at)",
        rows.collect(),
        "",
    )
    .await?;
    Ok(messages)
}
