//! Group commit: one task runs queued writes inside one transaction and answers them together, after one sync of the disk.
//!
//! While a commit waits for the disk the next writes gather in the queue, so the batch grows with the load and a lone
//! write waits for nobody. Each write has a savepoint of its own: one that fails takes none of the others with it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::{Begin, Conn};
use crate::audit::{Chain, Entry};
use crate::error::{Error, ErrorKind, Result};

/// Writes that wait; more callers wait for a place in the queue.
const QUEUE_LIMIT: usize = 1024;
/// Writes of one commit.
const BATCH_LIMIT: usize = 256;
/// How long a commit that nobody waits for may be put off to gather more.
const GATHER: Duration = Duration::from_millis(10);

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
}

struct Job {
    task: Box<dyn Task>,
    /// Nobody waits for the disk.
    soft: bool,
    /// It touches rows, so it needs a savepoint when it shares a transaction.
    guarded: bool,
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
        let _ = self.reply.send(answer);
    }
}

impl Writer {
    /// Starts the task. It ends when the last handle is gone and the queue is empty.
    pub(crate) fn start(begin: Begin, chain: Arc<Chain>) -> (Self, tokio::task::JoinHandle<()>) {
        let (queue, jobs) = mpsc::channel(QUEUE_LIMIT);
        (Self { queue }, tokio::spawn(serve(begin, chain, jobs)))
    }

    /// Runs a write and waits until it is durable.
    pub(crate) async fn write<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'a> FnOnce(&'a mut Unit) -> Working<'a, T> + Send + 'static,
    {
        let (task, answer) = task(work);
        self.queue.send(Job { task, soft: false, guarded: true }).await.map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }

    /// Hands a write over and waits for a place in the queue only. What goes wrong with it is logged: nobody hears it.
    pub(crate) async fn write_soon<F>(&self, work: F) -> Result<()>
    where
        F: for<'a> FnOnce(&'a mut Unit) -> Working<'a, ()> + Send + 'static,
    {
        let (task, _) = task(move |unit: &mut Unit| -> Working<'_, ()> {
            let working = work(unit);
            Box::pin(async move {
                working.await.inspect_err(|error| tracing::error!(reason = %error, "a write was lost"))
            })
        });
        self.queue.send(Job { task, soft: true, guarded: true }).await.map_err(|_| stopped())
    }

    /// Appends audit records; waits until they are durable unless `soft`.
    pub(crate) async fn append(&self, entries: Vec<Entry>, soft: bool) -> Result<()> {
        let (task, answer) = task(move |unit| {
            unit.entries.extend(entries);
            Box::pin(async { Ok(()) })
        });
        self.queue.send(Job { task, soft, guarded: false }).await.map_err(|_| stopped())?;
        if soft { Ok(()) } else { answer.await.map_err(|_| stopped())? }
    }
}

fn task<T, F>(work: F) -> (Box<dyn Task>, oneshot::Receiver<Result<T>>)
where
    T: Send + 'static,
    F: for<'a> FnOnce(&'a mut Unit) -> Working<'a, T> + Send + 'static,
{
    let (reply, answer) = oneshot::channel();
    (Box::new(Typed { work: Some(work), done: None, reply }), answer)
}

fn stopped() -> Error {
    Error::new(ErrorKind::Other, "the store is closed")
}

async fn serve(begin: Begin, chain: Arc<Chain>, mut jobs: mpsc::Receiver<Job>) {
    while let Some(first) = jobs.recv().await {
        let batch = gather(first, &mut jobs).await;
        commit(&begin, &chain, batch).await;
    }
}

async fn gather(first: Job, jobs: &mut mpsc::Receiver<Job>) -> Vec<Job> {
    let mut batch = vec![first];
    let deadline = tokio::time::Instant::now() + GATHER;
    while batch.len() < BATCH_LIMIT {
        let next = match jobs.try_recv() {
            Ok(job) => Some(job),
            Err(_) if batch.iter().all(|job| job.soft) => {
                tokio::time::timeout_at(deadline, jobs.recv()).await.ok().flatten()
            }
            Err(_) => None,
        };
        match next {
            Some(job) => batch.push(job),
            None => break,
        }
    }
    batch
}

/// Runs a batch in one transaction and answers all of it.
async fn commit(begin: &Begin, chain: &Chain, mut batch: Vec<Job>) {
    let failed = match begin.unit().await {
        Err(error) => Some(error),
        Ok(unit) => together(unit, chain, &mut batch).await.err(),
    };
    let all_soft = batch.iter().all(|job| job.soft);
    if let (Some(error), true) = (&failed, all_soft) {
        tracing::error!(reason = %error, records = batch.len(), "audit records could not be written");
    }
    for job in batch {
        job.task.reply(failed.as_ref().map(Error::shared));
    }
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
        chain.publish(&head);
    }
    Ok(())
}

/// Runs every write; how many are to be kept.
async fn run_all(unit: &mut Unit, batch: &mut [Job]) -> Result<usize> {
    let shared = batch.len() > 1;
    let mut kept = 0;
    for job in batch {
        let guard = shared && job.guarded;
        if guard {
            unit.conn.run("SAVEPOINT job", Vec::new()).await?;
        }
        let before = unit.entries.len();
        if job.task.run(unit).await {
            kept += 1;
        } else {
            unit.entries.truncate(before);
            if guard {
                unit.conn.run("ROLLBACK TO SAVEPOINT job", Vec::new()).await?;
            }
        }
        if guard {
            unit.conn.run("RELEASE SAVEPOINT job", Vec::new()).await?;
        }
    }
    Ok(kept)
}
