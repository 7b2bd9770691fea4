//! The old tables of a database: their columns and rows, and which of their columns become ours.

use serde::Serialize;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{FromRow, Row, TypeInfo, ValueRef};

use super::cell::Cell;
use crate::db::{Conn, args, dialect, flag, from_row, migrate};
use crate::error::{Error, ErrorKind, Result};

pub(super) const AGENTS: &str = "agent_configurations";
pub(super) const CUSTOMIZATIONS: &str = "user_agent_prompt_customizations";
pub(super) const MEMORIES: &str = "agent_long_term_memory";

#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) columns: Vec<Column>,
    /// SQL of what belongs to it: keys, indexes, triggers.
    pub(super) schema: Vec<(String,)>,
    /// The columns with an agent's name, soul and identity, or a user, an agent and a text.
    pub(super) sources: [&'static str; 3],
    /// Oldest first.
    pub(super) rows: Vec<Vec<Cell>>,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct Column {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) not_null: bool,
    pub(super) default: Option<String>,
}

from_row! { Column { name, kind, not_null: flag, default } }

/// The tables to upgrade, without their rows; none in a current database. On PostgreSQL they are locked.
pub(super) async fn find(conn: &mut Conn) -> Result<Vec<Table>> {
    let ours = migrate::is_ours(conn).await?;
    let mut found = Vec::new();
    for name in [AGENTS, CUSTOMIZATIONS, MEMORIES] {
        let kind: Option<(String,)> = conn.fetch_optional(dialect!(LEGACY_KIND), args![name]).await?;
        let Some((kind,)) = kind else { continue };
        if kind != "table" {
            return Err(Error::new(ErrorKind::Schema, format!("`{name}` is a {kind}, not a table")));
        }
        if conn.is_postgres() {
            conn.script(format!("LOCK TABLE {name} IN ACCESS EXCLUSIVE MODE")).await?;
        }
        let columns = conn.fetch_all(dialect!(LEGACY_COLUMNS), args![name]).await?;
        let schema: Vec<(String,)> = conn.fetch_all(dialect!(LEGACY_SCHEMA), args![name]).await?;
        found.push(Table { name, columns, schema, ..Table::default() });
    }
    plan(found, ours)
}

fn plan(found: Vec<Table>, ours: bool) -> Result<Vec<Table>> {
    if found.is_empty() && !ours {
        let message = format!(
            "the database has neither `{AGENTS}` nor `{CUSTOMIZATIONS}`: there is nothing to upgrade"
        );
        return Err(
            Error::new(ErrorKind::Schema, message).hint("check that the URL names the right database")
        );
    }
    let mut old = Vec::new();
    for mut table in found {
        let is_current =
            |(name, old, new): &(&str, &str, &str)| *name == table.name && !table.has(old) && table.has(new);
        if migrate::LEGACY.iter().any(is_current) {
            continue;
        }
        if ours {
            let message = format!(
                "the database has embody's own tables already, and `{}` in another shape beside them",
                table.name
            );
            return Err(Error::new(ErrorKind::Schema, message)
                .hint("move that table aside, or restore the database from a backup"));
        }
        table.sources = table.sources()?;
        old.push(table);
    }
    Ok(old)
}

impl Table {
    fn sources(&self) -> Result<[&'static str; 3]> {
        Ok(match self.name {
            AGENTS => {
                let name = ["agent_name", "name"].into_iter().find(|column| self.has(column)).unwrap_or("id");
                [self.one_of(&[name])?, self.one_of(&["system_prompt", "soul"])?, "identity"]
            }
            CUSTOMIZATIONS => [
                self.one_of(&["user_id"])?,
                self.one_of(&["agent_name"])?,
                self.one_of(&["content", "instructions"])?,
            ],
            _ => [""; 3],
        })
    }

    /// The one of these columns that the table has.
    fn one_of(&self, columns: &[&'static str]) -> Result<&'static str> {
        let found: Vec<&str> = columns.iter().copied().filter(|column| self.has(column)).collect();
        let (word, and) = match found[..] {
            [one] => return Ok(one),
            [] if columns.len() == 1 => ("no column", ""),
            [] => ("neither", "nor"),
            _ => ("both", "and"),
        };
        let list = columns.join(&format!("` {and} `"));
        Err(Error::new(ErrorKind::Schema, format!("`{}` has {word} `{list}`", self.name))
            .hint("the upgrade needs exactly one: change the table, and run it again"))
    }

    pub(super) fn has(&self, column: &str) -> bool {
        self.columns.iter().any(|found| found.name == column)
    }

    /// The value of a column; one that is not there is NULL.
    pub(super) fn cell<'r>(&self, row: &'r [Cell], column: &str) -> &'r Cell {
        let at = self.columns.iter().position(|found| found.name == column);
        at.and_then(|at| row.get(at)).unwrap_or(&Cell::Null)
    }

    /// Reads every row, oldest first.
    pub(super) async fn read(&mut self, conn: &mut Conn) -> Result<()> {
        let name = self.name;
        // Qualified: PostgreSQL would take the bare name for the text that is selected.
        let ages = ["created_at", "id"].into_iter().filter(|column| self.has(column));
        let order: String = ages.map(|column| format!("{name}.{column} NULLS LAST, ")).collect();
        let (cast, from, number) = match conn.is_postgres() {
            true => ("::text", name.to_owned(), "ctid"),
            false => {
                let numbered =
                    format!("SELECT *, row_number() OVER () AS embody_row FROM main.{name} NOT INDEXED");
                ("", format!("({numbered}) AS {name}"), "embody_row")
            }
        };
        let quoted = |column: &Column| format!("\"{}\"{cast}", column.name.replace('"', "\"\""));
        let columns = self.columns.iter().map(quoted).collect::<Vec<_>>().join(", ");
        let text = format!("SELECT {columns} FROM {from} ORDER BY {order}{name}.{number}");
        self.rows = conn.fetch_all(text, Vec::new()).await?.into_iter().map(|Cells(row)| row).collect();
        Ok(())
    }
}

struct Cells(Vec<Cell>);

impl FromRow<'_, PgRow> for Cells {
    fn from_row(row: &PgRow) -> sqlx::Result<Self> {
        let cell = |at| Ok(row.try_get::<Option<String>, _>(at)?.map_or(Cell::Null, Cell::Text));
        (0..row.len()).map(cell).collect::<sqlx::Result<_>>().map(Self)
    }
}

impl FromRow<'_, SqliteRow> for Cells {
    fn from_row(row: &SqliteRow) -> sqlx::Result<Self> {
        (0..row.len()).map(|at| sqlite_cell(row, at)).collect::<sqlx::Result<_>>().map(Self)
    }
}

/// A value as SQLite stores it, whatever type its column was declared with.
fn sqlite_cell(row: &SqliteRow, at: usize) -> sqlx::Result<Cell> {
    let value = row.try_get_raw(at)?;
    if value.is_null() {
        return Ok(Cell::Null);
    }
    let kind = value.type_info().name().to_owned();
    drop(value);
    Ok(match kind.as_str() {
        "INTEGER" => Cell::Int(row.try_get_unchecked(at)?),
        "REAL" => Cell::Real(row.try_get_unchecked(at)?),
        "TEXT" => match row.try_get_unchecked(at) {
            Ok(text) => Cell::Text(text),
            Err(_) => Cell::BadText(row.try_get_unchecked(at)?),
        },
        _ => Cell::Blob(row.try_get_unchecked(at)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGENT_COLUMNS: [&str; 5] = ["agent_name", "soul", "identity", "version", "changed_at"];

    fn table(name: &'static str, columns: &[&str]) -> Table {
        let column = |name: &&str| Column { name: (*name).to_owned(), ..Column::default() };
        Table { name, columns: columns.iter().map(column).collect(), ..Table::default() }
    }

    fn refusal(found: Vec<Table>, ours: bool) -> String {
        plan(found, ours).unwrap_err().to_string()
    }

    #[test]
    fn plans_for_the_old_shape() {
        let found = vec![
            table(AGENTS, &["id", "agent_name", "system_prompt", "llm_config", "version"]),
            table(CUSTOMIZATIONS, &["user_id", "agent_name", "content", "priority", "id"]),
            table(MEMORIES, &["notes"]),
        ];
        let tables = plan(found, false).unwrap();
        assert_eq!(tables[0].sources, ["agent_name", "system_prompt", "identity"]);
        assert_eq!(tables[1].sources, ["user_id", "agent_name", "content"]);
        assert_eq!(tables[2].name, MEMORIES);
    }

    #[test]
    fn names_come_from_the_best_column() {
        let name = |columns: &[&str]| plan(vec![table(AGENTS, columns)], false).unwrap()[0].sources[0];
        assert_eq!(name(&["id", "name", "agent_name", "system_prompt"]), "agent_name");
        assert_eq!(name(&["id", "name", "system_prompt"]), "name");
        assert_eq!(name(&["id", "soul"]), "id");
    }

    #[test]
    fn a_current_database_needs_no_upgrade() {
        let customizations = ["user_id", "agent_name", "instructions", "version", "changed_at"];
        let ours = |agents: &[&str]| {
            let customizations = table(CUSTOMIZATIONS, &customizations);
            vec![table(AGENTS, agents), customizations, table(MEMORIES, &["seq"])]
        };
        assert!(plan(ours(&AGENT_COLUMNS), true).unwrap().is_empty());
        assert!(plan(Vec::new(), true).unwrap().is_empty());
        assert!(refusal(ours(&["id", "system_prompt"]), true).contains("beside"));
    }

    #[test]
    fn unknown_shapes_are_refused() {
        assert!(refusal(Vec::new(), false).contains("nothing to upgrade"));
        let agents = |columns: &[&str]| refusal(vec![table(AGENTS, columns)], false);
        assert!(agents(&["id", "x"]).contains("neither `system_prompt` nor `soul`"));
        assert!(agents(&["id", "system_prompt", "soul"]).contains("both `system_prompt` and `soul`"));
        assert!(agents(&["system_prompt"]).contains("no column `id`"));
        let customizations = table(CUSTOMIZATIONS, &["user_id", "content"]);
        assert!(refusal(vec![customizations], false).contains("no column `agent_name`"));
    }
}
