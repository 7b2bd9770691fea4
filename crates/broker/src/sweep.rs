//! Writes whose process has died before it knew their outcome: nobody knows it any more, and that is put on record.

use std::sync::Arc;
use std::time::Duration;

use embody_store::{Actor, CallEnd, Event, Outcome, Record};
use tokio::time::sleep;

use crate::Setup;

const EVERY: Duration = Duration::from_secs(60);
const BATCH: u32 = 100;
/// A session that was not heard of for so many heartbeats is dead.
const MISSED: u32 = 6;

/// Looks for them, now and again.
pub(crate) async fn sweep(setup: Arc<Setup>) {
    loop {
        if let Err(error) = once(&setup).await {
            tracing::warn!(reason = %error, "unfinished writes cannot be looked up");
        }
        sleep(EVERY).await;
    }
}

async fn once(setup: &Setup) -> embody_store::Result<()> {
    let silence = i64::try_from((setup.times.heartbeat * MISSED).as_micros()).unwrap_or(i64::MAX);
    let before = (setup.clock)().saturating_sub(silence);
    for write in setup.store.open_writes(before, BATCH).await? {
        let (Some(call_id), Some(session)) = (write.text("call_id"), write.session.clone()) else { continue };
        let lives = setup.store.session(&write.user, &session).await?.is_some_and(|known| known.seen_at >= before);
        if lives {
            continue;
        }
        let end = CallEnd {
            call_id,
            outcome: Outcome::Unknown,
            detail: Some("the process that made the call has ended before it knew".to_owned()),
        };
        let actor = Actor { user: write.user, agent: write.agent, session: Some(session), channel: write.channel };
        setup.store.audit(Record { actor, event: Event::Outcome(end) }).await?;
    }
    Ok(())
}
