//! Letters that arrive from other processes.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use embody_store::Topic;
use embody_wire::server::ReplicaMessage;
use embody_wire::{Limits, Message, message};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::Replicas;
use super::word::Word;
use crate::session::lock;
use crate::{BrokerConfig, Sessions, forward};

/// How often whoever waits hears that a call is still being worked on.
const WORKING: Duration = Duration::from_secs(3);
/// How often that is said.
const LONGEST: u32 = 1200;
/// How long to rest when the store fails.
const REST: Duration = Duration::from_secs(1);

/// Reads letters for as long as the broker is there.
pub(crate) async fn read(replicas: Arc<Replicas>, sessions: Arc<Sessions>, config: Arc<BrokerConfig>) {
    let mut changes = replicas.store.changes(Topic::ReplicaMessages);
    let mut heard = HashSet::new();
    loop {
        if changes.changed().await.is_err() {
            return;
        }
        // What cannot be read now is read later: nobody tells of it again.
        while let Err(error) = read_new(&replicas, (&sessions, &config), &mut heard).await {
            tracing::warn!(reason = %error, "letters of other processes cannot be read");
            tokio::time::sleep(REST).await;
        }
    }
}

async fn read_new(
    replicas: &Arc<Replicas>,
    (sessions, config): (&Sessions, &Arc<BrokerConfig>),
    heard: &mut HashSet<String>,
) -> embody_store::Result<()> {
    let letters = replicas.store.replica_messages_for(&replicas.mark).await?;
    for letter in &letters {
        if heard.contains(&letter.id) {
            continue;
        }
        let content = replicas.store.replica_message_content(&letter.id).await?;
        heard.insert(letter.id.clone());
        if let Some(word) = content.and_then(|content| serde_json::from_str(&content).ok()) {
            hear(replicas, (sessions, config), &letter.sender, word);
        }
    }
    // Those that are not found again need not be known.
    let found: HashSet<&String> = letters.iter().map(|letter| &letter.id).collect();
    heard.retain(|id| found.contains(id));
    Ok(())
}

fn hear(
    replicas: &Arc<Replicas>,
    (sessions, config): (&Sessions, &Arc<BrokerConfig>),
    sender: &str,
    word: Word,
) {
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
                replicas.pass_to_face(ReplicaMessage::FromHost { session, message });
            }
        }
        Word::Left { session } => replicas.pass_to_face(ReplicaMessage::SessionDeleted { session }),
        Word::Set { session, method, params } => {
            if let Some(session) = sessions.get(&session) {
                forward::set_elsewhere(config, &session, &method, &params);
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
    // Only one of the two goes on with it, and the other lets go of it.
    match replicas.store.claim_suspended_call(user, &ticket).await {
        Ok(true) => {}
        Ok(false) => return replicas.pass_to_face(ReplicaMessage::CallClaimed { ticket }),
        Err(error) => {
            tracing::warn!(reason = %error, "a call that was answered elsewhere cannot be taken");
            return replicas.pass_to_face(ReplicaMessage::CallClaimed { ticket });
        }
    }
    replicas.tell(Some(sender), &Word::Taken { ticket: ticket.clone() }).await;
    let (reply, mut told) = oneshot::channel();
    let relay = ReplicaMessage::CallAnswered { ticket: ticket.clone(), request, reply };
    if replicas.relay.send(relay).await.is_err() {
        replicas.tell(Some(sender), &Word::Gone { ticket }).await;
        return;
    }
    let mut word = Word::Gone { ticket: ticket.clone() };
    for _ in 0..LONGEST {
        match timeout(WORKING, &mut told).await {
            Ok(Ok(reply)) => {
                word = Word::of(ticket.clone(), reply);
                break;
            }
            Ok(Err(_)) => break,
            Err(_) => drop(replicas.tell(Some(sender), &Word::Working { ticket: ticket.clone() }).await),
        }
    }
    if !replicas.tell(Some(sender), &word).await {
        // Whoever waits must know that it happened, if not what came of it.
        let text = r#"{"code":-32603,"message":"the call was made; what came of it is too large to be passed on between processes, or the store does not take it"}"#;
        replicas.tell(Some(sender), &Word::Error { ticket, text: text.to_owned() }).await;
    }
}

impl Replicas {
    /// Tells the face, which has room unless it is far behind; then it is lost, as a host that is gone is.
    fn pass_to_face(&self, relay: ReplicaMessage) {
        if self.relay.try_send(relay).is_err() {
            tracing::warn!("what another process says of a host is lost: there is too much of it");
        }
    }
}
