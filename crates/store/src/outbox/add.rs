//! Putting observations into the outbox, with the audit records that belong to them. One key is kept once, and of one user
//! only so many.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use super::quota_cache::QuotaCache;
use crate::areas::Outbox;
use crate::audit::Record;
use crate::db::{Again, Conn, args, audited};
use crate::error::Result;
use crate::store::{Scope, check_name, check_text, new_id, now};

const PAYLOAD_LIMIT: usize = 1024 * 1024;

/// An observation to hand to the mind.
#[derive(Clone, Debug)]
pub struct NewObservation {
    pub scope: Scope,
    /// Observations of one session are delivered in order.
    pub session: String,
    /// Deduplication key.
    pub key: String,
    /// JSON text, at most 1 MiB.
    pub payload: String,
    /// Most pending observations of one user. Replicas may exceed it by those they add within a second.
    pub pending_limit: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnqueueOutcome {
    Added,
    /// An observation with this key is pending already.
    Known,
    /// The user's limit is reached; it is not stored.
    Full,
}

impl Outbox<'_> {
    /// Keeps an observation together with these audit records, durably. The records are written even if the outbox is
    /// full: what was done was done.
    pub async fn enqueue(self, new: NewObservation, records: Vec<Record>) -> Result<EnqueueOutcome> {
        check(&new)?;
        audited!(self.store, |tx| {
            let enqueued = enqueue(&mut tx.conn, new).await?;
            records.into_iter().try_for_each(|record| tx.record(record))?;
            Ok(enqueued)
        })
    }

    /// Several, without waiting for the disk: they join the next commit, and are tried again until one succeeds. What then
    /// cannot be kept is logged; the records are written all the same.
    pub async fn enqueue_deferred(self, new: Vec<NewObservation>, records: Vec<Record>) -> Result<()> {
        new.iter().try_for_each(check)?;
        let entries = records.into_iter().map(Record::entry).collect::<Result<_>>()?;
        let bytes = new.iter().map(|new| new.payload.len()).sum();
        let (new, admitted, quotas) =
            (Arc::new(new), Arc::<Admitted>::default(), self.store.outbox_quotas().clone());
        let work: Again = Box::new(move |conn| {
            let (new, admitted, quotas) = (Arc::clone(&new), Arc::clone(&admitted), quotas.clone());
            Box::pin(async move { enqueue_all(conn, &new, &admitted, &quotas).await })
        });
        self.store.db().chained().write_soon(entries, work, bytes).await
    }
}

fn check(new: &NewObservation) -> Result<()> {
    check_name("session", &new.session)?;
    check_name("key of the observation", &new.key)?;
    check_text("observation", &new.payload, PAYLOAD_LIMIT)
}

/// Adds an observation inside the caller's transaction.
async fn enqueue(conn: &mut Conn, new: NewObservation) -> Result<EnqueueOutcome> {
    let (user, key) = (new.scope.user().to_owned(), new.key);
    // Counts no further than the limit: with the mind at hand there is next to nothing to count.
    let added = conn
        .execute(
            "INSERT INTO observation_outbox \
             (user_id, id, agent, session, idempotency_key, payload, created_at, available_at) \
             SELECT $1, $2, $3, $4, $5, $6, $7, 0 WHERE $8 > (SELECT count(*) FROM \
             (SELECT 1 FROM observation_outbox WHERE user_id = $1 LIMIT +$8) AS pending) \
             ON CONFLICT (user_id, idempotency_key) DO NOTHING",
            args![
                &user,
                new_id(),
                new.scope.agent(),
                new.session,
                &key,
                new.payload,
                now(),
                new.pending_limit
            ],
        )
        .await?;
    if added > 0 {
        return Ok(EnqueueOutcome::Added);
    }
    let known: Option<(String,)> = conn
        .fetch_optional(
            "SELECT id FROM observation_outbox WHERE user_id = $1 AND idempotency_key = $2",
            args![user, key],
        )
        .await?;
    Ok(if known.is_some() { EnqueueOutcome::Known } else { EnqueueOutcome::Full })
}

/// Those of the outbox that have room; decided once, however often the write is tried.
type Admitted = OnceLock<Vec<NewObservation>>;

/// Adds several inside the caller's transaction, in few statements: they come with every call that is made.
async fn enqueue_all(
    conn: &mut Conn,
    new: &[NewObservation],
    admitted: &Admitted,
    quotas: &QuotaCache,
) -> Result<()> {
    let admitted = match admitted.get() {
        Some(admitted) => admitted,
        None => {
            let found = admit(conn, new, quotas).await?;
            admitted.get_or_init(|| found)
        }
    };
    let row = |new: &NewObservation| {
        let NewObservation { scope, session, key, payload, .. } = new;
        args![scope.user(), new_id(), scope.agent(), session, key, payload, now(), 0i64]
    };
    let rows: Vec<_> = admitted.iter().map(row).collect();
    if rows.is_empty() {
        return Ok(());
    }
    conn.insert_rows(
        "INSERT INTO observation_outbox \
         (user_id, id, agent, session, idempotency_key, payload, created_at, available_at)",
        rows,
        "ON CONFLICT (user_id, idempotency_key) DO NOTHING",
    )
    .await
}

async fn admit(conn: &mut Conn, new: &[NewObservation], quotas: &QuotaCache) -> Result<Vec<NewObservation>> {
    let (mut admitted, mut lost) = (Vec::with_capacity(new.len()), BTreeMap::<&str, u32>::new());
    for new in new {
        if has_room(conn, new.scope.user(), new.pending_limit, quotas).await? {
            admitted.push(new.clone());
        } else {
            *lost.entry(new.scope.user()).or_default() += 1;
        }
    }
    for (user, lost) in lost {
        tracing::warn!(user, lost, "the outbox is full; observations are not kept");
    }
    Ok(admitted)
}

/// Whether the user has room for one more, which is then taken.
async fn has_room(conn: &mut Conn, user: &str, limit: u32, quotas: &QuotaCache) -> Result<bool> {
    if let Some(has_room) = quotas.take(user, limit) {
        return Ok(has_room);
    }
    let (pending,): (i64,) = conn
        .fetch_one(
            "SELECT count(*) FROM (SELECT 1 FROM observation_outbox WHERE user_id = $1 LIMIT +$2) AS pending",
            args![user, limit],
        )
        .await?;
    quotas.counted(user, pending, limit);
    Ok(quotas.take(user, limit).unwrap_or(false))
}
