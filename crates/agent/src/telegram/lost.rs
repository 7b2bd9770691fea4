//! What was under way when somebody was killed. It is never done again: it ends as `unknown`, is listed for the operator, and
//! the chat is told once.

use embody_store::{Incoming, NewOutgoing, OutgoingState, Result, Scope};
use embody_wire::serve::Ending;

use super::post::rest;
use super::work::INTERRUPTED;
use super::{CHANNEL, Channel, message};

/// Settled at once.
const AT_ONCE: u32 = 100;

/// Looks for such until the end.
pub(super) async fn settle(channel: &Channel, mut ending: Ending) {
    while !ending.has_begun() {
        if let Err(error) = look(channel).await {
            tracing::warn!(reason = %error, "what was under way on Telegram could not be looked at");
        }
        rest(channel.times.look, &mut ending).await;
    }
}

async fn look(channel: &Channel) -> Result<()> {
    let told = channel.store.settle_lost_incoming(CHANNEL, AT_ONCE, notice).await;
    let lost = match told {
        Ok(lost) => lost,
        Err(error) => {
            tracing::warn!(reason = %error, "what was interrupted is settled without telling of it at once");
            // A notice that cannot be queued keeps no other from it.
            let lost = channel.store.settle_lost_incoming(CHANNEL, AT_ONCE, |_| None).await?;
            for notice in lost.iter().filter_map(notice) {
                channel.notify(notice).await;
            }
            lost
        }
    };
    for lost in lost {
        tracing::warn!(
            message = lost.external,
            user = lost.user,
            "a turn was interrupted; nobody knows how far it had come"
        );
    }
    for lost in channel.store.settle_lost_outgoing(CHANNEL, AT_ONCE).await? {
        if lost.state == OutgoingState::Unknown {
            tracing::warn!(
                message = lost.id,
                user = lost.user,
                "nobody knows whether a message has arrived on Telegram"
            );
        }
    }
    Ok(())
}

/// What the chat is told of it.
fn notice(lost: &Incoming) -> Option<NewOutgoing> {
    let scope = Scope::new(&lost.user, &lost.agent).ok()?;
    let notice = message(scope, &lost.conversation, "notice", INTERRUPTED.to_owned());
    Some(NewOutgoing { about: Some(lost.external.clone()), ..notice })
}
