//! Messages from one process to the others on the same database, about hosts that they serve together. They are
//! deleted after a minute, read or not.

use std::time::Duration;

use crate::areas::ReplicaMessages;
use crate::changes::Topic;
use crate::db::{Sql, args, from_row, transaction};
use crate::error::Result;
use crate::leases::{claim_sql, clock, earlier};
use crate::store::{check_name, check_text};

const KEPT: Duration = Duration::from_secs(60);
const BATCH: u32 = 1000;
const CONTENT_LIMIT: usize = 48 * 1024 * 1024;

const FORGET: Sql = claim_sql!(
    "WITH picked AS MATERIALIZED (SELECT id FROM letters WHERE created_at < $1 ORDER BY created_at LIMIT +$2",
    ") DELETE FROM letters WHERE id IN (SELECT * FROM picked)",
);

#[derive(Clone, Debug)]
pub struct NewReplicaMessage {
    /// Replica id.
    pub sender: String,
    /// Replica id; `None` for all others.
    pub recipient: Option<String>,
    /// At most 48 MiB.
    pub content: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaMessage {
    pub id: String,
    pub sender: String,
}

from_row! { ReplicaMessage { id, sender } }

impl ReplicaMessages<'_> {
    pub async fn send(self, message: NewReplicaMessage) -> Result<()> {
        check_name("process", &message.sender)?;
        check_text("message", &message.content, CONTENT_LIMIT)?;
        let id = uuid::Uuid::now_v7().simple().to_string();
        transaction!(self.store, |conn| {
            let NewReplicaMessage { sender, recipient, content } = message;
            let now = clock(conn).await?;
            let sql = "INSERT INTO letters (id, sender, recipient, content, created_at) \
                 VALUES ($1, $2, $3, $4, $5)";
            conn.execute(sql, args![id, sender, recipient.unwrap_or_default(), content, now]).await?;
            conn.notify(Topic::ReplicaMessages).await
        })
    }

    /// The messages for this process, oldest first, including those that it has read before.
    pub async fn list_for(self, process: &str) -> Result<Vec<ReplicaMessage>> {
        let mut conn = self.store.reader().await?;
        let since = earlier(clock(&mut conn).await?, KEPT);
        let sql = "SELECT id, sender FROM letters WHERE created_at >= $1 AND sender <> $2 \
             AND (recipient = '' OR recipient = $2) ORDER BY created_at, id";
        conn.fetch_all(sql, args![since, process]).await
    }

    pub async fn delete_old(self) -> Result<()> {
        let mut conn = self.store.reader().await?;
        let before = earlier(clock(&mut conn).await?, KEPT);
        let old: Option<(i64,)> = conn
            .fetch_optional("SELECT created_at FROM letters WHERE created_at < $1 LIMIT 1", args![before])
            .await?;
        drop(conn);
        if old.is_none() {
            return Ok(());
        }
        transaction!(self.store, |conn| conn.execute(FORGET, args![before, BATCH]).await.map(drop))
    }

    /// The content of a message; `None` if it was deleted.
    pub async fn content(self, id: &str) -> Result<Option<String>> {
        let row: Option<(String,)> =
            self.store.fetch_optional("SELECT content FROM letters WHERE id = $1", args![id]).await?;
        Ok(row.map(|(content,)| content))
    }
}
