//! What becomes of the columns of old tables on PostgreSQL: types, names, keys, and what would refuse a row of ours.
//!
//! Nothing cascades: a view, a policy or a foreign key that depends on what goes is the database's reason to refuse.

use sqlx::AssertSqlSafe;
use sqlx::postgres::{PgConnection, PgDatabaseError};

use super::join::Form;
use super::shape::{AgentsPlan, Column, CustomizationsPlan};
use crate::error::{Error, ErrorKind, Result};

/// The types and names that the rows are read by. Types change before the rows do: it can move them.
pub(super) async fn agents_before(raw: &mut PgConnection, plan: &AgentsPlan) -> Result<()> {
    let table = plan.table.name;
    let mut steps = renamed(&plan.others());
    match plan.name {
        "agent_name" => steps.extend(as_text("agent_name")),
        "id" => steps.push("ADD COLUMN agent_name TEXT COLLATE \"C\"".to_owned()),
        name => {
            steps.push(format!("RENAME COLUMN {name} TO agent_name"));
            steps.extend(as_text("agent_name"));
        }
    }
    if plan.soul != "soul" {
        steps.push(format!("RENAME COLUMN {} TO soul", plan.soul));
    }
    steps.extend(as_text("soul"));
    steps.push("ALTER COLUMN soul DROP NOT NULL".to_owned());
    match plan.table.column("identity").map(|column| column.kind.as_str()) {
        Some("jsonb") => steps.push("ALTER COLUMN identity DROP NOT NULL".to_owned()),
        Some(_) => {
            steps.push("RENAME COLUMN identity TO legacy_identity".to_owned());
            steps.push("ADD COLUMN identity JSONB".to_owned());
        }
        None => steps.push("ADD COLUMN identity JSONB".to_owned()),
    }
    alter(raw, table, &steps).await?;
    if plan.name == "id" {
        ddl(raw, table, format!("UPDATE {table} SET agent_name = id::text; SET CONSTRAINTS ALL IMMEDIATE"))
            .await?;
    }
    Ok(())
}

/// What the rows need not be there for; what to say about it.
pub(super) async fn agents_after(raw: &mut PgConnection, plan: &AgentsPlan, now: i64) -> Result<Vec<String>> {
    let table = plan.table.name;
    let mut steps = vec!["ALTER COLUMN agent_name SET NOT NULL".to_owned()];
    if plan.table.column("identity").is_some_and(|column| column.kind != "jsonb") {
        steps.push("DROP COLUMN legacy_identity".to_owned());
    }
    steps.extend(versioned(now));
    after(raw, table, &steps).await?;
    let notes = undemanding(raw, table, &plan.others()).await?;
    unique(raw, table, &["agent_name"]).await?;
    Ok(notes)
}

/// The same for the texts of users.
pub(super) async fn customizations_before(raw: &mut PgConnection, plan: &CustomizationsPlan) -> Result<()> {
    let mut steps = renamed(&plan.others());
    steps.extend(as_text("user_id"));
    steps.extend(as_text("agent_name"));
    match plan.form {
        Form::Json => steps.push("ADD COLUMN instructions TEXT COLLATE \"C\"".to_owned()),
        Form::Plain => steps.extend(as_text("instructions")),
    }
    alter(raw, plan.table.name, &steps).await
}

/// The same for the texts of users.
pub(super) async fn customizations_after(
    raw: &mut PgConnection,
    plan: &CustomizationsPlan,
    now: i64,
) -> Result<Vec<String>> {
    let table = plan.table.name;
    let mut steps: Vec<String> =
        plan.dropped().into_iter().map(|column| format!("DROP COLUMN {column}")).collect();
    for column in ["user_id", "agent_name", "instructions"] {
        steps.push(format!("ALTER COLUMN {column} SET NOT NULL"));
    }
    steps.extend(versioned(now));
    after(raw, table, &steps).await?;
    let notes = undemanding(raw, table, &plan.others()).await?;
    unique(raw, table, &["agent_name", "user_id"]).await?;
    Ok(notes)
}

/// Columns whose names we need for ourselves.
fn renamed(others: &[(&Column, String)]) -> Vec<String> {
    let taken = others.iter().filter(|(column, name)| column.name != *name);
    taken.map(|(column, name)| format!("RENAME COLUMN {} TO {name}", column.name)).collect()
}

/// Texts sort by their bytes, as on SQLite. A default cannot follow a change of type.
fn as_text(column: &str) -> [String; 2] {
    [
        format!("ALTER COLUMN {column} DROP DEFAULT"),
        format!("ALTER COLUMN {column} TYPE TEXT COLLATE \"C\" USING {column}::text"),
    ]
}

/// Our own columns; existing rows get their values without being touched.
fn versioned(now: i64) -> [String; 3] {
    [
        "ADD COLUMN version BIGINT NOT NULL DEFAULT 1".to_owned(),
        format!("ADD COLUMN changed_at BIGINT NOT NULL DEFAULT {now}"),
        "ALTER COLUMN changed_at SET DEFAULT 0".to_owned(),
    ]
}

/// Columns that we do not know must not demand values from us.
async fn undemanding(
    raw: &mut PgConnection,
    table: &str,
    others: &[(&Column, String)],
) -> Result<Vec<String>> {
    let mut notes = Vec::new();
    for (column, name) in others.iter().filter(|(column, _)| column.demands_a_value()) {
        let shown = quoted(name);
        let (step, what) = match (column.primary, column.kind.as_str()) {
            (false, _) => (format!("ALTER COLUMN {shown} DROP NOT NULL"), "may be empty now"),
            (true, "uuid") => {
                (format!("ALTER COLUMN {shown} SET DEFAULT gen_random_uuid()"), "fills itself now")
            }
            (true, "text" | "character varying") => {
                (format!("ALTER COLUMN {shown} SET DEFAULT gen_random_uuid()::text"), "fills itself now")
            }
            (true, "smallint" | "integer" | "bigint") => {
                (format!("ALTER COLUMN {shown} ADD GENERATED BY DEFAULT AS IDENTITY"), "counts by itself now")
            }
            (true, kind) => {
                return Err(Error::new(
                    ErrorKind::Schema,
                    format!(
                        "`{table}.{name}` of type `{kind}` is part of the primary key and has no default"
                    ),
                )
                .hint("give the column a default, and run it again"));
            }
        };
        alter(raw, table, &[step]).await?;
        if what == "counts by itself now" {
            let next = format!(
                "SELECT setval(pg_get_serial_sequence('{table}', {}), COALESCE(MAX({shown}), 0) + 1, false) FROM {table}",
                literal(name)
            );
            ddl(raw, table, next).await?;
        }
        notes.push(format!("`{table}.{name}` had no default and was demanded; it {what}"));
    }
    Ok(notes)
}

/// Makes these columns unique together unless they are.
async fn unique(raw: &mut PgConnection, table: &str, sorted: &[&str]) -> Result<()> {
    let there: bool = sqlx::query_scalar(
        "SELECT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = $1::regclass AND i.indisunique AND i.indimmediate \
           AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL AND i.indnkeyatts = cardinality($2::text[]) \
           AND (SELECT array_agg(a.attname::text ORDER BY a.attname::text COLLATE \"C\") FROM pg_attribute a \
                WHERE a.attrelid = i.indrelid AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1])) = $2)",
    )
    .bind(table)
    .bind(sorted)
    .persistent(false)
    .fetch_one(&mut *raw)
    .await?;
    if there {
        return Ok(());
    }
    alter(raw, table, &[format!("ADD UNIQUE ({})", sorted.join(", "))]).await
}

/// Changes a table after its rows were changed: what waits for the end of the transaction would be in the way.
async fn after(raw: &mut PgConnection, table: &str, steps: &[String]) -> Result<()> {
    ddl(raw, table, "SET CONSTRAINTS ALL IMMEDIATE".to_owned()).await?;
    alter(raw, table, steps).await
}

async fn alter(raw: &mut PgConnection, table: &str, steps: &[String]) -> Result<()> {
    for step in steps {
        ddl(raw, table, format!("ALTER TABLE {table} {step}")).await?;
    }
    Ok(())
}

pub(super) async fn ddl(raw: &mut PgConnection, table: &str, text: String) -> Result<()> {
    match sqlx::raw_sql(AssertSqlSafe(text)).execute(raw).await {
        Ok(_) => Ok(()),
        Err(error) => Err(refused(table, error)),
    }
}

/// The database's own reason, with its details.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Reason(String);

pub(super) fn refused(table: &str, error: sqlx::Error) -> Error {
    let details = error
        .as_database_error()
        .and_then(|error| error.try_downcast_ref::<PgDatabaseError>())
        .map(|error| {
            let detail =
                error.detail().map(|detail| format!(" ({})", detail.replace('\n', "; "))).unwrap_or_default();
            format!("{}{detail}", error.message())
        });
    let plain = Error::from(error);
    match (details, plain.kind()) {
        (Some(details), kind)
            if !matches!(kind, ErrorKind::Unreachable | ErrorKind::Busy | ErrorKind::Full) =>
        {
            Error::new(kind, format!("the database refuses the change of `{table}`; nothing was changed"))
                .because(Reason(details))
                .hint("drop what the reason names, or change it by hand, and run it again")
        }
        _ => plain,
    }
}

pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
