//! The upgrade of a database from the old shape: in place, in one transaction, after an export of every old row.
//!
//! `convert` decides what the rows become, without IO; `sqlite` and `postgres` change the tables. Rejects what it cannot
//! understand, and then changes nothing.

mod cell;
mod convert;
mod export;
mod postgres;
mod report;
mod sqlite;
mod table;

use std::path::Path;
use std::sync::Arc;

use sqlx::Connection;
use tokio::sync::Mutex;

use self::report::rows;
pub use self::report::{LegacyAgent, LegacyInstructions, LegacyReport, LegacyState};
use self::table::{AGENTS, CUSTOMIZATIONS, MEMORIES, MEMORIES_KEPT, Table};
use crate::db::{Begin, Conn, args, dialect, migrate};
use crate::error::{Error, ErrorKind, Result};
use crate::store::{DatabaseUrl, new_id, now};

/// The writer of the first version in the history.
const WRITER: &str = "migrate-legacy";

/// Upgrades the database at `url` from the old shape, in one transaction, after writing every old row to the new file
/// `export`. For operators: it reads the rows of all users.
pub async fn migrate_legacy(url: &DatabaseUrl, export: &Path) -> Result<LegacyReport> {
    run(url, Some(export)).await
}

/// Does everything that [`migrate_legacy`] does, except for the export, and rolls it back.
pub async fn preview_legacy(url: &DatabaseUrl) -> Result<LegacyReport> {
    run(url, None).await
}

async fn run(url: &DatabaseUrl, export: Option<&Path>) -> Result<LegacyReport> {
    match url {
        DatabaseUrl::Memory => Err(Error::invalid("a store in memory has no old shape to upgrade")),
        DatabaseUrl::File(path) => {
            let shared = Arc::new(Mutex::new(sqlite::open(path).await?));
            let done = upgrade(&Begin::Sqlite(Arc::clone(&shared)), export).await;
            if let Some(connection) = Arc::into_inner(shared) {
                // A commit is durable, however the connection ends.
                let _ = connection.into_inner().close().await;
            }
            done
        }
        DatabaseUrl::Postgres { url, .. } => {
            let pg = crate::db::postgres::open(url)?;
            let done = upgrade(&Begin::Pg(pg.clone()), export).await;
            pg.close().await;
            done
        }
    }
}

async fn upgrade(begin: &Begin, export: Option<&Path>) -> Result<LegacyReport> {
    let mut conn = begin.begin().await?.conn;
    let done = in_transaction(&mut conn, export).await;
    match &done {
        // From here on the export stays, even if this fails: a commit that failed may have happened.
        Ok(report) if report.state == LegacyState::Upgraded => conn.commit().await?,
        Ok(_) => conn.rollback().await?,
        Err(_) => drop(conn.rollback().await),
    }
    done
}

async fn in_transaction(conn: &mut Conn, export: Option<&Path>) -> Result<LegacyReport> {
    if conn.is_postgres() {
        postgres::prepare(conn).await?;
    }
    let mut report = LegacyReport::default();
    let mut tables = table::find(conn).await?;
    if tables.is_empty() {
        return Ok(report);
    }
    refuse_collisions(conn, &tables).await?;
    for table in &mut tables {
        table.read(conn).await?;
    }
    report.state = LegacyState::Planned;
    if let Some(path) = export {
        export::write(path, if conn.is_postgres() { "postgres" } else { "sqlite" }, &tables)?;
        report.export = Some(path.to_owned());
        report.state = LegacyState::Upgraded;
    }
    let changed = change(conn, &tables, &mut report).await;
    if let (Err(_), Some(path)) = (&changed, export) {
        // The rows are all where they were; the file would only block the next try.
        let _ = std::fs::remove_file(path);
    }
    changed.map(|()| report)
}

async fn change(conn: &mut Conn, tables: &[Table], report: &mut LegacyReport) -> Result<()> {
    let mut changes = Vec::new();
    let mut notes = Vec::new();
    for table in tables {
        let (new, joined) = match table.name {
            AGENTS => {
                let (new, agents) = convert::agents(table)?;
                report.agents = agents;
                let name = table.ours.iter().find_map(|(name, from)| from.filter(|_| *name == "agent_name"));
                if let Some(name) = name.filter(|name| *name != "agent_name") {
                    notes.push(format!(
                        "`{AGENTS}` has no `agent_name`: the agents are named by their `{name}`"
                    ));
                }
                (new, report.agents.len())
            }
            CUSTOMIZATIONS => {
                let (new, instructions) = convert::instructions(table);
                report.instructions = instructions;
                (new, report.instructions.iter().map(|one| one.rows).sum())
            }
            _ => {
                notes.push(format!(
                    "`{MEMORIES}` is now `{MEMORIES_KEPT}`; its memories are not in the new one"
                ));
                (Vec::new(), table.rows.len())
            }
        };
        let nameless = table.rows.len() - joined;
        if nameless > 0 {
            let note = format!("{} of `{}` without a name: only in the export", rows(nameless), table.name);
            report.notes.push(note);
        }
        changes.push((table, new));
    }
    report.notes.extend(match conn.is_postgres() {
        true => postgres::change(conn, &changes, now()).await?,
        false => sqlite::change(conn, &changes, now()).await?,
    });
    report.notes.extend(notes);
    if tables.iter().any(|table| table.name == CUSTOMIZATIONS) {
        conn.execute(
            "INSERT INTO instruction_history (user_id, agent_name, version, instructions, writer, changed_at) \
             SELECT user_id, agent_name, version, instructions, $1, changed_at FROM user_agent_prompt_customizations",
            args![WRITER],
        )
        .await?;
    }
    probe(conn).await
}

/// Foreign tables with the names of ours.
async fn refuse_collisions(conn: &mut Conn, tables: &[Table]) -> Result<()> {
    let upgraded = [AGENTS, CUSTOMIZATIONS, MEMORIES];
    let aside = tables.iter().any(|table| table.name == MEMORIES).then_some(MEMORIES_KEPT);
    let names = migrate::tables().filter(|name| !upgraded.contains(name)).chain(aside);
    let mut taken = Vec::new();
    for name in names {
        let columns: Vec<(String,)> = conn.fetch_all(dialect!(COLUMNS), args![name]).await?;
        if !columns.is_empty() {
            taken.push(format!("`{name}`"));
        }
    }
    if taken.is_empty() {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Conflict,
        format!(
            "the database has tables of somebody else under names that embody needs: {}",
            taken.join(", ")
        ),
    )
    .hint("rename them, or copy the old tables into a database of their own and upgrade that"))
}

/// Writes what the store writes, and rolls it back: the remains of the old tables must not block it.
async fn probe(conn: &mut Conn) -> Result<()> {
    conn.execute("SAVEPOINT probe", Vec::new()).await?;
    conn.execute(
        "INSERT INTO agent_configurations (agent_name, soul, identity, version, changed_at) \
         VALUES ($1, '', NULL, 1, 0) ON CONFLICT (agent_name) DO UPDATE SET soul = ''",
        args![new_id()],
    )
    .await
    .map_err(|error| in_the_way(AGENTS, error))?;
    // Of an unknown agent, which is legal.
    conn.execute(
        "INSERT INTO user_agent_prompt_customizations (user_id, agent_name, instructions, version, changed_at) \
         VALUES ($1, $2, '', 1, 0) ON CONFLICT (user_id, agent_name) DO UPDATE SET instructions = ''",
        args![new_id(), new_id()],
    )
    .await
    .map_err(|error| in_the_way(CUSTOMIZATIONS, error))?;
    if conn.is_postgres() {
        let deferred = conn.execute("SET CONSTRAINTS ALL IMMEDIATE", Vec::new()).await;
        deferred.map_err(|error| in_the_way(CUSTOMIZATIONS, error))?;
    }
    conn.execute("ROLLBACK TO SAVEPOINT probe", Vec::new()).await?;
    conn.execute("RELEASE SAVEPOINT probe", Vec::new()).await.map(drop)
}

fn in_the_way(table: &str, error: Error) -> Error {
    Error::new(error.kind(), format!("`{table}` would refuse what embody writes; nothing was changed"))
        .because(error)
        .hint("drop the constraint, trigger or policy that the reason names, and run it again")
}

/// A reading connection, or one of the other database.
fn wrong_connection() -> Error {
    Error::new(ErrorKind::Other, "this is not the connection that writes")
}
