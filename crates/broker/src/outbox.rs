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
use crate::session::{OBSERVE_AFTER, Session};
use crate::upstream::Health;
use crate::{BrokerConfig, Sessions};

const BATCH: u32 = 32;
/// How long the claim of a killed process blocks its observations.
const LEASE: Duration = Duration::from_secs(20);
const ANSWER: Duration = Duration::from_secs(10);
/// A mind that takes longer is reported, but still awaited.
const HANGS: Duration = Duration::from_secs(1);
const CONNECT: Duration = Duration::from_millis(2500);
const POLL: Duration = Duration::from_secs(2);
/// Delivers calls in quick succession together, so that the delivery does not compete with them for the processor.
const GATHER: Duration = Duration::from_millis(100);
const RETRY: Duration = Duration::from_secs(2);
/// The longest delivery, including connecting and the pause after it.
const HAND_OVER: Duration = Duration::from_secs(15);
/// After this many attempts an observation is dropped, because later ones of its session wait for it.
const MOST_ATTEMPTS: i64 = 20;
/// Delivered observations are deleted after this long at the latest; a crash before that delivers them again.
const TOGETHER: Duration = Duration::from_millis(500);
/// The pause after a delivery, as a multiple of its duration.
const IDLE: u32 = 4;
/// Older observations are dropped.
const OLDEST: Duration = Duration::from_secs(30 * 24 * 3600);
/// The mind recognizes a repeated delivery by this key.
pub(crate) const META_KEY: &str = "embody/idempotencyKey";

/// Delivers the observations of the users and agents that have a session in this process.
pub(crate) struct Outbox {
    config: Arc<BrokerConfig>,
    sessions: Arc<Sessions>,
    lease: Lease,
    /// Held while claimed observations are delivered: a drain must not miss those that the loop has claimed.
    claiming: Mutex<()>,
    /// The number of waiting or running drains.
    drains: AtomicUsize,
}

/// The deadline for the deliveries of a batch.
#[derive(Clone, Copy)]
enum Deadline {
    /// No delivery begins later.
    Begin(Instant),
    /// No delivery ends later.
    End(Instant),
}

impl Outbox {
    pub(crate) fn new(config: Arc<BrokerConfig>, sessions: Arc<Sessions>) -> Self {
        let lease = Lease { owner: format!("outbox {}", std::process::id()), duration: LEASE };
        Self { config, sessions, lease, claiming: Mutex::default(), drains: AtomicUsize::new(0) }
    }

    pub(crate) async fn deliver(self: Arc<Self>, news: Arc<Notify>) {
        loop {
            let _ = timeout(POLL, news.notified()).await;
            sleep(GATHER).await;
            loop {
                let _claiming = self.claiming.lock().await;
                // A later delivery could end after the lease, when another process has the claim.
                let until = Instant::now() + LEASE.saturating_sub(HAND_OVER);
                let claimed = self.claim(&self.sessions.scopes()).await;
                if claimed.is_empty() {
                    break;
                }
                self.hand_over_all(claimed, Deadline::Begin(until)).await;
            }
            let _ = self.config.store.outbox().prune(OLDEST, BATCH).await;
        }
    }

    /// Delivers the outbox of these scopes before their last sessions here end. The rest stays for the next process.
    pub(crate) async fn drain(&self, scopes: &[Scope], until: Instant) {
        let _drain = Drain::new(&self.drains);
        while Instant::now() < until {
            let Ok(_claiming) = timeout_at(until, self.claiming.lock()).await else { break };
            let claimed = self.claim(scopes).await;
            // Released observations are not retried at once.
            if claimed.is_empty() || !self.hand_over_all(claimed, Deadline::End(until)).await {
                break;
            }
        }
    }

    /// Returns when no claimed observation is being delivered, or at the deadline.
    pub(crate) async fn rest(&self, until: Instant) {
        let _ = timeout_at(until, self.claiming.lock()).await;
    }

    async fn claim(&self, scopes: &[Scope]) -> Vec<Observation> {
        self.config.store.outbox().claim(&self.lease, scopes, BATCH).await.unwrap_or_else(|error| {
            tracing::warn!(reason = %error, "observations cannot be looked up");
            Vec::new()
        })
    }

    /// Delivers them one after another; returns whether the mind accepted all. Accepted ones are deleted together: separate
    /// commits would flush the disk each time and delay the records of calls.
    async fn hand_over_all(&self, claimed: Vec<Observation>, deadline: Deadline) -> bool {
        let mut over = Over { store: &self.config.store, since: Instant::now(), observations: Vec::new() };
        // The observations after a failed one were released together with it.
        let mut waiting: HashSet<(String, String)> = HashSet::new();
        for observation in claimed {
            let whose = (observation.user.clone(), observation.session.clone());
            if waiting.contains(&whose) {
                continue;
            }
            let began = Instant::now();
            let limit = deadline.limit(began);
            let handed = if limit > Duration::ZERO {
                hand_over(&self.sessions, &observation, limit).await
            } else {
                Handed::Untried("there was no time for it".to_owned(), Duration::ZERO)
            };
            if !settle(&mut over, observation, handed).await {
                waiting.insert(whose);
            }
            // Leave the processor to running calls, unless a session waits to end.
            if self.drains.load(Ordering::Acquire) == 0 {
                sleep(began.elapsed().min(GATHER) * IDLE).await;
            }
            if over.since.elapsed() > TOGETHER {
                over.leave().await;
            }
        }
        over.leave().await;
        waiting.is_empty()
    }
}

/// Counts a drain until it is dropped.
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
            Self::Begin(until) if now < until => ANSWER,
            Self::Begin(_) => Duration::ZERO,
            Self::End(until) => until.saturating_duration_since(now).min(ANSWER),
        }
    }
}

/// Delivered observations that are still in the outbox.
struct Over<'a> {
    store: &'a Store,
    since: Instant,
    observations: Vec<Observation>,
}

impl Over<'_> {
    async fn leave(&mut self) {
        self.since = Instant::now();
        let over = std::mem::take(&mut self.observations);
        if over.is_empty() {
            return;
        }
        if let Err(error) = self.store.outbox().complete(&over).await {
            tracing::warn!(reason = %error, count = over.len(), "observations stay in the outbox");
        }
    }
}

/// The outcome of one delivery.
enum Handed {
    /// The mind accepted it.
    Over,
    /// The mind did not answer.
    Unanswered(String),
    /// It was not sent; retry after this delay.
    Untried(String, Duration),
}

async fn hand_over(sessions: &Sessions, observation: &Observation, limit: Duration) -> Handed {
    // Any session of this user and agent can deliver it; without one it waits.
    let Some(session) = sessions.of(&observation.user, &observation.agent) else {
        return Handed::Untried("no session of this user is open here".to_owned(), RETRY);
    };
    if session.mind.health() == Health::Unavailable {
        return Handed::Untried("the mind is away".to_owned(), RETRY);
    }
    let link = match timeout(limit.min(CONNECT), session.mind.lease()).await {
        Ok(Ok(link)) => link,
        Ok(Err(away)) => return Handed::Untried(away.to_string(), RETRY),
        Err(_) => return Handed::Untried("the mind is away".to_owned(), RETRY),
    };
    // The inner limit cancels the call at the mind; the outer one applies even if nothing can be sent.
    let told = timeout(limit + limit / 10, tell(&session, &link, observation, limit)).await;
    match told.unwrap_or_else(|_| Err("the mind does not read what it is sent".to_owned())) {
        Ok(()) => Handed::Over,
        // It had less time than a response may take, so this is not a failure of the mind.
        Err(reason) if limit < ANSWER => Handed::Untried(reason, RETRY),
        Err(reason) => Handed::Unanswered(reason),
    }
}

/// Stores the outcome; returns whether later observations of its session may follow.
async fn settle(over: &mut Over<'_>, observation: Observation, handed: Handed) -> bool {
    let (call, session) = (&observation.key, &observation.session);
    let done = match handed {
        Handed::Over => {
            over.observations.push(observation);
            return true;
        }
        Handed::Unanswered(reason) if observation.attempts >= MOST_ATTEMPTS => {
            tracing::warn!(
                call,
                session,
                reason,
                attempts = MOST_ATTEMPTS,
                "an observation that the mind never answers is given up"
            );
            over.observations.push(observation);
            return true;
        }
        Handed::Unanswered(reason) => {
            tracing::debug!(call, session, reason, "the mind did not take an observation");
            over.store.outbox().retry(&observation, RETRY).await
        }
        Handed::Untried(reason, delay) => {
            tracing::debug!(call, session, reason, "an observation goes back");
            over.store.outbox().release(&observation, delay).await
        }
    };
    if let Err(error) = done {
        tracing::warn!(call, session, reason = %error, "an observation stays in the outbox");
    }
    false
}

async fn tell(
    session: &Session,
    link: &Arc<Link>,
    observation: &Observation,
    limit: Duration,
) -> Result<(), String> {
    let payload: &RawValue = serde_json::from_str(&observation.payload).map_err(|error| error.to_string())?;
    let meta = raw(&json!({ META_KEY: observation.key }));
    let mut asking = std::pin::pin!(crate::pipeline::send::call_mind_with_meta(
        link,
        "observe",
        payload,
        Some(&meta),
        limit
    ));
    let asked = match timeout(HANGS, &mut asking).await {
        Ok(asked) => asked,
        Err(_) => {
            let reason = format!("the mind has not answered for {} s", HANGS.as_secs());
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
        let lease = Lease { owner: "worker".into(), duration: LEASE };
        let claimed = store.outbox().claim(&lease, &[scope], BATCH).await.unwrap();
        let after = |attempts| Observation { attempts, ..claimed[0].clone() };
        let waits = async || store.outbox().pending("ann").await.unwrap().count == 1;
        let (unanswered, untried) =
            (|| Handed::Unanswered("silence".into()), || Handed::Untried("away".into(), RETRY));
        let mut over = Over { store: &store, since: Instant::now(), observations: Vec::new() };
        assert!(!settle(&mut over, after(MOST_ATTEMPTS - 1), unanswered()).await);
        assert!(!settle(&mut over, after(MOST_ATTEMPTS + 1), untried()).await);
        over.leave().await;
        assert!(waits().await);
        assert!(settle(&mut over, after(MOST_ATTEMPTS), unanswered()).await && waits().await);
        over.leave().await;
        assert!(!waits().await);
    }
}
