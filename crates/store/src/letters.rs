//! Word from one process to the others on the same database, about hosts that they serve together. Nothing of it is kept:
//! whoever does not read it within a minute never will.

use std::time::Duration;

use crate::changes::{self, Topic};
use crate::db::{Sql, args};
use crate::error::Result;
use crate::leases::{claim, clock, earlier};
use crate::store::{Store, check_name, check_text};

/// How long a letter lies there.
const KEPT: Duration = Duration::from_secs(60);
/// Old ones that are forgotten at a time.
const BATCH: u32 = 1000;
const CONTENT_LIMIT: usize = 48 * 1024 * 1024;

const FORGET: Sql = claim!(
    "WITH picked AS MATERIALIZED (SELECT id FROM letters WHERE created_at < $1 ORDER BY created_at LIMIT +$2",
    ") DELETE FROM letters WHERE id IN (SELECT * FROM picked)",
);

/// A letter to be sent.
#[derive(Clone, Debug)]
pub struct NewLetter {
    /// The process that sends it.
    pub sender: String,
    /// The process that it is for; `None`: all others.
    pub recipient: Option<String>,
    /// What it says; at most 48 MiB.
    pub content: String,
}

/// A letter as it is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// Its name: whoever looks again finds it again.
    pub id: String,
    /// The process that has sent it.
    pub sender: String,
}

impl Store {
    /// Sends a letter.
    pub async fn send_letter(&self, letter: NewLetter) -> Result<()> {
        check_name("process", &letter.sender)?;
        check_text("letter", &letter.content, CONTENT_LIMIT)?;
        let id = uuid::Uuid::now_v7().simple().to_string();
        self.db()
            .write(move |conn| {
                let NewLetter { sender, recipient, content } = letter;
                Box::pin(async move {
                    let now = clock(conn).await?;
                    conn.run(
                        "INSERT INTO letters (id, sender, recipient, content, created_at) \
                         VALUES ($1, $2, $3, $4, $5)",
                        args![id, sender, recipient.unwrap_or_default(), content, now],
                    )
                    .await?;
                    changes::tell(conn, Topic::Letters).await
                })
            })
            .await?;
        self.wake(Topic::Letters);
        Ok(())
    }

    /// The letters that lie there for this process, oldest first; those that it has read before among them.
    pub async fn letters_for(&self, process: &str) -> Result<Vec<Letter>> {
        let mut conn = self.db().reader().await?;
        let since = earlier(clock(&mut conn).await?, KEPT);
        let rows: Vec<(String, String)> = conn
            .all(
                "SELECT id, sender FROM letters WHERE created_at >= $1 AND sender <> $2 \
                 AND (recipient = '' OR recipient = $2) ORDER BY created_at, id",
                args![since, process],
            )
            .await?;
        Ok(rows.into_iter().map(|(id, sender)| Letter { id, sender }).collect())
    }

    /// Forgets letters that lie there for too long.
    pub async fn forget_letters(&self) -> Result<()> {
        let mut conn = self.db().reader().await?;
        let before = earlier(clock(&mut conn).await?, KEPT);
        let old: Option<(i64,)> =
            conn.maybe("SELECT created_at FROM letters WHERE created_at < $1 LIMIT 1", args![before]).await?;
        drop(conn);
        if old.is_none() {
            return Ok(());
        }
        let forgetting = self.db().write(move |conn| {
            Box::pin(async move { conn.run(FORGET, args![before, BATCH]).await.map(drop) })
        });
        forgetting.await
    }

    /// What a letter says; `None` if it is gone.
    pub async fn letter(&self, id: &str) -> Result<Option<String>> {
        let row: Option<(String,)> =
            self.db().reader().await?.maybe("SELECT content FROM letters WHERE id = $1", args![id]).await?;
        Ok(row.map(|(content,)| content))
    }
}
