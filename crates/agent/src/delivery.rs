//! Delivers queued messages to the web channel: each becomes a message of a thread, where the page finds it.

use std::time::Duration;

use embody_store::outgoing::OutgoingClaim;
use embody_store::threads::{NewMessage, NewThread};
use embody_store::{Lease, Result, Scope, Store, Topic};
use embody_wire::server::CancellationToken;

use crate::model::ChatMessage;

const WEB: &str = "web";
const BATCH: u32 = 32;
const LEASE: Duration = Duration::from_secs(30);
const RETRY_DELAY: Duration = Duration::from_secs(2);
const POLL_INTERVAL: Duration = Duration::from_secs(15);
const MAX_THREADS_SEARCHED: u32 = 50;

pub async fn deliver_to_web(store: Store, owner: String, ending: CancellationToken) {
    let mut changes = store.changes(Topic::Outgoing);
    let lease = Lease { owner, duration: LEASE };
    loop {
        let pause = match deliver(&store, &lease).await {
            Ok(true) => Duration::ZERO,
            Ok(false) => POLL_INTERVAL,
            Err(error) => {
                tracing::warn!(reason = %error, "messages to the web wait for the store");
                RETRY_DELAY
            }
        };
        tokio::select! {
            () = ending.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
            changed = changes.changed(), if !pause.is_zero() => {
                if changed.is_err() {
                    tokio::time::sleep(RETRY_DELAY).await;
                }
            }
        }
    }
}

/// Delivers the waiting messages. Returns whether there may be more.
async fn deliver(store: &Store, lease: &Lease) -> Result<bool> {
    // The message and its completion are one write, so a message whose process died can be queued again.
    store.outgoing().expire(WEB, BATCH).await?;
    let claims = store.outgoing().claim(WEB, lease, BATCH).await?;
    let is_full = claims.len() >= BATCH as usize;
    for claim in claims {
        deliver_one(store, &claim).await?;
    }
    Ok(is_full)
}

async fn deliver_one(store: &Store, claim: &OutgoingClaim) -> Result<()> {
    let message = &claim.outgoing;
    let scope = Scope::new(&message.user, &message.agent)?;
    let thread = thread(store, &scope, &message.to).await?;
    let reply = ChatMessage::Assistant { text: message.text.clone(), calls: Vec::new() };
    let content = serde_json::to_string(&reply).unwrap_or_default();
    let message_row = NewMessage { role: "assistant".to_owned(), content };
    // If the claim is lost, another process delivers the message.
    store.outgoing().finish_in_thread(claim, &thread, message_row).await.map(drop)
}

/// The named thread, else the newest web thread, else a new one.
async fn thread(store: &Store, scope: &Scope, named: &str) -> Result<String> {
    if let Some(thread) = store.threads().get(scope.user(), named).await? {
        return Ok(thread.id);
    }
    let known = store.threads().list(scope, MAX_THREADS_SEARCHED).await?;
    if let Some(thread) = known.into_iter().find(|thread| thread.channel == WEB) {
        return Ok(thread.id);
    }
    let new = NewThread { channel: WEB.to_owned(), external: None, title: Some("Notices".to_owned()) };
    Ok(store.threads().open(scope, new).await?.id)
}
