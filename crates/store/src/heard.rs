//! Where a user last spoke to an agent: a word that nobody asked for is sent there.

use crate::db::{Conn, args};
use crate::error::Result;
use crate::leases::clock;
use crate::store::{Scope, Store, check_name};

/// On this channel nobody speaks: what runs there was planned.
const SCHEDULED: &str = "scheduled";

/// Where somebody was heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// On which channel.
    pub channel: String,
    /// In which conversation of it.
    pub conversation: String,
    /// When, in microseconds since 1970.
    pub at: i64,
}

impl Store {
    /// Where this user last spoke to this agent.
    pub async fn last_heard(&self, user: &str, agent: &str) -> Result<Option<Heard>> {
        let row: Option<(String, String, i64)> = self
            .db()
            .reader()
            .await?
            .maybe(
                "SELECT channel, conversation, at FROM heard WHERE user_id = $1 AND agent = $2",
                args![user, agent],
            )
            .await?;
        Ok(row.map(|(channel, conversation, at)| Heard { channel, conversation, at }))
    }

    /// The user spoke here just now. For channels that keep nothing that arrives; `take_incoming` notes it by itself.
    /// Runs of schedules do not count.
    pub async fn note_heard(&self, scope: &Scope, channel: &str, conversation: &str) -> Result<()> {
        check_name("channel", channel)?;
        check_name("conversation", conversation)?;
        let (scope, channel, conversation) = (scope.clone(), channel.to_owned(), conversation.to_owned());
        self.db()
            .write(move |conn| {
                Box::pin(async move {
                    let at = clock(conn).await?;
                    note(conn, &scope, Heard { channel, conversation, at }).await
                })
            })
            .await
    }
}

/// Notes it inside the caller's transaction. What was heard later stays.
pub(crate) async fn note(conn: &mut Conn, scope: &Scope, heard: Heard) -> Result<()> {
    if heard.channel == SCHEDULED {
        return Ok(());
    }
    conn.run(
        "INSERT INTO heard AS this (user_id, agent, channel, conversation, at) VALUES ($1, $2, $3, $4, $5) \
         ON CONFLICT (user_id, agent) DO UPDATE SET channel = excluded.channel, \
         conversation = excluded.conversation, at = excluded.at WHERE this.at <= excluded.at",
        args![scope.user(), scope.agent(), heard.channel, heard.conversation, heard.at],
    )
    .await
    .map(drop)
}
