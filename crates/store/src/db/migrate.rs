//! The schema: numbered migrations, applied forward only, checked against those that were applied before.

use super::{Conn, args, dialect};
use crate::error::{Error, ErrorKind, Result};
use crate::store::new_id;

/// Name and text, in order. Never edit one that was released: add another.
const MIGRATIONS: &[(&str, &str)] = &[
    ("0001_store", include_str!("../../migrations/0001_store.sql")),
    ("0002_channels", include_str!("../../migrations/0002_channels.sql")),
    ("0003_posts", include_str!("../../migrations/0003_posts.sql")),
    ("0004_held_calls", include_str!("../../migrations/0004_held_calls.sql")),
    ("0005_replicas", include_str!("../../migrations/0005_replicas.sql")),
    ("0006_gone_tools", include_str!("../../migrations/0006_gone_tools.sql")),
    ("0007_session_servers", include_str!("../../migrations/0007_session_servers.sql")),
    ("0008_conversations", include_str!("../../migrations/0008_conversations.sql")),
    ("0009_token_rights", include_str!("../../migrations/0009_token_rights.sql")),
    ("0010_origins", include_str!("../../migrations/0010_origins.sql")),
    ("0011_read_origins", include_str!("../../migrations/0011_read_origins.sql")),
    ("0012_listed_bodies", include_str!("../../migrations/0012_listed_bodies.sql")),
    ("0013_receipt_requests", include_str!("../../migrations/0013_receipt_requests.sql")),
    ("0014_sign_in", include_str!("../../migrations/0014_sign_in.sql")),
    ("0015_model_requests", include_str!("../../migrations/0015_model_requests.sql")),
    ("0016_server_health", include_str!("../../migrations/0016_server_health.sql")),
    ("0017_notices", include_str!("../../migrations/0017_notices.sql")),
];

const TABLE: &str = "CREATE TABLE IF NOT EXISTS embody_migrations \
     (version {int} PRIMARY KEY, name {text} NOT NULL, checksum {text} NOT NULL)";

/// Whether the schema is the newest of this program. A foreign one is an error.
pub(crate) async fn is_current(conn: &mut Conn) -> Result<bool> {
    Ok(applied(conn).await? == MIGRATIONS.len())
}

/// Call it inside a transaction.
pub(crate) async fn apply(conn: &mut Conn) -> Result<()> {
    take_turn(conn).await?;
    let applied = applied(conn).await?;
    let text = rendered(TABLE, conn.is_postgres());
    conn.script(text).await?;
    for (index, (name, text)) in MIGRATIONS.iter().enumerate().skip(applied) {
        let text = rendered(text, conn.is_postgres());
        let checksum = checksum(&text);
        conn.script(text).await?;
        let version = i64::try_from(index + 1).unwrap_or(i64::MAX);
        conn.execute(
            "INSERT INTO embody_migrations (version, name, checksum) VALUES ($1, $2, $3)",
            args![version, *name, checksum],
        )
        .await?;
    }
    let named = "INSERT INTO embody_database (row, id) VALUES (1, $1) ON CONFLICT (row) DO NOTHING";
    conn.execute(named, args![new_id()]).await.map(drop)
}

/// The permanent name of this database.
pub(crate) async fn name(conn: &mut Conn) -> Result<String> {
    let (id,): (String,) = conn.fetch_one("SELECT id FROM embody_database", Vec::new()).await?;
    Ok(id)
}

/// Processes that migrate at the same time take turns; the lock ends with the transaction.
pub(crate) async fn take_turn(conn: &mut Conn) -> Result<()> {
    if conn.is_postgres() {
        conn.execute("SELECT pg_advisory_xact_lock(7717000001)", Vec::new()).await?;
    }
    Ok(())
}

/// Whether any of our migrations was applied.
pub(crate) async fn is_ours(conn: &mut Conn) -> Result<bool> {
    Ok(!conn.fetch_all::<(String,)>(dialect!(COLUMNS), args!["embody_migrations"]).await?.is_empty())
}

/// Whether this is a store. One in the old shape is an error.
pub(crate) async fn is_known(conn: &mut Conn) -> Result<bool> {
    let ours = is_ours(conn).await?;
    if !ours {
        refuse_legacy(conn).await?;
    }
    Ok(ours)
}

pub(crate) fn tables() -> impl Iterator<Item = &'static str> {
    let created = MIGRATIONS
        .iter()
        .flat_map(|(_, text)| text.lines())
        .filter_map(|line| line.strip_prefix("CREATE TABLE "));
    created.filter_map(|rest| rest.strip_prefix("IF NOT EXISTS ").unwrap_or(rest).split_whitespace().next())
}

/// The names of this version's migrations, in order.
pub(crate) fn names() -> Vec<&'static str> {
    MIGRATIONS.iter().map(|(name, _)| *name).collect()
}

/// The migrations of a store beside those of this version.
pub(crate) struct Comparison {
    /// The number and the name of the last one of the store.
    pub(crate) last: (usize, String),
    pub(crate) pending: Vec<&'static str>,
    pub(crate) unknown: Vec<String>,
    /// Applied in another form than this version's.
    pub(crate) changed: Vec<String>,
}

pub(crate) async fn compare(conn: &mut Conn) -> Result<Comparison> {
    let postgres = conn.is_postgres();
    let rows = recorded(conn).await?;
    let is_changed =
        |(row, ours): &(&(String, String), &(&str, &str))| checksum(&rendered(ours.1, postgres)) != row.1;
    Ok(Comparison {
        last: (rows.len(), rows.last().map(|(name, _)| name.clone()).unwrap_or_default()),
        pending: names().into_iter().skip(rows.len()).collect(),
        unknown: rows.iter().skip(MIGRATIONS.len()).map(|(name, _)| name.clone()).collect(),
        changed: rows.iter().zip(MIGRATIONS).filter(is_changed).map(|(row, _)| row.0.clone()).collect(),
    })
}

async fn recorded(conn: &mut Conn) -> Result<Vec<(String, String)>> {
    conn.fetch_all("SELECT name, checksum FROM embody_migrations ORDER BY version", Vec::new()).await
}

/// Number of applied migrations; all of them must be ours.
async fn applied(conn: &mut Conn) -> Result<usize> {
    if !is_ours(conn).await? {
        refuse_legacy(conn).await?;
        return Ok(0);
    }
    let rows = recorded(conn).await?;
    for (index, (name, sum)) in rows.iter().enumerate() {
        match MIGRATIONS.get(index) {
            None => {
                return Err(Error::new(
                    ErrorKind::Schema,
                    format!("the database has the migration `{name}`, which this version does not know"),
                )
                .hint("use the version of embody that wrote it, or a newer one"));
            }
            Some((_, text)) if checksum(&rendered(text, conn.is_postgres())) != *sum => {
                return Err(Error::new(
                    ErrorKind::Schema,
                    format!("the migration `{name}` was applied in a form that differs from this version's"),
                )
                .hint("use the version of embody that wrote the database"));
            }
            Some(_) => {}
        }
    }
    Ok(rows.len())
}

/// Tables of the old shape, each with a column that only the old one has, and one that only ours has.
pub(crate) const LEGACY: [(&str, &str, &str); 3] = [
    ("agent_configurations", "system_prompt", "changed_at"),
    ("user_agent_prompt_customizations", "content", "changed_at"),
    ("agent_long_term_memory", "notes", "seq"),
];

/// A database in the old shape, or halfway between it and ours, must not be used.
async fn refuse_legacy(conn: &mut Conn) -> Result<()> {
    for (table, old, ours) in LEGACY {
        let columns: Vec<(String,)> = conn.fetch_all(dialect!(COLUMNS), args![table]).await?;
        let has = |column: &str| columns.iter().any(|(name,)| name == column);
        let wrong = match columns.is_empty() {
            true => continue,
            false if has(old) => format!("`{table}.{old}` still exists"),
            false if has(ours) => continue,
            false => format!("`{table}.{ours}` is missing"),
        };
        return Err(Error::new(ErrorKind::Schema, format!("the database has the old shape: {wrong}"))
            .hint("upgrade it with `embody store migrate-legacy URL`"));
    }
    Ok(())
}

/// Tables of others must not have the names of ours, nor these. Those of the old shape are not meant.
pub(crate) async fn refuse_foreign_tables(conn: &mut Conn, more: impl Iterator<Item = String>) -> Result<()> {
    let ours = tables().filter(|name| LEGACY.iter().all(|(old, ..)| old != name)).map(str::to_owned);
    let mut taken = Vec::new();
    for name in ours.chain(more) {
        let columns: Vec<(String,)> = conn.fetch_all(dialect!(COLUMNS), args![&name]).await?;
        if !columns.is_empty() {
            taken.push(format!("`{name}`"));
        }
    }
    if taken.is_empty() {
        return Ok(());
    }
    let taken = taken.join(", ");
    let message =
        format!("the database has tables of another program under names that embody needs: {taken}");
    Err(Error::new(ErrorKind::Conflict, message)
        .hint("rename them, or copy the old tables into a database of their own and upgrade that"))
}

fn rendered(text: &str, postgres: bool) -> String {
    let words: [(&str, &str, &str); 6] = [
        ("{text}", "TEXT", "TEXT COLLATE \"C\""),
        ("{int}", "INTEGER", "BIGINT"),
        ("{bytes}", "BLOB", "BYTEA"),
        ("{json}", "TEXT", "JSONB"),
        (" {table}", " STRICT", ""),
        (" {clustered}", " STRICT, WITHOUT ROWID", ""),
    ];
    words.iter().fold(text.to_owned(), |text, (word, sqlite, pg)| {
        text.replace(word, if postgres { pg } else { sqlite })
    })
}

fn checksum(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// The text columns of all tables with a user.
#[cfg(test)]
pub(crate) fn text_columns_of_users() -> Vec<(String, String)> {
    let mut columns: Vec<(String, String)> = Vec::new();
    let mut table = String::new();
    for line in MIGRATIONS.iter().flat_map(|(_, text)| text.lines()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["CREATE", "TABLE", "IF", "NOT", "EXISTS", name, ..] | ["CREATE", "TABLE", name, ..] => {
                table = (*name).to_owned();
            }
            ["ALTER", "TABLE", name, "ADD", "COLUMN", column, kind, ..] if kind.starts_with("{text}") => {
                columns.push(((*name).to_owned(), (*column).to_owned()));
            }
            [column, kind, ..] if line.starts_with("  ") && kind.starts_with("{text}") => {
                columns.push((table.clone(), (*column).to_owned()));
            }
            _ => {}
        }
    }
    let of_users: Vec<String> =
        columns.iter().filter(|(_, column)| column == "user_id").map(|(table, _)| table.clone()).collect();
    columns.retain(|(table, _)| of_users.contains(table));
    columns
}
