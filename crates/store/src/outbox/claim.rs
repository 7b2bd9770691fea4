//! Taking observations out of the outbox to deliver them, and what became of that. No one overtakes another of its session.

use std::time::Duration;

use crate::areas::Outbox;
use crate::db::{Conn, Sql, args, transaction};
use crate::error::Result;
use crate::leases::{Lease, LeaseStatus, clock, later};
use crate::store::Scope;

/// An observation that is ours to deliver.
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

/// Only the first of each session is looked for, and whoever holds it may take those that follow: two workers never
/// deliver the same session side by side. From session to session it is one step in the index, however many wait in
/// each; it takes as many steps as there are sessions with something to deliver.
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

impl Outbox<'_> {
    /// Takes up to `limit` observations of these users and agents, oldest first. For the worker that talks to their minds.
    pub async fn claim(self, lease: &Lease, of: &[Scope], limit: u32) -> Result<Vec<Observation>> {
        lease.check()?;
        if of.is_empty() {
            return Ok(Vec::new());
        }
        let (lease, of) = (lease.clone(), of.to_vec());
        let mut claimed = transaction!(self.store, |conn| take(conn, &lease, &of, limit).await)?;
        claimed.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(claimed)
    }

    /// The mind has all of these: they leave the outbox together, with one commit. How many there were; one that is not
    /// ours any more stays.
    pub async fn complete(self, observations: &[Observation]) -> Result<u64> {
        let ours: Vec<(String, String, i64)> =
            observations.iter().map(|one| (one.user.clone(), one.id.clone(), one.fence)).collect();
        transaction!(self.store, |conn| {
            let mut gone = 0;
            for (user, id, fence) in ours {
                gone += conn
                    .execute(
                        "DELETE FROM observation_outbox WHERE user_id = $1 AND id = $2 AND fence = $3",
                        args![user, id, fence],
                    )
                    .await?;
            }
            Ok(gone)
        })
    }

    /// It was tried in vain: gives it back to be tried again after a delay. Those of its session that were claimed with
    /// it go back too, so that none overtakes it: leave them. For them this was no attempt.
    pub async fn retry(self, observation: &Observation, delay: Duration) -> Result<LeaseStatus> {
        self.give_back(observation, delay, 0).await
    }

    /// The same for one that was not tried: this was no attempt.
    pub async fn release(self, observation: &Observation, delay: Duration) -> Result<LeaseStatus> {
        self.give_back(observation, delay, 1).await
    }

    async fn give_back(
        self,
        observation: &Observation,
        delay: Duration,
        untried: i64,
    ) -> Result<LeaseStatus> {
        let observation = observation.clone();
        transaction!(self.store, |conn| give_back(conn, &observation, delay, untried).await)
    }
}

async fn take(conn: &mut Conn, lease: &Lease, of: &[Scope], limit: u32) -> Result<Vec<Observation>> {
    type Row = (String, String, String, String, String, String, i64, i64, i64);
    let now = clock(conn).await?;
    let (users, agents): (Vec<String>, Vec<String>) =
        of.iter().map(|scope| (scope.user().to_owned(), scope.agent().to_owned())).unzip();
    let values = args![now, limit, &lease.owner, lease.until(now), users, agents];
    let rows: Vec<Row> = conn.fetch_all(CLAIM, values).await?;
    let claimed = rows.into_iter().map(|row| {
        let (user, id, agent, session, key, payload, attempts, fence, created_at) = row;
        Observation { user, id, agent, session, key, payload, attempts, fence, created_at }
    });
    Ok(claimed.collect())
}

async fn give_back(
    conn: &mut Conn,
    observation: &Observation,
    delay: Duration,
    untried: i64,
) -> Result<LeaseStatus> {
    let Observation { user, id, session, fence, .. } = observation;
    let available_at = later(clock(conn).await?, delay);
    let ours: Option<(Option<String>,)> = conn
        .fetch_optional(
            "UPDATE observation_outbox SET available_at = $4, attempts = attempts - $5 \
             WHERE user_id = $1 AND id = $2 AND fence = $3 RETURNING lease_owner",
            args![user, id, *fence, available_at, untried],
        )
        .await?;
    let Some((owner,)) = ours else { return Ok(LeaseStatus::Lost) };
    conn.execute(
        "UPDATE observation_outbox SET lease_owner = NULL, lease_until = 0, \
         attempts = CASE WHEN id = $3 THEN attempts ELSE attempts - 1 END \
         WHERE user_id = $1 AND session = $2 AND id >= $3 AND lease_owner = $4",
        args![user, session, id, owner],
    )
    .await?;
    Ok(LeaseStatus::Kept)
}
