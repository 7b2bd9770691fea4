//! Keys that sign state which hosts carry and send back. All processes on the database share them, and they are rotated. A
//! signature is valid no longer than its key is kept.

use std::fmt;
use std::time::Duration;

use crate::areas::SigningKeys;
use crate::db::{args, transaction};
use crate::error::{Error, ErrorKind, Result};
use crate::leases::{clock, earlier};

#[derive(Clone, PartialEq, Eq)]
pub struct SigningKey {
    /// Not secret.
    pub id: String,
    pub key: [u8; 32],
    pub created_at: i64,
}

/// The key must not be logged.
impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealKey").field("id", &self.id).finish_non_exhaustive()
    }
}

type Row = (String, String, i64);

impl SigningKeys<'_> {
    /// The key to seal with: the youngest, or a new one if that has sealed for `life`. Those that are older than everything
    /// they can have sealed, which lasts for `good`, are forgotten.
    pub async fn current(self, life: Duration, good: Duration) -> Result<SigningKey> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| {
            Error::new(ErrorKind::Other, "the system gives no random bytes").because(error)
        })?;
        let id = uuid::Uuid::new_v4().simple().to_string();
        transaction!(self.store, |conn| {
            let secret = hex(&bytes);
            let now = clock(conn).await?;
            let newest = "SELECT id, secret, created_at FROM seal_keys WHERE created_at > $1 \
                 ORDER BY created_at DESC, id LIMIT 1";
            let known: Option<Row> = conn.fetch_optional(newest, args![earlier(now, life)]).await?;
            if let Some(known) = known {
                return key(known);
            }
            let old = earlier(now, life.saturating_add(good));
            conn.execute("DELETE FROM seal_keys WHERE created_at < $1", args![old]).await?;
            let row = (id, secret, now);
            conn.execute(
                "INSERT INTO seal_keys (id, secret, created_at) VALUES ($1, $2, $3)",
                args![&row.0, &row.1, row.2],
            )
            .await?;
            key(row)
        })
    }

    /// All keys that may have sealed something that is still good, the youngest first.
    pub async fn list(self) -> Result<Vec<SigningKey>> {
        let all = "SELECT id, secret, created_at FROM seal_keys ORDER BY created_at DESC, id LIMIT 16";
        let rows: Vec<Row> = self.store.fetch_all(all, args![]).await?;
        rows.into_iter().map(key).collect()
    }
}

fn key((id, secret, created_at): Row) -> Result<SigningKey> {
    let key = unhex(&secret)
        .ok_or_else(|| Error::new(ErrorKind::Corrupt, format!("the seal key `{id}` cannot be read")))?;
    Ok(SigningKey { id, key, created_at })
}

fn hex(bytes: &[u8; 32]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    blake3::Hash::from_hex(text).ok().map(Into::into)
}
