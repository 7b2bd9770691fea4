//! A store of each kind to test on. A test is a function of a `World`; `contract!` runs it on all four.

use embody_store::{DatabaseUrl, Lease, Scope, Store};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tempfile::TempDir;

use crate::postgres_server::server_url;

/// A fresh, empty store, and what it stands on.
pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) folder: TempDir,
}

impl World {
    pub(crate) async fn file() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self::at(DatabaseUrl::File(folder.path().join("embody.db")), folder).await
    }

    pub(crate) async fn memory() -> Self {
        Self::at(DatabaseUrl::Memory, tempfile::tempdir().unwrap()).await
    }

    pub(crate) async fn postgres() -> Self {
        Self::on(database().await).await
    }

    /// The same server through PgBouncer in transaction mode.
    pub(crate) async fn pooled() -> Self {
        let url = database().await;
        let (_, name) = url.rsplit_once('/').unwrap();
        let pool = server_url("EMBODY_TEST_PGBOUNCER");
        let (base, _) = pool.rsplit_once('/').unwrap();
        Self::on(format!("{base}/{name}")).await
    }

    /// Another store on the same data, as another process would have it. Memory has no other.
    pub(crate) async fn second(&self) -> Store {
        match self.store.url() {
            DatabaseUrl::Memory => self.store.clone(),
            place => Store::open(place.clone()).await.unwrap(),
        }
    }

    /// What a query counts, asked past the store; `None` for memory, which only the store can see.
    pub(crate) async fn count(&self, sql: &'static str) -> Option<i64> {
        match self.store.url() {
            DatabaseUrl::Memory => None,
            DatabaseUrl::File(path) => {
                let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
                let mut conn = sqlx::SqliteConnection::connect_with(&options).await.unwrap();
                Some(sqlx::query_scalar(sql).fetch_one(&mut conn).await.unwrap())
            }
            DatabaseUrl::Postgres { url, .. } => Some(asked_of_postgres(url, sql).await),
        }
    }

    /// Runs a statement past the store; whether there is a way past it.
    pub(crate) async fn execute(&self, sql: &'static str) -> bool {
        match self.store.url() {
            DatabaseUrl::Memory => return false,
            DatabaseUrl::File(path) => {
                let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
                let mut conn = sqlx::SqliteConnection::connect_with(&options).await.unwrap();
                sqlx::raw_sql(sql).execute(&mut conn).await.unwrap();
            }
            DatabaseUrl::Postgres { url, .. } => {
                let mut conn = PgConnection::connect(url).await.unwrap();
                sqlx::raw_sql(sql).execute(&mut conn).await.unwrap();
            }
        }
        true
    }

    /// What a query of PostgreSQL says, asked past the store; `None` on SQLite, whose file can be read.
    pub(crate) async fn postgres_text(&self, sql: &'static str) -> Option<String> {
        match self.store.url() {
            DatabaseUrl::Memory | DatabaseUrl::File(_) => None,
            DatabaseUrl::Postgres { url, .. } => Some(asked_of_postgres(url, sql).await),
        }
    }

    async fn on(url: String) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let keys = folder.path().to_owned();
        Self::at(DatabaseUrl::Postgres { url, direct_url: None, keys }, folder).await
    }

    async fn at(place: DatabaseUrl, folder: TempDir) -> Self {
        Self { store: Store::open(place).await.unwrap(), folder }
    }
}

async fn asked_of_postgres<T>(url: &str, sql: &'static str) -> T
where
    T: for<'r> sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres> + Send + Unpin,
{
    let options = url.parse::<sqlx::postgres::PgConnectOptions>().unwrap();
    let mut conn = PgConnection::connect_with(&options.statement_cache_capacity(0)).await.unwrap();
    // Behind the pooler a statement lives as long as its transaction.
    let mut transaction = conn.begin().await.unwrap();
    sqlx::query_scalar(sql).persistent(false).fetch_one(&mut *transaction).await.unwrap()
}

/// The address of a new, empty database on the test server.
pub(crate) async fn database() -> String {
    let server = server_url("EMBODY_TEST_POSTGRES");
    let name = format!("t{}", uuid::Uuid::now_v7().simple());
    let mut admin = PgConnection::connect(&server).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(format!("CREATE DATABASE {name}"))).execute(&mut admin).await.unwrap();
    let (base, _) = server.rsplit_once('/').unwrap();
    format!("{base}/{name}")
}

/// Looks again and again until there is something; fails when it takes too long.
pub(crate) async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(30);
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(tokio::time::Instant::now() < deadline, "not seen in time: {what}");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

/// Short enough to run out while a test waits for it.
pub(crate) fn short(owner: &str) -> Lease {
    Lease { owner: owner.into(), duration: std::time::Duration::from_millis(20) }
}

/// Longer than any test.
pub(crate) fn long(owner: &str) -> Lease {
    Lease { owner: owner.into(), duration: std::time::Duration::from_secs(3600) }
}

pub(crate) fn scope(user: &str, agent: &str) -> Scope {
    Scope::new(user, agent).unwrap()
}

/// Runs each test function on every backend.
macro_rules! contract {
    ($($name:ident),* $(,)?) => {
        mod sqlite_file {
            $(#[tokio::test] async fn $name() { super::$name($crate::world::World::file().await).await })*
        }
        mod sqlite_memory {
            $(#[tokio::test] async fn $name() { super::$name($crate::world::World::memory().await).await })*
        }
        mod pooled {
            $(#[tokio::test] async fn $name() { super::$name($crate::world::World::pooled().await).await })*
        }
        mod postgres {
            $(#[tokio::test] async fn $name() { super::$name($crate::world::World::postgres().await).await })*
        }
    };
}
pub(crate) use contract;
