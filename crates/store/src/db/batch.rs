//! One batch of writes in one transaction: all of it is answered after one commit.
//!
//! Each write has a savepoint of its own: one that fails takes none of the others with it.

use super::writer::{Again, DeferredWrite, Job, Task, WriteTx};
use super::{Begin, Conn};
use crate::audit::Chain;
use crate::error::{Error, ErrorKind, Result};

/// Runs a batch in one transaction and answers all of it. What nobody waits for comes back if it is not written.
pub(super) async fn commit(begin: &Begin, chain: &Chain, mut batch: Vec<Job>) -> Vec<Job> {
    let failed = match begin.begin().await {
        Err(error) => Some(error),
        Ok(tx) => together(tx, chain, &mut batch).await.err(),
    };
    let mut kept = Vec::new();
    let mut waited = false;
    for job in batch {
        match (job, &failed) {
            (Job::Write(task), failed) => task.reply(failed.as_ref().map(Error::shared)),
            (Job::Append(_, reply), failed) => {
                // A caller that went away does not undo the write.
                let _ = reply.send(failed.as_ref().map_or(Ok(()), |error| Err(error.shared())));
            }
            (Job::DeferredWrite(soon), None) => waited |= soon.tried,
            (Job::DeferredWrite(soon), Some(error)) => kept.push(Job::DeferredWrite(again(soon, error))),
        }
    }
    if waited {
        tracing::info!("audit records that had to wait are written");
    }
    kept
}

fn again(mut soon: DeferredWrite, reason: &Error) -> DeferredWrite {
    if !soon.tried {
        tracing::error!(%reason, "an audit record cannot be written; it is kept and tried again");
    }
    soon.tried = true;
    soon.entries.iter_mut().for_each(|entry| entry.tried = true);
    soon
}

async fn together(mut tx: WriteTx, chain: &Chain, batch: &mut [Job]) -> Result<()> {
    match run_all(&mut tx, batch).await {
        Ok(0) => return tx.conn.rollback().await,
        Ok(_) => {}
        Err(error) => {
            // Whatever it was that broke the transaction is the reason worth telling.
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

/// Runs every write; how many are to be kept.
async fn run_all(tx: &mut WriteTx, batch: &mut [Job]) -> Result<usize> {
    let shared = batch.len() > 1;
    let mut kept = 0;
    for job in batch {
        kept += match job {
            Job::Append(entry, _) => {
                tx.entries.push(entry.clone());
                1
            }
            Job::DeferredWrite(soon) => {
                tx.entries.extend(soon.entries.iter().cloned());
                if let Some(work) = &mut soon.work {
                    run_soon(&mut tx.conn, work).await?;
                }
                1
            }
            Job::Write(task) => usize::from(run(tx, task.as_mut(), shared).await?),
        };
    }
    Ok(kept)
}

/// Runs one write; whether it is to be kept.
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

/// Runs a write that nobody waits for. The records that it comes with are written whatever becomes of it.
async fn run_soon(conn: &mut Conn, work: &mut Again) -> Result<()> {
    save(conn).await?;
    let failed = work(conn).await.err();
    settle(conn, failed.as_ref()).await?;
    if let Some(reason) = failed {
        tracing::error!(%reason, "a write that nobody waited for is lost");
    }
    Ok(())
}

async fn save(conn: &mut Conn) -> Result<()> {
    conn.execute("SAVEPOINT job", Vec::new()).await.map(drop)
}

/// Ends the savepoint; what was done since is undone if it failed.
async fn settle(conn: &mut Conn, failed: Option<&Error>) -> Result<()> {
    if let Some(reason) = failed {
        let undone = conn.execute("ROLLBACK TO SAVEPOINT job", Vec::new()).await;
        // On a full disk SQLite undoes the whole transaction by itself; the savepoint is gone, and that is not the reason.
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
    async fn when_sqlite_gives_up_the_transaction_everybody_hears_why() {
        let store = Store::open(DatabaseUrl::Memory).await.unwrap();
        let full = store.write(|conn| {
            Box::pin(async move {
                conn.execute("ROLLBACK", Vec::new()).await?;
                Err::<(), _>(Error::new(ErrorKind::Full, "the disk is full"))
            })
        });
        let (soon, before, own, after) = tokio::join!(
            store.audit().append_deferred(record("kept")),
            store.audit().append(record("before")),
            full,
            store.audit().append(record("after"))
        );
        soon.unwrap();
        for error in [before, own, after].map(Result::unwrap_err) {
            assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Full, "the disk is full"));
        }
        store.audit().append(record("later")).await.unwrap();
        let tail = store.audit().tail(10, None).await.unwrap();
        let seen: Vec<_> = tail.iter().map(|record| record.text("subject").unwrap()).collect();
        assert_eq!(seen, ["kept", "later"]);
    }
}
