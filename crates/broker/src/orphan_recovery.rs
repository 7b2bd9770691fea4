//! Cleans up after dead processes and expired entries: writes without an outcome are recorded as `unknown`, approvals and
//! unused sessions expire, old receipts are deleted.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use embody_store::audit::Actor;
use tokio::time::sleep;

use crate::stateless::IDLE;
use crate::{BrokerConfig, Sessions, forward};

const INTERVAL: Duration = Duration::from_secs(5);
const BATCH: u32 = 100;
/// How long sessions and decided approvals are kept.
const RETENTION: Duration = Duration::from_secs(30 * 24 * 3600);
/// A session with an open write is dead after this many missed heartbeats.
const MISSED_HEARTBEATS: u32 = 5;

pub(crate) async fn run(config: Arc<BrokerConfig>, sessions: Arc<Sessions>) {
    loop {
        if let Err(error) = unfinished(&config, &sessions).await {
            tracing::warn!(reason = %error, "cannot look up unfinished writes");
        }
        if let Err(error) = expired(&config).await {
            tracing::warn!(reason = %error, "cannot delete expired records");
        }
        for session in sessions.take_idle(IDLE) {
            tokio::spawn(async move { session.shutdown().await });
        }
        sessions.all().iter().for_each(|session| forward::expire_tasks(session));
        sleep(INTERVAL).await;
    }
}

async fn unfinished(config: &BrokerConfig, sessions: &Sessions) -> embody_store::Result<()> {
    let silence = i64::try_from((config.settings().times.heartbeat * MISSED_HEARTBEATS).as_micros())
        .unwrap_or(i64::MAX);
    let before = (config.clock)().saturating_sub(silence);
    for write in config.store.audit().open_writes(before, BATCH).await? {
        let (Some(call_id), Some(session)) = (write.text("call_id"), write.session.clone()) else { continue };
        // A write in progress in this process will record its outcome, however late its session's heartbeat is. A session
        // without open writes may still be open here: a stateless session has the same id in every process.
        let open = sessions.get(&session).filter(|open| open.scope.user() == write.user);
        if open.is_some_and(|open| open.writes.load(Ordering::Acquire) > 0) {
            continue;
        }
        let lives = config
            .store
            .sessions()
            .get(&write.user, &session)
            .await?
            .is_some_and(|known| known.seen_at >= before);
        if lives {
            continue;
        }
        let actor =
            Actor { user: write.user, agent: write.agent, session: Some(session), channel: write.channel };
        // The store checks again: another process, or the call itself, may have recorded an outcome meanwhile.
        let detail = "the process that made the call ended before the outcome was known".to_owned();
        config.store.audit().close_unknown(actor, call_id, Some(detail)).await?;
    }
    Ok(())
}

async fn expired(config: &BrokerConfig) -> embody_store::Result<()> {
    config.store.approvals().expire(BATCH).await?;
    let before =
        |kept: Duration| (config.clock)().saturating_sub(i64::try_from(kept.as_micros()).unwrap_or(i64::MAX));
    config.store.approvals().prune(before(RETENTION), BATCH).await?;
    config.store.receipts().prune(before(config.settings().times.receipts), BATCH).await?;
    config.store.sessions().expire(RETENTION, BATCH).await?;
    config.store.suspended_calls().delete_old().await?;
    config.store.replica_messages().delete_old().await
}
