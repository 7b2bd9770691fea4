//! The outbox of observations: kept until the mind has taken them, at least once, in the order of their session.

use std::collections::HashMap;
use std::time::Duration;

use crate::audit::Record;
use crate::db::{Again, Conn, Sql, args};
use crate::error::Result;
use crate::leases::{Fenced, Lease, claim, clock, earlier, later};
use crate::store::{Scope, Store, check_name, check_text, new_id, now};

const PAYLOAD_LIMIT: usize = 1024 * 1024;

/// An observation to hand to the mind.
#[derive(Clone, Debug)]
pub struct NewObservation {
    /// Whose, and of which agent.
    pub scope: Scope,
    /// The session that it belongs to; those of one session are delivered in order.
    pub session: String,
    /// What makes it the same observation when it comes twice.
    pub key: String,
    /// What the mind is told, as JSON text; at most 1 MiB.
    pub payload: String,
    /// More than so many of one user are not kept. Replicas that add at once may pass it by what they add.
    pub pending_limit: u32,
}

/// What became of a new observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enqueued {
    /// It is kept.
    Added,
    /// One with this key waits already.
    Known,
    /// Too many of this user wait; it is not kept.
    Full,
}

/// An observation that is ours to deliver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// Whose it is.
    pub user: String,
    /// Its id.
    pub id: String,
    /// Of which agent.
    pub agent: String,
    /// The session that it belongs to.
    pub session: String,
    /// The mind may see it twice, with the same key.
    pub key: String,
    /// What the mind is told.
    pub payload: String,
    /// How often it was claimed, this time included.
    pub attempts: i64,
    /// Proves that it is ours.
    pub fence: i64,
    /// When it was made, in microseconds since 1970.
    pub created_at: i64,
}

/// How many wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingObservations {
    /// All of them, whether somebody is delivering them or not.
    pub count: i64,
    /// When the oldest was made.
    pub oldest_at: Option<i64>,
}

/// Only the first of each session is looked for, and whoever holds it may take those that follow: two workers never
/// deliver the same session side by side.
const CLAIM: Sql = claim!(
    "WITH heads AS MATERIALIZED (SELECT user_id, session FROM observation_outbox AS head \
     WHERE available_at <= $1 AND lease_until <= $1 AND NOT EXISTS (SELECT 1 FROM observation_outbox AS earlier \
     WHERE earlier.user_id = head.user_id AND earlier.session = head.session AND earlier.id < head.id) \
     ORDER BY id LIMIT $2",
    "), picked AS MATERIALIZED (SELECT one.user_id AS picked_user, one.id AS picked_id FROM heads \
     JOIN observation_outbox AS one ON one.user_id = heads.user_id AND one.session = heads.session \
     WHERE one.available_at <= $1 AND one.lease_until <= $1 ORDER BY one.id LIMIT $2",
    ") UPDATE observation_outbox SET lease_owner = $3, lease_until = $4, fence = fence + 1, attempts = attempts + 1 \
     FROM picked WHERE user_id = picked_user AND id = picked_id \
     RETURNING user_id, id, agent, session, idempotency_key, payload, attempts, fence, created_at",
);
const PRUNE: Sql = claim!(
    "WITH picked AS MATERIALIZED (SELECT user_id, id FROM observation_outbox \
     WHERE created_at < $1 AND lease_until <= $2 ORDER BY id LIMIT $3",
    ") DELETE FROM observation_outbox WHERE (user_id, id) IN (SELECT * FROM picked)",
);

impl Store {
    /// Keeps an observation together with these audit records, durably. The records are written even if the outbox is
    /// full: what was done was done.
    pub async fn add_observation(&self, new: NewObservation, records: Vec<Record>) -> Result<Enqueued> {
        check(&new)?;
        self.db()
            .chained()
            .write(move |unit| {
                Box::pin(async move {
                    let enqueued = enqueue(&mut unit.conn, new).await?;
                    records.into_iter().try_for_each(|record| unit.record(record))?;
                    Ok(enqueued)
                })
            })
            .await
    }

    /// Several, without waiting for the disk: they join the next commit, and are tried again until one succeeds. What then
    /// cannot be kept is logged; the records are written all the same.
    pub async fn add_observations_soon(&self, new: Vec<NewObservation>, records: Vec<Record>) -> Result<()> {
        new.iter().try_for_each(check)?;
        let entries = records.into_iter().map(Record::entry).collect::<Result<_>>()?;
        let bytes = new.iter().map(|new| new.payload.len()).sum();
        let work: Again = Box::new(move |conn| {
            let new = new.clone();
            Box::pin(async move { enqueue_all(conn, new).await })
        });
        self.db().chained().write_soon(entries, work, bytes).await
    }

    /// Takes up to `limit` observations of all users, oldest first. For the worker that talks to the mind.
    pub async fn claim_observations(&self, lease: &Lease, limit: u32) -> Result<Vec<Observation>> {
        lease.check()?;
        let lease = lease.clone();
        let mut claimed =
            self.db().write(move |conn| Box::pin(async move { take(conn, &lease, limit).await })).await?;
        claimed.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(claimed)
    }

    /// The mind has it: it leaves the outbox.
    pub async fn ack_observation(&self, observation: &Observation) -> Result<Fenced> {
        let Observation { user, id, fence, .. } = observation.clone();
        self.db()
            .write(move |conn| {
                Box::pin(async move {
                    let gone = conn
                        .run(
                            "DELETE FROM observation_outbox WHERE user_id = $1 AND id = $2 AND fence = $3",
                            args![user, id, fence],
                        )
                        .await?;
                    Ok(Fenced::by(gone))
                })
            })
            .await
    }

    /// Gives it back to be tried again after a delay. Those of its session that were claimed with it go back too, so
    /// that none overtakes it: leave them.
    pub async fn retry_observation(&self, observation: &Observation, delay: Duration) -> Result<Fenced> {
        let observation = observation.clone();
        self.db().write(move |conn| Box::pin(async move { give_back(conn, &observation, delay).await })).await
    }

    /// How many of this user wait.
    pub async fn pending_observations(&self, user: &str) -> Result<PendingObservations> {
        let (count, oldest_at) = self
            .db()
            .reader()
            .await?
            .one("SELECT count(*), min(created_at) FROM observation_outbox WHERE user_id = $1", args![user])
            .await?;
        Ok(PendingObservations { count, oldest_at })
    }

    /// How many wait, of all users. For the operator.
    pub async fn all_pending_observations(&self) -> Result<PendingObservations> {
        let (count, oldest_at) = self
            .db()
            .reader()
            .await?
            .one("SELECT count(*), min(created_at) FROM observation_outbox", Vec::new())
            .await?;
        Ok(PendingObservations { count, oldest_at })
    }

    /// Drops up to `limit` observations that are older than `age` and that nobody is delivering, of all users; how
    /// many there were.
    pub async fn prune_observations(&self, age: Duration, limit: u32) -> Result<u64> {
        self.db()
            .write(move |conn| {
                Box::pin(async move {
                    let now = clock(conn).await?;
                    conn.run(PRUNE, args![earlier(now, age), now, limit]).await
                })
            })
            .await
    }
}

fn check(new: &NewObservation) -> Result<()> {
    check_name("session", &new.session)?;
    check_name("key of the observation", &new.key)?;
    check_text("observation", &new.payload, PAYLOAD_LIMIT)
}

/// Adds an observation inside the caller's transaction.
async fn enqueue(conn: &mut Conn, new: NewObservation) -> Result<Enqueued> {
    let (user, key) = (new.scope.user().to_owned(), new.key);
    // Counts no further than the limit: with the mind at hand there is next to nothing to count.
    let added = conn
        .run(
            "INSERT INTO observation_outbox \
             (user_id, id, agent, session, idempotency_key, payload, created_at, available_at) \
             SELECT $1, $2, $3, $4, $5, $6, $7, 0 WHERE $8 > (SELECT count(*) FROM \
             (SELECT 1 FROM observation_outbox WHERE user_id = $1 LIMIT $8) AS pending) \
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
        return Ok(Enqueued::Added);
    }
    let known: Option<(String,)> = conn
        .maybe(
            "SELECT id FROM observation_outbox WHERE user_id = $1 AND idempotency_key = $2",
            args![user, key],
        )
        .await?;
    Ok(if known.is_some() { Enqueued::Known } else { Enqueued::Full })
}

/// Adds several inside the caller's transaction, in one statement: they come with every call that is made.
async fn enqueue_all(conn: &mut Conn, new: Vec<NewObservation>) -> Result<()> {
    let mut room: HashMap<String, i64> = HashMap::new();
    let mut rows = Vec::with_capacity(new.len());
    for new in new {
        let user = new.scope.user().to_owned();
        let left = match room.get_mut(&user) {
            Some(left) => left,
            None => {
                let (pending,): (i64,) = conn
                    .one(
                        "SELECT count(*) FROM (SELECT 1 FROM observation_outbox WHERE user_id = $1 LIMIT $2) AS pending",
                        args![&user, new.pending_limit],
                    )
                    .await?;
                room.entry(user.clone()).or_insert(i64::from(new.pending_limit) - pending)
            }
        };
        if *left <= 0 {
            tracing::warn!(user, key = new.key, "the outbox is full; an observation is not kept");
            continue;
        }
        *left -= 1;
        rows.push(args![user, new_id(), new.scope.agent(), new.session, new.key, new.payload, now(), 0i64]);
    }
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

async fn take(conn: &mut Conn, lease: &Lease, limit: u32) -> Result<Vec<Observation>> {
    type Row = (String, String, String, String, String, String, i64, i64, i64);
    let now = clock(conn).await?;
    let rows: Vec<Row> = conn.all(CLAIM, args![now, limit, &lease.owner, lease.until(now)]).await?;
    let claimed = rows.into_iter().map(|row| {
        let (user, id, agent, session, key, payload, attempts, fence, created_at) = row;
        Observation { user, id, agent, session, key, payload, attempts, fence, created_at }
    });
    Ok(claimed.collect())
}

async fn give_back(conn: &mut Conn, observation: &Observation, delay: Duration) -> Result<Fenced> {
    let Observation { user, id, session, fence, .. } = observation;
    let available_at = later(clock(conn).await?, delay);
    let ours: Option<(Option<String>,)> = conn
        .maybe(
            "UPDATE observation_outbox SET available_at = $4 \
             WHERE user_id = $1 AND id = $2 AND fence = $3 RETURNING lease_owner",
            args![user, id, *fence, available_at],
        )
        .await?;
    let Some((owner,)) = ours else { return Ok(Fenced::Lost) };
    conn.run(
        "UPDATE observation_outbox SET lease_owner = NULL, lease_until = 0 \
         WHERE user_id = $1 AND session = $2 AND id >= $3 AND lease_owner = $4",
        args![user, session, id, owner],
    )
    .await?;
    Ok(Fenced::Kept)
}
