//! Leases on work that one process does for all that share the store, such as polling a channel.

use std::time::Duration;

use crate::areas::LeaderLeases;
use crate::db::{args, transaction};
use crate::error::Result;
use crate::leases::{Lease, LeaseStatus, check_duration, clock, later};
use crate::store::check_name;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderLease {
    pub name: String,
    /// Fencing token.
    pub fence: i64,
}

impl LeaderLeases<'_> {
    /// Claims a lease; `None` if another process holds it.
    pub async fn claim(self, name: &str, lease: &Lease) -> Result<Option<LeaderLease>> {
        check_name("name of the lease", name)?;
        lease.check()?;
        let (name, lease) = (name.to_owned(), lease.clone());
        transaction!(self.store, |conn| {
            let now = clock(conn).await?;
            let taken: Option<(i64,)> = conn
                        .fetch_optional(
                            "INSERT INTO posts AS this (name, lease_owner, lease_until, fence) VALUES ($1, $2, $3, 1) \
                             ON CONFLICT (name) DO UPDATE SET lease_owner = excluded.lease_owner, \
                             lease_until = excluded.lease_until, fence = this.fence + 1 WHERE this.lease_until <= $4 \
                             RETURNING fence",
                            args![&name, &lease.owner, lease.until(now), now],
                        )
                        .await?;
            Ok(taken.map(|(fence,)| LeaderLease { name, fence }))
        })
    }

    /// Renews a lease for this long from now.
    pub async fn renew(self, lease: &LeaderLease, duration: Duration) -> Result<LeaseStatus> {
        check_duration(duration)?;
        let lease = lease.clone();
        transaction!(self.store, |conn| {
            let now = clock(conn).await?;
            let kept = conn
                .execute(
                    "UPDATE posts SET lease_until = $3 WHERE name = $1 AND fence = $2 AND lease_until > $4",
                    args![lease.name, lease.fence, later(now, duration), now],
                )
                .await?;
            Ok(LeaseStatus::by(kept))
        })
    }

    /// Releases a lease: another process can claim it at once.
    pub async fn release(self, lease: &LeaderLease) -> Result<LeaseStatus> {
        let lease = lease.clone();
        transaction!(self.store, |conn| {
            let left = conn
                .execute(
                    "UPDATE posts SET lease_owner = NULL, lease_until = 0 WHERE name = $1 AND fence = $2",
                    args![lease.name, lease.fence],
                )
                .await?;
            Ok(LeaseStatus::by(left))
        })
    }
}
