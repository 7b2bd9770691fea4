//! The outbox of observations: stored until the mind has them, delivered at least once, in the order of their session.
//! A key is stored once.

mod quota_cache;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub(crate) use self::quota_cache::QuotaCache;
use crate::areas::Outbox;
use crate::audit::Record;
use crate::db::{Conn, RetriableWrite, Sql, Value, args, from_row, transaction};
use crate::error::Result;
use crate::leases::{self, Lease, LeaseStatus, LeasedRow, claim_sql, clock, earlier, later};
use crate::store::{Scope, check_name, check_text, new_id, now};

const PAYLOAD_LIMIT: usize = 1024 * 1024;

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

/// A claimed observation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    pub user: String,
    pub id: String,
    pub agent: String,
    pub session: String,
    /// The mind may see an observation twice, with the same key.
    pub key: String,
    pub payload: String,
    /// Delivery attempts, this one included; a claim that was put back untried does not count.
    pub attempts: i64,
    pub fence: i64,
    pub created_at: i64,
}

from_row! {
    Observation { user, id, agent, session, key, payload, attempts, fence, created_at }
}

impl LeasedRow for Observation {
    fn key(&self) -> Vec<Value> {
        args![&self.user, &self.id, self.fence]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingObservations {
    /// Claimed ones included.
    pub count: i64,
    pub oldest_at: Option<i64>,
}

from_row! { PendingObservations { count, oldest_at } }

/// Only the first observation of each session is considered, and the worker that claims it may claim those that follow:
/// two workers never deliver the same session side by side. From session to session it is one step in the index,
/// however many wait in each; it takes as many steps as there are sessions with something to deliver.
macro_rules! claim_of {
    ($scopes:literal, $following:literal, $lock_head:literal, $lock_one:literal) => {
        concat!(
            "WITH RECURSIVE scopes (user_id, agent) AS (",
            $scopes,
            "), sessions (user_id, session) AS (SELECT user_id, (SELECT min(session) FROM observation_outbox AS one \
             WHERE one.user_id = users.user_id) FROM (SELECT DISTINCT user_id FROM scopes) AS users \
             UNION ALL SELECT user_id, (SELECT min(session) FROM observation_outbox AS one \
             WHERE one.user_id = sessions.user_id AND one.session > sessions.session) \
             FROM sessions WHERE session IS NOT NULL), \
             heads AS MATERIALIZED (SELECT head.user_id, head.session FROM sessions \
             JOIN observation_outbox AS head ON head.user_id = sessions.user_id AND head.id = \
             (SELECT min(id) FROM observation_outbox AS one \
             WHERE one.user_id = sessions.user_id AND one.session = sessions.session) \
             WHERE head.available_at <= $1 AND head.lease_until <= $1 \
             AND (head.user_id, head.agent) IN (SELECT user_id, agent FROM scopes) ORDER BY head.id LIMIT +$2",
            $lock_head,
            "), picked AS MATERIALIZED (SELECT one.user_id AS picked_user, one.id AS picked_id FROM heads ",
            $following,
            " WHERE one.available_at <= $1 AND one.lease_until <= $1 ORDER BY one.id LIMIT +$2",
            $lock_one,
            ") UPDATE observation_outbox SET lease_owner = $3, lease_until = $4, fence = fence + 1, \
             attempts = attempts + 1 FROM picked WHERE user_id = picked_user AND id = picked_id \
             RETURNING user_id, id, agent, session, idempotency_key, payload, attempts, fence, created_at",
        )
    };
}
const CLAIM: Sql = Sql {
    sqlite: claim_of!(
        "SELECT u.value, a.value FROM json_each($5) u JOIN json_each($6) a ON u.key = a.key",
        "JOIN observation_outbox AS one ON one.user_id = heads.user_id AND one.id IN \
         (SELECT id FROM observation_outbox AS next WHERE next.user_id = heads.user_id \
         AND next.session = heads.session ORDER BY next.id LIMIT +$2)",
        "",
        ""
    ),
    pg: claim_of!(
        "SELECT * FROM unnest($5::text[], $6::text[])",
        "CROSS JOIN LATERAL (SELECT next.id FROM observation_outbox AS next WHERE next.user_id = heads.user_id \
         AND next.session = heads.session ORDER BY next.id LIMIT +$2) AS next \
         JOIN observation_outbox AS one ON one.user_id = heads.user_id AND one.id = next.id",
        " FOR UPDATE OF head SKIP LOCKED",
        " FOR UPDATE OF one SKIP LOCKED"
    ),
};
const COMPLETE: &str = "DELETE FROM observation_outbox WHERE user_id = $1 AND id = $2 AND fence = $3";
const DELAY: &str = "UPDATE observation_outbox SET available_at = $4, attempts = attempts - $5 \
     WHERE user_id = $1 AND id = $2 AND fence = $3 RETURNING lease_owner";
const RELEASE_SESSION: &str = "UPDATE observation_outbox SET lease_owner = NULL, lease_until = 0, \
     attempts = CASE WHEN id = $3 THEN attempts ELSE attempts - 1 END \
     WHERE user_id = $1 AND session = $2 AND id >= $3 AND lease_owner = $4";
const PRUNE: Sql = claim_sql!(
    "WITH picked AS MATERIALIZED (SELECT user_id, id FROM observation_outbox \
     WHERE created_at < $1 AND lease_until <= $2 ORDER BY id LIMIT +$3",
    ") DELETE FROM observation_outbox WHERE (user_id, id) IN (SELECT * FROM picked)",
);

impl Outbox<'_> {
    /// Adds observations and these audit records without waiting for the disk: they join the next commit, and are tried
    /// again until one succeeds. An observation beyond the user's limit is dropped with a log entry; the records are
    /// written all the same.
    pub async fn enqueue_deferred(self, new: Vec<NewObservation>, records: Vec<Record>) -> Result<()> {
        new.iter().try_for_each(check)?;
        let entries = records.into_iter().map(Record::entry).collect::<Result<_>>()?;
        let bytes = new.iter().map(|new| new.payload.len()).sum();
        let (new, admitted, quotas) =
            (Arc::new(new), Arc::<Admitted>::default(), self.store.outbox_quotas().clone());
        let work: RetriableWrite = Box::new(move |conn| {
            let (new, admitted, quotas) = (Arc::clone(&new), Arc::clone(&admitted), quotas.clone());
            Box::pin(async move { enqueue_all(conn, &new, &admitted, &quotas).await })
        });
        self.store.db().chained().write_deferred(entries, work, bytes).await
    }

    pub async fn pending(self, user: &str) -> Result<PendingObservations> {
        let sql = "SELECT count(*), min(created_at) FROM observation_outbox WHERE user_id = $1";
        self.store.fetch_one(sql, args![user]).await
    }

    /// The pending observations of all users. For the operator.
    pub async fn pending_total(self) -> Result<PendingObservations> {
        let sql = "SELECT count(*), min(created_at) FROM observation_outbox";
        self.store.fetch_one(sql, Vec::new()).await
    }

    /// Claims up to `limit` observations of these users and agents, oldest first. For the worker that talks to their minds.
    pub async fn claim(self, lease: &Lease, of: &[Scope], limit: u32) -> Result<Vec<Observation>> {
        lease.check()?;
        if of.is_empty() {
            return Ok(Vec::new());
        }
        let (users, agents): (Vec<String>, Vec<String>) =
            of.iter().map(|scope| (scope.user().to_owned(), scope.agent().to_owned())).unzip();
        let lease = lease.clone();
        let (_, mut claimed): (_, Vec<Observation>) = transaction!(self.store, |conn| {
            leases::claim(conn, CLAIM, &lease, limit, args![users, agents]).await
        })?;
        claimed.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(claimed)
    }

    /// The mind has these observations: deletes those that are still ours, with one commit; returns how many.
    pub async fn complete(self, observations: &[Observation]) -> Result<u64> {
        let keys: Vec<Vec<Value>> = observations.iter().map(Observation::key).collect();
        transaction!(self.store, |conn| {
            let mut completed = 0;
            for key in keys {
                completed += conn.execute(COMPLETE, key).await?;
            }
            Ok(completed)
        })
    }

    /// Releases an observation whose delivery failed, to be tried again after a delay. The later ones of its session that
    /// were claimed with it are released too, so that none overtakes it; for them this was no attempt.
    pub async fn retry(self, observation: &Observation, delay: Duration) -> Result<LeaseStatus> {
        self.release_session(observation, delay, 0).await
    }

    /// The same for an observation that was not tried: this was no attempt.
    pub async fn release(self, observation: &Observation, delay: Duration) -> Result<LeaseStatus> {
        self.release_session(observation, delay, 1).await
    }

    async fn release_session(
        self,
        observation: &Observation,
        delay: Duration,
        untried: i64,
    ) -> Result<LeaseStatus> {
        let observation = observation.clone();
        transaction!(self.store, |conn| {
            let Observation { user, id, session, fence, .. } = &observation;
            let available_at = later(clock(conn).await?, delay);
            let values = args![user, id, *fence, available_at, untried];
            let ours: Option<(Option<String>,)> = conn.fetch_optional(DELAY, values).await?;
            let Some((owner,)) = ours else { return Ok(LeaseStatus::Lost) };
            conn.execute(RELEASE_SESSION, args![user, session, id, owner]).await?;
            Ok(LeaseStatus::Kept)
        })
    }

    /// Deletes up to `limit` observations that are older than `age` and not claimed, of all users; returns how many.
    pub async fn prune(self, age: Duration, limit: u32) -> Result<u64> {
        transaction!(self.store, |conn| {
            let now = clock(conn).await?;
            conn.execute(PRUNE, args![earlier(now, age), now, limit]).await
        })
    }
}

fn check(new: &NewObservation) -> Result<()> {
    check_name("session", &new.session)?;
    check_name("key of the observation", &new.key)?;
    check_text("observation", &new.payload, PAYLOAD_LIMIT)
}

/// The observations within their user's limit; decided once, however often the write is tried.
type Admitted = OnceLock<Vec<NewObservation>>;

/// Adds several in few statements, since every call adds some.
async fn enqueue_all(
    conn: &mut Conn,
    new: &[NewObservation],
    admitted: &Admitted,
    quotas: &QuotaCache,
) -> Result<()> {
    let admitted = match admitted.get() {
        Some(admitted) => admitted,
        None => {
            let found = within_quota(conn, new, quotas).await?;
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

async fn within_quota(
    conn: &mut Conn,
    new: &[NewObservation],
    quotas: &QuotaCache,
) -> Result<Vec<NewObservation>> {
    let (mut admitted, mut lost) = (Vec::with_capacity(new.len()), BTreeMap::<&str, u32>::new());
    for new in new {
        if has_room(conn, new.scope.user(), new.pending_limit, quotas).await? {
            admitted.push(new.clone());
        } else {
            *lost.entry(new.scope.user()).or_default() += 1;
        }
    }
    for (user, lost) in lost {
        tracing::warn!(user, lost, "the outbox is full; observations are dropped");
    }
    Ok(admitted)
}

/// Whether one more is within the user's limit; if so, it counts from now on.
async fn has_room(conn: &mut Conn, user: &str, limit: u32, quotas: &QuotaCache) -> Result<bool> {
    if let Some(has_room) = quotas.take(user, limit) {
        return Ok(has_room);
    }
    let sql =
        "SELECT count(*) FROM (SELECT 1 FROM observation_outbox WHERE user_id = $1 LIMIT +$2) AS pending";
    let (pending,): (i64,) = conn.fetch_one(sql, args![user, limit]).await?;
    quotas.counted(user, pending, limit);
    Ok(quotas.take(user, limit).unwrap_or(false))
}
