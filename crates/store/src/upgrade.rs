//! What opening a store with this version would do to it. Changes nothing, also not a store of another version.

use crate::db::{Begin, Conn, args, migrate, postgres, sqlite};
use crate::error::Result;
use crate::store::{DatabaseUrl, now};

/// A session without activity for longer than this has no host any more.
const ACTIVE_US: i64 = 60 * 1_000_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpgradeReport {
    /// The last migration of the store, and its number.
    pub schema: (usize, String),
    /// Migrations of this version that the store does not have.
    pub pending: Vec<&'static str>,
    /// Migrations of the store that this version does not know.
    pub unknown: Vec<String>,
    /// Migrations that were applied in another form than this version's.
    pub changed: Vec<String>,
    pub pending_approvals: i64,
    /// Tool definitions that wait for the operator.
    pub quarantined: i64,
    /// Sessions of hosts that were active in the last minute.
    pub active_sessions: i64,
}

/// The last migration of this version, and its number.
pub fn newest_schema() -> (usize, &'static str) {
    let names = migrate::names();
    (names.len(), names.last().copied().unwrap_or_default())
}

/// `None` if the store does not exist.
pub async fn check_upgrade(url: &DatabaseUrl) -> Result<Option<UpgradeReport>> {
    let checked = match url {
        DatabaseUrl::Memory => return Ok(None),
        DatabaseUrl::File(path) if !path.exists() => return Ok(None),
        DatabaseUrl::File(path) => read(sqlite::open_to_read(path, !sqlite::has_journal(path)).await?).await,
        DatabaseUrl::Postgres { url, .. } => {
            postgres::check_reachable(url).await?;
            read(Begin::Pg(postgres::open(url)?)).await
        }
    };
    checked.map_err(|error| error.about(format!("the store `{url}` cannot be opened")))
}

async fn read(begin: Begin) -> Result<Option<UpgradeReport>> {
    let mut conn = begin.read().await?;
    let report = report(&mut conn).await;
    drop(conn);
    begin.close().await;
    report
}

/// Reads only columns that every version has.
async fn report(conn: &mut Conn) -> Result<Option<UpgradeReport>> {
    if !migrate::is_known(conn).await? {
        return Ok(None);
    }
    let applied = migrate::compare(conn).await?;
    let mut count = async |sql: &'static str, values| -> Result<i64> {
        let (count,): (i64,) = conn.fetch_one(sql, values).await?;
        Ok(count)
    };
    Ok(Some(UpgradeReport {
        pending_approvals: count(PENDING, args![now()]).await?,
        quarantined: count(QUARANTINED, args![]).await?,
        active_sessions: count(ACTIVE, args![now() - ACTIVE_US]).await?,
        schema: applied.last,
        pending: applied.pending,
        unknown: applied.unknown,
        changed: applied.changed,
    }))
}

const PENDING: &str = "SELECT count(*) FROM approvals WHERE status = 'pending' AND expires_at > $1";
const QUARANTINED: &str = "SELECT count(*) FROM tool_pins WHERE seen_hash IS NOT NULL OR accepted = 0";
const ACTIVE: &str = "SELECT count(*) FROM broker_sessions WHERE seen_at > $1";
