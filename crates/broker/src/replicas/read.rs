//! Letters that arrive from other processes.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use embody_store::Topic;
use embody_wire::serve::Relay;
use embody_wire::{Limits, Message, message};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::Replicas;
use super::word::Word;
use crate::session::lock;
use crate::{Sessions, forward};

/// How often whoever waits hears that a call is still being worked on.
const WORKING: Duration = Duration::from_secs(3);
/// How long to rest when the store fails.
const REST: Duration = Duration::from_secs(1);

/// Reads letters for as long as the broker is there.
pub(crate) async fn read(replicas: Arc<Replicas>, sessions: Arc<Sessions>) {
    let mut changes = replicas.store.changes(Topic::Letters);
    let mut seen = HashSet::new();
    loop {
        if changes.changed().await.is_err() {
            return;
        }
        let letters = match replicas.store.letters_for(&replicas.mark).await {
            Ok(letters) => letters,
            Err(error) => {
                tracing::warn!(reason = %error, "letters of other processes cannot be read");
                tokio::time::sleep(REST).await;
                continue;
            }
        };
        for letter in &letters {
            if seen.contains(&letter.id) {
                continue;
            }
            if let Ok(Some(content)) = replicas.store.letter(&letter.id).await
                && let Ok(word) = serde_json::from_str(&content)
            {
                hear(&replicas, &sessions, &letter.sender, word).await;
            }
        }
        // Those that are not found again need not be known.
        seen = letters.into_iter().map(|letter| letter.id).collect();
    }
}

async fn hear(replicas: &Arc<Replicas>, sessions: &Sessions, sender: &str, word: Word) {
    if let Some(ticket) = word.about() {
        let waiting = lock(&replicas.waiting).get(ticket).cloned();
        if let Some(waiting) = waiting {
            // Whoever is behind by more than a few words is not waiting.
            let _ = waiting.try_send(word);
        }
        return;
    }
    match word {
        Word::Said { session, text } => {
            let message =
                message::parse_frame(text.as_bytes(), &Limits::default()).ok().and_then(|mut all| all.pop());
            if let Some(message @ (Message::Response(_) | Message::Notification(_))) = message {
                let _ = replicas.relay.send(Relay::Said { session, message }).await;
            }
        }
        Word::Left { session } => drop(replicas.relay.send(Relay::Left { session }).await),
        Word::Set { session, method, params } => {
            if let Some(session) = sessions.get(&session) {
                forward::set_elsewhere(&session, &method, &params);
            }
        }
        Word::Answers { ticket, user, request } => {
            let (replicas, sender) = (Arc::clone(replicas), sender.to_owned());
            tokio::spawn(async move { answers(&replicas, &sender, (ticket, &user), &request).await });
        }
        _ => {}
    }
}

/// Goes on with a call that waits here, and tells the process that its host has come back to.
async fn answers(replicas: &Replicas, sender: &str, (ticket, user): (String, &str), request: &str) {
    let request =
        message::parse_frame(request.as_bytes(), &Limits::default()).ok().and_then(|mut all| all.pop());
    let Some(Message::Request(request)) = request else { return };
    // Only one of the two goes on with it.
    if !matches!(replicas.store.take_parked(user, &ticket).await, Ok(true)) {
        return;
    }
    replicas.tell(Some(sender), &Word::Taken { ticket: ticket.clone() }).await;
    let (reply, mut told) = oneshot::channel();
    let relay = Relay::Answers { ticket: ticket.clone(), request, reply };
    if replicas.relay.send(relay).await.is_err() {
        return replicas.tell(Some(sender), &Word::Gone { ticket }).await;
    }
    let word = loop {
        match timeout(WORKING, &mut told).await {
            Ok(Ok(reply)) => break Word::of(ticket, reply),
            Ok(Err(_)) => break Word::Gone { ticket },
            Err(_) => replicas.tell(Some(sender), &Word::Working { ticket: ticket.clone() }).await,
        }
    };
    replicas.tell(Some(sender), &word).await;
}
