//! One connection of either database, and the ways to run a statement on it.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use sqlx::postgres::{PgArguments, PgConnection, PgRow};
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, FromRow, Postgres, SqlStr, Sqlite, Transaction};
use tokio::sync::OwnedMutexGuard;

use super::{Statement, Value, args};
use crate::changes::{CHANNEL, Topic};
use crate::error::{Error, ErrorKind, Result};

/// Of a statement on PostgreSQL. SQLite runs in this process.
const STATEMENT_LIMIT: Duration = Duration::from_secs(30);

/// Most values of one statement, for either database.
const BINDS_LIMIT: usize = 30_000;

/// A connection, and the topics that a transaction on it changed.
pub(crate) struct Conn {
    pub(crate) backend: Backend,
    pub(super) topics: Vec<Topic>,
}

pub(crate) enum Backend {
    /// The writing connection; an in-memory database has no other.
    Sqlite(OwnedMutexGuard<SqliteConnection>),
    SqliteReader(sqlx::pool::PoolConnection<Sqlite>),
    /// Always inside a transaction: a transaction pooler keeps no state between two of them.
    Pg {
        transaction: Transaction<'static, Postgres>,
        cached: bool,
    },
}

/// A row of both databases: tuples of texts, integers, bytes and options of them.
pub(crate) trait Row:
    for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin
{
}

impl<T> Row for T where T: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin {}

enum Rows {
    Sqlite(Vec<SqliteRow>),
    Pg(Vec<PgRow>),
}

enum Either<'c> {
    Sqlite(&'c mut SqliteConnection),
    Pg(&'c mut PgConnection, bool),
}

impl From<Backend> for Conn {
    fn from(backend: Backend) -> Self {
        Self { backend, topics: Vec::new() }
    }
}

impl Conn {
    fn either(&mut self) -> Either<'_> {
        match &mut self.backend {
            Backend::Sqlite(conn) => Either::Sqlite(conn),
            Backend::SqliteReader(conn) => Either::Sqlite(conn),
            Backend::Pg { transaction, cached } => Either::Pg(transaction, *cached),
        }
    }

    pub(crate) fn is_postgres(&self) -> bool {
        matches!(self.backend, Backend::Pg { .. })
    }

    /// Notifies the tasks that wait for this topic, in this process and in others, when the transaction commits.
    pub(crate) async fn notify(&mut self, topic: Topic) -> Result<()> {
        self.topics.push(topic);
        // On SQLite other processes poll the file.
        if self.is_postgres() {
            self.execute("SELECT pg_notify($1, $2)", args![CHANNEL, topic.name()]).await?;
        }
        Ok(())
    }

    /// Returns the number of changed rows.
    pub(crate) async fn execute(&mut self, sql: impl Statement, values: Vec<Value>) -> Result<u64> {
        let text = sql.text(self.is_postgres());
        match self.either() {
            Either::Sqlite(conn) => Ok(sqlite(text, values).execute(conn).await?.rows_affected()),
            Either::Pg(conn, cached) => {
                Ok(timely(pg(text, values).persistent(cached).execute(conn)).await?.rows_affected())
            }
        }
    }

    pub(crate) async fn fetch_all<T: Row>(
        &mut self,
        sql: impl Statement,
        values: Vec<Value>,
    ) -> Result<Vec<T>> {
        let all = match self.rows(sql.text(self.is_postgres()), values).await? {
            Rows::Sqlite(rows) => rows.iter().map(T::from_row).collect::<sqlx::Result<_>>(),
            Rows::Pg(rows) => rows.iter().map(T::from_row).collect::<sqlx::Result<_>>(),
        };
        Ok(all?)
    }

    /// Not generic, so that it is compiled once.
    async fn rows(&mut self, text: SqlStr, values: Vec<Value>) -> Result<Rows> {
        match self.either() {
            Either::Sqlite(conn) => Ok(Rows::Sqlite(sqlite(text, values).fetch_all(conn).await?)),
            Either::Pg(conn, cached) => {
                Ok(Rows::Pg(timely(pg(text, values).persistent(cached).fetch_all(conn)).await?))
            }
        }
    }

    pub(crate) async fn fetch_optional<T: Row>(
        &mut self,
        sql: impl Statement,
        values: Vec<Value>,
    ) -> Result<Option<T>> {
        Ok(self.fetch_all(sql, values).await?.into_iter().next())
    }

    pub(crate) async fn fetch_one<T: Row>(&mut self, sql: impl Statement, values: Vec<Value>) -> Result<T> {
        self.fetch_optional(sql, values)
            .await?
            .ok_or_else(|| Error::new(ErrorKind::Other, "a row that must be there is missing"))
    }

    /// The rows of a statement as they come, for results that are larger than memory.
    pub(crate) fn stream<'c, T: Row + 'c>(&'c mut self, text: String) -> BoxStream<'c, Result<T>> {
        let query = AssertSqlSafe(text);
        match self.either() {
            Either::Sqlite(conn) => {
                let rows = sqlx::query(query).fetch(conn);
                rows.map(|row| Ok(T::from_row(&row?)?)).boxed()
            }
            Either::Pg(conn, cached) => {
                let rows = sqlx::query(query).persistent(cached).fetch(conn);
                rows.map(|row| Ok(T::from_row(&row?)?)).boxed()
            }
        }
    }

    /// Inserts many rows with few statements: `head VALUES (…), (…) tail`.
    pub(crate) async fn insert_rows(&mut self, head: &str, rows: Vec<Vec<Value>>, tail: &str) -> Result<()> {
        let width = rows.first().map_or(1, Vec::len).max(1);
        let mut left = rows.len();
        let mut rows = rows.into_iter();
        while left > 0 {
            let count = if self.is_postgres() { left.min(BINDS_LIMIT / width) } else { lite_rows(left) };
            left -= count;
            let places = places(count, width, self.is_postgres());
            let values = rows.by_ref().take(count).flatten().collect();
            self.execute(format!("{head} VALUES {places} {tail}"), values).await?;
        }
        Ok(())
    }

    /// Runs statements without values and results; one text may have several.
    pub(crate) async fn script(&mut self, text: String) -> Result<()> {
        let script = sqlx::raw_sql(AssertSqlSafe(text));
        match self.either() {
            Either::Sqlite(conn) => script.execute(conn).await.map(drop)?,
            Either::Pg(conn, _) => timely(script.execute(conn)).await.map(drop)?,
        }
        Ok(())
    }
}

fn sqlite(text: SqlStr, values: Vec<Value>) -> Query<'static, Sqlite, SqliteArguments> {
    values.into_iter().fold(sqlx::query(text), |query, value| value.bind_lite(query))
}

fn pg(text: SqlStr, values: Vec<Value>) -> Query<'static, Postgres, PgArguments> {
    values.into_iter().fold(sqlx::query(text), |query, value| value.bind_pg(query))
}

/// Rows of the next statement on SQLite. It caches prepared statements, so there are few sizes: powers of two, up to
/// 32.
fn lite_rows(left: usize) -> usize {
    if left >= 32 { 32 } else { 1 << left.max(1).ilog2() }
}

/// `($1, $2), ($3, $4)`, or `(?, ?), (?, ?)` for SQLite, where numbered parameters are slow to look up.
fn places(rows: usize, width: usize, numbered: bool) -> String {
    if !numbered {
        let row = format!("({}), ", vec!["?"; width].join(", "));
        return row.repeat(rows).trim_end_matches(", ").to_owned();
    }
    let row = |row: usize| {
        let places: Vec<String> = (1..=width).map(|column| format!("${}", row * width + column)).collect();
        format!("({})", places.join(", "))
    };
    (0..rows).map(row).collect::<Vec<_>>().join(", ")
}

/// Boxed, so that callers do not carry its size; the network costs more.
pub(super) async fn timely<T>(work: impl Future<Output = sqlx::Result<T>>) -> Result<T> {
    match tokio::time::timeout(STATEMENT_LIMIT, Box::pin(work)).await {
        Ok(done) => Ok(done?),
        Err(_) => Err(Error::new(
            ErrorKind::Unreachable,
            format!("the database server did not answer within {} s", STATEMENT_LIMIT.as_secs()),
        )),
    }
}
