//! Delivers observations from the store's outbox to the mind, also after a crash or while the mind was unavailable.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use embody_store::outbox::Observation;
use embody_store::{Lease, Scope, Store};
use embody_wire::Outcome;
use embody_wire::upstream::Link;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::{Mutex, Notify};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::pipeline::respond::raw;
use crate::pipeline::send::call_mind;
use crate::session::{OBSERVE_AFTER, Session};
use crate::upstream::Health;
use crate::{BrokerConfig, Sessions};

const BATCH: u32 = 32;
/// How long the claim of a killed process blocks its observations.
const LEASE_DURATION: Duration = Duration::from_secs(20);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// A mind that takes longer is reported, but still awaited.
const SLOW_AFTER: Duration = Duration::from_secs(1);
const CONNECT_TIMEOUT: Duration = Duration::from_millis(2500);
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Delivers calls in quick succession together, so that the delivery does not compete with them for the processor.
const BATCH_DELAY: Duration = Duration::from_millis(100);
const RETRY_DELAY: Duration = Duration::from_secs(2);
/// The longest delivery, including connecting and the pause after it.
const DELIVERY_MAX: Duration = Duration::from_secs(15);
/// After this many attempts an observation is dropped, because later ones of its session wait for it.
const ATTEMPTS_MAX: i64 = 20;
/// Delivered observations are deleted after this long at the latest; a crash before that delivers them again.
const ACK_INTERVAL: Duration = Duration::from_millis(500);
/// The pause after a delivery, as a multiple of its duration.
const PAUSE_FACTOR: u32 = 4;
const AGE_MAX: Duration = Duration::from_secs(30 * 24 * 3600);
/// The mind recognizes a repeated delivery by this key.
pub(crate) const META_KEY: &str = "embody/idempotencyKey";

/// Delivers the observations of the users and agents that have a session in this process.
pub(crate) struct Outbox {
    config: Arc<BrokerConfig>,
    sessions: Arc<Sessions>,
    lease: Lease,
    /// Held while claimed observations are delivered: a drain must not miss those that the loop has claimed.
    claiming: Mutex<()>,
    drains: AtomicUsize,
}

#[derive(Clone, Copy)]
enum Deadline {
    Begin(Instant),
    End(Instant),
}

impl Outbox {
    pub(crate) fn new(config: Arc<BrokerConfig>, sessions: Arc<Sessions>) -> Self {
        let lease = Lease { owner: format!("outbox {}", std::process::id()), duration: LEASE_DURATION };
        Self { config, sessions, lease, claiming: Mutex::default(), drains: AtomicUsize::new(0) }
    }

    pub(crate) async fn deliver(self: Arc<Self>, news: Arc<Notify>) {
        loop {
            let _ = timeout(POLL_INTERVAL, news.notified()).await;
            sleep(BATCH_DELAY).await;
            loop {
                let _claiming = self.claiming.lock().await;
                // A later delivery could end after the lease, when another process has the claim.
                let until = Instant::now() + LEASE_DURATION.saturating_sub(DELIVERY_MAX);
                let claimed = self.claim(&self.sessions.scopes()).await;
                if claimed.is_empty() {
                    break;
                }
                self.deliver_all(claimed, Deadline::Begin(until)).await;
            }
            let _ = self.config.store.outbox().prune(AGE_MAX, BATCH).await;
        }
    }

    /// Delivers the outbox of these scopes before their last sessions here end. The rest stays for the next process.
    pub(crate) async fn drain(&self, scopes: &[Scope], until: Instant) {
        let _drain = Drain::new(&self.drains);
        while Instant::now() < until {
            let Ok(_claiming) = timeout_at(until, self.claiming.lock()).await else { break };
            let claimed = self.claim(scopes).await;
            // Released observations are not retried at once.
            if claimed.is_empty() || !self.deliver_all(claimed, Deadline::End(until)).await {
                break;
            }
        }
    }

    /// Returns when no claimed observation is being delivered, or at the deadline.
    pub(crate) async fn wait_idle(&self, until: Instant) {
        let _ = timeout_at(until, self.claiming.lock()).await;
    }

    async fn claim(&self, scopes: &[Scope]) -> Vec<Observation> {
        self.config.store.outbox().claim(&self.lease, scopes, BATCH).await.unwrap_or_else(|error| {
            tracing::warn!(reason = %error, "the outbox cannot be read");
            Vec::new()
        })
    }

    /// Delivers them one after another; returns whether the mind accepted all. Accepted ones are deleted together: separate
    /// commits would flush the disk each time and delay the records of calls.
    async fn deliver_all(&self, claimed: Vec<Observation>, deadline: Deadline) -> bool {
        let mut delivered =
            Delivered { store: &self.config.store, since: Instant::now(), observations: Vec::new() };
        // The observations after a failed one were released together with it.
        let mut waiting: HashSet<(String, String)> = HashSet::new();
        for observation in claimed {
            let owner = (observation.user.clone(), observation.session.clone());
            if waiting.contains(&owner) {
                continue;
            }
            let began = Instant::now();
            let limit = deadline.limit(began);
            let outcome = if limit > Duration::ZERO {
                deliver_one(&self.sessions, &observation, limit).await
            } else {
                DeliveryOutcome::NotSent("no time was left to send it".to_owned(), Duration::ZERO)
            };
            if !store_outcome(&mut delivered, observation, outcome).await {
                waiting.insert(owner);
            }
            // Leave the processor to running calls, unless a session waits to end.
            if self.drains.load(Ordering::Acquire) == 0 {
                sleep(began.elapsed().min(BATCH_DELAY) * PAUSE_FACTOR).await;
            }
            if delivered.since.elapsed() > ACK_INTERVAL {
                delivered.ack().await;
            }
        }
        delivered.ack().await;
        waiting.is_empty()
    }
}

struct Drain<'a>(&'a AtomicUsize);

impl<'a> Drain<'a> {
    fn new(drains: &'a AtomicUsize) -> Self {
        drains.fetch_add(1, Ordering::AcqRel);
        Self(drains)
    }
}

impl Drop for Drain<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Deadline {
    /// How long a delivery that begins now may take; zero if it must not begin.
    fn limit(self, now: Instant) -> Duration {
        match self {
            Self::Begin(until) if now < until => ANSWER_TIMEOUT,
            Self::Begin(_) => Duration::ZERO,
            Self::End(until) => until.saturating_duration_since(now).min(ANSWER_TIMEOUT),
        }
    }
}

struct Delivered<'a> {
    store: &'a Store,
    since: Instant,
    observations: Vec<Observation>,
}

impl Delivered<'_> {
    async fn ack(&mut self) {
        self.since = Instant::now();
        let delivered = std::mem::take(&mut self.observations);
        if delivered.is_empty() {
            return;
        }
        if let Err(error) = self.store.outbox().complete(&delivered).await {
            tracing::warn!(reason = %error, count = delivered.len(), "observations stay in the outbox");
        }
    }
}

enum DeliveryOutcome {
    Accepted,
    Unanswered(String),
    /// It was not sent; retry after this delay.
    NotSent(String, Duration),
}

async fn deliver_one(sessions: &Sessions, observation: &Observation, limit: Duration) -> DeliveryOutcome {
    // The session that made the call shows its delivery. Any other session of this user and agent can deliver it too; without
    // one it waits.
    let is_theirs = |session: &Arc<Session>| {
        session.scope.user() == observation.user && session.scope.agent() == observation.agent
    };
    let own = sessions.get(&observation.session).filter(is_theirs);
    let Some(session) = own.or_else(|| sessions.of(&observation.user, &observation.agent)) else {
        return DeliveryOutcome::NotSent("no session of this user is open here".to_owned(), RETRY_DELAY);
    };
    if session.mind.health() == Health::Unavailable {
        return DeliveryOutcome::NotSent("the mind is unavailable".to_owned(), RETRY_DELAY);
    }
    let link = match timeout(limit.min(CONNECT_TIMEOUT), session.mind.lease()).await {
        Ok(Ok(link)) => link,
        Ok(Err(away)) => return DeliveryOutcome::NotSent(away.to_string(), RETRY_DELAY),
        Err(_) => return DeliveryOutcome::NotSent("the mind is unavailable".to_owned(), RETRY_DELAY),
    };
    // The inner limit cancels the call at the mind; the outer one applies even if nothing can be sent.
    let observed = timeout(limit + limit / 10, observe(&session, &link, observation, limit)).await;
    match observed.unwrap_or_else(|_| Err("the mind does not read its input".to_owned())) {
        Ok(()) => DeliveryOutcome::Accepted,
        // It had less time than a response may take, so this is not a failure of the mind.
        Err(reason) if limit < ANSWER_TIMEOUT => DeliveryOutcome::NotSent(reason, RETRY_DELAY),
        Err(reason) => DeliveryOutcome::Unanswered(reason),
    }
}

/// Stores the outcome; returns whether later observations of its session may follow.
async fn store_outcome(
    delivered: &mut Delivered<'_>,
    observation: Observation,
    outcome: DeliveryOutcome,
) -> bool {
    let (call, session) = (&observation.key, &observation.session);
    let done = match outcome {
        DeliveryOutcome::Accepted => {
            delivered.observations.push(observation);
            return true;
        }
        DeliveryOutcome::Unanswered(reason) if observation.attempts >= ATTEMPTS_MAX => {
            tracing::warn!(
                call,
                session,
                reason,
                attempts = ATTEMPTS_MAX,
                "an observation is dropped: the mind never answered it"
            );
            delivered.observations.push(observation);
            return true;
        }
        DeliveryOutcome::Unanswered(reason) => {
            tracing::debug!(call, session, reason, "the mind did not accept an observation");
            delivered.store.outbox().retry(&observation, RETRY_DELAY).await
        }
        DeliveryOutcome::NotSent(reason, delay) => {
            tracing::debug!(call, session, reason, "an observation is released");
            delivered.store.outbox().release(&observation, delay).await
        }
    };
    if let Err(error) = done {
        tracing::warn!(call, session, reason = %error, "an observation stays in the outbox");
    }
    false
}

async fn observe(
    session: &Session,
    link: &Arc<Link>,
    observation: &Observation,
    limit: Duration,
) -> Result<(), String> {
    let payload: &RawValue = serde_json::from_str(&observation.payload).map_err(|error| error.to_string())?;
    let meta = raw(&json!({ META_KEY: observation.key }));
    let mut asking = std::pin::pin!(call_mind(link, "observe", payload, Some(&meta), limit));
    let asked = match timeout(SLOW_AFTER, &mut asking).await {
        Ok(asked) => asked,
        Err(_) => {
            let reason = format!("the mind has not answered for {} s", SLOW_AFTER.as_secs());
            session.note_cognition(OBSERVE_AFTER, "", observation.created_at, Some(reason));
            asking.await
        }
    };
    // Any response means that the mind has received it; only a missing response is retried.
    let refused = match &asked {
        Ok(Outcome::Error(error)) => Some(error.get().chars().take(200).collect()),
        Ok(Outcome::Result(_)) => None,
        Err(reason) => Some(reason.clone()),
    };
    session.note_cognition(OBSERVE_AFTER, "", observation.created_at, refused);
    asked.map(drop)
}

#[cfg(test)]
mod tests {
    use embody_store::outbox::NewObservation;
    use embody_store::{DatabaseUrl, Scope};

    use super::*;

    // spec: N-06
    #[tokio::test]
    async fn only_what_the_mind_never_answers_is_given_up() {
        let store = Store::open(DatabaseUrl::Memory).await.unwrap();
        let scope = Scope::new("ann", "assistant").unwrap();
        let (key, payload) = ("call-1".to_owned(), "{}".to_owned());
        let new =
            NewObservation { scope: scope.clone(), session: "s".into(), key, payload, pending_limit: 10 };
        store.outbox().enqueue_deferred(vec![new], Vec::new()).await.unwrap();
        store.flush().await.unwrap();
        let lease = Lease { owner: "worker".into(), duration: LEASE_DURATION };
        let claimed = store.outbox().claim(&lease, &[scope], BATCH).await.unwrap();
        let after = |attempts| Observation { attempts, ..claimed[0].clone() };
        let waits = async || store.outbox().pending("ann").await.unwrap().count == 1;
        let (unanswered, not_sent) = (
            || DeliveryOutcome::Unanswered("silence".into()),
            || DeliveryOutcome::NotSent("away".into(), RETRY_DELAY),
        );
        let mut delivered = Delivered { store: &store, since: Instant::now(), observations: Vec::new() };
        assert!(!store_outcome(&mut delivered, after(ATTEMPTS_MAX - 1), unanswered()).await);
        assert!(!store_outcome(&mut delivered, after(ATTEMPTS_MAX + 1), not_sent()).await);
        delivered.ack().await;
        assert!(waits().await);
        assert!(store_outcome(&mut delivered, after(ATTEMPTS_MAX), unanswered()).await && waits().await);
        delivered.ack().await;
        assert!(!waits().await);
    }
}
