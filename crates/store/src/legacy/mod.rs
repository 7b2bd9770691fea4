//! The upgrade of a database from the old shape: in place, in one transaction, after an export of every old row.
//!
//! What a text becomes is decided by pure functions (`agents`, `join`, `content`); `sqlite` and `postgres` only carry it
//! out. Refuses what it cannot understand, and then changes nothing.

mod agents;
mod alter;
mod cell;
mod content;
mod export;
mod join;
mod postgres;
mod priority;
mod rebuild;
mod report;
mod shape;
mod sqlite;

use std::path::Path;
use std::sync::Arc;

use tokio::sync::Mutex;

use self::export::Export;
use self::report::rows;
pub use self::report::{LegacyAgent, LegacyInstructions, LegacyReport, LegacyState};
use self::shape::{AGENTS, CUSTOMIZATIONS, Found, MEMORIES, MEMORIES_KEPT, Plan, Table};
use crate::db::{Begin, Conn, args, dialect, migrate};
use crate::error::{Error, ErrorKind, Result};
use crate::store::{DatabaseUrl, new_id, now};

/// Who the history says wrote the first version.
const WRITER: &str = "migrate-legacy";

/// Upgrades the database at `url` from the old shape, in one transaction, after writing every old row to the new file
/// `export`. For operators: it sees the rows of everybody.
pub async fn migrate_legacy(url: &DatabaseUrl, export: &Path) -> Result<LegacyReport> {
    run(url, Some(export)).await
}

/// Does everything that [`migrate_legacy`] does, except for the export, and takes it all back.
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
                sqlite::close(connection.into_inner()).await;
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
    let report = match within(&mut conn, export).await {
        Ok(report) => report,
        Err(error) => {
            let _ = conn.rollback().await;
            return Err(error);
        }
    };
    match report.state {
        // From here on the export stays, whatever happens: a commit that failed may have happened.
        LegacyState::Upgraded => conn.commit().await?,
        LegacyState::Planned | LegacyState::NothingToDo => conn.rollback().await?,
    }
    Ok(report)
}

/// Everything, inside a transaction that the caller ends.
async fn within(conn: &mut Conn, export: Option<&Path>) -> Result<LegacyReport> {
    if conn.is_postgres() {
        postgres::settle(conn).await?;
    }
    let Some(plan) = look(conn).await?.plan()? else {
        return Ok(LegacyReport {
            state: LegacyState::NothingToDo,
            export: None,
            agents: Vec::new(),
            instructions: Vec::new(),
            notes: Vec::new(),
        });
    };
    refuse_collisions(conn, &plan).await?;
    if !conn.is_postgres() {
        sqlite::copy(conn, &plan).await?;
    }
    if let Some(path) = export {
        write_export(conn, &plan, path).await?;
    }
    let done = change(conn, &plan).await;
    if let (Err(_), Some(path)) = (&done, export) {
        // The rows are all where they were; the file would only stand in the way of the next try.
        let _ = std::fs::remove_file(path);
    }
    let Converted { agents, instructions, notes } = done?;
    let state = if export.is_some() { LegacyState::Upgraded } else { LegacyState::Planned };
    Ok(LegacyReport { state, export: export.map(Path::to_owned), agents, instructions, notes })
}

#[derive(Default)]
struct Converted {
    agents: Vec<LegacyAgent>,
    instructions: Vec<LegacyInstructions>,
    notes: Vec<String>,
}

impl Converted {
    fn nameless(&mut self, table: &str, count: usize) {
        if count > 0 {
            self.notes.push(format!("{} of `{table}` without a name: only in the export", rows(count)));
        }
    }
}

async fn change(conn: &mut Conn, plan: &Plan) -> Result<Converted> {
    let now = now();
    let mut done = match conn.is_postgres() {
        true => postgres::convert(conn, plan, now).await?,
        false => sqlite::convert(conn, plan, now).await?,
    };
    if let Some(agents) = &plan.agents
        && agents.name != "agent_name"
    {
        done.notes
            .push(format!("`{AGENTS}` has no `agent_name`: the agents are named by their `{}`", agents.name));
    }
    if plan.memories.is_some() {
        done.notes
            .push(format!("`{MEMORIES}` is now `{MEMORIES_KEPT}`; its memories are not in the new one"));
    }
    if plan.customizations.is_some() {
        conn.execute(
            "INSERT INTO instruction_history (user_id, agent_name, version, instructions, writer, changed_at) \
             SELECT user_id, agent_name, version, instructions, $1, changed_at FROM user_agent_prompt_customizations",
            args![WRITER],
        )
        .await?;
    }
    probe(conn).await?;
    Ok(done)
}

async fn look(conn: &mut Conn) -> Result<Found> {
    Ok(Found {
        ours: migrate::is_ours(conn).await?,
        agents: table(conn, AGENTS).await?,
        customizations: table(conn, CUSTOMIZATIONS).await?,
        memories: table(conn, MEMORIES).await?,
    })
}

async fn table(conn: &mut Conn, name: &'static str) -> Result<Option<Table>> {
    match conn.is_postgres() {
        true => postgres::table(conn, name).await,
        false => sqlite::table(conn, name).await,
    }
}

/// Tables of somebody else that have the names of ours.
async fn refuse_collisions(conn: &mut Conn, plan: &Plan) -> Result<()> {
    let upgraded = [AGENTS, CUSTOMIZATIONS, MEMORIES];
    let aside = plan.memories.as_ref().map(|_| MEMORIES_KEPT);
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

async fn write_export(conn: &mut Conn, plan: &Plan, path: &Path) -> Result<()> {
    let mut export = Export::create(path, if conn.is_postgres() { "postgres" } else { "sqlite" })?;
    for table in plan.tables() {
        match conn.is_postgres() {
            true => postgres::export(conn, table, &mut export).await?,
            false => sqlite::export(conn, table, &mut export).await?,
        }
    }
    export.finish()
}

/// Writes what the store writes, and takes it back: what is left of the old tables must not stand in its way.
async fn probe(conn: &mut Conn) -> Result<()> {
    conn.execute("SAVEPOINT probe", Vec::new()).await?;
    let agents = conn
        .execute(
            "INSERT INTO agent_configurations (agent_name, soul, identity, version, changed_at) \
             VALUES ($1, '', NULL, 1, 0) ON CONFLICT (agent_name) DO UPDATE SET soul = ''",
            args![new_id()],
        )
        .await;
    agents.map_err(|error| in_the_way(AGENTS, error))?;
    // Of an agent that nobody has set up, which is legal.
    let instructions = conn
        .execute(
            "INSERT INTO user_agent_prompt_customizations (user_id, agent_name, instructions, version, changed_at) \
             VALUES ($1, $2, '', 1, 0) ON CONFLICT (user_id, agent_name) DO UPDATE SET instructions = ''",
            args![new_id(), new_id()],
        )
        .await;
    instructions.map_err(|error| in_the_way(CUSTOMIZATIONS, error))?;
    if conn.is_postgres() {
        let deferred = conn.execute("SET CONSTRAINTS ALL IMMEDIATE", Vec::new()).await;
        deferred.map_err(|error| in_the_way(CUSTOMIZATIONS, error))?;
    }
    conn.execute("ROLLBACK TO SAVEPOINT probe", Vec::new()).await?;
    conn.execute("RELEASE SAVEPOINT probe", Vec::new()).await?;
    Ok(())
}

fn in_the_way(table: &str, error: Error) -> Error {
    Error::new(error.kind(), format!("`{table}` would refuse what embody writes; nothing was changed"))
        .because(error)
        .hint("drop the constraint, trigger or policy that the reason names, and run it again")
}
