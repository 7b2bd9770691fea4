//! Leader election: one process at a time is the bot. It takes the lease, renews it while it runs, and releases it at
//! the end. A process that loses the lease stops at once and waits for it again. The leader also settles work that was
//! in progress when a process died: it is never repeated, its outcome is `unknown`, and the chat gets one notice.

use std::sync::Arc;
use std::time::Duration;

use embody_store::incoming::Incoming;
use embody_store::outgoing::{NewOutgoing, OutgoingState};
use embody_store::{LeaderLease, Lease, LeaseStatus, Result, Scope, Store};
use embody_wire::server::CancellationToken;
use tokio::time::sleep;

use super::api::Me;
use super::worker::INTERRUPTED;
use super::{Bot, CHANNEL, Channel, TurnHandler, approvals, message, poller, sender, worker};

/// Backoff after a Telegram error, at first and at most.
pub(super) const MIN_BACKOFF: Duration = Duration::from_secs(1);
pub(super) const MAX_BACKOFF: Duration = Duration::from_secs(60);

/// Runs the bot until shutdown, whenever no other process on this store does.
pub async fn run(bot: Bot, turns: TurnHandler, store: Store, ending: CancellationToken) {
    let turns = Arc::new(turns);
    let worker = format!("telegram {}", uuid::Uuid::now_v7());
    let lease = Lease { owner: worker.clone(), duration: bot.times.lease };
    let mut has_logged = false;
    while !ending.is_cancelled() {
        match store.leader_leases().claim(CHANNEL, &lease).await {
            Ok(Some(leader)) => {
                has_logged = false;
                run_as_leader(&bot, &turns, &store, (&leader, &worker), &ending).await;
            }
            Ok(None) => {
                if !std::mem::replace(&mut has_logged, true) {
                    tracing::info!("another process runs the Telegram bot; this one waits");
                }
                wait_or_end(bot.times.store_poll, &ending).await;
            }
            Err(error) => {
                tracing::warn!(reason = %error, "the Telegram bot waits for the store");
                wait_or_end(bot.times.store_poll, &ending).await;
            }
        }
    }
}

/// Runs the bot for as long as the lease is held.
async fn run_as_leader(
    bot: &Bot,
    turns: &Arc<TurnHandler>,
    store: &Store,
    (leader, worker): (&LeaderLease, &String),
    ending: &CancellationToken,
) {
    let all = async {
        let Some(me) = fetch_identity(bot, ending).await else { return };
        tracing::info!(bot = me.username, "the Telegram bot is connected");
        let channel = Arc::new(Channel {
            bot: bot.clone(),
            me,
            turns: Arc::clone(turns),
            store: store.clone(),
            worker: worker.clone(),
            shown: approvals::ApprovalMessages::default(),
        });
        let over = CancellationToken::new();
        let is_over = over.clone();
        let working = async {
            worker::run(&channel, ending.clone()).await;
            // The replies of the last turns are sent before the end.
            is_over.cancel();
        };
        tokio::join!(
            poller::poll(&channel, ending.clone()),
            approvals::watch(&channel, ending.clone()),
            settle_orphans_until_shutdown(&channel, ending.clone()),
            sender::deliver(&channel, over),
            working,
        );
    };
    tokio::select! {
        () = all => {
            if let Err(error) = store.leader_leases().release(leader).await {
                tracing::warn!(reason = %error, "the Telegram bot's lease could not be released");
            }
        }
        () = hold_lease(store, leader, bot.times.lease) => tracing::warn!("another process took over the Telegram bot"),
    }
}

/// Returns when the lease is lost.
async fn hold_lease(store: &Store, leader: &LeaderLease, lease: Duration) {
    loop {
        sleep(lease / 4).await;
        match store.leader_leases().renew(leader, lease).await {
            Ok(LeaseStatus::Kept) => {}
            Ok(LeaseStatus::Lost) => return,
            Err(error) => tracing::warn!(reason = %error, "the Telegram bot's lease could not be renewed"),
        }
    }
}

/// Fetches the bot's own account, with retries.
async fn fetch_identity(bot: &Bot, ending: &CancellationToken) -> Option<Me> {
    let mut pause = MIN_BACKOFF;
    while !ending.is_cancelled() {
        let error = tokio::select! {
            me = bot.api.me() => match me {
                Ok(me) => return Some(me),
                Err(error) => error,
            },
            () = ending.cancelled() => return None,
        };
        if error.is_about_token() {
            tracing::error!("Telegram does not accept the bot's token");
            pause = MAX_BACKOFF;
        } else {
            tracing::warn!(reason = %error, "the name of the Telegram bot is not known yet");
        }
        wait_or_end(error.retry_after().unwrap_or(pause), ending).await;
        pause = (pause * 2).min(MAX_BACKOFF);
    }
    None
}

pub(super) async fn wait_or_end(time: Duration, ending: &CancellationToken) {
    tokio::select! {
        () = sleep(time) => {}
        () = ending.cancelled() => {}
    }
}

const BATCH: u32 = 100;

pub(super) async fn settle_orphans_until_shutdown(channel: &Channel, ending: CancellationToken) {
    while !ending.is_cancelled() {
        if let Err(error) = settle_orphans(channel).await {
            tracing::warn!(reason = %error, "interrupted work on Telegram could not be read");
        }
        wait_or_end(channel.bot.times.store_poll, &ending).await;
    }
}

async fn settle_orphans(channel: &Channel) -> Result<()> {
    let settled = channel.store.incoming().expire(CHANNEL, BATCH, notice).await;
    let orphans = match settled {
        Ok(orphans) => orphans,
        Err(error) => {
            tracing::warn!(reason = %error, "interrupted work is closed without an immediate notice");
            // A notice that cannot be queued does not affect the others.
            let orphans = channel.store.incoming().expire(CHANNEL, BATCH, |_| None).await?;
            for notice in orphans.iter().filter_map(notice) {
                channel.notify(notice).await;
            }
            orphans
        }
    };
    for orphan in orphans {
        tracing::warn!(
            message = orphan.external,
            user = orphan.user,
            "a turn was interrupted; its outcome is unknown"
        );
    }
    for orphan in channel.store.outgoing().expire(CHANNEL, BATCH).await? {
        if orphan.state == OutgoingState::Unknown {
            tracing::warn!(
                message = orphan.id,
                user = orphan.user,
                "the delivery of a message to Telegram is unknown"
            );
        }
    }
    Ok(())
}

fn notice(orphan: &Incoming) -> Option<NewOutgoing> {
    let scope = Scope::new(&orphan.user, &orphan.agent).ok()?;
    let notice = message(scope, &orphan.conversation, "notice", INTERRUPTED.to_owned());
    Some(NewOutgoing { about: Some(orphan.external.clone()), ..notice })
}
