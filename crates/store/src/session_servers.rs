//! Servers known to open with `initialize`, by name and by a digest of their command or address.

use std::time::Duration;

use crate::areas::SessionServers;
use crate::db::{args, transaction};
use crate::error::Result;
use crate::leases::{clock, earlier};
use crate::store::check_name;

impl SessionServers<'_> {
    /// Whether this server was found to be of the session era within the last `life`.
    pub async fn contains(self, body: &str, digest: &str, life: Duration) -> Result<bool> {
        let mut conn = self.store.reader().await?;
        let since = earlier(clock(&mut conn).await?, life);
        let sql = "SELECT seen_at FROM session_servers WHERE body = $1 AND digest = $2 AND seen_at > $3";
        let known: Option<(i64,)> = conn.fetch_optional(sql, args![body, digest, since]).await?;
        Ok(known.is_some())
    }

    /// Records that this server is of the session era, and deletes records that are older than `life`.
    pub async fn add(self, body: &str, digest: &str, life: Duration) -> Result<()> {
        check_name("body", body)?;
        check_name("digest", digest)?;
        let (body, digest) = (body.to_owned(), digest.to_owned());
        transaction!(self.store, |conn| {
            let now = clock(conn).await?;
            conn.execute("DELETE FROM session_servers WHERE seen_at <= $1", args![earlier(now, life)])
                .await?;
            let sql = "INSERT INTO session_servers (body, digest, seen_at) VALUES ($1, $2, $3) \
                 ON CONFLICT (body, digest) DO UPDATE SET seen_at = excluded.seen_at";
            conn.execute(sql, args![body, digest, now]).await.map(drop)
        })
    }

    pub async fn remove(self, body: &str, digest: &str) -> Result<()> {
        let (body, digest) = (body.to_owned(), digest.to_owned());
        transaction!(self.store, |conn| {
            let remove = "DELETE FROM session_servers WHERE body = $1 AND digest = $2";
            conn.execute(remove, args![body, digest]).await.map(drop)
        })
    }
}
