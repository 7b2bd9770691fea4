//! PostgreSQL: opening the pool, and the statements in its dialect.
//!
//! `url` may go through a transaction pooler, so nothing here outlives a transaction: no named statements (unless the
//! address asks for them with `statement-cache-capacity`), no settings, no locks, no `LISTEN`.

use std::str::FromStr;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{ConnectOptions, Connection};

use super::{Backend, Conn, WriteFuture};
use crate::error::{Error, ErrorKind, Result};

/// How long to wait for an unreachable server.
const AWAY_LIMIT: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
const ALIVE_LIMIT: Duration = Duration::from_secs(5);
const CONNECTIONS: u32 = 16;

#[derive(Clone)]
pub(crate) struct Pg {
    pool: PgPool,
    pub(crate) cached: bool,
}

/// The text of the error never contains the password.
pub(crate) fn options(url: &str) -> Result<PgConnectOptions> {
    let options = PgConnectOptions::from_str(url).map_err(|_| {
        Error::invalid("invalid PostgreSQL URL")
            .hint("write it like postgres://user:password@host:5432/database")
    })?;
    Ok(options.application_name("embody").disable_statement_logging())
}

/// Does not connect yet.
pub(crate) fn open(url: &str) -> Result<Pg> {
    let cached = url.contains("statement-cache-capacity=") && !url.contains("statement-cache-capacity=0");
    let mut options = options(url)?;
    if !cached {
        options = options.statement_cache_capacity(0);
    }
    let pool = PgPoolOptions::new()
        .max_connections(CONNECTIONS)
        .acquire_timeout(AWAY_LIMIT)
        .test_before_acquire(false)
        // A silent connection must not stay in the pool: sqlx's own check has no time limit.
        .after_release(|conn, _| Box::pin(async { alive(conn).await.map(|()| true) }))
        .connect_lazy_with(options);
    Ok(Pg { pool, cached })
}

/// Fails at once, with the reason, if the server refuses a connection. A pool tries again until its limit and hides the reason.
pub(crate) async fn check_reachable(url: &str) -> Result<()> {
    let conn = tokio::time::timeout(AWAY_LIMIT, options(url)?.connect()).await;
    conn.unwrap_or(Err(sqlx::Error::PoolTimedOut))?.close().await?;
    Ok(())
}

/// Whether the database is a store, or was one in an older shape.
pub(crate) async fn is_ours(url: &str) -> Result<bool> {
    check_reachable(url).await?;
    let pg = open(url)?;
    let mut conn = pg.begin().await?;
    let ours = super::migrate::is_known(&mut conn).await;
    drop(conn);
    pg.close().await;
    ours
}

/// A connection on which the server does not answer in time is dropped.
async fn alive(conn: &mut sqlx::PgConnection) -> sqlx::Result<()> {
    let silent = |_| sqlx::Error::Io(std::io::ErrorKind::TimedOut.into());
    tokio::time::timeout(ALIVE_LIMIT, conn.ping()).await.map_err(silent)?
}

impl Pg {
    /// Begins a transaction. Waits for an unreachable server and replaces a broken connection: no statement has been
    /// sent yet.
    ///
    /// Boxed: opening a connection takes 14 KB, which every user of the store would carry.
    pub(crate) fn begin(&self) -> WriteFuture<'_, Conn> {
        Box::pin(async move {
            let deadline = tokio::time::Instant::now() + AWAY_LIMIT;
            let mut pause = FIRST_PAUSE;
            loop {
                let error = match tokio::time::timeout_at(deadline, self.pool.begin()).await {
                    Ok(Ok(transaction)) => return Ok(Backend::Pg { transaction, cached: self.cached }.into()),
                    Ok(Err(error)) => Error::from(error),
                    Err(_) => Error::from(sqlx::Error::PoolTimedOut),
                };
                if error.kind() != ErrorKind::Unreachable || tokio::time::Instant::now() + pause > deadline {
                    return Err(error);
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        })
    }

    pub(crate) async fn close(&self) {
        self.pool.close().await;
    }
}

/// Statements in PostgreSQL's dialect; each has a twin of the same name in SQLite's file.
pub(crate) mod sql {
    /// Bytes of these tables and their indexes.
    pub(crate) const SIZE: &str = "SELECT COALESCE(SUM(pg_total_relation_size(oid)), 0)::bigint FROM pg_class \
         WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND relname = ANY ($1)";
    pub(crate) const COLUMNS: &str = "SELECT column_name::text FROM information_schema.columns \
         WHERE table_schema = current_schema() AND table_name = $1";
    pub(crate) const COLUMN_TYPES: &str = "SELECT column_name::text, data_type::text FROM information_schema.columns \
         WHERE table_schema = current_schema() AND table_name = $1 ORDER BY ordinal_position";
    /// The first statement of a transaction that must see one state of the database.
    pub(crate) const SNAPSHOT: &str = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY";
    /// Fixes how values are written as text, until the transaction ends. A row that a policy would hide is an error: an
    /// export must be complete.
    pub(crate) const LEGACY_SETTINGS: &str = "SET LOCAL lock_timeout = '20s'; SET LOCAL row_security = off; \
         SET LOCAL timezone = 'UTC'; SET LOCAL datestyle = 'ISO, YMD'; SET LOCAL intervalstyle = 'postgres'; \
         SET LOCAL extra_float_digits = 1; SET LOCAL bytea_output = 'hex'";
    /// Of a table or view in the old shape: what it is, its columns, and SQL of what belongs to it.
    pub(crate) const LEGACY_KIND: &str = "SELECT CASE relkind WHEN 'r' THEN 'table' WHEN 'p' THEN 'partitioned table' \
         WHEN 'f' THEN 'foreign table' ELSE 'view' END FROM pg_class \
         WHERE relnamespace = current_schema()::regnamespace AND relname = $1 AND relkind IN ('r', 'p', 'v', 'm', 'f')";
    pub(crate) const LEGACY_COLUMNS: &str = "SELECT a.attname::text, format_type(a.atttypid, a.atttypmod), \
         a.attnotnull::int::bigint, pg_get_expr(d.adbin, d.adrelid) \
         FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum \
         WHERE a.attrelid = $1::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum";
    pub(crate) const LEGACY_SCHEMA: &str = "SELECT 'CONSTRAINT ' || quote_ident(conname) || ' ' || pg_get_constraintdef(oid) \
         FROM pg_constraint WHERE conrelid = $1::regclass \
         UNION ALL SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = $1::regclass \
         UNION ALL SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = $1::regclass AND NOT tgisinternal \
         ORDER BY 1";
    pub(crate) const CHECK: &str = "SELECT 'ok'";
    /// Blocks inserts of sections until the transaction ends.
    pub(crate) const LOCK_SECTIONS: &str = "LOCK TABLE prompt_sections IN SHARE ROW EXCLUSIVE MODE";
    /// For each of the terms, the block of the memory index that memory `$4` is in or would be inserted into.
    pub(crate) const MEMORY_BLOCKS: &str = "SELECT p.term, p.block, p.data FROM unnest($3) AS wanted (value) \
         JOIN memory_postings AS p ON p.user_id = $1 AND p.agent = $2 AND p.term = wanted.value \
         AND p.block = (SELECT min(q.block) FROM memory_postings AS q WHERE q.user_id = $1 AND q.agent = $2 \
         AND q.term = wanted.value AND q.block >= $4)";
    /// Without it the planner assumes for a minute that every scope is tiny, and reads all of a scope that is being
    /// filled.
    pub(crate) const MEMORY_STATISTICS: &str =
        "ANALYZE (SKIP_LOCKED) agent_long_term_memory, memory_postings";

    pub(crate) const AUDIT_CHAINS: &str = "SELECT convert_to(chain, 'UTF8') FROM audit_chains UNION SELECT convert_to(chain, 'UTF8') FROM audit ORDER BY 1";
    /// Removes calls from the list of those without an outcome: users and call ids, side by side.
    pub(crate) const AUDIT_CLOSE: &str = "DELETE FROM audit_open WHERE (user_id, call_id) IN \
         (SELECT * FROM unnest($1::text[], $2::text[]))";
}
