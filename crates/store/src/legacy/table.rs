//! The old tables of a database: their columns, their rows, and which columns of ours come from which of theirs.

use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, Row, TypeInfo, ValueRef};

use super::cell::Cell;
use super::convert::NewRow;
use super::{postgres, wrong_connection};
use crate::db::{Backend, Conn, Sql, args, flag, from_row, migrate};
use crate::error::{Error, ErrorKind, Result};

pub(super) const AGENTS: &str = "agent_configurations";
pub(super) const CUSTOMIZATIONS: &str = "user_agent_prompt_customizations";
pub(super) const MEMORIES: &str = "agent_long_term_memory";
pub(super) const MEMORIES_KEPT: &str = "agent_long_term_memory_legacy";

#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) columns: Vec<Column>,
    /// Columns of ours, each with the old one that it comes from. None for memories: they are only moved aside.
    pub(super) ours: Vec<(&'static str, Option<&'static str>)>,
    /// SQL of what belongs to it: keys, indexes, triggers.
    pub(super) schema: Vec<String>,
    /// Oldest first. The value after the last column numbers the row.
    pub(super) rows: Vec<Vec<Cell>>,
}

#[derive(Debug, Default)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) not_null: bool,
    pub(super) default: Option<String>,
    /// Generated or identity column.
    pub(super) automatic: bool,
    pub(super) primary: bool,
}

from_row! { Column { name, kind, not_null: flag, default, automatic: flag, primary: flag } }

const KIND: Sql = Sql {
    sqlite: "SELECT type FROM pragma_table_list WHERE schema = 'main' AND name = $1",
    pg: "SELECT CASE relkind WHEN 'r' THEN 'table' WHEN 'p' THEN 'partitioned table' WHEN 'f' THEN 'foreign table' \
           ELSE 'view' END FROM pg_class WHERE relnamespace = current_schema()::regnamespace \
           AND relname = $1 AND relkind IN ('r', 'p', 'v', 'm', 'f')",
};
const COLUMNS: Sql = Sql {
    sqlite: "SELECT name, type, \"notnull\", dflt_value, hidden, pk FROM pragma_table_xinfo($1) WHERE hidden <> 1",
    pg: "SELECT a.attname::text, format_type(a.atttypid, a.atttypmod), a.attnotnull::int::bigint, \
           pg_get_expr(d.adbin, d.adrelid), (a.attidentity <> '' OR a.attgenerated <> '')::int::bigint, \
           (SELECT COUNT(*) FROM pg_index i WHERE i.indrelid = a.attrelid AND i.indisprimary AND a.attnum = ANY (i.indkey)) \
         FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum \
         WHERE a.attrelid = $1::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
};
const SCHEMA: Sql = Sql {
    sqlite: "SELECT sql FROM main.sqlite_schema WHERE tbl_name = $1 AND sql IS NOT NULL ORDER BY rowid",
    pg: "SELECT 'CONSTRAINT ' || quote_ident(conname) || ' ' || pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = $1::regclass \
         UNION ALL SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = $1::regclass \
         UNION ALL SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = $1::regclass AND NOT tgisinternal ORDER BY 1",
};

/// The tables to upgrade, without their rows; none in a database of ours. On PostgreSQL they are locked.
pub(super) async fn find(conn: &mut Conn) -> Result<Vec<Table>> {
    let ours = migrate::is_ours(conn).await?;
    let mut found = Vec::new();
    for name in [AGENTS, CUSTOMIZATIONS, MEMORIES] {
        let kind: Option<(String,)> = conn.fetch_optional(KIND, args![name]).await?;
        let Some((kind,)) = kind else { continue };
        if kind != "table" {
            return Err(Error::new(ErrorKind::Schema, format!("`{name}` is a {kind}, not a table")));
        }
        if conn.is_postgres() {
            postgres::ddl(conn, name, format!("LOCK TABLE {name} IN ACCESS EXCLUSIVE MODE")).await?;
        }
        let columns = conn.fetch_all(COLUMNS, args![name]).await?;
        let schema: Vec<(String,)> = conn.fetch_all(SCHEMA, args![name]).await?;
        let schema = schema.into_iter().map(|(sql,)| sql).collect();
        found.push(Table { name, columns, schema, ..Table::default() });
    }
    plan(found, ours)
}

fn plan(found: Vec<Table>, ours: bool) -> Result<Vec<Table>> {
    if found.is_empty() && !ours {
        return Err(Error::new(
            ErrorKind::Schema,
            format!(
                "the database has neither `{AGENTS}` nor `{CUSTOMIZATIONS}`: there is nothing to upgrade"
            ),
        )
        .hint("check that the address names the right database"));
    }
    let mut old = Vec::new();
    for mut table in found {
        let is_current = match table.name {
            AGENTS => table.has_all(&["agent_name", "soul", "identity", "version", "changed_at"]),
            CUSTOMIZATIONS => {
                table.has_all(&["user_id", "agent_name", "instructions", "version", "changed_at"])
            }
            _ => ours,
        };
        if !is_current {
            table.ours = table.sources()?;
            old.push(table);
        }
    }
    match old.first() {
        Some(Table { name, .. }) if ours => Err(Error::new(
            ErrorKind::Schema,
            format!(
                "the database has embody's own tables already, and `{name}` in another shape beside them"
            ),
        )
        .hint("move that table aside, or restore the database from a backup")),
        _ => Ok(old),
    }
}

impl Table {
    fn sources(&self) -> Result<Vec<(&'static str, Option<&'static str>)>> {
        let missing = |what: String| Error::new(ErrorKind::Schema, what);
        match self.name {
            AGENTS => {
                let soul = self.either("system_prompt", "soul", "text of an agent in it")?;
                let name = ["agent_name", "name", "id"].into_iter().find(|column| self.has(column));
                let name = name.ok_or_else(|| {
                    missing(format!(
                        "`{AGENTS}` has no column `agent_name`, `name` or `id`: its agents have no names"
                    ))
                })?;
                let identity = self.has("identity").then_some("identity");
                Ok(vec![("agent_name", Some(name)), ("soul", Some(soul)), ("identity", identity)])
            }
            CUSTOMIZATIONS => {
                if let Some(column) = ["user_id", "agent_name"].into_iter().find(|column| !self.has(column)) {
                    return Err(missing(format!("`{CUSTOMIZATIONS}` has no column `{column}`")));
                }
                let text = self.either("content", "instructions", "text of a user in it")?;
                Ok(vec![
                    ("user_id", Some("user_id")),
                    ("agent_name", Some("agent_name")),
                    ("instructions", Some(text)),
                ])
            }
            _ => Ok(Vec::new()),
        }
    }

    fn either(&self, old: &'static str, new: &'static str, what: &str) -> Result<&'static str> {
        let table = self.name;
        match (self.has(old), self.has(new)) {
            (true, true) => Err(Error::new(
                ErrorKind::Schema,
                format!("`{table}` has both `{old}` and `{new}`: somebody began to upgrade it"),
            )
            .hint("drop the column that is not to be kept, and run it again")),
            (true, false) => Ok(old),
            (false, true) => Ok(new),
            (false, false) => Err(Error::new(
                ErrorKind::Schema,
                format!("`{table}` has neither `{old}` nor `{new}`: there is no {what}"),
            )),
        }
    }

    pub(super) fn has(&self, column: &str) -> bool {
        self.columns.iter().any(|found| found.name == column)
    }

    fn has_all(&self, columns: &[&str]) -> bool {
        columns.iter().all(|column| self.has(column))
    }

    /// The value of a column; one that is not there is NULL.
    pub(super) fn cell<'r>(&self, row: &'r [Cell], column: &str) -> &'r Cell {
        let at = self.columns.iter().position(|found| found.name == column);
        at.and_then(|at| row.get(at)).unwrap_or(&Cell::Null)
    }

    /// The values that the columns of ours come from.
    pub(super) fn our_cells<'r>(&self, row: &'r [Cell]) -> [&'r Cell; 3] {
        let source = |at: usize| self.ours.get(at).and_then(|(_, from)| *from);
        [0, 1, 2].map(|at| source(at).map_or(&Cell::Null, |column| self.cell(row, column)))
    }

    /// The old row that lends its other columns to a new one.
    pub(super) fn old_cells(&self, row: &NewRow) -> &[Cell] {
        self.rows.get(row.old).map(Vec::as_slice).unwrap_or_default()
    }

    /// Columns that go.
    pub(super) fn dropped(&self) -> Vec<&'static str> {
        let old = ["content", "customization_type", "priority"];
        old.into_iter().filter(|column| self.name == CUSTOMIZATIONS && self.has(column)).collect()
    }

    /// Columns that stay as they are, each with its new name. An id that lends its value to the name is one of them.
    pub(super) fn others(&self) -> Vec<(&Column, String)> {
        let used = |name: &str| {
            self.dropped().contains(&name)
                || self.ours.iter().any(|(_, from)| *from == Some(name) && name != "id")
        };
        let stays = self.columns.iter().filter(|column| !used(&column.name));
        stays
            .map(|column| match column.name.as_str() {
                // Names that we need for ourselves.
                "version" | "changed_at" => (column, format!("legacy_{}", column.name)),
                name => (column, name.to_owned()),
            })
            .collect()
    }

    /// Reads every row, oldest first.
    pub(super) async fn read(&mut self, conn: &mut Conn) -> Result<()> {
        let name = self.name;
        if conn.is_postgres() && !self.ours.is_empty() {
            let numbered = format!("ADD COLUMN {} BIGINT GENERATED ALWAYS AS IDENTITY", postgres::ROW);
            postgres::alter(conn, name, &[numbered]).await?;
        }
        // Qualified: PostgreSQL would take the bare name for the text that is selected.
        let ages = ["created_at", "id"].into_iter().filter(|column| self.has(column));
        let order: String = ages.map(|column| format!("{name}.{column} NULLS LAST, ")).collect();
        let columns = |suffix: &str| -> String {
            self.columns.iter().map(|column| format!("{}{suffix}, ", quoted(&column.name))).collect()
        };
        self.rows = match &mut conn.backend {
            Backend::Pg { transaction, .. } => {
                let number = if self.ours.is_empty() { "ctid" } else { postgres::ROW };
                let columns = columns("::text");
                let text =
                    format!("SELECT {columns}{number}::text FROM {name} ORDER BY {order}{name}.{number}");
                let query = sqlx::query(AssertSqlSafe(text)).persistent(false);
                let rows = query.fetch_all(&mut **transaction).await?;
                rows.iter().map(|row| cells(row, postgres_cell)).collect::<Result<_>>()?
            }
            Backend::Sqlite(connection) => {
                let (columns, last) = (columns(""), self.columns.len() + 1);
                let text = format!(
                    "SELECT {columns}row_number() OVER () FROM main.{name} NOT INDEXED ORDER BY {order}{last}"
                );
                let rows = sqlx::query(AssertSqlSafe(text)).fetch_all(&mut **connection).await?;
                rows.iter().map(|row| cells(row, sqlite_cell)).collect::<Result<_>>()?
            }
            Backend::SqliteReader(_) => return Err(wrong_connection()),
        };
        Ok(())
    }
}

fn cells<R: Row>(row: &R, cell: fn(&R, usize) -> Result<Cell>) -> Result<Vec<Cell>> {
    (0..row.len()).map(|at| cell(row, at)).collect()
}

fn postgres_cell(row: &PgRow, at: usize) -> Result<Cell> {
    Ok(row.try_get::<Option<String>, _>(at)?.map_or(Cell::Null, Cell::Text))
}

/// A value as SQLite stores it, whatever type its column was declared with.
fn sqlite_cell(row: &SqliteRow, at: usize) -> Result<Cell> {
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

pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
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
        let sources =
            [("agent_name", Some("agent_name")), ("soul", Some("system_prompt")), ("identity", None)];
        assert_eq!(tables[0].ours, sources);
        let others: Vec<String> = tables[0].others().into_iter().map(|(_, name)| name).collect();
        assert_eq!(others, ["id", "llm_config", "legacy_version"]);
        assert_eq!(tables[1].dropped(), ["content", "priority"]);
        assert_eq!(tables[2].name, MEMORIES);
    }

    #[test]
    fn names_come_from_the_best_column() {
        let name = |columns: &[&str]| plan(vec![table(AGENTS, columns)], false).unwrap()[0].ours[0].1;
        assert_eq!(name(&["id", "name", "agent_name", "system_prompt"]), Some("agent_name"));
        assert_eq!(name(&["id", "name", "system_prompt"]), Some("name"));
        assert_eq!(name(&["id", "soul"]), Some("id"));
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
        assert!(agents(&["system_prompt"]).contains("have no names"));
        let customizations = table(CUSTOMIZATIONS, &["user_id", "content"]);
        assert!(refusal(vec![customizations], false).contains("no column `agent_name`"));
    }
}
