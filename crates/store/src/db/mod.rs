//! One query layer over two databases. Callers do not depend on which one it is.

mod conn;
pub(crate) mod migrate;
pub(crate) mod postgres;
pub(crate) mod sqlite;
mod value;
mod writer;

use std::sync::Arc;

use sqlx::Connection;
use sqlx::sqlite::SqliteConnection;
use tokio::sync::Mutex;

pub(crate) use self::conn::{Backend, Conn, Row};
use self::postgres::Pg;
pub(crate) use self::value::{
    Columns, Lenient, Sql, Statement, Value, WithFence, args, audited, dialect, flag, from_row, listed,
    names, transaction,
};
pub(crate) use self::writer::{RetriableWrite, WriteFuture, WriteTx, Writer};
use crate::audit::Chain;
use crate::changes::Topic;
use crate::error::{Error, ErrorKind, Result};

pub(crate) enum Db {
    Sqlite { writer: Writer, shared: Arc<Mutex<SqliteConnection>>, readers: Option<sqlx::SqlitePool> },
    Pg { pg: Pg, chained: Writer },
}

pub(crate) enum Begin {
    Sqlite(Arc<Mutex<SqliteConnection>>),
    Pg(Pg),
}

impl Begin {
    pub(crate) fn sqlite(connection: SqliteConnection) -> Self {
        Self::Sqlite(Arc::new(Mutex::new(connection)))
    }

    /// A connection to read from.
    pub(crate) async fn read(&self) -> Result<Conn> {
        match self {
            Self::Sqlite(shared) => Ok(Backend::Sqlite(Arc::clone(shared).lock_owned().await).into()),
            Self::Pg(_) => Ok(self.begin().await?.conn),
        }
    }

    pub(crate) async fn begin(&self) -> Result<WriteTx> {
        let conn = match self {
            Self::Sqlite(shared) => {
                let mut conn = Conn::from(Backend::Sqlite(Arc::clone(shared).lock_owned().await));
                // A deferred transaction fails at once when it meets another writer; this one waits.
                conn.execute("BEGIN IMMEDIATE", Vec::new()).await?;
                conn
            }
            Self::Pg(pg) => pg.begin().await?,
        };
        Ok(WriteTx { conn, entries: Vec::new() })
    }

    /// A commit is durable, however the connection ends.
    pub(crate) async fn close(self) {
        match self {
            Self::Sqlite(shared) => {
                if let Some(connection) = Arc::into_inner(shared) {
                    let _ = connection.into_inner().close().await;
                }
            }
            Self::Pg(pg) => pg.close().await,
        }
    }
}

impl Db {
    pub(crate) fn sqlite(sqlite: sqlite::Sqlite, chain: Arc<Chain>) -> (Self, tokio::task::JoinHandle<()>) {
        let (writer, task) = Writer::start(Begin::Sqlite(Arc::clone(&sqlite.writer)), chain);
        (Self::Sqlite { writer, shared: sqlite.writer, readers: sqlite.readers }, task)
    }

    pub(crate) fn pg(pg: Pg, chain: Arc<Chain>) -> (Self, tokio::task::JoinHandle<()>) {
        let (chained, task) = Writer::start(Begin::Pg(pg.clone()), chain);
        (Self::Pg { pg, chained }, task)
    }

    /// A connection to read from. What it sees may change between two statements.
    pub(crate) async fn reader(&self) -> Result<Conn> {
        match self {
            Self::Sqlite { readers: Some(readers), .. } => {
                let at_hand = readers.try_acquire();
                // Boxed: it is rare and large, and every reader would carry its size.
                let reader = match at_hand {
                    Some(reader) => reader,
                    None => Box::pin(readers.acquire()).await?,
                };
                Ok(Backend::SqliteReader(reader).into())
            }
            Self::Sqlite { shared, .. } => Ok(Backend::Sqlite(Arc::clone(shared).lock_owned().await).into()),
            Self::Pg { pg, .. } => pg.begin().await,
        }
    }

    /// Runs a write in one transaction, which is durable when this returns. Returns the topics that it changed too.
    pub(crate) async fn write<T, F>(&self, work: F) -> Result<(T, Vec<Topic>)>
    where
        T: Send + 'static,
        F: for<'a> FnOnce(&'a mut Conn) -> WriteFuture<'a, T> + Send + 'static,
    {
        match self {
            Self::Sqlite { writer, .. } => writer.write(move |tx| work(&mut tx.conn)).await,
            Self::Pg { pg, .. } => {
                let mut conn = pg.begin().await?;
                let done = work(&mut conn).await?;
                let topics = std::mem::take(&mut conn.topics);
                conn.commit().await?;
                Ok((done, topics))
            }
        }
    }

    /// The queue of writes with audit records: those of one chain follow each other.
    pub(crate) fn chained(&self) -> &Writer {
        match self {
            Self::Sqlite { writer, .. } => writer,
            Self::Pg { chained, .. } => chained,
        }
    }

    /// Rewrites a SQLite file, and empties its journal. Other processes wait meanwhile.
    pub(crate) async fn compact(&self) -> Result<()> {
        let Self::Sqlite { shared, .. } = self else { return Ok(()) };
        let mut conn = Conn::from(Backend::Sqlite(Arc::clone(shared).lock_owned().await));
        // The copy of a large file belongs on the disk.
        conn.execute("PRAGMA temp_store = FILE", Vec::new()).await?;
        let written = conn.execute("VACUUM", Vec::new()).await;
        conn.execute("PRAGMA temp_store = MEMORY", Vec::new()).await?;
        written?;
        let deadline = tokio::time::Instant::now() + sqlite::BUSY_LIMIT;
        loop {
            let state: Option<(i64, i64, i64)> =
                conn.fetch_optional("PRAGMA wal_checkpoint(TRUNCATE)", Vec::new()).await?;
            match state {
                Some((busy, ..)) if busy != 0 && tokio::time::Instant::now() < deadline => {
                    tokio::time::sleep(sqlite::BUSY_PAUSE).await;
                }
                Some((busy, ..)) if busy != 0 => {
                    return Err(Error::new(
                        ErrorKind::Busy,
                        "another process keeps the journal of the database open",
                    )
                    .hint(
                        "the text is removed; its bytes may stay in the journal until you run this again",
                    ));
                }
                _ => return Ok(()),
            }
        }
    }

    /// Waits for the queue and closes the connections, so that a SQLite file is complete when this returns.
    pub(crate) async fn close(self, queue: tokio::task::JoinHandle<()>) {
        match self {
            Self::Sqlite { writer, shared, readers } => {
                drop(writer);
                let _ = queue.await;
                if let Some(readers) = readers {
                    readers.close().await;
                }
                Begin::Sqlite(shared).close().await;
            }
            Self::Pg { pg, chained } => {
                drop(chained);
                let _ = queue.await;
                pg.close().await;
            }
        }
    }
}

impl Conn {
    pub(crate) async fn commit(self) -> Result<()> {
        match self.backend {
            Backend::Pg { transaction, .. } => conn::timely(transaction.commit()).await.map_err(|error| {
                if error.kind() == ErrorKind::Unreachable {
                    return Error::new(ErrorKind::Uncertain, "the connection broke while committing")
                        .because(error)
                        .hint("check whether it took effect before you repeat it");
                }
                error
            }),
            sqlite => {
                let mut sqlite = Conn::from(sqlite);
                let committed = sqlite.execute("COMMIT", Vec::new()).await;
                if committed.is_err() {
                    let _ = sqlite.execute("ROLLBACK", Vec::new()).await;
                }
                committed.map(drop)
            }
        }
    }

    pub(crate) async fn rollback(self) -> Result<()> {
        match self.backend {
            Backend::Pg { transaction, .. } => conn::timely(transaction.rollback()).await,
            sqlite => Conn::from(sqlite).execute("ROLLBACK", Vec::new()).await.map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{DatabaseUrl, Store};

    /// Hundreds of tasks of a busy broker hold such a future.
    #[tokio::test]
    async fn futures_of_the_store_are_small() {
        let store = Store::open(DatabaseUrl::Memory).await.unwrap();
        let (read, write) = (store.sessions().get("ann", "s"), store.sessions().touch("ann", "s"));
        for bytes in [size_of_val(&read), size_of_val(&write)] {
            assert!(bytes < 2048, "{bytes} bytes");
        }
    }
}
