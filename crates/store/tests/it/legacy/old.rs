//! A database in the old shape, on each backend, made with that database's own words.

use std::path::{Path, PathBuf};

use embody_store::legacy::{LegacyReport, migrate_legacy, preview_legacy};
use embody_store::{DatabaseUrl, Store};
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row, SqliteConnection};
use tempfile::TempDir;

use crate::postgres_server::server_url;
use crate::world::database;

/// The tables of the seed's old schema, with the usual company.
pub(crate) const SEED: &str = "
CREATE TABLE agent_configurations (id {uuid} NOT NULL PRIMARY KEY, agent_name {name} NOT NULL UNIQUE,
  system_prompt TEXT NOT NULL, llm_config {json} NOT NULL, created_at {time} NOT NULL DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE user_agent_prompt_customizations (id {uuid} NOT NULL PRIMARY KEY, user_id {uuid} NOT NULL, agent_name TEXT NOT NULL,
  customization_type TEXT NOT NULL DEFAULT 'general', content {json}, is_active {bool} DEFAULT {true}, priority INTEGER DEFAULT 0,
  created_at {time} NOT NULL DEFAULT CURRENT_TIMESTAMP,
  CONSTRAINT UQ_user_agent_customization_type UNIQUE (user_id, agent_name, customization_type));
";

/// The tables that the upgrade reads, without anything else.
pub(crate) const BARE: &str = "
CREATE TABLE agent_configurations (agent_name TEXT PRIMARY KEY, system_prompt TEXT);
CREATE TABLE user_agent_prompt_customizations (id INTEGER PRIMARY KEY, user_id TEXT, agent_name TEXT, customization_type TEXT,
  content {json}, priority {number});
";

pub(crate) struct Old {
    pub(crate) place: DatabaseUrl,
    pub(crate) folder: TempDir,
    /// For PostgreSQL: straight to the server.
    direct: Option<String>,
}

impl Old {
    pub(crate) async fn file() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("old.db");
        std::fs::File::create(&path).unwrap();
        Self { place: DatabaseUrl::File(path), folder, direct: None }
    }

    pub(crate) async fn postgres() -> Self {
        let url = database().await;
        Self::server(url.clone(), url)
    }

    pub(crate) async fn pooled() -> Self {
        let direct = database().await;
        let (_, name) = direct.rsplit_once('/').unwrap();
        let pool = server_url("EMBODY_TEST_PGBOUNCER");
        let (base, _) = pool.rsplit_once('/').unwrap();
        Self::server(format!("{base}/{name}"), direct)
    }

    fn server(url: String, direct: String) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let keys = folder.path().to_owned();
        Self { place: DatabaseUrl::Postgres { url, direct_url: None, keys }, folder, direct: Some(direct) }
    }

    pub(crate) fn is_postgres(&self) -> bool {
        self.direct.is_some()
    }

    /// Runs statements in the words of the database.
    pub(crate) async fn run(&self, text: &str) {
        let words = [
            ("{json}", "TEXT", "JSONB"),
            ("{uuid}", "TEXT", "UUID"),
            ("{name}", "TEXT", "VARCHAR(100)"),
            ("{time}", "TEXT", "TIMESTAMPTZ"),
            ("{bool}", "INTEGER", "BOOLEAN"),
            ("{true}", "1", "true"),
            ("{false}", "0", "false"),
            ("{number}", "INTEGER", "NUMERIC"),
        ];
        let text = words.iter().fold(text.to_owned(), |text, (word, lite, pg)| {
            text.replace(word, if self.is_postgres() { pg } else { lite })
        });
        match &self.direct {
            Some(url) => {
                let mut conn = PgConnection::connect(url).await.unwrap();
                sqlx::raw_sql(AssertSqlSafe(text)).execute(&mut conn).await.unwrap();
                conn.close().await.unwrap();
            }
            None => {
                let mut conn = self.sqlite().await;
                sqlx::raw_sql(AssertSqlSafe(text)).execute(&mut conn).await.unwrap();
                conn.close().await.unwrap();
            }
        }
    }

    async fn sqlite(&self) -> SqliteConnection {
        let DatabaseUrl::File(path) = &self.place else { panic!("not a file") };
        SqliteConnection::connect(path.to_str().unwrap()).await.unwrap()
    }

    /// Every row of a query that gives texts.
    pub(crate) async fn rows(&self, text: &str) -> Vec<Vec<Option<String>>> {
        let text = AssertSqlSafe(text.to_owned());
        match &self.direct {
            Some(url) => {
                let mut conn = PgConnection::connect(url).await.unwrap();
                let rows = sqlx::query(text).fetch_all(&mut conn).await.unwrap();
                rows.iter().map(|row| (0..row.len()).map(|at| row.get(at)).collect()).collect()
            }
            None => {
                let mut conn = self.sqlite().await;
                let rows = sqlx::query(text).fetch_all(&mut conn).await.unwrap();
                rows.iter().map(|row| (0..row.len()).map(|at| row.get(at)).collect()).collect()
            }
        }
    }

    /// One text.
    pub(crate) async fn text(&self, text: &str) -> Option<String> {
        self.rows(text).await.remove(0).remove(0)
    }

    /// Everything that is in the database: tables, columns, rows.
    pub(crate) async fn dump(&self) -> Vec<String> {
        let (tables, columns) = if self.is_postgres() {
            (
                "SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY 1"
                    .to_owned(),
                "SELECT table_name || '.' || column_name || ' ' || data_type || is_nullable FROM information_schema.columns \
                 WHERE table_schema = 'public' ORDER BY 1",
            )
        } else {
            let list = "SELECT name FROM sqlite_schema ORDER BY 1".to_owned();
            (list, "SELECT type || name || COALESCE(sql, '') FROM sqlite_schema ORDER BY 1")
        };
        let mut out: Vec<String> = self.rows(&tables).await.into_iter().flatten().flatten().collect();
        out.extend(self.rows(columns).await.into_iter().flatten().flatten());
        for table in ["agent_configurations", "user_agent_prompt_customizations", "agent_long_term_memory"] {
            if !out.iter().any(|name| name == table) {
                continue;
            }
            let rows = if self.is_postgres() {
                format!("SELECT t::text FROM {table} t ORDER BY 1")
            } else {
                let columns = format!(
                    "SELECT group_concat('quote(\"' || name || '\")', '|| '','' ||') FROM pragma_table_info('{table}')"
                );
                format!("SELECT {} FROM {table} ORDER BY 1", self.text(&columns).await.unwrap())
            };
            out.extend(self.rows(&rows).await.into_iter().flatten().flatten());
        }
        out
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) async fn upgrade(&self) -> LegacyReport {
        migrate_legacy(&self.place, &self.path("export.json")).await.unwrap()
    }

    /// Tries the upgrade, which must fail, change nothing and leave no file; the error, its reasons and its hint.
    pub(crate) async fn refused(&self) -> String {
        let before = self.dump().await;
        let planned = preview_legacy(&self.place).await.unwrap_err().to_string();
        let error = migrate_legacy(&self.place, &self.path("export.json")).await.unwrap_err();
        assert_eq!(planned, error.to_string());
        assert_eq!(self.dump().await, before);
        let left: Vec<_> =
            std::fs::read_dir(self.folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
        assert!(left.iter().all(|name| name.to_string_lossy().starts_with("old.db")), "{left:?}");
        let mut text = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(source) = cause {
            text = format!("{text}: {source}");
            cause = source.source();
        }
        format!("{text} [{}]", error.advice().unwrap_or_default())
    }

    pub(crate) async fn open(&self) -> Store {
        Store::open(self.place.clone()).await.unwrap()
    }
}

pub(crate) fn exported(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// The rows of one table of an export.
pub(crate) fn table<'a>(export: &'a Value, name: &str) -> &'a Vec<Value> {
    let tables = export["tables"].as_array().unwrap();
    tables.iter().find(|table| table["name"] == name).unwrap()["rows"].as_array().unwrap()
}

/// Runs each test function on every backend that can hold an old shape.
macro_rules! on_each {
    ($($name:ident),* $(,)?) => {
        mod sqlite_file {
            $(#[tokio::test] async fn $name() { super::$name($crate::legacy::old::Old::file().await).await })*
        }
        mod pooled {
            $(#[tokio::test] async fn $name() { super::$name($crate::legacy::old::Old::pooled().await).await })*
        }
        mod postgres {
            $(#[tokio::test] async fn $name() { super::$name($crate::legacy::old::Old::postgres().await).await })*
        }
    };
}
pub(crate) use on_each;
