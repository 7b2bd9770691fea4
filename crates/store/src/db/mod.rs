//! One query layer over two databases. Functions of the store run units of work here and never see which one it is.

mod batch;
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

pub(crate) use self::conn::Conn;
use self::postgres::Pg;
pub(crate) use self::value::{Sql, Value, args, dialect, listed};
pub(crate) use self::writer::{Again, Unit, Working, Writer};
use crate::audit::Chain;
use crate::error::{Error, ErrorKind, Result};

/// Which database it is.
pub(crate) enum Db {
    Lite { writer: Writer, shared: Arc<Mutex<SqliteConnection>>, readers: Option<sqlx::SqlitePool> },
    Pg { pg: Pg, chained: Writer },
}

/// Where the writer begins its transactions.
pub(crate) enum Begin {
    Lite(Arc<Mutex<SqliteConnection>>),
    Pg(Pg),
}

impl Begin {
    /// The connection as it is, to look at something.
    pub(crate) async fn look(&self) -> Result<Conn> {
        match self {
            Self::Lite(shared) => Ok(Conn::Lite(Arc::clone(shared).lock_owned().await)),
            Self::Pg(_) => Ok(self.unit().await?.conn),
        }
    }

    /// A unit of work that has begun.
    pub(crate) async fn unit(&self) -> Result<Unit> {
        let conn = match self {
            Self::Lite(shared) => {
                let mut conn = Conn::Lite(Arc::clone(shared).lock_owned().await);
                // Deferred transactions fail at once when they meet another writer; this one waits for its turn.
                conn.run("BEGIN IMMEDIATE", Vec::new()).await?;
                conn
            }
            Self::Pg(pg) => Conn::Pg { transaction: pg.begin().await?, cached: pg.cached },
        };
        Ok(Unit { conn, entries: Vec::new() })
    }
}

impl Db {
    pub(crate) fn lite(lite: sqlite::Lite, chain: Arc<Chain>) -> (Self, tokio::task::JoinHandle<()>) {
        let (writer, task) = Writer::start(Begin::Lite(Arc::clone(&lite.writer)), chain);
        (Self::Lite { writer, shared: lite.writer, readers: lite.readers }, task)
    }

    pub(crate) fn pg(pg: Pg, chain: Arc<Chain>) -> (Self, tokio::task::JoinHandle<()>) {
        let (chained, task) = Writer::start(Begin::Pg(pg.clone()), chain);
        (Self::Pg { pg, chained }, task)
    }

    /// A connection to read from. What it sees may change between two statements.
    pub(crate) async fn reader(&self) -> Result<Conn> {
        match self {
            Self::Lite { readers: Some(readers), .. } => {
                let at_hand = readers.try_acquire();
                // Opening one, or waiting for it, is seldom and large: whoever reads would carry it.
                let reader = match at_hand {
                    Some(reader) => reader,
                    None => Box::pin(readers.acquire()).await?,
                };
                Ok(Conn::LiteReader(reader))
            }
            Self::Lite { shared, .. } => Ok(Conn::Lite(Arc::clone(shared).lock_owned().await)),
            Self::Pg { pg, .. } => Ok(Conn::Pg { transaction: pg.begin().await?, cached: pg.cached }),
        }
    }

    /// Runs a write in one transaction; when this returns it is durable, or nothing of it happened.
    pub(crate) async fn write<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'a> FnOnce(&'a mut Conn) -> Working<'a, T> + Send + 'static,
    {
        match self {
            Self::Lite { writer, .. } => writer.write(move |unit| work(&mut unit.conn)).await,
            Self::Pg { pg, .. } => {
                let mut conn = Conn::Pg { transaction: pg.begin().await?, cached: pg.cached };
                let done = work(&mut conn).await?;
                conn.commit().await?;
                Ok(done)
            }
        }
    }

    /// The queue of writes that carry audit records: those of one chain follow each other.
    pub(crate) fn chained(&self) -> &Writer {
        match self {
            Self::Lite { writer, .. } => writer,
            Self::Pg { chained, .. } => chained,
        }
    }

    /// Lets the queue run empty and closes the connections, so that a SQLite file is whole when this returns.
    pub(crate) async fn close(self, queue: tokio::task::JoinHandle<()>) {
        match self {
            Self::Lite { writer, shared, readers } => {
                drop(writer);
                let _ = queue.await;
                if let Some(readers) = readers {
                    readers.close().await;
                }
                if let Some(conn) = Arc::into_inner(shared) {
                    let _ = conn.into_inner().close().await;
                }
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
    /// Makes the transaction durable.
    pub(crate) async fn commit(self) -> Result<()> {
        match self {
            Self::Pg { transaction, .. } => conn::timely(transaction.commit()).await.map_err(|error| {
                if error.kind() == ErrorKind::Unreachable {
                    return Error::new(ErrorKind::Uncertain, "the connection broke while committing")
                        .because(error)
                        .hint("look whether it happened before doing it again");
                }
                error
            }),
            mut lite => match lite.run("COMMIT", Vec::new()).await {
                Ok(_) => Ok(()),
                Err(error) => {
                    let _ = lite.run("ROLLBACK", Vec::new()).await;
                    Err(error)
                }
            },
        }
    }

    /// Undoes the transaction.
    pub(crate) async fn rollback(self) -> Result<()> {
        match self {
            Self::Pg { transaction, .. } => conn::timely(transaction.rollback()).await,
            mut lite => lite.run("ROLLBACK", Vec::new()).await.map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Place, Store};

    /// Every task that uses the store holds the future of it for as long as it lives: hundreds of them in a busy broker.
    #[tokio::test]
    async fn whoever_uses_the_store_carries_little() {
        let store = Store::open(Place::Memory).await.unwrap();
        let (read, write) = (store.session("ann", "s"), store.touch_session("ann", "s"));
        for bytes in [size_of_val(&read), size_of_val(&write)] {
            assert!(bytes < 2048, "{bytes} bytes");
        }
    }
}
