//! Group commit: one task runs queued writes inside one transaction and answers them together, after one sync of the disk.
//!
//! While a commit waits for the disk the next writes gather in the queue, so the batch grows with the load and a lone
//! write waits for nobody. Each write has a savepoint of its own: one that fails takes none of the others with it.
//! Audit records that nobody waits for are kept and tried again when a commit fails; they are never dropped while the
//! process lives.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::{Begin, Conn};
use crate::audit::{Chain, Entry};
use crate::error::{Error, ErrorKind, Result};

/// Writes that wait; more callers wait for a place in the queue.
const QUEUE_LIMIT: usize = 1024;
/// Writes of one commit.
const BATCH_LIMIT: usize = 256;
/// How long a commit that nobody waits for may be put off to gather more.
const GATHER: Duration = Duration::from_millis(10);
/// Audit records that nobody waits for and that are not durable yet; more callers wait.
const SOON_LIMIT: usize = 1024;
/// How long such a caller waits for a place.
const ROOM_LIMIT: Duration = Duration::from_secs(20);
/// When records that could not be written are tried again, if nothing else is.
const RETRY: Duration = Duration::from_secs(1);

/// A future that a write hands to the writer.
pub(crate) type Working<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// What a write works with: the connection, and the audit records that join the same commit.
pub(crate) struct Unit {
    pub(crate) conn: Conn,
    pub(crate) entries: Vec<Entry>,
}

/// The queue's entrance.
#[derive(Clone)]
pub(crate) struct Writer {
    queue: mpsc::Sender<Job>,
    room: Arc<Semaphore>,
}

enum Job {
    /// Somebody waits for it.
    Write(Box<dyn Task>),
    /// Nobody waits; what goes wrong with it is logged.
    WriteSoon(Box<dyn Task>),
    /// Somebody waits for the record, which cannot fail by itself.
    Append(Entry, oneshot::Sender<Result<()>>),
    /// Nobody waits. It gives up its place when it is durable.
    Soon(Entry, OwnedSemaphorePermit),
}

trait Task: Send {
    /// Runs the write; whether its changes are to be kept.
    fn run<'a>(&'a mut self, unit: &'a mut Unit) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>>;
    /// Answers the caller, when the commit has succeeded or failed.
    fn reply(self: Box<Self>, failed: Option<Error>);
}

struct Typed<T, F> {
    work: Option<F>,
    done: Option<Result<T>>,
    reply: oneshot::Sender<Result<T>>,
}

impl<T, F> Task for Typed<T, F>
where
    T: Send + 'static,
    F: for<'a> FnOnce(&'a mut Unit) -> Working<'a, T> + Send,
{
    fn run<'a>(&'a mut self, unit: &'a mut Unit) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>> {
        Box::pin(async move {
            if let Some(work) = self.work.take() {
                self.done = Some(work(unit).await);
            }
            matches!(self.done, Some(Ok(_)))
        })
    }

    fn reply(self: Box<Self>, failed: Option<Error>) {
        let answer = match (self.done, failed) {
            // A write that failed by itself says its own reason, whatever became of the others.
            (Some(Err(error)), _) => Err(error),
            (_, Some(error)) => Err(error),
            (Some(done), None) => done,
            (None, None) => Err(stopped()),
        };
        // A caller that went away does not undo the write.
        if let Err(Err(error)) = self.reply.send(answer) {
            tracing::error!(reason = %error, "a write that nobody waited for is lost");
        }
    }
}

impl Writer {
    /// Starts the task. It ends when the last handle is gone and the queue is empty.
    pub(crate) fn start(begin: Begin, chain: Arc<Chain>) -> (Self, tokio::task::JoinHandle<()>) {
        let (queue, jobs) = mpsc::channel(QUEUE_LIMIT);
        let room = Arc::new(Semaphore::new(SOON_LIMIT));
        (Self { queue, room }, tokio::spawn(serve(begin, chain, jobs)))
    }

    /// Runs a write and waits until it is durable.
    pub(crate) async fn write<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'a> FnOnce(&'a mut Unit) -> Working<'a, T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let task = Box::new(Typed { work: Some(work), done: None, reply });
        self.queue.send(Job::Write(task)).await.map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }

    /// Hands a write over and waits for a place in the queue only. What goes wrong with it is logged: nobody hears it.
    pub(crate) async fn write_soon<F>(&self, work: F) -> Result<()>
    where
        F: for<'a> FnOnce(&'a mut Unit) -> Working<'a, ()> + Send + 'static,
    {
        let (reply, _) = oneshot::channel();
        let task = Box::new(Typed { work: Some(work), done: None, reply });
        self.queue.send(Job::WriteSoon(task)).await.map_err(|_| stopped())
    }

    /// Appends an audit record and waits until it is durable.
    pub(crate) async fn append(&self, entry: Entry) -> Result<()> {
        let (reply, answer) = oneshot::channel();
        self.queue.send(Job::Append(entry, reply)).await.map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }

    /// Appends an audit record with the next commit. Waits only while too many others are not durable yet.
    pub(crate) async fn append_soon(&self, entry: Entry) -> Result<()> {
        let room = tokio::time::timeout(ROOM_LIMIT, Arc::clone(&self.room).acquire_owned()).await;
        let room = room.map_err(|_| crowded())?.map_err(|_| stopped())?;
        self.queue.send(Job::Soon(entry, room)).await.map_err(|_| stopped())
    }
}

fn crowded() -> Error {
    Error::new(ErrorKind::Full, format!("{SOON_LIMIT} audit records wait to be written"))
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
        tracing::error!(
            records = kept.len(),
            "audit records are lost: the store closes and cannot be written"
        );
    }
    chain.close();
}

/// What was kept, the first job, and whatever else is there by now.
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

/// Runs a batch in one transaction and answers all of it. What nobody waits for comes back if it is not written.
async fn commit(begin: &Begin, chain: &Chain, mut batch: Vec<Job>) -> Vec<Job> {
    let failed = match begin.unit().await {
        Err(error) => Some(error),
        Ok(unit) => together(unit, chain, &mut batch).await.err(),
    };
    let mut kept = Vec::new();
    let mut waited = false;
    for job in batch {
        match (job, &failed) {
            (Job::Write(task) | Job::WriteSoon(task), failed) => {
                task.reply(failed.as_ref().map(Error::shared))
            }
            (Job::Append(_, reply), failed) => {
                // A caller that went away does not undo the write.
                let _ = reply.send(failed.as_ref().map_or(Ok(()), |error| Err(error.shared())));
            }
            (Job::Soon(entry, _), None) => waited |= entry.tried,
            (Job::Soon(mut entry, room), Some(error)) => {
                if !entry.tried {
                    tracing::error!(reason = %error, "an audit record cannot be written; it is kept and tried again");
                }
                entry.tried = true;
                kept.push(Job::Soon(entry, room));
            }
        }
    }
    if waited {
        tracing::info!("audit records that had to wait are written");
    }
    kept
}

async fn together(mut unit: Unit, chain: &Chain, batch: &mut [Job]) -> Result<()> {
    match run_all(&mut unit, batch).await {
        Ok(0) => return unit.conn.rollback().await,
        Ok(_) => {}
        Err(error) => {
            // Whatever it was that broke the transaction is the reason worth telling.
            let _ = unit.conn.rollback().await;
            return Err(error);
        }
    }
    let entries = std::mem::take(&mut unit.entries);
    let head = match chain.seal(&mut unit.conn, entries).await {
        Ok(head) => head,
        Err(error) => {
            let _ = unit.conn.rollback().await;
            return Err(error);
        }
    };
    unit.conn.commit().await?;
    if let Some(head) = head {
        chain.publish(&head).await;
    }
    Ok(())
}

/// Runs every write; how many are to be kept.
async fn run_all(unit: &mut Unit, batch: &mut [Job]) -> Result<usize> {
    let shared = batch.len() > 1;
    let mut kept = 0;
    for job in batch {
        match job {
            Job::Append(entry, _) | Job::Soon(entry, _) => {
                unit.entries.push(entry.clone());
                kept += 1;
            }
            Job::Write(task) | Job::WriteSoon(task) => {
                kept += usize::from(run(unit, task.as_mut(), shared).await?)
            }
        }
    }
    Ok(kept)
}

/// Runs one write; whether it is to be kept.
async fn run(unit: &mut Unit, task: &mut dyn Task, shared: bool) -> Result<bool> {
    if shared {
        unit.conn.run("SAVEPOINT job", Vec::new()).await?;
    }
    let before = unit.entries.len();
    let kept = task.run(unit).await;
    if !kept {
        unit.entries.truncate(before);
        if shared {
            unit.conn.run("ROLLBACK TO SAVEPOINT job", Vec::new()).await?;
        }
    }
    if shared {
        unit.conn.run("RELEASE SAVEPOINT job", Vec::new()).await?;
    }
    Ok(kept)
}

impl Job {
    fn is_awaited(&self) -> bool {
        !matches!(self, Self::Soon(..) | Self::WriteSoon(_))
    }
}
