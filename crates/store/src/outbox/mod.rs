//! The outbox of observations: kept until the mind has taken them, at least once, in the order of their session.

mod add;
mod claim;
mod quota_cache;

use std::time::Duration;

pub use self::add::{EnqueueOutcome, NewObservation};
pub use self::claim::Observation;
pub(crate) use self::quota_cache::QuotaCache;
use crate::areas::Outbox;
use crate::db::{Sql, args, transaction};
use crate::error::Result;
use crate::leases::{claim, clock, earlier};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingObservations {
    /// Claimed ones included.
    pub count: i64,
    pub oldest_at: Option<i64>,
}

const PRUNE: Sql = claim!(
    "WITH picked AS MATERIALIZED (SELECT user_id, id FROM observation_outbox \
     WHERE created_at < $1 AND lease_until <= $2 ORDER BY id LIMIT +$3",
    ") DELETE FROM observation_outbox WHERE (user_id, id) IN (SELECT * FROM picked)",
);

impl Outbox<'_> {
    pub async fn pending(self, user: &str) -> Result<PendingObservations> {
        let (count, oldest_at) = self
            .store
            .reader()
            .await?
            .fetch_one(
                "SELECT count(*), min(created_at) FROM observation_outbox WHERE user_id = $1",
                args![user],
            )
            .await?;
        Ok(PendingObservations { count, oldest_at })
    }

    /// How many wait, of all users. For the operator.
    pub async fn pending_total(self) -> Result<PendingObservations> {
        let (count, oldest_at) = self
            .store
            .reader()
            .await?
            .fetch_one("SELECT count(*), min(created_at) FROM observation_outbox", Vec::new())
            .await?;
        Ok(PendingObservations { count, oldest_at })
    }

    /// Drops up to `limit` observations that are older than `age` and that nobody is delivering, of all users; how
    /// many there were.
    pub async fn prune(self, age: Duration, limit: u32) -> Result<u64> {
        transaction!(self.store, |conn| {
            let now = clock(conn).await?;
            conn.execute(PRUNE, args![earlier(now, age), now, limit]).await
        })
    }
}
