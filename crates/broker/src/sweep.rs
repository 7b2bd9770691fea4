//! Tidies up after processes that have died: writes without an outcome, whose outcome nobody knows any more, are put on
//! record as such; questions that nobody answered end; sessions that nobody will take up again are forgotten.

use std::sync::Arc;
use std::time::Duration;

use embody_store::{Actor, CallEnd, Event, Outcome, Record};
use tokio::time::sleep;

use crate::Setup;

const EVERY: Duration = Duration::from_secs(5);
const BATCH: u32 = 100;
/// How long sessions and answered questions are kept.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);
/// A session with a write under way that was not heard of for so many heartbeats is dead.
const MISSED: u32 = 5;

/// Looks for them, now and again.
pub(crate) async fn sweep(setup: Arc<Setup>) {
    loop {
        if let Err(error) = unfinished(&setup).await {
            tracing::warn!(reason = %error, "unfinished writes cannot be looked up");
        }
        if let Err(error) = expired(&setup).await {
            tracing::warn!(reason = %error, "what is over cannot be tidied up");
        }
        sleep(EVERY).await;
    }
}

async fn unfinished(setup: &Setup) -> embody_store::Result<()> {
    let silence = i64::try_from((setup.times.heartbeat * MISSED).as_micros()).unwrap_or(i64::MAX);
    let before = (setup.clock)().saturating_sub(silence);
    for write in setup.store.open_writes(before, BATCH).await? {
        let (Some(call_id), Some(session)) = (write.text("call_id"), write.session.clone()) else { continue };
        let lives =
            setup.store.session(&write.user, &session).await?.is_some_and(|known| known.seen_at >= before);
        if lives {
            continue;
        }
        let end = CallEnd {
            call_id,
            outcome: Outcome::Unknown,
            detail: Some("the process that made the call has ended before it knew".to_owned()),
        };
        let actor =
            Actor { user: write.user, agent: write.agent, session: Some(session), channel: write.channel };
        setup.store.audit(Record { actor, event: Event::Outcome(end) }).await?;
    }
    Ok(())
}

async fn expired(setup: &Setup) -> embody_store::Result<()> {
    setup.store.expire_approvals(BATCH).await?;
    let before = (setup.clock)().saturating_sub(i64::try_from(KEPT.as_micros()).unwrap_or(i64::MAX));
    setup.store.prune_approvals(before, BATCH).await?;
    setup.store.expire_sessions(KEPT, BATCH).await.map(drop)
}
