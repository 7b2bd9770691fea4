//! Group commit: one task runs queued writes together, for one sync of the disk.
//!
//! While a commit waits for the disk the next writes gather in the queue, so the batch grows with the load and a
//! single write does not wait. Deferred writes are kept and retried when a commit fails; they are never dropped while
//! the process lives. Each write has a savepoint of its own: one that fails does not affect the others.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::{Begin, Conn};
use crate::audit::{Chain, Entry};
use crate::changes::Topic;
use crate::error::{Error, ErrorKind, Result};

/// Queued writes; further callers wait.
const QUEUE_LIMIT: usize = 1024;
const BATCH_LIMIT: usize = 256;
/// How long a commit of deferred writes only may be delayed to gather more.
const GATHER: Duration = Duration::from_millis(10);
/// Deferred audit records that are not durable yet; further callers wait.
const DEFERRED_LIMIT: u32 = 1024;
/// The rest of a deferred write counts as one record for each of these bytes, the most that a record has.
const PLACE_BYTES: usize = 16 * 1024;
const ROOM_LIMIT: Duration = Duration::from_secs(20);
/// When deferred writes that failed are retried, if there is no other write.
const RETRY: Duration = Duration::from_secs(1);

pub(crate) type WriteFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// The connection of a write, and the audit records of the same commit.
pub(crate) struct WriteTx {
    pub(crate) conn: Conn,
    pub(crate) entries: Vec<Entry>,
}

#[derive(Clone)]
pub(crate) struct Writer {
    queue: mpsc::Sender<Job>,
    room: Arc<Semaphore>,
}

pub(super) enum Job {
    Write(Box<dyn Task>),
    /// An awaited audit record, which cannot fail by itself.
    Append(Entry, oneshot::Sender<Result<()>>),
    /// Not awaited.
    DeferredWrite(DeferredWrite),
}

/// Audit records that are not awaited, and a write that belongs to them.
pub(super) struct DeferredWrite {
    pub(super) entries: Vec<Entry>,
    pub(super) work: Option<RetriableWrite>,
    /// A commit with it failed.
    pub(super) tried: bool,
    pub(super) _room: OwnedSemaphorePermit,
}

/// A write that may run more than once: a commit that failed may have happened.
pub(crate) type RetriableWrite = Box<dyn for<'a> FnMut(&'a mut Conn) -> WriteFuture<'a, ()> + Send>;

pub(super) trait Task: Send {
    /// When it fails its changes are undone.
    fn run<'a>(&'a mut self, tx: &'a mut WriteTx) -> WriteFuture<'a, ()>;
    /// Replies to the caller after the commit.
    fn reply(self: Box<Self>, failed: Option<Error>);
}

struct TypedTask<T, F> {
    work: Option<F>,
    done: Option<Result<(T, Vec<Topic>)>>,
    reply: oneshot::Sender<Result<(T, Vec<Topic>)>>,
}

impl<T, F> Task for TypedTask<T, F>
where
    T: Send + 'static,
    F: for<'a> FnOnce(&'a mut WriteTx) -> WriteFuture<'a, T> + Send,
{
    fn run<'a>(&'a mut self, tx: &'a mut WriteTx) -> WriteFuture<'a, ()> {
        Box::pin(async move {
            let work = self.work.take().ok_or_else(stopped)?;
            let done = work(tx).await;
            let topics = std::mem::take(&mut tx.conn.topics);
            let done = self.done.insert(done.map(|done| (done, topics)));
            done.as_ref().map(drop).map_err(Error::shared)
        })
    }

    fn reply(self: Box<Self>, failed: Option<Error>) {
        let answer = match (self.done, failed) {
            // A write that failed by itself returns its own error.
            (Some(Err(error)), _) => Err(error),
            (_, Some(error)) => Err(error),
            (Some(done), None) => done,
            (None, None) => Err(stopped()),
        };
        // A cancelled caller does not undo the write.
        if let Err(Err(error)) = self.reply.send(answer) {
            tracing::error!(reason = %error, "a write without a waiting caller is lost");
        }
    }
}

impl Writer {
    /// Starts the task. It ends when the last writer is dropped and the queue is empty.
    pub(crate) fn start(begin: Begin, chain: Arc<Chain>) -> (Self, tokio::task::JoinHandle<()>) {
        let (queue, jobs) = mpsc::channel(QUEUE_LIMIT);
        let room = Arc::new(Semaphore::new(DEFERRED_LIMIT as usize));
        (Self { queue, room }, tokio::spawn(serve(begin, chain, jobs)))
    }

    pub(crate) async fn write<T, F>(&self, work: F) -> Result<(T, Vec<Topic>)>
    where
        T: Send + 'static,
        F: for<'a> FnOnce(&'a mut WriteTx) -> WriteFuture<'a, T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let task = Box::new(TypedTask { work: Some(work), done: None, reply });
        self.queue.send(Job::Write(task)).await.map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }

    pub(crate) async fn append(&self, entry: Entry) -> Result<()> {
        let (reply, answer) = oneshot::channel();
        self.queue.send(Job::Append(entry, reply)).await.map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }

    /// Appends an audit record with the next commit. Waits only while too many others are not durable.
    pub(crate) async fn append_deferred(&self, entry: Entry) -> Result<()> {
        self.defer(vec![entry], None, 0).await
    }

    /// Appends audit records and runs a write of `bytes` with the next commit, retrying until one succeeds.
    /// When the write fails by itself, that is logged, and the records are written all the same.
    pub(crate) async fn write_deferred(
        &self,
        entries: Vec<Entry>,
        work: RetriableWrite,
        bytes: usize,
    ) -> Result<()> {
        self.defer(entries, Some(work), bytes).await
    }

    async fn defer(&self, entries: Vec<Entry>, work: Option<RetriableWrite>, bytes: usize) -> Result<()> {
        let places = (entries.len() + bytes / PLACE_BYTES).max(1);
        let places = u32::try_from(places).map_or(DEFERRED_LIMIT, |places| places.min(DEFERRED_LIMIT));
        let room = Arc::clone(&self.room).acquire_many_owned(places);
        let room = tokio::time::timeout(ROOM_LIMIT, room).await.map_err(|_| crowded())?;
        let deferred = DeferredWrite { entries, work, tried: false, _room: room.map_err(|_| stopped())? };
        self.queue.send(Job::DeferredWrite(deferred)).await.map_err(|_| stopped())
    }
}

fn crowded() -> Error {
    Error::new(ErrorKind::Full, format!("{DEFERRED_LIMIT} audit records wait to be written"))
        .hint("see the log for why the database cannot be written")
}

fn stopped() -> Error {
    Error::new(ErrorKind::Other, "the store is closed")
}

async fn serve(begin: Begin, chain: Arc<Chain>, mut jobs: mpsc::Receiver<Job>) {
    let mut kept = Vec::new();
    loop {
        let first = match kept.is_empty() {
            true => jobs.recv().await.map(Some),
            false => tokio::time::timeout(RETRY, jobs.recv()).await.map_or(Some(None), |job| job.map(Some)),
        };
        let Some(first) = first else { break };
        let batch = gather(kept, first, &mut jobs).await;
        kept = commit(&begin, &chain, batch).await;
    }
    if !kept.is_empty() {
        kept = commit(&begin, &chain, kept).await;
    }
    if !kept.is_empty() {
        let records: usize = kept.iter().map(Job::record_count).sum();
        tracing::error!(records, "audit records are lost: the store closes and cannot be written");
    }
    chain.close();
}

/// The kept jobs, the first job, and those that are queued by now.
async fn gather(kept: Vec<Job>, first: Option<Job>, jobs: &mut mpsc::Receiver<Job>) -> Vec<Job> {
    let mut batch = kept;
    let limit = batch.len() + BATCH_LIMIT;
    batch.extend(first);
    let deadline = tokio::time::Instant::now() + GATHER;
    let mut awaited = batch.iter().any(Job::is_awaited);
    while batch.len() < limit {
        let next = match jobs.try_recv() {
            Ok(job) => Some(job),
            Err(_) if awaited => None,
            Err(_) => tokio::time::timeout_at(deadline, jobs.recv()).await.ok().flatten(),
        };
        let Some(job) = next else { break };
        awaited |= job.is_awaited();
        batch.push(job);
    }
    batch
}

impl Job {
    fn is_awaited(&self) -> bool {
        !matches!(self, Self::DeferredWrite(_))
    }

    fn record_count(&self) -> usize {
        match self {
            Self::Write(_) => 0,
            Self::Append(..) => 1,
            Self::DeferredWrite(deferred) => deferred.entries.len(),
        }
    }
}

/// Runs a batch in one transaction and replies to all of it. Returns the deferred writes that failed.
pub(super) async fn commit(begin: &Begin, chain: &Chain, mut batch: Vec<Job>) -> Vec<Job> {
    let failed = match begin.begin().await {
        Err(error) => Some(error),
        Ok(tx) => run_batch(tx, chain, &mut batch).await.err(),
    };
    let mut kept = Vec::new();
    let mut waited = false;
    for job in batch {
        match (job, &failed) {
            (Job::Write(task), failed) => task.reply(failed.as_ref().map(Error::shared)),
            (Job::Append(_, reply), failed) => {
                // A cancelled caller does not undo the write.
                let _ = reply.send(failed.as_ref().map_or(Ok(()), |error| Err(error.shared())));
            }
            (Job::DeferredWrite(deferred), None) => waited |= deferred.tried,
            (Job::DeferredWrite(deferred), Some(error)) => {
                kept.push(Job::DeferredWrite(again(deferred, error)))
            }
        }
    }
    if waited {
        tracing::info!("delayed audit records are written");
    }
    kept
}

fn again(mut deferred: DeferredWrite, reason: &Error) -> DeferredWrite {
    if !deferred.tried {
        tracing::error!(%reason, "an audit record cannot be written; it is kept and retried");
    }
    deferred.tried = true;
    deferred.entries.iter_mut().for_each(|entry| entry.tried = true);
    deferred
}

async fn run_batch(mut tx: WriteTx, chain: &Chain, batch: &mut [Job]) -> Result<()> {
    match run_all(&mut tx, batch).await {
        Ok(0) => return tx.conn.rollback().await,
        Ok(_) => {}
        Err(error) => {
            // The first error is the reason; a failed rollback adds nothing.
            let _ = tx.conn.rollback().await;
            return Err(error);
        }
    }
    let entries = std::mem::take(&mut tx.entries);
    let reached = match chain.seal(&mut tx.conn, entries).await {
        Ok(reached) => reached,
        Err(error) => {
            let _ = tx.conn.rollback().await;
            return Err(error);
        }
    };
    tx.conn.commit().await?;
    if let Some(reached) = reached {
        chain.publish(&reached).await;
    }
    Ok(())
}

/// Returns how many writes are to be committed.
async fn run_all(tx: &mut WriteTx, batch: &mut [Job]) -> Result<usize> {
    let shared = batch.len() > 1;
    let mut kept = 0;
    for job in batch {
        kept += match job {
            Job::Append(entry, _) => {
                tx.entries.push(entry.clone());
                1
            }
            Job::DeferredWrite(deferred) => {
                tx.entries.extend(deferred.entries.iter().cloned());
                if let Some(work) = &mut deferred.work {
                    run_deferred(&mut tx.conn, work).await?;
                }
                1
            }
            Job::Write(task) => usize::from(run(tx, task.as_mut(), shared).await?),
        };
    }
    Ok(kept)
}

/// Returns whether it is to be committed.
async fn run(tx: &mut WriteTx, task: &mut dyn Task, shared: bool) -> Result<bool> {
    if shared {
        save(&mut tx.conn).await?;
    }
    let before = tx.entries.len();
    let failed = task.run(tx).await.err();
    if failed.is_some() {
        tx.entries.truncate(before);
    }
    if shared {
        settle(&mut tx.conn, failed.as_ref()).await?;
    }
    Ok(failed.is_none())
}

/// The records of a deferred write are written even if it fails.
async fn run_deferred(conn: &mut Conn, work: &mut RetriableWrite) -> Result<()> {
    save(conn).await?;
    let failed = work(conn).await.err();
    settle(conn, failed.as_ref()).await?;
    if let Some(reason) = failed {
        tracing::error!(%reason, "a write without a waiting caller is lost");
    }
    Ok(())
}

async fn save(conn: &mut Conn) -> Result<()> {
    conn.execute("SAVEPOINT job", Vec::new()).await.map(drop)
}

/// Ends the savepoint, undoing its changes after a failure.
async fn settle(conn: &mut Conn, failed: Option<&Error>) -> Result<()> {
    if let Some(reason) = failed {
        let undone = conn.execute("ROLLBACK TO SAVEPOINT job", Vec::new()).await;
        // On a full disk SQLite rolls the whole transaction back by itself; the missing savepoint is not the reason.
        undone.map_err(|error| if error.kind() == ErrorKind::Other { reason.shared() } else { error })?;
    }
    conn.execute("RELEASE SAVEPOINT job", Vec::new()).await.map(drop)
}

#[cfg(test)]
mod tests {
    use crate::audit::{Action, Actor, Event, Operation, Record};
    use crate::error::{Error, ErrorKind};
    use crate::{DatabaseUrl, Store};

    fn record(subject: &str) -> Record {
        let actor = Actor { user: "ann".into(), agent: None, session: None, channel: None };
        let operation = Operation { action: Action::Other, subject: subject.into(), note: None };
        Record { actor, event: Event::Operator(operation) }
    }

    /// All of them are in the queue before the writer, which shares the thread, takes the first.
    #[tokio::test]
    async fn a_transaction_that_sqlite_rolled_back_fails_with_its_reason() {
        let store = Store::open(DatabaseUrl::Memory).await.unwrap();
        let full = store.write(|conn| {
            Box::pin(async move {
                conn.execute("ROLLBACK", Vec::new()).await?;
                Err::<(), _>(Error::new(ErrorKind::Full, "the disk is full"))
            })
        });
        let (deferred, before, own, after) = tokio::join!(
            store.audit().append_deferred(record("kept")),
            store.audit().append(record("before")),
            full,
            store.audit().append(record("after"))
        );
        deferred.unwrap();
        for error in [before, own, after].map(Result::unwrap_err) {
            assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Full, "the disk is full"));
        }
        store.audit().append(record("later")).await.unwrap();
        let tail = store.audit().tail(10, None).await.unwrap();
        let seen: Vec<_> = tail.iter().map(|record| record.text("subject").unwrap()).collect();
        assert_eq!(seen, ["kept", "later"]);
    }
}
