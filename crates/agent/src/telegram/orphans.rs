//! Settles work that was in progress when a process died. It is never repeated: its outcome is `unknown`, it is listed
//! for the operator, and the chat gets one notice.

use embody_store::incoming::Incoming;
use embody_store::outgoing::{NewOutgoing, OutgoingState};
use embody_store::{Result, Scope};
use embody_wire::server::CancellationToken;

use super::leader::wait_or_end;
use super::worker::INTERRUPTED;
use super::{CHANNEL, Channel, message};

/// How many are settled at once.
const AT_ONCE: u32 = 100;

/// Runs until shutdown.
pub(super) async fn run(channel: &Channel, ending: CancellationToken) {
    while !ending.is_cancelled() {
        if let Err(error) = settle_orphans(channel).await {
            tracing::warn!(reason = %error, "what was under way on Telegram could not be looked at");
        }
        wait_or_end(channel.times.look, &ending).await;
    }
}

async fn settle_orphans(channel: &Channel) -> Result<()> {
    let settled = channel.store.incoming().expire(CHANNEL, AT_ONCE, notice).await;
    let orphans = match settled {
        Ok(orphans) => orphans,
        Err(error) => {
            tracing::warn!(reason = %error, "what was interrupted is settled without telling of it at once");
            // A notice that cannot be queued does not affect the others.
            let orphans = channel.store.incoming().expire(CHANNEL, AT_ONCE, |_| None).await?;
            for notice in orphans.iter().filter_map(notice) {
                channel.notify(notice).await;
            }
            orphans
        }
    };
    for orphans in orphans {
        tracing::warn!(
            message = orphans.external,
            user = orphans.user,
            "a turn was interrupted; nobody knows how far it had come"
        );
    }
    for orphans in channel.store.outgoing().expire(CHANNEL, AT_ONCE).await? {
        if orphans.state == OutgoingState::Unknown {
            tracing::warn!(
                message = orphans.id,
                user = orphans.user,
                "nobody knows whether a message has arrived on Telegram"
            );
        }
    }
    Ok(())
}

/// The notice for the chat.
fn notice(orphans: &Incoming) -> Option<NewOutgoing> {
    let scope = Scope::new(&orphans.user, &orphans.agent).ok()?;
    let notice = message(scope, &orphans.conversation, "notice", INTERRUPTED.to_owned());
    Some(NewOutgoing { about: Some(orphans.external.clone()), ..notice })
}
