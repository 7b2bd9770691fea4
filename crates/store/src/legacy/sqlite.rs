//! The upgrade on SQLite: old tables are copied aside, dropped, made anew in our shape and filled from the copies.
//!
//! Altering them in place is not enough: SQLite cannot drop a column of a UNIQUE constraint, nor a NOT NULL.

use std::path::Path;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteRow, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Row, TypeInfo, ValueRef};

use super::Converted;
use super::agents::{OldAgent, agents};
use super::cell::Cell;
use super::export::Export;
use super::join::{OldRow, join};
use super::rebuild::{Before, keep_columns, keys};
use super::shape::{AgentsPlan, Column, CustomizationsPlan, MEMORIES, MEMORIES_KEPT, Plan, Table};
use crate::db::{Backend, Conn, migrate};
use crate::error::{Error, ErrorKind, Result};

/// How long another process may hold the write lock.
const BUSY_LIMIT: Duration = Duration::from_secs(20);
/// Rows of one page of the export: each may be long.
const PAGE: usize = 64;

/// Opens a file that must be there, without changing how it keeps its journal. Foreign keys are checked at the end, not
/// on the way: a table that is made anew is gone for a moment.
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

pub(super) async fn close(connection: SqliteConnection) {
    // What was committed is durable; a connection that cannot say goodbye changes nothing of that.
    let _ = connection.close().await;
}

pub(super) async fn table(conn: &mut Conn, name: &'static str) -> Result<Option<Table>> {
    let raw = raw(conn)?;
    let kind: Option<(String,)> =
        sqlx::query_as("SELECT type FROM pragma_table_list WHERE schema = 'main' AND name = $1")
            .bind(name)
            .fetch_optional(&mut *raw)
            .await?;
    match kind.as_ref().map(|(kind,)| kind.as_str()) {
        None => return Ok(None),
        Some("table") => {}
        Some(kind) => {
            return Err(Error::new(ErrorKind::Schema, format!("`{name}` is a {kind}, not a table")));
        }
    }
    let columns: Vec<(String, String, bool, Option<String>, i64, i64)> = sqlx::query_as(
        "SELECT name, type, \"notnull\", dflt_value, pk, hidden FROM pragma_table_xinfo($1) WHERE hidden <> 1",
    )
    .bind(name)
    .fetch_all(raw)
    .await?;
    let column = |(name, kind, not_null, default, pk, hidden)| Column {
        name,
        kind,
        not_null,
        default,
        automatic: hidden != 0,
        primary: pk != 0,
    };
    Ok(Some(Table { name, columns: columns.into_iter().map(column).collect() }))
}

/// Copies the tables aside. Columns are numbered there, so that none is called `rowid`; the plus keeps SQLite from giving
/// a column a type that would change its values.
pub(super) async fn copy(conn: &mut Conn, plan: &Plan) -> Result<()> {
    for table in plan.tables() {
        let columns: Vec<String> = (table.columns.iter().enumerate())
            .map(|(at, column)| format!("+{} AS c{at}", quoted(&column.name)))
            .collect();
        let copy = copy_of(table.name);
        let name = quoted(table.name);
        let columns = columns.join(", ");
        conn.script(format!("CREATE TEMP TABLE {copy} AS SELECT {columns} FROM main.{name} NOT INDEXED"))
            .await?;
    }
    Ok(())
}

/// Writes every row of a table's copy.
pub(super) async fn export(conn: &mut Conn, table: &Table, export: &mut Export) -> Result<()> {
    let raw = raw(conn)?;
    let schema: Vec<(String,)> = sqlx::query_as(
        "SELECT sql FROM main.sqlite_schema WHERE tbl_name = $1 AND sql IS NOT NULL ORDER BY rowid",
    )
    .bind(table.name)
    .fetch_all(&mut *raw)
    .await?;
    export.table(table, &schema.into_iter().map(|(sql,)| sql).collect::<Vec<_>>())?;
    let width = table.columns.len();
    let columns: Vec<String> = (0..width).map(|at| format!("c{at}")).collect();
    let text = format!(
        "SELECT {}, rowid FROM temp.{} WHERE rowid > $1 ORDER BY rowid LIMIT {PAGE}",
        columns.join(", "),
        copy_of(table.name)
    );
    let mut after = 0i64;
    loop {
        let page = sqlx::query(AssertSqlSafe(text.clone())).bind(after).fetch_all(&mut *raw).await?;
        for row in &page {
            export.row(table, &cells(row, width)?)?;
            after = row.try_get(width)?;
        }
        if page.len() < PAGE {
            return Ok(());
        }
    }
}

/// Makes the tables anew, and everything else of ours with them.
pub(super) async fn convert(conn: &mut Conn, plan: &Plan, now: i64) -> Result<Converted> {
    let before = Before::look(conn, plan).await?;
    let mut done = Converted { notes: before.notes(), ..Converted::default() };
    if plan.memories.is_some() {
        // First, while every view still has its tables: renaming looks at all of them.
        conn.script(format!("ALTER TABLE main.{MEMORIES} RENAME TO {MEMORIES_KEPT}")).await?;
    }
    let mut old_keys = Vec::new();
    for table in
        [plan.agents.as_ref().map(|plan| &plan.table), plan.customizations.as_ref().map(|plan| &plan.table)]
            .into_iter()
            .flatten()
    {
        old_keys.push(keys(conn, table).await?);
        conn.script(format!("DROP TABLE main.{}", quoted(table.name))).await?;
    }
    migrate::apply(conn).await?;
    let mut old_keys = old_keys.into_iter();
    if let Some(plan) = &plan.agents {
        keep_columns(conn, plan.table.name, &plan.others()).await?;
        fill_agents(conn, plan, now, &mut done).await?;
        old_keys.next().unwrap_or_default().restore(conn, plan.table.name, &plan.others()).await?;
    }
    if let Some(plan) = &plan.customizations {
        keep_columns(conn, plan.table.name, &plan.others()).await?;
        fill_customizations(conn, plan, now, &mut done).await?;
        old_keys.next().unwrap_or_default().restore(conn, plan.table.name, &plan.others()).await?;
    }
    for table in plan.tables() {
        conn.script(format!("DROP TABLE temp.{}", copy_of(table.name))).await?;
    }
    before.refuse_damage(conn).await?;
    Ok(done)
}

async fn fill_agents(conn: &mut Conn, plan: &AgentsPlan, now: i64, done: &mut Converted) -> Result<()> {
    let table = &plan.table;
    let wanted = [plan.name, plan.soul, "identity"].map(|column| copied(table, column));
    let old = read(conn, table, &wanted).await?.into_iter().map(|(at, cells)| {
        let [name, soul, identity] = cells;
        OldAgent { at, name, soul, identity }
    });
    let converted = agents(old.collect())?;
    done.nameless(table.name, converted.nameless.len());
    let text = insert(table, &["agent_name", "soul", "identity", "version", "changed_at"], &plan.others());
    for agent in converted.agents {
        let query = sqlx::query(AssertSqlSafe(text.clone()))
            .bind(agent.at)
            .bind(agent.name)
            .bind(agent.soul)
            .bind(agent.identity)
            .bind(1i64)
            .bind(now);
        query.execute(raw(conn)?).await?;
        done.agents.push(agent.report);
    }
    Ok(())
}

async fn fill_customizations(
    conn: &mut Conn,
    plan: &CustomizationsPlan,
    now: i64,
    done: &mut Converted,
) -> Result<()> {
    let table = &plan.table;
    let wanted =
        ["user_id", "agent_name", plan.text, "priority", "is_active"].map(|column| copied(table, column));
    let old = read(conn, table, &wanted).await?.into_iter().map(|(at, cells)| {
        let [user, agent, content, priority, active] = cells;
        OldRow { at, user, agent, content, priority, active }
    });
    let converted = join(old.collect(), plan.form);
    done.nameless(table.name, converted.nameless.len());
    let text =
        insert(table, &["user_id", "agent_name", "instructions", "version", "changed_at"], &plan.others());
    for joined in converted.joined {
        let query = sqlx::query(AssertSqlSafe(text.clone()))
            .bind(joined.kept)
            .bind(joined.user)
            .bind(joined.agent)
            .bind(joined.text)
            .bind(1i64)
            .bind(now);
        query.execute(raw(conn)?).await?;
        done.instructions.push(joined.report);
    }
    Ok(())
}

/// The statement that fills one row of ours, with the other columns from the copy's row `$1`.
fn insert(table: &Table, ours: &[&str], others: &[(&Column, String)]) -> String {
    let kept = others.iter().map(|(_, name)| quoted(name));
    let columns: Vec<String> = ours.iter().map(|name| (*name).to_owned()).chain(kept).collect();
    let bound = (0..ours.len()).map(|at| format!("${}", at + 2));
    let values: Vec<String> =
        bound.chain(others.iter().map(|(column, _)| copied(table, &column.name))).collect();
    format!(
        "INSERT INTO main.{} ({}) SELECT {} FROM temp.{} WHERE rowid = CAST($1 AS INTEGER)",
        table.name,
        columns.join(", "),
        values.join(", "),
        copy_of(table.name)
    )
}

/// Some columns of every row of a copy, with the row's number, oldest first.
async fn read<const N: usize>(
    conn: &mut Conn,
    table: &Table,
    columns: &[String; N],
) -> Result<Vec<(String, [Cell; N])>> {
    let text = format!(
        "SELECT {}, CAST(rowid AS TEXT) FROM temp.{} ORDER BY {} NULLS LAST, {} NULLS LAST, rowid",
        columns.join(", "),
        copy_of(table.name),
        copied(table, "created_at"),
        copied(table, "id")
    );
    let rows = sqlx::query(AssertSqlSafe(text)).fetch_all(raw(conn)?).await?;
    let mut out = Vec::with_capacity(rows.len());
    for row in &rows {
        let cells: [Cell; N] = cells(row, N)?
            .try_into()
            .map_err(|_| Error::new(ErrorKind::Other, "a row of an old table has too few columns"))?;
        out.push((row.try_get(N)?, cells));
    }
    Ok(out)
}

/// The first cells of a row, each as SQLite holds it, whatever its column was declared as.
fn cells(row: &SqliteRow, count: usize) -> Result<Vec<Cell>> {
    (0..count).map(|at| cell(row, at)).collect()
}

fn cell(row: &SqliteRow, at: usize) -> Result<Cell> {
    let value = row.try_get_raw(at)?;
    if value.is_null() {
        return Ok(Cell::Null);
    }
    let kind = value.type_info().name().to_owned();
    drop(value);
    Ok(match kind.as_str() {
        "INTEGER" => Cell::Int(row.try_get_unchecked(at)?),
        "REAL" => Cell::Real(row.try_get_unchecked(at)?),
        "TEXT" => match row.try_get_unchecked::<String, _>(at) {
            Ok(text) => Cell::Text(text),
            Err(_) => Cell::BadText(row.try_get_unchecked(at)?),
        },
        _ => Cell::Blob(row.try_get_unchecked(at)?),
    })
}

/// A column of a table's copy; one that is not there is NULL.
fn copied(table: &Table, column: &str) -> String {
    let at = table.columns.iter().position(|found| found.name == column);
    at.map_or_else(|| "NULL".to_owned(), |at| format!("c{at}"))
}

fn copy_of(table: &str) -> String {
    format!("embody_copy_of_{table}")
}

pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

pub(super) fn raw(conn: &mut Conn) -> Result<&mut SqliteConnection> {
    match &mut conn.backend {
        Backend::Sqlite(connection) => Ok(connection),
        _ => Err(Error::new(ErrorKind::Other, "this is not the connection that writes")),
    }
}
