//! SQLite: how its connections are opened, and the statements that only it understands.

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

use crate::error::{Error, ErrorKind, Result};

/// How long another process may hold the write lock before we give up.
const BUSY_LIMIT: Duration = Duration::from_secs(20);
const BUSY_PAUSE: Duration = Duration::from_millis(20);
/// Connections that read beside the one that writes.
const READERS: u32 = 4;

/// The writer's connection, and the readers of a file.
pub(crate) struct Lite {
    pub(crate) writer: Arc<Mutex<SqliteConnection>>,
    pub(crate) readers: Option<SqlitePool>,
}

/// An empty database in memory, gone with the last handle. It has one connection for all.
pub(crate) async fn open_memory() -> Result<Lite> {
    let options = SqliteConnectOptions::new().in_memory(true).foreign_keys(true).disable_statement_logging();
    let writer = SqliteConnection::connect_with(&options).await?;
    Ok(Lite { writer: Arc::new(Mutex::new(writer)), readers: None })
}

/// The database in a file, made with its folder if it is not there; only its owner can read it.
pub(crate) async fn open_file(path: &Path) -> Result<Lite> {
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
    let writer = connect(&options).await?;
    let readers = SqlitePoolOptions::new()
        .max_connections(READERS)
        .test_before_acquire(false)
        .idle_timeout(None)
        .max_lifetime(None)
        .acquire_timeout(BUSY_LIMIT)
        .connect_lazy_with(options.pragma("query_only", "ON"));
    Ok(Lite { writer: Arc::new(Mutex::new(writer)), readers: Some(readers) })
}

/// Two processes that make the same file at once may find it locked for a moment, which no busy time-out covers.
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
    let failed = |error: std::io::Error| {
        let kind = match error.kind() {
            std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
                ErrorKind::ReadOnly
            }
            std::io::ErrorKind::StorageFull => ErrorKind::Full,
            _ => ErrorKind::Other,
        };
        Error::new(kind, format!("`{}` cannot be written", path.display()))
            .because(error)
            .hint("check the permissions of the file and of its folder")
    };
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
    /// The columns of a table.
    pub(crate) const COLUMNS: &str = "SELECT name FROM pragma_table_info($1)";
    /// `ok`, or what is damaged.
    pub(crate) const CHECK: &str = "PRAGMA integrity_check";
    /// A write transaction is alone already.
    pub(crate) const LOCK_SECTIONS: &str = "SELECT 1";
    /// For each of the terms, the block of the memory index that memory `$4` is in or would be put into.
    pub(crate) const MEMORY_BLOCKS: &str = "SELECT p.term, p.block, p.data FROM json_each($3) AS wanted \
         JOIN memory_postings AS p ON p.user_id = $1 AND p.agent = $2 AND p.term = wanted.value \
         AND p.block = (SELECT min(q.block) FROM memory_postings AS q WHERE q.user_id = $1 AND q.agent = $2 \
         AND q.term = wanted.value AND q.block >= $4)";
}
