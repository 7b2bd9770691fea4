//! Tidies up after processes that have died: writes without an outcome, whose outcome nobody knows any more, are put on
//! record as such; questions that nobody answered end; sessions that nobody uses or will take up again are ended and
//! forgotten; old receipts of prompts are deleted.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use embody_store::Actor;
use tokio::time::sleep;

use crate::stateless::IDLE;
use crate::{Sessions, Setup, forward};

const EVERY: Duration = Duration::from_secs(5);
const BATCH: u32 = 100;
/// How long sessions and answered questions are kept.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);
/// A session with a write under way that was not heard of for so many heartbeats is dead.
const MISSED: u32 = 5;

/// Looks for them, now and again.
pub(crate) async fn sweep(setup: Arc<Setup>, sessions: Arc<Sessions>) {
    loop {
        if let Err(error) = unfinished(&setup, &sessions).await {
            tracing::warn!(reason = %error, "unfinished writes cannot be looked up");
        }
        if let Err(error) = expired(&setup).await {
            tracing::warn!(reason = %error, "what is over cannot be tidied up");
        }
        for session in sessions.take_idle(IDLE) {
            tokio::spawn(async move { session.end().await });
        }
        sessions.all().iter().for_each(|session| forward::tidy(session));
        sleep(EVERY).await;
    }
}

async fn unfinished(setup: &Setup, sessions: &Sessions) -> embody_store::Result<()> {
    let silence = i64::try_from((setup.times.heartbeat * MISSED).as_micros()).unwrap_or(i64::MAX);
    let before = (setup.clock)().saturating_sub(silence);
    for write in setup.store.open_writes(before, BATCH).await? {
        let (Some(call_id), Some(session)) = (write.text("call_id"), write.session.clone()) else { continue };
        // What is under way here lives, however late its session's heartbeat is: it knows its outcome, or will. A session
        // without writes does not know of this one, and may still be open: that of a host that has none on the wire goes
        // by the same id in every process.
        let open = sessions.get(&session).filter(|open| open.scope.user() == write.user);
        if open.is_some_and(|open| open.writes.load(Ordering::Acquire) > 0) {
            continue;
        }
        let lives =
            setup.store.session(&write.user, &session).await?.is_some_and(|known| known.seen_at >= before);
        if lives {
            continue;
        }
        let actor =
            Actor { user: write.user, agent: write.agent, session: Some(session), channel: write.channel };
        // Another sweeper, or the call itself after all, may have been quicker: the store looks once more.
        let detail = "the process that made the call has ended before it knew".to_owned();
        setup.store.close_unknown(actor, call_id, Some(detail)).await?;
    }
    Ok(())
}

async fn expired(setup: &Setup) -> embody_store::Result<()> {
    setup.store.expire_approvals(BATCH).await?;
    let before =
        |kept: Duration| (setup.clock)().saturating_sub(i64::try_from(kept.as_micros()).unwrap_or(i64::MAX));
    setup.store.prune_approvals(before(KEPT), BATCH).await?;
    setup.store.prune_receipts(before(setup.times.receipts), BATCH).await?;
    setup.store.expire_sessions(KEPT, BATCH).await?;
    setup.store.delete_old_suspended_calls().await?;
    setup.store.delete_old_replica_messages().await
}
