//! The store's root: opening and closing the database, transactions, and the scope of data.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::task::JoinHandle;

use crate::audit::{Chain, ChainFiles};
use crate::changes::Watch;
use crate::db::{
    Begin, Conn, Db, Row, Statement, Value, WriteFuture, WriteTx, dialect, migrate, postgres, sqlite,
};
use crate::error::{Error, ErrorKind, Result};
use crate::outbox::QuotaCache;

#[derive(Clone)]
pub enum DatabaseUrl {
    Memory,
    File(PathBuf),
    Postgres {
        /// May go through a transaction pooler.
        url: String,
        /// Direct connection for `LISTEN`; without it the store polls.
        direct_url: Option<String>,
        /// Folder of this replica's audit key and head.
        keys: PathBuf,
    },
}

impl DatabaseUrl {
    /// Whether the key or the head of an audit chain exists, with or without a database.
    pub fn has_audit_files(&self) -> bool {
        match self {
            Self::Memory => false,
            Self::File(path) => {
                let ChainFiles { key, head } = files_beside(path);
                key.exists() || head.exists()
            }
            // Their names depend on the database, which is not asked.
            Self::Postgres { .. } => false,
        }
    }
}

/// `embody.db` has `embody.db.audit.key` and `embody.db.audit.head`.
pub(crate) fn files_beside(path: &Path) -> ChainFiles {
    let beside = |ending: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    ChainFiles { key: beside(".audit.key"), head: beside(".audit.head") }
}

/// In the folder of this replica, by database: two databases must not share them.
pub(crate) fn files_in(keys: &Path, database: &str) -> ChainFiles {
    ChainFiles {
        key: keys.join(format!("{database}.audit.key")),
        head: keys.join(format!("{database}.audit.head")),
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Postgres { url, .. } => match postgres::options(url) {
                Ok(options) => write!(
                    f,
                    "postgres://{}:{}/{}",
                    options.get_host(),
                    options.get_port(),
                    options.get_database().unwrap_or_default()
                ),
                Err(_) => f.write_str("postgres://…"),
            },
        }
    }
}

/// Cheap to clone.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    db: Db,
    url: DatabaseUrl,
    chain: Arc<Chain>,
    queue: JoinHandle<()>,
    watch: Watch,
    outbox_quotas: QuotaCache,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Store").field(&self.inner.url).finish()
    }
}

impl Store {
    /// Opens the store, creating it if necessary, and brings its schema up to date.
    pub async fn open(url: DatabaseUrl) -> Result<Self> {
        let name = url.to_string();
        Self::open_at(url).await.map_err(|error| error.about(format!("the store `{name}` cannot be opened")))
    }

    async fn open_at(url: DatabaseUrl) -> Result<Self> {
        let (db, chain, queue) = match &url {
            DatabaseUrl::Memory => {
                let sqlite = sqlite::open_memory().await?;
                prepare(&Begin::Sqlite(Arc::clone(&sqlite.writer))).await?;
                let chain = Arc::new(Chain::forgotten()?);
                let (db, queue) = Db::sqlite(sqlite, Arc::clone(&chain));
                (db, chain, queue)
            }
            DatabaseUrl::File(path) => {
                let sqlite = sqlite::open_file(path).await?;
                let begin = Begin::Sqlite(Arc::clone(&sqlite.writer));
                prepare(&begin).await?;
                let chain = open_chain(&begin, files_beside(path)).await?;
                let (db, queue) = Db::sqlite(sqlite, Arc::clone(&chain));
                (db, chain, queue)
            }
            DatabaseUrl::Postgres { url, keys, .. } => {
                postgres::check_reachable(url).await?;
                let pg = postgres::open(url)?;
                let begin = Begin::Pg(pg.clone());
                prepare(&begin).await?;
                let name = migrate::name(&mut begin.read().await?).await?;
                let chain = open_chain(&begin, files_in(keys, &name)).await?;
                let (db, queue) = Db::pg(pg, Arc::clone(&chain));
                (db, chain, queue)
            }
        };
        let watch = Watch::start(&url);
        Ok(Self {
            inner: Arc::new(Inner { db, url, chain, queue, watch, outbox_quotas: QuotaCache::default() }),
        })
    }

    /// Opens an existing store; `None` if there is no database or it is not a store. Creates nothing.
    pub async fn open_existing(url: DatabaseUrl) -> Result<Option<Self>> {
        let exists = match &url {
            DatabaseUrl::Memory => Ok(true),
            DatabaseUrl::File(path) if !path.exists() => Ok(false),
            DatabaseUrl::File(path) => sqlite::is_ours(path).await,
            DatabaseUrl::Postgres { url, .. } => postgres::is_ours(url).await,
        };
        match exists {
            Ok(false) => Ok(None),
            Ok(true) => Self::open(url).await.map(Some),
            Err(error) => Err(error.about(format!("the store `{url}` cannot be opened"))),
        }
    }

    pub fn url(&self) -> &DatabaseUrl {
        &self.inner.url
    }

    /// Waits until everything that was queued before is durable.
    pub async fn flush(&self) -> Result<()> {
        self.db().chained().write(|_| Box::pin(std::future::ready(Ok(())))).await.map(drop)
    }

    /// Flushes and closes, unless other clones of the store exist.
    pub async fn close(self) {
        let Ok(inner) = Arc::try_unwrap(self.inner).map_err(drop) else { return };
        // Its connection must be closed before the file can be complete.
        drop(inner.watch);
        inner.db.close(inner.queue).await;
    }

    /// Runs the database's integrity check: a damaged SQLite file is an error that says where. On PostgreSQL this
    /// only checks that the server answers.
    pub async fn check(&self) -> Result<()> {
        let found: Vec<(String,)> = self.fetch_all(dialect!(CHECK), Vec::new()).await?;
        match found.first() {
            Some((first,)) if first != "ok" => {
                Err(Error::new(ErrorKind::Corrupt, format!("the database is damaged: {first}"))
                    .hint("restore a backup"))
            }
            _ => Ok(()),
        }
    }

    /// Writes a SQLite file anew, so that it and its journal have no bytes of what was removed. On PostgreSQL `VACUUM` does that
    /// in time.
    pub(crate) async fn compact(&self) -> Result<()> {
        self.db().compact().await
    }

    /// The clock that schedules and leases go by, in microseconds since 1970: the server's on PostgreSQL, else this
    /// process's.
    pub async fn clock(&self) -> Result<i64> {
        crate::leases::clock(&mut self.reader().await?).await
    }

    /// Runs a write in one transaction and waits until it is durable; then notifies those that wait for what it changed.
    /// See [`transaction!`].
    pub(crate) async fn write<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'a> FnOnce(&'a mut Conn) -> WriteFuture<'a, T> + Send + 'static,
    {
        let (done, topics) = self.db().write(work).await?;
        topics.into_iter().for_each(|topic| self.notify(topic));
        Ok(done)
    }

    /// The same with audit records in the same commit. See [`audited!`].
    pub(crate) async fn write_audited<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'a> FnOnce(&'a mut WriteTx) -> WriteFuture<'a, T> + Send + 'static,
    {
        let (done, topics) = self.db().chained().write(work).await?;
        topics.into_iter().for_each(|topic| self.notify(topic));
        Ok(done)
    }

    /// A connection to read from. What it sees may change between two statements.
    pub(crate) async fn reader(&self) -> Result<Conn> {
        self.db().reader().await
    }

    pub(crate) async fn fetch_all<T: Row>(&self, sql: impl Statement, values: Vec<Value>) -> Result<Vec<T>> {
        self.reader().await?.fetch_all(sql, values).await
    }

    pub(crate) async fn fetch_optional<T: Row>(
        &self,
        sql: impl Statement,
        values: Vec<Value>,
    ) -> Result<Option<T>> {
        self.reader().await?.fetch_optional(sql, values).await
    }

    pub(crate) async fn fetch_one<T: Row>(&self, sql: impl Statement, values: Vec<Value>) -> Result<T> {
        self.reader().await?.fetch_one(sql, values).await
    }

    pub(crate) fn db(&self) -> &Db {
        &self.inner.db
    }

    pub(crate) fn chain(&self) -> &Arc<Chain> {
        &self.inner.chain
    }

    pub(crate) fn watch(&self) -> &Watch {
        &self.inner.watch
    }

    pub(crate) fn outbox_quotas(&self) -> &QuotaCache {
        &self.inner.outbox_quotas
    }
}

async fn prepare(begin: &Begin) -> Result<()> {
    // Only a migration needs the write lock.
    if migrate::is_current(&mut begin.read().await?).await? {
        return Ok(());
    }
    let mut tx = begin.begin().await?;
    match migrate::apply(&mut tx.conn).await {
        Ok(()) => tx.conn.commit().await,
        Err(error) => {
            let _ = tx.conn.rollback().await;
            Err(error)
        }
    }
}

async fn open_chain(begin: &Begin, files: ChainFiles) -> Result<Arc<Chain>> {
    Chain::open(files, &mut begin.read().await?).await.map(Arc::new)
}

/// Whose data: one user's with one agent. The names need not be set up before.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scope {
    user: String,
    agent: String,
}

impl Scope {
    pub fn new(user: &str, agent: &str) -> Result<Self> {
        check_name("user", user)?;
        check_name("agent", agent)?;
        Ok(Self { user: user.to_owned(), agent: agent.to_owned() })
    }

    pub fn user(&self) -> &str {
        &self.user
    }

    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// The name under which the agent's model writes; never the operator's.
    pub fn writer(&self) -> String {
        if self.agent == OPERATOR { format!("agent {OPERATOR}") } else { self.agent.clone() }
    }
}

/// The writer name of the owner; every other writer is a model.
pub const OPERATOR: &str = "operator";

pub(crate) const NAME_LIMIT: usize = 256;

pub(crate) fn check_name(what: &str, name: &str) -> Result<()> {
    if name.trim().is_empty() {
        return Err(Error::invalid(format!("the {what} has no name")));
    }
    if name.len() > NAME_LIMIT {
        return Err(Error::invalid(format!("the name of the {what} is longer than {NAME_LIMIT} bytes")));
    }
    if name.chars().any(char::is_control) {
        return Err(Error::invalid(format!(
            "the name of the {what} `{}` has control characters",
            name.escape_debug()
        )));
    }
    Ok(())
}

pub(crate) fn check_text(what: &str, text: &str, limit: usize) -> Result<()> {
    if text.len() > limit {
        return Err(Error::invalid(format!("the {what} has {} bytes; {limit} are allowed", text.len())));
    }
    match text.find('\0') {
        Some(at) => Err(Error::invalid(format!("the {what} has a NUL character at byte {at}"))
            .hint("remove it: databases cannot store it")),
        None => Ok(()),
    }
}

/// Line breaks and tabs are allowed.
pub(crate) fn check_controls(what: &str, text: &str) -> Result<()> {
    let found = text.char_indices().find(|(_, c)| c.is_control() && !matches!(c, '\n' | '\r' | '\t'));
    match found {
        Some((at, c)) => Err(Error::invalid(format!(
            "the {what} has the control character U+{:04X} at byte {at}",
            u32::from(c)
        ))
        .hint("remove it: it could control the terminal that shows the text")),
        None => Ok(()),
    }
}

pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

pub(crate) fn random_bytes() -> Result<[u8; 32]> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| {
        Error::new(ErrorKind::Other, "the system returned no random bytes").because(error)
    })?;
    Ok(bytes)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn unhex(text: &str) -> Option<[u8; 32]> {
    Some(*blake3::Hash::from_hex(text).ok()?.as_bytes())
}

pub(crate) fn new_id() -> String {
    uuid::Uuid::now_v7().to_string()
}
