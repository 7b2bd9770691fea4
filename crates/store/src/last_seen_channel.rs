//! The channel on which a user last wrote to an agent: notices that are no replies are sent there.

use crate::areas::IncomingQueue;
use crate::db::{Conn, args, transaction};
use crate::error::Result;
use crate::leases::clock;
use crate::store::{Scope, check_name};

/// Scheduled runs; no user writes on this channel.
const SCHEDULED: &str = "scheduled";

/// The channel and conversation of a user's last message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastSeenChannel {
    pub channel: String,
    pub conversation: String,
    pub at: i64,
}

impl IncomingQueue<'_> {
    /// Where this user last spoke to this agent.
    pub async fn last_seen_channel(self, user: &str, agent: &str) -> Result<Option<LastSeenChannel>> {
        let row: Option<(String, String, i64)> = self
            .store
            .reader()
            .await?
            .fetch_optional(
                "SELECT channel, conversation, at FROM heard WHERE user_id = $1 AND agent = $2",
                args![user, agent],
            )
            .await?;
        Ok(row.map(|(channel, conversation, at)| LastSeenChannel { channel, conversation, at }))
    }

    /// The user spoke here just now. For channels that keep nothing that arrives; `take_incoming` notes it by itself.
    /// Runs of schedules do not count.
    pub async fn set_last_seen_channel(self, scope: &Scope, channel: &str, conversation: &str) -> Result<()> {
        check_name("channel", channel)?;
        check_name("conversation", conversation)?;
        let (scope, channel, conversation) = (scope.clone(), channel.to_owned(), conversation.to_owned());
        transaction!(self.store, |conn| {
            let at = clock(conn).await?;
            note(conn, &scope, LastSeenChannel { channel, conversation, at }).await
        })
    }
}

/// Notes it inside the caller's transaction. What was heard later stays.
pub(crate) async fn note(conn: &mut Conn, scope: &Scope, seen: LastSeenChannel) -> Result<()> {
    if seen.channel == SCHEDULED {
        return Ok(());
    }
    conn.execute(
        "INSERT INTO heard AS this (user_id, agent, channel, conversation, at) VALUES ($1, $2, $3, $4, $5) \
         ON CONFLICT (user_id, agent) DO UPDATE SET channel = excluded.channel, \
         conversation = excluded.conversation, at = excluded.at WHERE this.at <= excluded.at",
        args![scope.user(), scope.agent(), seen.channel, seen.conversation, seen.at],
    )
    .await
    .map(drop)
}
