//! Being the one process that is the bot: the post is taken, kept while everything runs, and left at the end. Whoever loses
//! it stops at once and waits for it again.

use std::sync::Arc;
use std::time::Duration;

use embody_store::{Fenced, LeaderLease, Lease, Store};
use embody_wire::serve::Ending;
use tokio::time::sleep;

use super::api::Me;
use super::{Bot, CHANNEL, Channel, Turns, approvals, deliver, lost, poll, work};

/// How long Telegram is left alone after it failed us, at first and at most.
pub(super) const FIRST_REST: Duration = Duration::from_secs(1);
pub(super) const LONGEST_REST: Duration = Duration::from_secs(60);

/// Whoever waits for the post.
#[derive(Debug)]
pub(super) struct Standing {
    pub(super) bot: Bot,
    pub(super) turns: Turns,
    pub(super) store: Store,
}

pub(super) async fn stand(standing: Standing, mut ending: Ending) {
    let Standing { bot, turns, store } = standing;
    let turns = Arc::new(turns);
    let worker = format!("telegram {}", uuid::Uuid::now_v7());
    let lease = Lease { owner: worker.clone(), duration: bot.times.lease };
    let mut is_told = false;
    while !ending.has_begun() {
        match store.claim_leader_lease(CHANNEL, &lease).await {
            Ok(Some(post)) => {
                is_told = false;
                serve(&bot, &turns, &store, (&post, &worker), &mut ending).await;
            }
            Ok(None) => {
                if !std::mem::replace(&mut is_told, true) {
                    tracing::info!("another process is the Telegram bot; this one waits");
                }
                rest(bot.times.look, &mut ending).await;
            }
            Err(error) => {
                tracing::warn!(reason = %error, "the Telegram bot waits for the store");
                rest(bot.times.look, &mut ending).await;
            }
        }
    }
}

/// Everything that the bot does, for as long as the post is ours.
async fn serve(
    bot: &Bot,
    turns: &Arc<Turns>,
    store: &Store,
    (post, worker): (&LeaderLease, &String),
    ending: &mut Ending,
) {
    let all = async {
        let Some(me) = introduced(bot, ending).await else { return };
        tracing::info!(bot = me.username, "the Telegram bot is here");
        let channel = Arc::new(Channel {
            api: bot.api.clone(),
            me,
            people: bot.people.clone(),
            agent: bot.agent.clone(),
            clock: bot.clock,
            times: bot.times.clone(),
            turns: Arc::clone(turns),
            store: store.clone(),
            worker: worker.clone(),
            shown: approvals::Shown::default(),
        });
        let (is_over, over) = Ending::new();
        let working = async {
            work::work(&channel, ending.clone()).await;
            // Replies to the last turns leave before the end.
            let _ = is_over.send(true);
        };
        tokio::join!(
            poll::poll(&channel, ending.clone()),
            approvals::watch(&channel, ending.clone()),
            lost::settle(&channel, ending.clone()),
            deliver::deliver(&channel, over),
            working,
        );
    };
    tokio::select! {
        () = all => {
            if let Err(error) = store.release_leader_lease(post).await {
                tracing::warn!(reason = %error, "the Telegram bot's post could not be left");
            }
        }
        () = kept(store, post, bot.times.lease) => tracing::warn!("another process has become the Telegram bot"),
    }
}

/// Returns when the post is lost.
async fn kept(store: &Store, post: &LeaderLease, lease: Duration) {
    loop {
        sleep(lease / 4).await;
        match store.renew_leader_lease(post, lease).await {
            Ok(Fenced::Kept) => {}
            Ok(Fenced::Lost) => return,
            Err(error) => tracing::warn!(reason = %error, "the Telegram bot's post could not be kept"),
        }
    }
}

/// Who the bot is, as soon as Telegram says so.
async fn introduced(bot: &Bot, ending: &mut Ending) -> Option<Me> {
    let mut pause = FIRST_REST;
    while !ending.has_begun() {
        let error = tokio::select! {
            me = bot.api.me() => match me {
                Ok(me) => return Some(me),
                Err(error) => error,
            },
            () = ending.wait() => return None,
        };
        if error.is_about_token() {
            tracing::error!("Telegram does not know the token of the bot");
            pause = LONGEST_REST;
        } else {
            tracing::warn!(reason = %error, "the Telegram bot does not know its name yet");
        }
        rest(error.retry_after().unwrap_or(pause), ending).await;
        pause = (pause * 2).min(LONGEST_REST);
    }
    None
}

/// For so long, or until the end.
pub(super) async fn rest(time: Duration, ending: &mut Ending) {
    tokio::select! {
        () = sleep(time) => {}
        () = ending.wait() => {}
    }
}
