//! The upgrade of a database from the old shape, in one transaction: read the old tables, export every row, move the
//! tables legacy_name under another name, create ours, and insert what the rows become.
//!
//! `convert` decides what that is, without IO. Rejects what it cannot understand, and then changes nothing.

mod cell;
mod convert;
mod export;
mod table;

use std::path::{Path, PathBuf};

use serde::Serialize;

use self::table::{AGENTS, CUSTOMIZATIONS, MEMORIES, Table};
use crate::db::{Begin, Conn, args, migrate, postgres, sqlite};
use crate::error::{Error, Result};
use crate::store::{DatabaseUrl, now};

/// What an upgrade did, or would do. Names and sizes only, no texts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LegacyReport {
    pub state: LegacyState,
    /// The file with every old row.
    pub export: Option<PathBuf>,
    pub agents: Vec<LegacyAgent>,
    pub instructions: Vec<LegacyInstructions>,
    pub notes: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LegacyState {
    /// Already in the current shape; nothing was touched.
    #[default]
    NothingToDo,
    /// Possible; nothing was touched.
    Planned,
    Upgraded,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LegacyAgent {
    pub agent: String,
    pub characters: usize,
    pub notes: Vec<String>,
}

/// The instructions of one user and agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LegacyInstructions {
    pub user: String,
    pub agent: String,
    pub rows: usize,
    /// Number of rows with a part in the text.
    pub joined: usize,
    pub characters: usize,
    pub notes: Vec<String>,
}

fn rows(count: usize) -> String {
    if count == 1 { "1 row".to_owned() } else { format!("{count} rows") }
}

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
    let begin = match url {
        DatabaseUrl::Memory => return Err(Error::invalid("a store in memory has no old shape to upgrade")),
        DatabaseUrl::File(path) => Begin::sqlite(sqlite::open_existing(path).await?),
        DatabaseUrl::Postgres { url, .. } => Begin::Pg(postgres::open(url)?),
    };
    let mut conn = begin.begin().await?.conn;
    let done = in_transaction(&mut conn, export).await;
    let ended = match &done {
        // From here on the export stays, even if this fails: a commit that failed may have happened.
        Ok(report) if report.state == LegacyState::Upgraded => conn.commit().await,
        _ => conn.rollback().await,
    };
    begin.close().await;
    done.and_then(|report| ended.map(|()| report))
}

async fn in_transaction(conn: &mut Conn, export: Option<&Path>) -> Result<LegacyReport> {
    if conn.is_postgres() {
        conn.script(postgres::sql::LEGACY_SETTINGS.to_owned()).await?;
        migrate::take_turn(conn).await?;
    }
    let mut report = LegacyReport::default();
    let mut tables = table::find(conn).await?;
    if tables.is_empty() {
        return Ok(report);
    }
    migrate::refuse_foreign_tables(conn, tables.iter().map(|table| legacy_name(table.name))).await?;
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

fn legacy_name(table: &str) -> String {
    format!("{table}_legacy")
}

async fn change(conn: &mut Conn, tables: &[Table], report: &mut LegacyReport) -> Result<()> {
    let (mut agents, mut instructions) = (Vec::new(), Vec::new());
    for table in tables {
        let (name, legacy_name) = (table.name, legacy_name(table.name));
        let converted = match name {
            AGENTS => {
                agents = convert::agents(table)?;
                agents.len()
            }
            CUSTOMIZATIONS => {
                instructions = convert::instructions(table);
                instructions.iter().map(|(report, _)| report.rows).sum()
            }
            _ => table.rows.len(),
        };
        let nameless = table.rows.len() - converted;
        if nameless > 0 {
            report.notes.push(format!("{} of `{name}` without a name: only in the export", rows(nameless)));
        }
        if let (AGENTS, [column @ ("name" | "id"), ..]) = (name, table.sources) {
            let note = format!("`{name}` has no `agent_name`: the agents are named by their `{column}`");
            report.notes.push(note);
        }
        // Views, foreign keys, triggers and policies follow the old table.
        let renamed = conn.script(format!("ALTER TABLE {name} RENAME TO {legacy_name}")).await;
        renamed.map_err(|error| error.about(format!("`{name}` cannot be renamed; nothing was changed")))?;
        report.notes.push(match name {
            MEMORIES => format!("`{name}` is now `{legacy_name}`; its memories are not in the new one"),
            _ => format!("`{name}` is now `{legacy_name}`, with all its columns"),
        });
    }
    migrate::apply(conn).await?;
    let now = now();
    for (agent, soul, identity) in agents {
        let sql = "INSERT INTO agent_configurations (agent_name, soul, identity, version, changed_at) \
             VALUES ($1, $2, $3, 1, $4)";
        conn.execute(sql, args![&agent.agent, soul, identity, now]).await?;
        report.agents.push(agent);
    }
    for (one, text) in instructions {
        let sql = "INSERT INTO user_agent_prompt_customizations (user_id, agent_name, instructions, version, changed_at) \
             VALUES ($1, $2, $3, 1, $4)";
        conn.execute(sql, args![&one.user, &one.agent, &text, now]).await?;
        let sql = "INSERT INTO instruction_history (user_id, agent_name, version, instructions, writer, changed_at) \
             VALUES ($1, $2, 1, $3, 'migrate-legacy', $4)";
        conn.execute(sql, args![&one.user, &one.agent, text, now]).await?;
        report.instructions.push(one);
    }
    Ok(())
}
