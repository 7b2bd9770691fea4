//! Hands what happened to the mind, from the outbox: after a crash, or when the mind was away, it still hears of it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use embody_store::{Lease, Observation};
use embody_wire::Outcome;
use embody_wire::upstream::Link;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use crate::results::raw;
use crate::session::Session;
use crate::upstream::Health;
use crate::{Sessions, Setup};

const BATCH: u32 = 32;
const LEASE: Duration = Duration::from_secs(60);
const ANSWER: Duration = Duration::from_secs(10);
/// Without news it looks again after this long.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// Calls that follow each other are handed over together: whoever calls does not share the processor with this.
const GATHER: Duration = Duration::from_millis(100);
/// A mind that is away comes back within seconds of being there again; so does this.
const RETRY: Duration = Duration::from_secs(2);
/// Another process may have a session of that user, or will.
const RETRY_ELSEWHERE: Duration = Duration::from_secs(15);
/// So many times as long as an observation took nothing is done.
const IDLE: u32 = 4;
/// What nobody could hand over for this long is given up.
const OLDEST: Duration = Duration::from_secs(30 * 24 * 3600);
/// The key under which the mind can tell that it hears something twice.
pub(crate) const META_KEY: &str = "embody/idempotencyKey";

/// Hands observations over until it is dropped.
pub(crate) async fn deliver(setup: Arc<Setup>, sessions: Arc<Sessions>, news: Arc<Notify>) {
    let lease = Lease { owner: format!("outbox {}", std::process::id()), duration: LEASE };
    loop {
        let _ = timeout(LOOK_AGAIN, news.notified()).await;
        sleep(GATHER).await;
        loop {
            let claimed = match setup.store.claim_observations(&lease, BATCH).await {
                Ok(claimed) if claimed.is_empty() => break,
                Ok(claimed) => claimed,
                Err(error) => {
                    tracing::warn!(reason = %error, "observations cannot be looked up");
                    break;
                }
            };
            // What follows one that the mind did not take went back together with it.
            let mut waiting: HashSet<(String, String)> = HashSet::new();
            for observation in claimed {
                let whose = (observation.user.clone(), observation.session.clone());
                if waiting.contains(&whose) {
                    continue;
                }
                let began = Instant::now();
                if !hand_over(&setup, &sessions, &observation).await {
                    waiting.insert(whose);
                }
                // Whoever calls meanwhile needs the processor more.
                sleep(began.elapsed().min(GATHER) * IDLE).await;
            }
        }
        let _ = setup.store.prune_observations(OLDEST, BATCH).await;
    }
}

/// Whether the mind has it.
async fn hand_over(setup: &Setup, sessions: &Sessions, observation: &Observation) -> bool {
    // Any session of this user and agent has a mind; without one it waits for the next.
    let (told, delay) = match sessions.of(&observation.user, &observation.agent) {
        Some(session) => (tell(&session, observation).await, RETRY),
        None => (Err("no session of this user is open here".to_owned()), RETRY_ELSEWHERE),
    };
    let is_told = told.is_ok();
    let done = match told {
        Ok(()) => setup.store.ack_observation(observation).await,
        Err(reason) => {
            tracing::debug!(key = observation.key, reason, "the mind did not take an observation");
            setup.store.retry_observation(observation, delay).await
        }
    };
    if let Err(error) = done {
        tracing::warn!(reason = %error, "an observation stays in the outbox");
    }
    is_told
}

async fn tell(session: &Session, observation: &Observation) -> Result<(), String> {
    if session.mind.health() == Health::Unavailable {
        return Err("the mind is away".to_owned());
    }
    let link: Arc<Link> = session.mind.link().await.map_err(|away| away.to_string())?;
    let payload: &RawValue = serde_json::from_str(&observation.payload).map_err(|error| error.to_string())?;
    let meta = raw(&json!({ META_KEY: observation.key }));
    let asked = crate::carry::ask_with(&link, "observe", payload, Some(&meta), ANSWER).await;
    // A mind that answers has heard it, whatever it says; only one that does not answer is told again.
    let refused = match &asked {
        Ok(Outcome::Error(error)) => Some(error.get().chars().take(200).collect()),
        Ok(Outcome::Result(_)) => None,
        Err(reason) => Some(reason.clone()),
    };
    session.note_cognition("observe", "", observation.created_at, refused);
    asked.map(drop)
}
