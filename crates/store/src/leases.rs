//! Leases: a worker owns the row that it claims for a while, and proves with the row's fence that it still does.
//!
//! Every claim raises the fence. A worker that was too slow has an old one: its write changes nothing, and returns `Lost`,
//! which is not an error. The queues (`incoming`, `outgoing`, `outbox`, `schedules`) and the leader leases share
//! the functions of this file; each has its own statements, with the parameters that a function describes.

use std::time::Duration;

use crate::areas::LeaderLeases;
use crate::db::{Conn, Row, Sql, Value, args, transaction};
use crate::error::{Error, Result};
use crate::store::{check_name, now};

const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Who claims something, and for how long.
#[derive(Clone, Debug)]
pub struct Lease {
    /// The process or worker, for people to read.
    pub owner: String,
    /// From a millisecond to a day, by the clock of the PostgreSQL server or of this process on SQLite.
    pub duration: Duration,
}

impl Lease {
    pub(crate) fn check(&self) -> Result<()> {
        check_name("owner of the lease", &self.owner)?;
        check_duration(self.duration)
    }

    pub(crate) fn until(&self, now: i64) -> i64 {
        later(now, self.duration)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseStatus {
    /// The lease was still ours; the write counts.
    Kept,
    /// Taken over or revoked; nothing is written.
    Lost,
}

impl LeaseStatus {
    /// By the number of rows that still had the fence.
    pub(crate) fn by(rows: u64) -> Self {
        if rows == 0 { Self::Lost } else { Self::Kept }
    }
}

/// A row of a queue that a worker has claimed.
pub(crate) trait LeasedRow {
    /// The key columns and the fence: the first parameters of every statement on the row.
    fn key(&self) -> Vec<Value>;
}

/// Claims up to `limit` rows. Parameters: the time, the limit, the owner, the end of the lease, then `more`. Returns the
/// time too.
pub(crate) async fn claim<T: Row>(
    conn: &mut Conn,
    sql: Sql,
    lease: &Lease,
    limit: u32,
    more: Vec<Value>,
) -> Result<(i64, Vec<T>)> {
    let now = clock(conn).await?;
    let values = args![now, limit, &lease.owner, lease.until(now)];
    Ok((now, conn.fetch_all(sql, [values, more].concat()).await?))
}

/// Renews a claim for `duration` from now. Parameters: the key, the end of the lease, the time.
pub(crate) async fn renew(
    conn: &mut Conn,
    sql: &'static str,
    claim: &impl LeasedRow,
    duration: Duration,
) -> Result<LeaseStatus> {
    let now = clock(conn).await?;
    update(conn, sql, claim, args![later(now, duration), now]).await
}

/// Releases or finishes a claimed row, or changes it otherwise. Parameters: the key, then `values`.
pub(crate) async fn update(
    conn: &mut Conn,
    sql: &'static str,
    claim: &impl LeasedRow,
    values: Vec<Value>,
) -> Result<LeaseStatus> {
    conn.execute(sql, [claim.key(), values].concat()).await.map(LeaseStatus::by)
}

/// Ends or frees up to `limit` rows whose lease ran out. Parameters: the time, the limit, then `more`.
pub(crate) async fn expire<T: Row>(
    conn: &mut Conn,
    sql: Sql,
    limit: u32,
    more: Vec<Value>,
) -> Result<Vec<T>> {
    let now = clock(conn).await?;
    conn.fetch_all(sql, [args![now, limit], more].concat()).await
}

/// Deletes up to `limit` rows that are older than `age`. Parameters: the time before which, the limit.
pub(crate) async fn prune(conn: &mut Conn, sql: Sql, age: Duration, limit: u32) -> Result<u64> {
    let before = earlier(clock(conn).await?, age);
    conn.execute(sql, args![before, limit]).await
}

/// A lease must not be over before it began, nor block others for ever.
pub(crate) fn check_duration(duration: Duration) -> Result<()> {
    if (SHORTEST..=LONGEST).contains(&duration) {
        return Ok(());
    }
    Err(Error::invalid(format!("a lease of `{duration:?}` is not between a millisecond and a day")))
}

pub(crate) fn later(at: i64, duration: Duration) -> i64 {
    at.saturating_add(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX))
}

pub(crate) fn earlier(at: i64, duration: Duration) -> i64 {
    at.saturating_sub(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX))
}

/// The time that leases and expiries go by. Replicas on one server share the server's clock: theirs may differ.
pub(crate) async fn clock(conn: &mut Conn) -> Result<i64> {
    if !conn.is_postgres() {
        return Ok(now());
    }
    let (now,): (i64,) = conn
        .fetch_one("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint", Vec::new())
        .await?;
    Ok(now)
}

/// A statement that claims rows. It is given in parts; after each part but the last, PostgreSQL skips the rows that
/// another transaction is claiming at this moment. On SQLite there is a single writer.
///
/// The rows are picked in a materialized `WITH`: an `IN (SELECT … LIMIT n)` may be run more than once and take more.
macro_rules! claim_sql {
    ($first:expr $(, $next:expr)+ $(,)?) => {
        $crate::db::Sql {
            sqlite: concat!($first $(, $next)+),
            pg: concat!($first $(, " FOR UPDATE SKIP LOCKED", $next)+),
        }
    };
}

/// A statement that deletes the rows of a condition, which ends with its order, up to the limit `$2`.
macro_rules! prune_sql {
    ($table:literal, $condition:literal) => {
        $crate::leases::claim_sql!(
            concat!(
                "WITH picked AS MATERIALIZED (SELECT user_id, id FROM ",
                $table,
                " WHERE ",
                $condition,
                " LIMIT +$2"
            ),
            concat!(") DELETE FROM ", $table, " WHERE (user_id, id) IN (SELECT * FROM picked)")
        )
    };
}

/// A statement that renews a claim on a row with this key, which must meet this condition.
macro_rules! renew_sql {
    ($table:literal, $condition:literal) => {
        concat!(
            "UPDATE ",
            $table,
            " SET lease_until = $4 WHERE user_id = $1 AND id = $2 AND fence = $3 AND lease_until > $5",
            $condition
        )
    };
}

/// A statement that ends the lease of a row and changes these columns; the row must meet this condition.
macro_rules! finish_sql {
    ($table:literal, $columns:literal, $condition:literal) => {
        concat!(
            "UPDATE ",
            $table,
            " SET ",
            $columns,
            ", lease_owner = NULL, lease_until = 0 WHERE user_id = $1 AND id = $2 AND fence = $3 AND ",
            $condition
        )
    };
}
pub(crate) use {claim_sql, finish_sql, prune_sql, renew_sql};

/// A lease on work that one process does for all that share the store, such as polling a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderLease {
    pub name: String,
    pub fence: i64,
}

impl LeasedRow for LeaderLease {
    fn key(&self) -> Vec<Value> {
        args![&self.name, self.fence]
    }
}

const CLAIM_LEADER: &str = "INSERT INTO posts AS this (name, lease_owner, lease_until, fence) VALUES ($1, $2, $3, 1) \
     ON CONFLICT (name) DO UPDATE SET lease_owner = excluded.lease_owner, lease_until = excluded.lease_until, \
     fence = this.fence + 1 WHERE this.lease_until <= $4 RETURNING fence";
const RENEW_LEADER: &str =
    "UPDATE posts SET lease_until = $3 WHERE name = $1 AND fence = $2 AND lease_until > $4";
const RELEASE_LEADER: &str =
    "UPDATE posts SET lease_owner = NULL, lease_until = 0 WHERE name = $1 AND fence = $2";

impl LeaderLeases<'_> {
    /// Claims a lease; `None` if another process holds it.
    pub async fn claim(self, name: &str, lease: &Lease) -> Result<Option<LeaderLease>> {
        check_name("name of the lease", name)?;
        lease.check()?;
        let (name, lease) = (name.to_owned(), lease.clone());
        transaction!(self.store, |conn| {
            let now = clock(conn).await?;
            let values = args![&name, &lease.owner, lease.until(now), now];
            let taken: Option<(i64,)> = conn.fetch_optional(CLAIM_LEADER, values).await?;
            Ok(taken.map(|(fence,)| LeaderLease { name, fence }))
        })
    }

    pub async fn renew(self, lease: &LeaderLease, duration: Duration) -> Result<LeaseStatus> {
        check_duration(duration)?;
        let lease = lease.clone();
        transaction!(self.store, |conn| renew(conn, RENEW_LEADER, &lease, duration).await)
    }

    /// Releases a lease: another process can claim it at once.
    pub async fn release(self, lease: &LeaderLease) -> Result<LeaseStatus> {
        let lease = lease.clone();
        transaction!(self.store, |conn| update(conn, RELEASE_LEADER, &lease, Vec::new()).await)
    }
}
