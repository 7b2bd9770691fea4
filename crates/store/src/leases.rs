//! Leases: whoever takes a row owns it for a while, and every later write proves by its fence that it still does.
//!
//! Every claim raises the row's fence. A worker that was too slow carries an old one, so its write changes nothing and
//! it is told so; that is an outcome, not an error.

use std::time::Duration;

use crate::db::Conn;
use crate::error::{Error, Result};
use crate::store::{check_name, now};

const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Who takes something, and for how long.
#[derive(Clone, Debug)]
pub struct Lease {
    /// The process or worker, for people to read.
    pub owner: String,
    /// From a millisecond to a day, by the clock of the PostgreSQL server or of this process on SQLite.
    pub duration: Duration,
}

/// Whether a write under a lease counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseStatus {
    /// The lease was still ours; the write counts.
    Kept,
    /// Taken over or revoked; nothing is written.
    Lost,
}

impl LeaseStatus {
    /// By how many rows still had the fence.
    pub(crate) fn by(rows: u64) -> Self {
        if rows == 0 { Self::Lost } else { Self::Kept }
    }
}

impl Lease {
    pub(crate) fn check(&self) -> Result<()> {
        check_name("owner of the lease", &self.owner)?;
        check_duration(self.duration)
    }

    /// When it ends if it begins now.
    pub(crate) fn until(&self, now: i64) -> i64 {
        later(now, self.duration)
    }
}

/// A lease is neither over before it began nor in the way for ever.
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

/// A statement that takes rows. It is given in parts; after each part but the last PostgreSQL passes over the rows that
/// somebody else is taking at this moment. On SQLite a writer is alone.
///
/// The rows are picked in a materialized `WITH`: an `IN (SELECT … LIMIT n)` may be run more than once and take more.
macro_rules! claim {
    ($first:literal $(, $next:expr)+ $(,)?) => {
        $crate::db::Sql {
            sqlite: concat!($first $(, $next)+),
            pg: concat!($first $(, " FOR UPDATE SKIP LOCKED", $next)+),
        }
    };
}
pub(crate) use claim;
