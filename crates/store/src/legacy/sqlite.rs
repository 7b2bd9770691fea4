//! The upgrade on SQLite: old tables are dropped, created again in our shape and filled from the rows that were read.
//!
//! Altering them in place is not enough: SQLite cannot drop a column of a UNIQUE constraint, nor a NOT NULL.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions};

use super::cell::Cell;
use super::convert::NewRow;
use super::table::{MEMORIES, MEMORIES_KEPT, Table, quoted};
use super::wrong_connection;
use crate::db::{Backend, Conn, args, migrate};
use crate::error::{Error, ErrorKind, Result};

/// How long another process may hold the write lock.
const BUSY_LIMIT: Duration = Duration::from_secs(20);

/// Opens an existing file without changing its journal mode. Foreign keys are checked at the end, not on the way: a table
/// that is created again is missing for a moment.
pub(super) async fn open(path: &Path) -> Result<SqliteConnection> {
    if !path.is_file() {
        return Err(Error::new(ErrorKind::NotFound, format!("there is no database `{}`", path.display()))
            .hint("check that the address names the right file"));
    }
    let options = SqliteConnectOptions::new()
        .filename(path)
        .foreign_keys(false)
        .busy_timeout(BUSY_LIMIT)
        .synchronous(SqliteSynchronous::Full)
        .disable_statement_logging();
    Ok(options.connect().await?)
}

/// Creates our tables, with the new rows in those that replace old ones. Returns notes.
pub(super) async fn change(
    conn: &mut Conn,
    tables: &[(&Table, Vec<NewRow>)],
    now: i64,
) -> Result<Vec<String>> {
    let (broken_before, orphans_before) = (broken_views(conn).await?, orphans(conn).await?);
    let mut notes = Vec::new();
    if tables.iter().any(|(table, _)| table.name == MEMORIES) {
        // First, while every view still has its tables: renaming checks all of them.
        conn.script(format!("ALTER TABLE main.{MEMORIES} RENAME TO {MEMORIES_KEPT}")).await?;
    }
    let rebuilt: Vec<_> = tables.iter().filter(|(table, _)| table.name != MEMORIES).collect();
    let mut keys = BTreeSet::new();
    for (table, _) in &rebuilt {
        let triggers: Vec<(String,)> = conn
            .fetch_all(
                "SELECT name FROM main.sqlite_schema WHERE type = 'trigger' AND tbl_name = $1",
                args![table.name],
            )
            .await?;
        let lost = |(name,)| format!("the trigger `{name}` went with its table; the export has its text");
        notes.extend(triggers.into_iter().map(lost));
        keys.extend(unique_keys(conn, table).await?);
        conn.script(format!("DROP TABLE main.{}", table.name)).await?;
    }
    migrate::apply(conn).await?;
    for (table, rows) in rebuilt {
        for (_, name) in table.others() {
            conn.script(format!("ALTER TABLE main.{} ADD COLUMN {} ANY", table.name, quoted(&name))).await?;
        }
        for row in rows {
            insert(conn, table, row, now).await?;
        }
    }
    for (number, (table, columns)) in keys.into_iter().enumerate() {
        let index = format!("CREATE UNIQUE INDEX main.{table}_legacy_{number} ON {table} ({columns})");
        conn.script(index).await?;
    }
    for (view, error) in broken_views(conn).await? {
        if !broken_before.contains_key(&view) {
            return Err(Error::new(
                ErrorKind::Schema,
                format!("the view `{view}` uses what the upgrade takes away; nothing was changed"),
            )
            .because(error)
            .hint("drop the view, and run it again"));
        }
    }
    if orphans(conn).await? > orphans_before {
        return Err(Error::new(
            ErrorKind::Schema,
            "rows of another table refer to rows that the upgrade joins; nothing was changed",
        )
        .hint("remove the foreign key, and run it again"));
    }
    Ok(notes)
}

/// Inserts a row with our columns and the other columns of its old row.
async fn insert(conn: &mut Conn, table: &Table, row: &NewRow, now: i64) -> Result<()> {
    let mut names = vec!["version".to_owned(), "changed_at".to_owned()];
    let mut cells = vec![Cell::Int(1), Cell::Int(now)];
    for ((name, _), value) in table.ours.iter().zip(&row.values) {
        names.push((*name).to_owned());
        cells.push(value.clone().map_or(Cell::Null, Cell::Text));
    }
    for (column, name) in table.others() {
        names.push(quoted(&name));
        cells.push(table.cell(table.old_cells(row), &column.name).clone());
    }
    let place = |cell: &Cell| if matches!(cell, Cell::BadText(_)) { "CAST(? AS TEXT)" } else { "?" };
    let places: Vec<&str> = cells.iter().map(place).collect();
    let text =
        format!("INSERT INTO main.{} ({}) VALUES ({})", table.name, names.join(", "), places.join(", "));
    let query = cells.into_iter().fold(sqlx::query(AssertSqlSafe(text)), |query, cell| match cell {
        Cell::Null => query.bind(None::<String>),
        Cell::Int(number) => query.bind(number),
        Cell::Real(number) => query.bind(number),
        Cell::Text(text) => query.bind(text),
        Cell::BadText(bytes) | Cell::Blob(bytes) => query.bind(bytes),
    });
    query.execute(raw(conn)?).await?;
    Ok(())
}

/// The keys of a table whose columns all stay, as lists of columns: other tables may refer to them.
async fn unique_keys(conn: &mut Conn, table: &Table) -> Result<Vec<(&'static str, String)>> {
    let columns: Vec<(String, Option<String>)> = conn
        .fetch_all(
            "SELECT l.name, c.name FROM pragma_index_list($1) l, pragma_index_info(l.name) c \
             WHERE l.\"unique\" = 1 AND l.partial = 0 \
             UNION ALL SELECT '', name FROM pragma_table_info($1) WHERE pk > 0",
            args![table.name],
        )
        .await?;
    let others = table.others();
    let mut keys: BTreeMap<String, Option<BTreeSet<String>>> = BTreeMap::new();
    for (key, column) in columns {
        let kept = others.iter().find(|(other, _)| Some(&other.name) == column.as_ref());
        let key = keys.entry(key).or_insert_with(|| Some(BTreeSet::new()));
        match (&mut *key, kept) {
            (Some(columns), Some((_, name))) => drop(columns.insert(quoted(name))),
            _ => *key = None,
        }
    }
    let kept = keys.into_values().flatten();
    Ok(kept.map(|key| (table.name, key.into_iter().collect::<Vec<_>>().join(", "))).collect())
}

async fn broken_views(conn: &mut Conn) -> Result<BTreeMap<String, sqlx::Error>> {
    let views: Vec<(String,)> =
        conn.fetch_all("SELECT name FROM main.sqlite_schema WHERE type = 'view'", Vec::new()).await?;
    let mut broken = BTreeMap::new();
    for (view,) in views {
        let text = format!("SELECT * FROM main.{} LIMIT 0", quoted(&view));
        let tried = sqlx::raw_sql(AssertSqlSafe(text)).execute(raw(conn)?).await;
        broken.extend(tried.err().map(|error| (view, error)));
    }
    Ok(broken)
}

/// The number of rows that refer to a row that does not exist.
async fn orphans(conn: &mut Conn) -> Result<i64> {
    let counted =
        sqlx::query_scalar("SELECT COUNT(*) FROM pragma_foreign_key_check").fetch_one(raw(conn)?).await;
    counted.map_err(|error| {
        Error::new(ErrorKind::Schema, "a foreign key no longer fits its table; nothing was changed")
            .because(error)
    })
}

fn raw(conn: &mut Conn) -> Result<&mut SqliteConnection> {
    match &mut conn.backend {
        Backend::Sqlite(connection) => Ok(connection),
        _ => Err(wrong_connection()),
    }
}
