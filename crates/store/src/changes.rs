//! Notifies waiting tasks that something changed, in this process or in another one on the same store.
//!
//! A notification says "read again": there may be one too many, never one too few. Only topics that change rarely are
//! announced; the audit chain and the outbox are not among them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgListener, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection};
use tokio::sync::{Notify, watch as latest};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use crate::db::postgres;
use crate::error::{Error, ErrorKind, Result};
use crate::pins::PINS_MARK;
use crate::store::{DatabaseUrl, Store};

/// The `NOTIFY` channel on PostgreSQL.
pub(crate) const CHANNEL: &str = "embody";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    Approvals,
    Pins,
    Instructions,
    Schedules,
    /// A message arrived, or one was finished so that the next of its conversation may start.
    Incoming,
    /// A message is ready to send, or the one before it was sent.
    Outgoing,
    /// A notice was added, or some were read.
    Notices,
    ReplicaMessages,
}

impl Topic {
    const ALL: [Self; 8] = [
        Self::Approvals,
        Self::Pins,
        Self::Instructions,
        Self::Schedules,
        Self::Incoming,
        Self::Outgoing,
        Self::Notices,
        Self::ReplicaMessages,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Approvals => "approvals",
            Self::Pins => "pins",
            Self::Instructions => "instructions",
            Self::Schedules => "schedules",
            Self::Incoming => "incoming",
            Self::Outgoing => "outgoing",
            Self::Notices => "notices",
            Self::ReplicaMessages => "letters",
        }
    }
}

/// Waits for changes of one topic, without keeping the store open.
#[derive(Debug)]
pub struct Changes {
    seen: latest::Receiver<u64>,
}

impl Changes {
    /// Returns when something may have changed since the last return, or since this was created. An error means that
    /// the store is closed. Cancel safe.
    pub async fn changed(&mut self) -> Result<()> {
        self.seen.changed().await.map_err(|_| Error::new(ErrorKind::Other, "the store is closed"))
    }
}

impl Store {
    /// Read the state after calling this, not before.
    pub fn changes(&self, topic: Topic) -> Changes {
        self.watch().hub.subscribe(topic)
    }

    /// Notifies the tasks of this process; call it when the change is durable.
    pub(crate) fn notify(&self, topic: Topic) {
        self.watch().hub.notify(topic);
    }
}

/// The task that watches for changes by other processes; it ends with the store.
pub(crate) struct Watch {
    hub: Arc<Hub>,
    task: AbortHandle,
}

impl Watch {
    pub(crate) fn start(url: &DatabaseUrl) -> Self {
        let hub = Arc::new(Hub::default());
        let task = tokio::spawn(watch(Arc::clone(&hub), url.clone())).abort_handle();
        Self { hub, task }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Default)]
struct Hub {
    approvals: latest::Sender<u64>,
    pins: latest::Sender<u64>,
    instructions: latest::Sender<u64>,
    schedules: latest::Sender<u64>,
    incoming: latest::Sender<u64>,
    outgoing: latest::Sender<u64>,
    notices: latest::Sender<u64>,
    replica_messages: latest::Sender<u64>,
    subscribed: Notify,
}

impl Hub {
    fn of(&self, topic: Topic) -> &latest::Sender<u64> {
        match topic {
            Topic::Approvals => &self.approvals,
            Topic::Pins => &self.pins,
            Topic::Instructions => &self.instructions,
            Topic::Schedules => &self.schedules,
            Topic::Incoming => &self.incoming,
            Topic::Outgoing => &self.outgoing,
            Topic::Notices => &self.notices,
            Topic::ReplicaMessages => &self.replica_messages,
        }
    }

    fn subscribe(&self, topic: Topic) -> Changes {
        let seen = self.of(topic).subscribe();
        self.subscribed.notify_one();
        Changes { seen }
    }

    fn notify(&self, topic: Topic) {
        self.of(topic).send_modify(|count| *count = count.wrapping_add(1));
    }

    fn notify_all(&self) {
        Topic::ALL.into_iter().for_each(|topic| self.notify(topic));
    }

    /// Notifies by the name that came over the channel; a name of a newer version notifies all topics.
    fn notify_named(&self, name: &str) {
        match Topic::ALL.into_iter().find(|topic| topic.name() == name) {
            Some(topic) => self.notify(topic),
            None => self.notify_all(),
        }
    }

    fn is_watched(&self) -> bool {
        Topic::ALL.into_iter().any(|topic| self.of(topic).receiver_count() > 0)
    }

    async fn watched(&self) {
        while !self.is_watched() {
            self.subscribed.notified().await;
        }
    }
}

/// Interval of polling a SQLite file.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Interval of notifying all topics where changes are not announced.
const POLL: Duration = Duration::from_millis(500);
/// Backoff after the file or the server failed, at first and at most.
const FIRST_REST: Duration = Duration::from_millis(50);
const LONGEST_REST: Duration = Duration::from_secs(5);
/// A listener that received nothing for this long pings the server: a broken connection is silent too.
const QUIET: Duration = Duration::from_secs(20);
/// How long the server may take to answer a ping, or to connect.
const ANSWER: Duration = Duration::from_secs(5);

async fn watch(hub: Arc<Hub>, url: DatabaseUrl) {
    let mut rest = FIRST_REST;
    loop {
        hub.watched().await;
        let ended = match &url {
            DatabaseUrl::Memory => poll(&hub, POLL_INTERVAL).await,
            DatabaseUrl::File(path) => poll_file(&hub, path, &mut rest).await,
            DatabaseUrl::Postgres { direct_url: None, .. } => poll(&hub, POLL).await,
            DatabaseUrl::Postgres { direct_url: Some(url), .. } => listen(&hub, url, &mut rest).await,
        };
        if let Err(error) = ended {
            if rest == FIRST_REST {
                tracing::warn!(reason = %error, store = %url, "changes by others are noticed late");
            }
            waking(&hub, POLL, sleep(rest)).await;
            rest = (rest * 2).min(LONGEST_REST);
        }
    }
}

/// Notifies all topics at intervals while the work runs.
async fn waking<T>(hub: &Hub, every: Duration, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    loop {
        match timeout(every, &mut work).await {
            Ok(done) => return done,
            Err(_) => hub.notify_all(),
        }
    }
}

/// A caller that is cancelled before its write is done notifies no topic, so an in-memory store needs polling too.
async fn poll(hub: &Hub, every: Duration) -> Result<()> {
    while hub.is_watched() {
        sleep(every).await;
        hub.notify_all();
    }
    Ok(())
}

async fn poll_file(hub: &Hub, path: &Path, rest: &mut Duration) -> Result<()> {
    let mut conn = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .pragma("query_only", "ON")
        .disable_statement_logging()
        .connect()
        .await?;
    let mut before = data_version(&mut conn).await?;
    let mut pins_before = pins_mark(&mut conn).await?;
    // Changes between the first subscription and this read.
    hub.notify_all();
    *rest = FIRST_REST;
    while hub.is_watched() {
        sleep(POLL_INTERVAL).await;
        let now = data_version(&mut conn).await?;
        if now != before {
            before = now;
            let pins = pins_mark(&mut conn).await?;
            let is_news = |topic: &Topic| *topic != Topic::Pins || pins != pins_before;
            Topic::ALL.into_iter().filter(is_news).for_each(|topic| hub.notify(topic));
            pins_before = pins;
        }
    }
    Ok(conn.close().await?)
}

/// Changes whenever another connection commits, of this process or of another.
async fn data_version(conn: &mut SqliteConnection) -> Result<i64> {
    Ok(sqlx::query_scalar("PRAGMA data_version").fetch_one(conn).await?)
}

/// Pins are compared by a statement of their own: every broker session compares all of its tools when they change,
/// and must not do so after any other write.
async fn pins_mark(conn: &mut SqliteConnection) -> Result<(i64, i64)> {
    Ok(sqlx::query_as(PINS_MARK).fetch_one(conn).await?)
}

async fn listen(hub: &Hub, url: &str, rest: &mut Duration) -> Result<()> {
    let mut listener = waking(hub, POLL, listener(url)).await?;
    // Changes that were announced before this listener was connected.
    hub.notify_all();
    *rest = FIRST_REST;
    loop {
        match timeout(QUIET, listener.try_recv()).await {
            Ok(Ok(Some(notification))) => hub.notify_named(notification.payload()),
            Ok(Ok(None)) => return Err(Error::new(ErrorKind::Unreachable, "the listening connection broke")),
            Ok(Err(error)) => return Err(error.into()),
            Err(_) if !hub.is_watched() => return Ok(()),
            Err(_) => {
                answered(sqlx::query("SELECT 1").execute(&mut listener)).await?;
                // The direct URL may lead to a server where changes are not announced.
                hub.notify_all();
            }
        }
    }
}

async fn listener(url: &str) -> Result<PgListener> {
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .max_lifetime(None)
        .idle_timeout(None)
        .acquire_timeout(ANSWER)
        .connect_lazy_with(postgres::options(url)?);
    let mut listener = answered(PgListener::connect_with(&pool)).await?;
    listener.eager_reconnect(false);
    answered(listener.listen(CHANNEL)).await?;
    Ok(listener)
}

async fn answered<T>(work: impl Future<Output = sqlx::Result<T>>) -> Result<T> {
    match timeout(ANSWER, work).await {
        Ok(done) => Ok(done?),
        Err(_) => Err(Error::new(
            ErrorKind::Unreachable,
            format!("the database server did not answer within {} s", ANSWER.as_secs()),
        )),
    }
}
