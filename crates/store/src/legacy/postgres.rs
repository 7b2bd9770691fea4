//! The upgrade on PostgreSQL: reading old tables, and changing their rows where they are. What their columns become is
//! in `alter`.

use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Row};

use super::Converted;
use super::agents::{OldAgent, agents};
use super::alter::{self, ddl, quoted};
use super::cell::Cell;
use super::export::Export;
use super::join::{OldRow, join};
use super::shape::{AgentsPlan, Column, CustomizationsPlan, MEMORIES, MEMORIES_KEPT, Plan, Table};
use crate::db::{Backend, Conn, migrate};
use crate::error::{Error, ErrorKind, Result};

/// Rows of one page of the export, and of one statement that changes many.
const PAGE: usize = 64;

/// Waits for its turn and fixes how values are written as text, until the transaction ends. A row that a policy would
/// hide is an error: an export must be complete.
pub(super) async fn settle(conn: &mut Conn) -> Result<()> {
    let text = "SET LOCAL lock_timeout = '20s'; SET LOCAL statement_timeout = '10min'; SET LOCAL row_security = off; \
         SET LOCAL timezone = 'UTC'; SET LOCAL datestyle = 'ISO, YMD'; SET LOCAL intervalstyle = 'postgres'; \
         SET LOCAL extra_float_digits = 1; SET LOCAL bytea_output = 'hex'";
    conn.script(text.to_owned()).await?;
    migrate::take_turn(conn).await
}

/// The table, if it is there; nobody else uses it until the transaction ends.
pub(super) async fn table(conn: &mut Conn, name: &'static str) -> Result<Option<Table>> {
    let raw = raw(conn)?;
    let kind: Option<String> = sqlx::query_scalar(
        "SELECT relkind::text FROM pg_class WHERE relnamespace = current_schema()::regnamespace \
         AND relname = $1 AND relkind IN ('r', 'p', 'v', 'm', 'f')",
    )
    .bind(name)
    .persistent(false)
    .fetch_optional(&mut *raw)
    .await?;
    match kind.as_deref() {
        None => return Ok(None),
        Some("r") => {}
        Some(_) => {
            return Err(Error::new(ErrorKind::Schema, format!("`{name}` is not an ordinary table")));
        }
    }
    ddl(raw, name, format!("LOCK TABLE {name} IN ACCESS EXCLUSIVE MODE")).await?;
    let columns: Vec<(String, String, bool, Option<String>, bool, bool)> = sqlx::query_as(
        "SELECT a.attname::text, format_type(a.atttypid, a.atttypmod), a.attnotnull, pg_get_expr(d.adbin, d.adrelid), \
           a.attidentity <> '' OR a.attgenerated <> '', \
           EXISTS (SELECT FROM pg_index i WHERE i.indrelid = a.attrelid AND i.indisprimary AND a.attnum = ANY (i.indkey)) \
         FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum \
         WHERE a.attrelid = $1::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
    )
    .bind(name)
    .persistent(false)
    .fetch_all(raw)
    .await?;
    let column = |(name, kind, not_null, default, automatic, primary)| Column {
        name,
        kind,
        not_null,
        default,
        automatic,
        primary,
    };
    Ok(Some(Table { name, columns: columns.into_iter().map(column).collect() }))
}

/// Writes every row of a table, each value in PostgreSQL's own text form.
pub(super) async fn export(conn: &mut Conn, table: &Table, export: &mut Export) -> Result<()> {
    let raw = raw(conn)?;
    let schema: Vec<(String,)> = sqlx::query_as(
        "SELECT 'CONSTRAINT ' || quote_ident(conname) || ' ' || pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = $1::regclass \
         UNION ALL SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = $1::regclass \
         UNION ALL SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = $1::regclass AND NOT tgisinternal ORDER BY 1",
    )
    .bind(table.name)
    .persistent(false)
    .fetch_all(&mut *raw)
    .await?;
    export.table(table, &schema.into_iter().map(|(text,)| text).collect::<Vec<_>>())?;
    let columns: Vec<String> =
        table.columns.iter().map(|column| format!("{}::text", quoted(&column.name))).collect();
    ddl(
        raw,
        table.name,
        format!("DECLARE legacy NO SCROLL CURSOR FOR SELECT {} FROM {}", columns.join(", "), table.name),
    )
    .await?;
    loop {
        let page = sqlx::query(AssertSqlSafe(format!("FETCH FORWARD {PAGE} FROM legacy")))
            .persistent(false)
            .fetch_all(&mut *raw)
            .await?;
        for row in &page {
            export.row(table, &cells(row, 0, columns.len())?)?;
        }
        if page.len() < PAGE {
            break;
        }
    }
    ddl(raw, table.name, "CLOSE legacy".to_owned()).await
}

/// Changes the tables where they are, and makes everything else of ours.
pub(super) async fn convert(conn: &mut Conn, plan: &Plan, now: i64) -> Result<Converted> {
    let mut done = Converted::default();
    let connection = raw(conn)?;
    if let Some(plan) = &plan.agents {
        change_agents(connection, plan, now, &mut done).await?;
    }
    if let Some(plan) = &plan.customizations {
        change_customizations(connection, plan, now, &mut done).await?;
    }
    if plan.memories.is_some() {
        ddl(connection, MEMORIES, format!("ALTER TABLE {MEMORIES} RENAME TO {MEMORIES_KEPT}")).await?;
    }
    migrate::apply(conn).await?;
    Ok(done)
}

async fn change_agents(
    raw: &mut PgConnection,
    plan: &AgentsPlan,
    now: i64,
    done: &mut Converted,
) -> Result<()> {
    let name = plan.table.name;
    alter::agents_before(raw, plan).await?;
    // A column of another type than ours is there under another name, and an empty one of ours beside it.
    let replaced = plan.table.column("identity").is_some_and(|column| column.kind != "jsonb");
    let identity = if replaced { "legacy_identity" } else { "identity" };
    let rows = read(raw, &plan.table, &["agent_name", "soul", identity]).await?;
    let old = rows.into_iter().map(|(at, cells)| {
        let [name, soul, identity] = cells;
        OldAgent { at, name, soul, identity }
    });
    let converted = agents(old.collect())?;
    done.nameless(name, converted.nameless.len());
    delete(raw, name, &converted.nameless).await?;
    let changed = converted.agents.iter().filter(|agent| replaced || agent.rewritten);
    let changes = changed.map(|agent| (agent.at.clone(), agent.identity.clone())).collect();
    update(raw, name, "identity", "jsonb", changes).await?;
    done.agents.extend(converted.agents.into_iter().map(|agent| agent.report));
    done.notes.extend(alter::agents_after(raw, plan, now).await?);
    Ok(())
}

async fn change_customizations(
    raw: &mut PgConnection,
    plan: &CustomizationsPlan,
    now: i64,
    done: &mut Converted,
) -> Result<()> {
    let name = plan.table.name;
    alter::customizations_before(raw, plan).await?;
    let there = |column: &'static str| if plan.table.has(column) { column } else { "NULL" };
    let wanted = ["user_id", "agent_name", plan.text, there("priority"), there("is_active")];
    let rows = read(raw, &plan.table, &wanted).await?;
    let old = rows.into_iter().map(|(at, cells)| {
        let [user, agent, content, priority, active] = cells;
        OldRow { at, user, agent, content, priority, active }
    });
    let converted = join(old.collect(), plan.form);
    done.nameless(name, converted.nameless.len());
    let mut gone = converted.nameless;
    let mut changes = Vec::new();
    for joined in converted.joined {
        gone.extend(joined.others);
        changes.push((joined.kept, Some(joined.text)));
        done.instructions.push(joined.report);
    }
    delete(raw, name, &gone).await?;
    update(raw, name, "instructions", "text", changes).await?;
    done.notes.extend(alter::customizations_after(raw, plan, now).await?);
    Ok(())
}

/// Some columns of every row, with where it is, oldest first. Rows that nothing tells apart are in any order.
async fn read<const N: usize>(
    raw: &mut PgConnection,
    table: &Table,
    columns: &[&str; N],
) -> Result<Vec<(String, [Cell; N])>> {
    let mut order: Vec<String> = ["created_at", "id"]
        .into_iter()
        .filter(|column| table.has(column))
        .map(|column| format!("{column} NULLS LAST"))
        .collect();
    order.extend(columns.iter().map(|column| format!("{column}::text COLLATE \"C\"")));
    let texts: Vec<String> = columns.iter().map(|column| format!("{column}::text")).collect();
    let text =
        format!("SELECT ctid::text, {} FROM {} ORDER BY {}", texts.join(", "), table.name, order.join(", "));
    let rows = sqlx::query(AssertSqlSafe(text)).persistent(false).fetch_all(raw).await?;
    let mut out = Vec::with_capacity(rows.len());
    for row in &rows {
        let cells: [Cell; N] = cells(row, 1, N)?
            .try_into()
            .map_err(|_| Error::new(ErrorKind::Other, "a row of an old table has too few columns"))?;
        out.push((row.try_get(0)?, cells));
    }
    Ok(out)
}

fn cells(row: &PgRow, first: usize, count: usize) -> Result<Vec<Cell>> {
    let cell = |at| Ok(row.try_get::<Option<String>, _>(at)?.map_or(Cell::Null, Cell::Text));
    (first..first + count).map(cell).collect()
}

async fn delete(raw: &mut PgConnection, table: &str, rows: &[String]) -> Result<()> {
    for page in rows.chunks(PAGE) {
        let text = format!("DELETE FROM {table} WHERE ctid = ANY ($1::text[]::tid[])");
        let query = sqlx::query(AssertSqlSafe(text)).persistent(false).bind(page);
        query.execute(&mut *raw).await.map_err(|error| alter::refused(table, error))?;
    }
    Ok(())
}

/// Sets a column of many rows, each to its own text.
async fn update(
    raw: &mut PgConnection,
    table: &str,
    column: &str,
    kind: &str,
    changes: Vec<(String, Option<String>)>,
) -> Result<()> {
    for page in changes.chunks(PAGE) {
        let (rows, values): (Vec<String>, Vec<Option<String>>) = page.iter().cloned().unzip();
        let text = format!(
            "UPDATE {table} SET {column} = new.value::{kind} \
             FROM unnest($1::text[], $2::text[]) AS new (at, value) WHERE {table}.ctid = new.at::tid"
        );
        let query = sqlx::query(AssertSqlSafe(text)).persistent(false).bind(rows).bind(values);
        let changed =
            query.execute(&mut *raw).await.map_err(|error| alter::refused(table, error))?.rows_affected();
        if changed != page.len() as u64 {
            return Err(Error::new(
                ErrorKind::Schema,
                format!("only {changed} of {} rows of `{table}` could be changed", page.len()),
            )
            .hint("a trigger of the table keeps them as they are: disable it, and run it again"));
        }
    }
    Ok(())
}

fn raw(conn: &mut Conn) -> Result<&mut PgConnection> {
    match &mut conn.backend {
        Backend::Pg { transaction, .. } => Ok(transaction),
        _ => Err(Error::new(ErrorKind::Other, "this is not a connection to PostgreSQL")),
    }
}
