//! Keys that sign state which hosts carry and send back, shared by all processes on the database and rotated. A
//! signature is valid no longer than its key exists.

use std::fmt;
use std::time::Duration;

use crate::areas::SigningKeys;
use crate::db::{args, from_row, transaction};
use crate::error::{Error, ErrorKind, Result};
use crate::leases::{clock, earlier};
use crate::store::{hex, random_bytes, unhex};

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

from_row! {
    SigningKey { id as String, secret as String, created_at } => {
        let key = unhex(&secret)
            .ok_or_else(|| Error::new(ErrorKind::Corrupt, format!("the signing key `{id}` cannot be read")))?;
        Ok(Self { id, key, created_at })
    }
}

impl SigningKeys<'_> {
    /// The key to sign with: the newest, or a new one if that is older than `life`. Deletes keys whose signatures,
    /// which are valid for `good`, have all expired.
    pub async fn current(self, life: Duration, good: Duration) -> Result<SigningKey> {
        let bytes = random_bytes()?;
        let id = uuid::Uuid::new_v4().simple().to_string();
        transaction!(self.store, |conn| {
            let now = clock(conn).await?;
            let newest = "SELECT id, secret, created_at FROM seal_keys WHERE created_at > $1 \
                 ORDER BY created_at DESC, id LIMIT 1";
            if let Some(known) = conn.fetch_optional(newest, args![earlier(now, life)]).await? {
                return Ok(known);
            }
            let old = earlier(now, life.saturating_add(good));
            conn.execute("DELETE FROM seal_keys WHERE created_at < $1", args![old]).await?;
            let sql = "INSERT INTO seal_keys (id, secret, created_at) VALUES ($1, $2, $3)";
            conn.execute(sql, args![&id, hex(&bytes), now]).await?;
            Ok(SigningKey { id, key: bytes, created_at: now })
        })
    }

    /// All keys that may have valid signatures, the newest first.
    pub async fn list(self) -> Result<Vec<SigningKey>> {
        let all = "SELECT id, secret, created_at FROM seal_keys ORDER BY created_at DESC, id LIMIT 16";
        self.store.fetch_all(all, args![]).await
    }
}
