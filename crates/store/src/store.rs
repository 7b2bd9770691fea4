//! The store's handle: opening, closing, and who is asking.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use crate::audit::Chain;
use crate::changes::Watch;
use crate::db::{Begin, Db, migrate, postgres, sqlite};
use crate::error::{Error, Result};

/// Where the data lives.
#[derive(Clone)]
pub enum Place {
    /// In memory, gone with the process.
    Memory,
    /// In a SQLite file.
    File(PathBuf),
    /// In PostgreSQL.
    Postgres {
        /// For everything; may go through a transaction pooler.
        url: String,
        /// Straight to the server, for `LISTEN`; without it the store polls.
        direct_url: Option<String>,
        /// The folder for the audit key of this replica.
        keys: PathBuf,
    },
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Place {
    /// Never shows a password.
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

/// Everything that outlives a process. Handles are cheap to clone.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    db: Db,
    place: Place,
    writer: Mutex<Option<JoinHandle<()>>>,
    watch: Watch,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Store").field(&self.inner.place).finish()
    }
}

impl Store {
    /// Opens the store and brings its schema up to date; a new one is made.
    pub async fn open(place: Place) -> Result<Self> {
        let (db, writer) = match &place {
            Place::Memory => {
                let lite = sqlite::open_memory().await?;
                prepare(&Begin::Lite(Arc::clone(&lite.writer))).await?;
                Db::lite(lite, Arc::new(Chain::forgotten()?))
            }
            Place::File(path) => {
                let lite = sqlite::open_file(path).await?;
                prepare(&Begin::Lite(Arc::clone(&lite.writer))).await?;
                Db::lite(lite, Arc::new(Chain::forgotten()?))
            }
            Place::Postgres { url, .. } => {
                let pg = postgres::open(url)?;
                prepare(&Begin::Pg(pg.clone())).await?;
                Db::pg(pg, Arc::new(Chain::forgotten()?))
            }
        };
        let watch = Watch::start(&place);
        Ok(Self { inner: Arc::new(Inner { db, place, writer: Mutex::new(Some(writer)), watch }) })
    }

    /// Opens a store that exists. A SQLite file that is not there is `None`, and is not made.
    pub async fn open_existing(place: Place) -> Result<Option<Self>> {
        match &place {
            Place::File(path) if !path.exists() => Ok(None),
            _ => Self::open(place).await.map(Some),
        }
    }

    /// Where the data lives.
    pub fn place(&self) -> &Place {
        &self.inner.place
    }

    /// Waits until everything queued is written, and closes. Other handles must be gone; if not, they keep it open.
    pub async fn close(self) {
        let Ok(inner) = Arc::try_unwrap(self.inner).map_err(drop) else { return };
        inner.db.close().await;
        if let Some(writer) = inner.writer.into_inner() {
            let _ = writer.await;
        }
    }

    pub(crate) fn db(&self) -> &Db {
        &self.inner.db
    }

    pub(crate) fn watch(&self) -> &Watch {
        &self.inner.watch
    }
}

async fn prepare(begin: &Begin) -> Result<()> {
    let mut unit = begin.unit().await?;
    if migrate::is_current(&mut unit.conn).await? {
        return unit.conn.rollback().await;
    }
    match migrate::apply(&mut unit.conn).await {
        Ok(()) => unit.conn.commit().await,
        Err(error) => {
            let _ = unit.conn.rollback().await;
            Err(error)
        }
    }
}

/// Whose data: one user's with one agent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scope {
    user: String,
    agent: String,
}

impl Scope {
    /// A user and an agent by name. Nobody needs to have set them up.
    pub fn new(user: &str, agent: &str) -> Result<Self> {
        check_name("user", user)?;
        check_name("agent", agent)?;
        Ok(Self { user: user.to_owned(), agent: agent.to_owned() })
    }

    /// The user's name.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The agent's name.
    pub fn agent(&self) -> &str {
        &self.agent
    }
}

/// The longest name of a user, an agent or anything else with a name.
pub(crate) const NAME_LIMIT: usize = 256;

/// A name is not empty, not long, and holds no control characters.
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

/// A text that both databases can hold.
pub(crate) fn check_text(what: &str, text: &str, limit: usize) -> Result<()> {
    if text.len() > limit {
        return Err(Error::invalid(format!("the {what} has {} bytes; {limit} are allowed", text.len())));
    }
    match text.find('\0') {
        Some(at) => Err(Error::invalid(format!("the {what} has a NUL character at byte {at}"))
            .hint("remove it: databases cannot hold it")),
        None => Ok(()),
    }
}

/// Microseconds since 1970.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// An id that sorts by age.
pub(crate) fn new_id() -> String {
    uuid::Uuid::now_v7().to_string()
}
