//! What hangs on a SQLite table that is made anew: other columns, keys, triggers, views and foreign keys.

use std::collections::BTreeSet;

use sqlx::AssertSqlSafe;

use super::shape::{Column, Plan, Table};
use super::sqlite::{quoted, raw};
use crate::db::Conn;
use crate::error::{Error, ErrorKind, Result};

/// What was there before, to tell damage of ours from damage that was there.
pub(super) struct Before {
    broken_views: BTreeSet<String>,
    orphans: i64,
    triggers: Vec<String>,
}

impl Before {
    pub(super) async fn look(conn: &mut Conn, plan: &Plan) -> Result<Self> {
        let mut triggers = Vec::new();
        let rebuilt = plan.agents.as_ref().map(|plan| plan.table.name).into_iter();
        for table in rebuilt.chain(plan.customizations.as_ref().map(|plan| plan.table.name)) {
            let found: Vec<(String,)> = sqlx::query_as(
                "SELECT name FROM main.sqlite_schema WHERE type = 'trigger' AND tbl_name = $1",
            )
            .bind(table)
            .fetch_all(raw(conn)?)
            .await?;
            triggers.extend(found.into_iter().map(|(name,)| name));
        }
        let broken_views = broken_views(conn).await?.into_iter().map(|(view, _)| view).collect();
        Ok(Self { broken_views, orphans: orphans(conn).await?, triggers })
    }

    pub(super) fn notes(&self) -> Vec<String> {
        let note = |trigger: &String| {
            format!("the trigger `{trigger}` went with its table; the export has its text")
        };
        self.triggers.iter().map(note).collect()
    }

    /// Views that no longer work and rows that no longer have their parents undo everything.
    pub(super) async fn refuse_damage(&self, conn: &mut Conn) -> Result<()> {
        for (view, error) in broken_views(conn).await? {
            if !self.broken_views.contains(&view) {
                return Err(Error::new(
                    ErrorKind::Schema,
                    format!("the view `{view}` uses what the upgrade takes away; nothing was changed"),
                )
                .because(error)
                .hint("drop the view, and run it again"));
            }
        }
        if orphans(conn).await? > self.orphans {
            return Err(Error::new(
                ErrorKind::Schema,
                "rows of another table refer to rows that the upgrade joins; nothing was changed",
            )
            .hint("remove the foreign key, and run it again"));
        }
        Ok(())
    }
}

async fn broken_views(conn: &mut Conn) -> Result<Vec<(String, sqlx::Error)>> {
    let views: Vec<(String,)> = sqlx::query_as("SELECT name FROM main.sqlite_schema WHERE type = 'view'")
        .fetch_all(raw(conn)?)
        .await?;
    let mut broken = Vec::new();
    for (view,) in views {
        let text = format!("SELECT * FROM main.{} LIMIT 0", quoted(&view));
        let tried = sqlx::query(AssertSqlSafe(text)).persistent(false).fetch_all(raw(conn)?).await;
        if let Err(error) = tried {
            broken.push((view, error));
        }
    }
    Ok(broken)
}

async fn orphans(conn: &mut Conn) -> Result<i64> {
    let counted =
        sqlx::query_scalar("SELECT COUNT(*) FROM pragma_foreign_key_check").fetch_one(raw(conn)?).await;
    counted.map_err(|error| {
        Error::new(ErrorKind::Schema, "a foreign key no longer fits its table; nothing was changed")
            .because(error)
    })
}

/// The sets of columns that are unique in a table.
#[derive(Default)]
pub(super) struct Keys(BTreeSet<Vec<String>>);

/// Reads the keys of a table: its primary key and every unique index over whole columns.
pub(super) async fn keys(conn: &mut Conn, table: &Table) -> Result<Keys> {
    let primary: Vec<String> =
        table.columns.iter().filter(|column| column.primary).map(|column| column.name.clone()).collect();
    let mut keys = BTreeSet::from([primary]);
    let indexes: Vec<(String,)> =
        sqlx::query_as("SELECT name FROM pragma_index_list($1) WHERE \"unique\" = 1 AND partial = 0")
            .bind(table.name)
            .fetch_all(raw(conn)?)
            .await?;
    for (index,) in indexes {
        let columns: Vec<(Option<String>,)> =
            sqlx::query_as("SELECT name FROM pragma_index_info($1) ORDER BY seqno")
                .bind(index)
                .fetch_all(raw(conn)?)
                .await?;
        keys.extend(columns.into_iter().map(|(name,)| name).collect::<Option<Vec<String>>>());
    }
    Ok(Keys(keys))
}

impl Keys {
    /// Makes those keys again whose columns are all still there: other tables may refer to them.
    pub(super) async fn restore(
        self,
        conn: &mut Conn,
        table: &str,
        kept: &[(&Column, String)],
    ) -> Result<()> {
        for (number, key) in self.0.iter().filter(|key| !key.is_empty()).enumerate() {
            let named = |name: &String| kept.iter().find(|(column, _)| column.name == *name);
            let columns: Option<Vec<String>> =
                key.iter().map(|name| named(name).map(|(_, name)| quoted(name))).collect();
            if let Some(columns) = columns {
                let columns = columns.join(", ");
                conn.script(format!(
                    "CREATE UNIQUE INDEX main.{table}_legacy_{number} ON {table} ({columns})"
                ))
                .await?;
            }
        }
        Ok(())
    }
}

/// Adds the columns that we do not know. They take any value, and none is demanded.
pub(super) async fn keep_columns(conn: &mut Conn, table: &str, kept: &[(&Column, String)]) -> Result<()> {
    for (_, name) in kept {
        conn.script(format!("ALTER TABLE main.{table} ADD COLUMN {} ANY", quoted(name))).await?;
    }
    Ok(())
}
