//! The upgrade on PostgreSQL: tables are altered where they are, and rows updated.
//!
//! Nothing cascades: a view, a policy or a foreign key that depends on a dropped column makes the database refuse.

use sqlx::postgres::{PgArguments, PgDatabaseError};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Postgres};

use super::cell::Cell;
use super::convert::NewRow;
use super::table::{AGENTS, Column, MEMORIES, MEMORIES_KEPT, Table, quoted};
use super::wrong_connection;
use crate::db::{Backend, Conn, args, migrate};
use crate::error::{Error, ErrorKind, Result};

/// A column that numbers the rows during the upgrade: a change of type moves rows.
pub(super) const ROW: &str = "embody_row";

/// Waits for its turn and fixes how values are written as text, until the transaction ends. A row that a policy would
/// hide is an error: an export must be complete.
pub(super) async fn prepare(conn: &mut Conn) -> Result<()> {
    let text = "SET LOCAL lock_timeout = '20s'; SET LOCAL statement_timeout = '10min'; SET LOCAL row_security = off; \
         SET LOCAL timezone = 'UTC'; SET LOCAL datestyle = 'ISO, YMD'; SET LOCAL intervalstyle = 'postgres'; \
         SET LOCAL extra_float_digits = 1; SET LOCAL bytea_output = 'hex'";
    conn.script(text.to_owned()).await?;
    migrate::take_turn(conn).await
}

/// Alters the old tables, fills them with the new rows and creates the other tables of ours. Returns notes.
pub(super) async fn change(
    conn: &mut Conn,
    tables: &[(&Table, Vec<NewRow>)],
    now: i64,
) -> Result<Vec<String>> {
    let mut notes = Vec::new();
    for (table, rows) in tables {
        let name = table.name;
        if name == MEMORIES {
            alter(conn, name, &[format!("RENAME TO {MEMORIES_KEPT}")]).await?;
            continue;
        }
        alter(conn, name, &column_steps(table)).await?;
        replace_rows(conn, table, rows).await?;
        // Checks that wait for the end of the transaction would block the changes of the table.
        ddl(conn, name, "SET CONSTRAINTS ALL IMMEDIATE".to_owned()).await?;
        let dropped = table.dropped().into_iter().chain([ROW]);
        let mut steps: Vec<String> = dropped.map(|column| format!("DROP COLUMN {column}")).collect();
        let required = table.ours.iter().filter(|(column, _)| !matches!(*column, "soul" | "identity"));
        steps.extend(required.map(|(column, _)| format!("ALTER COLUMN {column} SET NOT NULL")));
        steps.extend([
            "ADD COLUMN version BIGINT NOT NULL DEFAULT 1".to_owned(),
            format!("ADD COLUMN changed_at BIGINT NOT NULL DEFAULT {now}"),
            "ALTER COLUMN changed_at SET DEFAULT 0".to_owned(),
        ]);
        alter(conn, name, &steps).await?;
        for (column, new_name) in table.others() {
            if column.not_null && column.default.is_none() && !column.automatic {
                notes.push(make_optional(conn, name, column, &new_name).await?);
            }
        }
        make_unique(conn, name).await?;
    }
    migrate::apply(conn).await?;
    Ok(notes)
}

/// What becomes of an old column that one of ours comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ColumnChange {
    /// Ours is a new column.
    Added,
    /// The values are converted one by one.
    Emptied,
    Kept,
}

fn column_change(table: &Table, from: Option<&str>) -> ColumnChange {
    let is_jsonb = |column: &Column| column.name == "identity" && column.kind == "jsonb";
    match from {
        None | Some("id" | "content") => ColumnChange::Added,
        Some("identity") if !table.columns.iter().any(is_jsonb) => ColumnChange::Emptied,
        Some(_) => ColumnChange::Kept,
    }
}

/// Steps to the names and types of ours. Texts sort by their bytes, as on SQLite.
fn column_steps(table: &Table) -> Vec<String> {
    let taken = table.others().into_iter().filter(|(column, name)| column.name != *name);
    let mut steps: Vec<String> =
        taken.map(|(column, name)| format!("RENAME COLUMN {} TO {name}", column.name)).collect();
    for (name, from) in &table.ours {
        let is_json = *name == "identity";
        let kind = if is_json { "JSONB" } else { "TEXT COLLATE \"C\"" };
        let change = column_change(table, *from);
        if change == ColumnChange::Added {
            steps.push(format!("ADD COLUMN {name} {kind}"));
            continue;
        }
        if let Some(from) = from.filter(|from| from != name) {
            steps.push(format!("RENAME COLUMN {from} TO {name}"));
        }
        if matches!(*name, "soul" | "identity") {
            steps.push(format!("ALTER COLUMN {name} DROP NOT NULL"));
        }
        if change == ColumnChange::Emptied || !is_json {
            let value = if is_json { "NULL".to_owned() } else { format!("{name}::text") };
            // A default cannot follow a change of type.
            steps.push(format!("ALTER COLUMN {name} DROP DEFAULT"));
            steps.push(format!("ALTER COLUMN {name} TYPE {kind} USING {value}"));
        }
    }
    steps
}

/// Deletes the rows that do not stay, and updates the values that are different now.
async fn replace_rows(conn: &mut Conn, table: &Table, rows: &[NewRow]) -> Result<()> {
    let name = table.name;
    let number = |cells: &[Cell]| cells.last().and_then(Cell::text).map(|number| number.text);
    let kept: Vec<Option<String>> = rows.iter().map(|row| number(table.old_cells(row))).collect();
    let text = format!("DELETE FROM {name} WHERE {ROW} <> ALL ($1::text[]::bigint[])");
    execute(conn, name, sqlx::query(AssertSqlSafe(text)).bind(kept)).await?;
    for (at, (column, from)) in table.ours.iter().enumerate() {
        let kind = if *column == "identity" { "jsonb" } else { "text" };
        let is_kept = column_change(table, *from) == ColumnChange::Kept;
        let (mut numbers, mut values) = (Vec::new(), Vec::new());
        for row in rows {
            let cells = table.old_cells(row);
            let value = row.values.get(at).cloned().flatten();
            let old = from.filter(|_| is_kept).and_then(|from| table.cell(cells, from).text());
            if old.map(|old| old.text) != value {
                numbers.push(number(cells));
                values.push(value);
            }
        }
        let count = numbers.len();
        let text = format!(
            "UPDATE {name} SET {column} = new.value::{kind} \
             FROM unnest($1::text[], $2::text[]) AS new (number, value) WHERE {ROW} = new.number::bigint"
        );
        let query = sqlx::query(AssertSqlSafe(text)).bind(numbers).bind(values);
        let changed = execute(conn, name, query).await?;
        if changed != count as u64 {
            return Err(Error::new(
                ErrorKind::Schema,
                format!("only {changed} of {count} rows of `{name}` could be changed"),
            )
            .hint("a trigger of the table keeps them as they are: disable it, and run it again"));
        }
    }
    Ok(())
}

/// A column that we do not know must not require a value from us. Returns a note.
async fn make_optional(conn: &mut Conn, table: &str, column: &Column, name: &str) -> Result<String> {
    let shown = quoted(name);
    let (step, what) = match (column.primary, column.kind.as_str()) {
        (false, _) => ("DROP NOT NULL", "may be empty now"),
        (true, "uuid") => ("SET DEFAULT gen_random_uuid()", "fills itself now"),
        (true, "text" | "character varying") => ("SET DEFAULT gen_random_uuid()::text", "fills itself now"),
        (true, "smallint" | "integer" | "bigint") => {
            ("ADD GENERATED BY DEFAULT AS IDENTITY", "counts by itself now")
        }
        (true, kind) => {
            return Err(Error::new(
                ErrorKind::Schema,
                format!("`{table}.{name}` of type `{kind}` is part of the primary key and has no default"),
            )
            .hint("give the column a default, and run it again"));
        }
    };
    alter(conn, table, &[format!("ALTER COLUMN {shown} {step}")]).await?;
    if step.ends_with("IDENTITY") {
        let column = name.replace('\'', "''");
        let next = format!(
            "SELECT setval(pg_get_serial_sequence('{table}', '{column}'), COALESCE(MAX({shown}), 0) + 1, false) FROM {table}"
        );
        ddl(conn, table, next).await?;
    }
    Ok(format!("`{table}.{name}` had no default and was demanded; it {what}"))
}

/// Makes the columns that name a row unique together, unless they are.
async fn make_unique(conn: &mut Conn, table: &str) -> Result<()> {
    let unique: Vec<(String,)> = conn
        .fetch_all(
            "SELECT pg_get_indexdef(indexrelid) FROM pg_index \
             WHERE indrelid = $1::regclass AND indisunique AND indimmediate AND indisvalid",
            args![table],
        )
        .await?;
    let keys: &[&str] = match table {
        AGENTS => &["(agent_name)"],
        _ => &["(agent_name, user_id)", "(user_id, agent_name)"],
    };
    if unique.iter().any(|(index,)| keys.iter().any(|key| index.ends_with(key))) {
        return Ok(());
    }
    alter(conn, table, &keys.iter().take(1).map(|key| format!("ADD UNIQUE {key}")).collect::<Vec<_>>()).await
}

pub(super) async fn alter(conn: &mut Conn, table: &str, steps: &[String]) -> Result<()> {
    let statements: Vec<String> = steps.iter().map(|step| format!("ALTER TABLE {table} {step}")).collect();
    ddl(conn, table, statements.join("; ")).await
}

/// Runs statements that may take longer than others.
pub(super) async fn ddl(conn: &mut Conn, table: &str, text: String) -> Result<()> {
    let Backend::Pg { transaction, .. } = &mut conn.backend else { return Err(wrong_connection()) };
    let done = sqlx::raw_sql(AssertSqlSafe(text)).execute(&mut **transaction).await;
    done.map(drop).map_err(|error| refused(table, error))
}

async fn execute(conn: &mut Conn, table: &str, query: Query<'_, Postgres, PgArguments>) -> Result<u64> {
    let Backend::Pg { transaction, .. } = &mut conn.backend else { return Err(wrong_connection()) };
    let done = query.persistent(false).execute(&mut **transaction).await;
    done.map(|done| done.rows_affected()).map_err(|error| refused(table, error))
}

/// The database's own reason, with its details.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Reason(String);

fn refused(table: &str, error: sqlx::Error) -> Error {
    let reason = error.as_database_error().and_then(|error| error.try_downcast_ref::<PgDatabaseError>()).map(
        |error| {
            let detail = error.detail().map(|detail| format!(" ({})", detail.replace('\n', "; ")));
            Reason(format!("{}{}", error.message(), detail.unwrap_or_default()))
        },
    );
    let plain = Error::from(error);
    match (reason, plain.kind()) {
        (None, _) | (_, ErrorKind::Unreachable | ErrorKind::Busy | ErrorKind::Full) => plain,
        (Some(reason), kind) => {
            Error::new(kind, format!("the database refuses the change of `{table}`; nothing was changed"))
                .because(reason)
                .hint("drop what the reason names, or change it by hand, and run it again")
        }
    }
}
