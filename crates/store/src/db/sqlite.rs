//! SQLite: opening its connections, and the statements in its dialect.

use std::fs::{DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool, SqlitePoolOptions,
    SqliteSynchronous,
};
use sqlx::{ConnectOptions, Connection};
use tokio::sync::Mutex;

use super::Begin;
use crate::error::{Error, ErrorKind, Result};

/// How long to wait for the write lock of another process.
pub(super) const BUSY_LIMIT: Duration = Duration::from_secs(20);
pub(super) const BUSY_PAUSE: Duration = Duration::from_millis(20);
/// Reading connections beside the writing one.
const READERS: u32 = 4;

pub(crate) struct Sqlite {
    pub(crate) writer: Arc<Mutex<SqliteConnection>>,
    pub(crate) readers: Option<SqlitePool>,
}

/// An empty database in memory with a single connection.
pub(crate) async fn open_memory() -> Result<Sqlite> {
    let options = SqliteConnectOptions::new().in_memory(true).foreign_keys(true).disable_statement_logging();
    let writer = SqliteConnection::connect_with(&options).await?;
    Ok(Sqlite { writer: Arc::new(Mutex::new(writer)), readers: None })
}

/// The database in a file, created with its folder if necessary; only its owner can read it.
pub(crate) async fn open_file(path: &Path) -> Result<Sqlite> {
    make(path)?;
    let options = SqliteConnectOptions::new()
        .filename(path)
        .foreign_keys(true)
        .busy_timeout(BUSY_LIMIT)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .pragma("cache_size", "-8000")
        .pragma("journal_size_limit", "67108864")
        .statement_cache_capacity(256)
        .disable_statement_logging();
    // Savepoints and the writer's sorts, which are small, use memory instead of temporary files.
    let writer = connect(&options.clone().pragma("temp_store", "MEMORY")).await?;
    let readers = SqlitePoolOptions::new()
        .max_connections(READERS)
        .test_before_acquire(false)
        .idle_timeout(None)
        .max_lifetime(None)
        .acquire_timeout(BUSY_LIMIT)
        .connect_lazy_with(options.pragma("query_only", "ON"));
    Ok(Sqlite { writer: Arc::new(Mutex::new(writer)), readers: Some(readers) })
}

/// Whether the file is a store, or was one in an older shape. Does not change it.
pub(crate) async fn is_ours(path: &Path) -> Result<bool> {
    let begin = open_to_read(path, false).await?;
    let ours = super::migrate::is_known(&mut begin.read().await?).await;
    begin.close().await;
    ours
}

/// Opens an existing file without changing it. One that is immutable for a moment gets no files beside it: nothing may write it.
pub(crate) async fn open_to_read(path: &Path, immutable: bool) -> Result<Begin> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .read_only(true)
        .immutable(immutable)
        .busy_timeout(BUSY_LIMIT)
        .disable_statement_logging();
    Ok(Begin::sqlite(connect(&options).await?))
}

/// Whether a process has the file open, or ended without closing it.
pub(crate) fn has_journal(path: &Path) -> bool {
    let mut journal = path.as_os_str().to_owned();
    journal.push("-wal");
    Path::new(&journal).exists()
}

/// Opens an existing file to upgrade it, without changing its journal mode.
pub(crate) async fn open_existing(path: &Path) -> Result<SqliteConnection> {
    if !path.is_file() {
        return Err(Error::new(
            ErrorKind::NotFound,
            format!("the database `{}` does not exist", path.display()),
        )
        .hint("check that the URL or path names the right file"));
    }
    let options = SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(BUSY_LIMIT)
        .synchronous(SqliteSynchronous::Full)
        .disable_statement_logging();
    connect(&options).await
}

/// Makes a database a single file without a journal beside it. Fails if another process uses it.
pub(crate) async fn close_journal(path: &Path) -> Result<()> {
    let mut connection = open_existing(path).await?;
    let mode: (String,) = sqlx::query_as("PRAGMA journal_mode = DELETE").fetch_one(&mut connection).await?;
    connection.close().await?;
    match mode.0.as_str() {
        "delete" => Ok(()),
        mode => Err(Error::new(ErrorKind::Busy, format!("the journal mode is still `{mode}`"))),
    }
}

/// Two processes that create the same file at once may find it locked for a moment, which no busy timeout covers.
async fn connect(options: &SqliteConnectOptions) -> Result<SqliteConnection> {
    let deadline = tokio::time::Instant::now() + BUSY_LIMIT;
    loop {
        match options.connect().await.map_err(Error::from) {
            Err(error) if error.kind() == ErrorKind::Busy && tokio::time::Instant::now() < deadline => {
                tokio::time::sleep(BUSY_PAUSE).await;
            }
            opened => return opened,
        }
    }
}

fn make(path: &Path) -> Result<()> {
    let failed = |error| Error::file(format!("cannot open the database `{}`", path.display()), error);
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    }
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

/// Statements in SQLite's dialect; each has a twin of the same name in PostgreSQL's file.
pub(crate) mod sql {
    /// Bytes of the database; takes no table names.
    pub(crate) const SIZE: &str =
        "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size() WHERE $1 IS NOT NULL";
    pub(crate) const COLUMNS: &str = "SELECT name FROM pragma_table_info($1)";
    pub(crate) const COLUMN_TYPES: &str = "SELECT name, type FROM pragma_table_info($1) ORDER BY cid";
    pub(crate) const SNAPSHOT: &str = "SELECT 1";
    pub(crate) const LEGACY_KIND: &str =
        "SELECT type FROM pragma_table_list WHERE schema = 'main' AND name = $1";
    pub(crate) const LEGACY_COLUMNS: &str =
        "SELECT name, type, \"notnull\", dflt_value FROM pragma_table_xinfo($1) WHERE hidden <> 1";
    pub(crate) const LEGACY_SCHEMA: &str =
        "SELECT sql FROM main.sqlite_schema WHERE tbl_name = $1 AND sql IS NOT NULL ORDER BY rowid";
    pub(crate) const CHECK: &str = "PRAGMA integrity_check";
    /// SQLite has a single writer.
    pub(crate) const LOCK_SECTIONS: &str = "SELECT 1";
    /// For each of the terms, the block of the memory index that memory `$4` is in or would be inserted into. A cross
    /// join is read from left to right; otherwise the whole index of the scope would be.
    pub(crate) const MEMORY_BLOCKS: &str = "SELECT p.term, p.block, p.data FROM json_each($3) AS wanted \
         CROSS JOIN memory_postings AS p WHERE p.user_id = $1 AND p.agent = $2 AND p.term = wanted.value \
         AND p.block = (SELECT min(q.block) FROM memory_postings AS q WHERE q.user_id = $1 AND q.agent = $2 \
         AND q.term = wanted.value AND q.block >= $4)";
    /// The statements that need to, name their index.
    pub(crate) const MEMORY_STATISTICS: &str = "SELECT 1";

    pub(crate) const AUDIT_CHAINS: &str =
        "SELECT CAST(chain AS BLOB) FROM audit_chains UNION SELECT CAST(chain AS BLOB) FROM audit ORDER BY 1";
    /// Removes calls from the list of those without an outcome: users and call ids, side by side.
    pub(crate) const AUDIT_CLOSE: &str = "DELETE FROM audit_open WHERE (user_id, call_id) IN \
         (SELECT u.value, c.value FROM json_each($1) u JOIN json_each($2) c ON u.key = c.key)";
}
