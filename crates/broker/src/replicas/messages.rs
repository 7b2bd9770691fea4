//! Messages between processes, and how they are handled. Payloads stay raw text; the serialized form is stored.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use embody_store::Topic;
use embody_wire::message::parse_frame;
use embody_wire::server::{ReplicaEvent, ResumeResult};
use embody_wire::{Limits, Message, Outcome};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::Replicas;
use crate::session::lock;
use crate::{BrokerConfig, Sessions, forward};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum ReplicaMessage {
    /// A response or a notification that a host has sent in its session.
    #[serde(rename = "said")]
    HostMessage {
        session: String,
        text: String,
    },
    #[serde(rename = "set")]
    Setting {
        session: String,
        method: String,
        params: String,
    },
    #[serde(rename = "left")]
    SessionEnded {
        session: String,
    },
    /// A host has returned, with this request, to a call that the recipient holds.
    #[serde(rename = "answers")]
    Resume {
        ticket: String,
        user: String,
        request: String,
    },
    #[serde(rename = "taken")]
    Claimed {
        ticket: String,
    },
    /// The call is still running.
    Working {
        ticket: String,
    },
    /// The call no longer waits.
    #[serde(rename = "gone")]
    Expired {
        ticket: String,
    },
    Result {
        ticket: String,
        text: String,
    },
    Error {
        ticket: String,
        text: String,
    },
    #[serde(rename = "asks")]
    InputRequired {
        ticket: String,
        requests: String,
        next: String,
    },
}

impl ReplicaMessage {
    fn from_reply(ticket: String, reply: ResumeResult) -> Self {
        match reply {
            ResumeResult::Done(Outcome::Result(result)) => {
                Self::Result { ticket, text: result.get().to_owned() }
            }
            ResumeResult::Done(Outcome::Error(error)) => Self::Error { ticket, text: error.get().to_owned() },
            ResumeResult::InputRequired { requests, ticket: next } => {
                Self::InputRequired { ticket, requests, next }
            }
        }
    }

    /// Converts a received message; `None` if it is not a reply about a call.
    pub(super) fn into_reply(self) -> Option<ResumeResult> {
        let raw = |text: String| RawValue::from_string(text).ok();
        match self {
            Self::Result { text, .. } => raw(text).map(|result| ResumeResult::Done(Outcome::Result(result))),
            Self::Error { text, .. } => raw(text).map(|error| ResumeResult::Done(Outcome::Error(error))),
            Self::InputRequired { requests, next, .. } => {
                Some(ResumeResult::InputRequired { requests, ticket: next })
            }
            _ => None,
        }
    }

    pub(super) fn ticket(&self) -> Option<&str> {
        match self {
            Self::Claimed { ticket }
            | Self::Working { ticket }
            | Self::Expired { ticket }
            | Self::Result { ticket, .. }
            | Self::Error { ticket, .. }
            | Self::InputRequired { ticket, .. } => Some(ticket),
            Self::HostMessage { .. }
            | Self::Setting { .. }
            | Self::SessionEnded { .. }
            | Self::Resume { .. } => None,
        }
    }
}

/// How often a waiting process is notified that a call is still running.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(3);
const PROGRESS_MAX: u32 = 1200;
const RETRY_DELAY: Duration = Duration::from_secs(1);

pub(crate) async fn receive(replicas: Arc<Replicas>, sessions: Arc<Sessions>, config: Arc<BrokerConfig>) {
    let mut changes = replicas.store.changes(Topic::ReplicaMessages);
    let mut seen = HashSet::new();
    loop {
        if changes.changed().await.is_err() {
            return;
        }
        // Retry on failure: the notification is not repeated.
        while let Err(error) = receive_new(&replicas, (&sessions, &config), &mut seen).await {
            tracing::warn!(reason = %error, "messages of other processes cannot be read");
            tokio::time::sleep(RETRY_DELAY).await;
        }
    }
}

async fn receive_new(
    replicas: &Arc<Replicas>,
    (sessions, config): (&Sessions, &Arc<BrokerConfig>),
    seen: &mut HashSet<String>,
) -> embody_store::Result<()> {
    let messages = replicas.store.replica_messages().list_for(&replicas.replica_id).await?;
    for row in &messages {
        if seen.contains(&row.id) {
            continue;
        }
        let content = replicas.store.replica_messages().content(&row.id).await?;
        seen.insert(row.id.clone());
        if let Some(message) = content.and_then(|content| serde_json::from_str(&content).ok()) {
            handle(replicas, (sessions, config), &row.sender, message);
        }
    }
    // Forget the ids of messages that are no longer in the store.
    let found: HashSet<&String> = messages.iter().map(|message| &message.id).collect();
    seen.retain(|id| found.contains(id));
    Ok(())
}

fn handle(
    replicas: &Arc<Replicas>,
    (sessions, config): (&Sessions, &Arc<BrokerConfig>),
    sender: &str,
    message: ReplicaMessage,
) {
    if let Some(ticket) = message.ticket() {
        let waiting = lock(&replicas.waiting).get(ticket).cloned();
        if let Some(waiting) = waiting {
            // A receiver whose queue is full is not waiting.
            let _ = waiting.try_send(message);
        }
        return;
    }
    match message {
        ReplicaMessage::HostMessage { session, text } => {
            let message = parse_frame(text.as_bytes(), &Limits::default()).ok().and_then(|mut all| all.pop());
            if let Some(message @ (Message::Response(_) | Message::Notification(_))) = message {
                replicas.relay_to_server(ReplicaEvent::FromHost { session, message });
            }
        }
        ReplicaMessage::SessionEnded { session } => {
            replicas.relay_to_server(ReplicaEvent::SessionDeleted { session })
        }
        ReplicaMessage::Setting { session, method, params } => {
            if let Some(session) = sessions.get(&session) {
                forward::apply_remote_setting(config, &session, &method, &params);
            }
        }
        ReplicaMessage::Resume { ticket, user, request } => {
            let (replicas, sender) = (Arc::clone(replicas), sender.to_owned());
            tokio::spawn(async move { resume_call(&replicas, &sender, (ticket, &user), &request).await });
        }
        _ => {}
    }
}

/// Resumes a call that waits here, and sends the result to the process that its host has returned to.
async fn resume_call(replicas: &Replicas, sender: &str, (ticket, user): (String, &str), request: &str) {
    let request = parse_frame(request.as_bytes(), &Limits::default()).ok().and_then(|mut all| all.pop());
    let Some(Message::Request(request)) = request else { return };
    // Only one of the two processes may claim it.
    match replicas.store.suspended_calls().claim(user, &ticket).await {
        Ok(true) => {}
        Ok(false) => return replicas.relay_to_server(ReplicaEvent::CallClaimed { ticket }),
        Err(error) => {
            tracing::warn!(reason = %error, "a call that was answered in another process cannot be resumed");
            return replicas.relay_to_server(ReplicaEvent::CallClaimed { ticket });
        }
    }
    replicas.send(Some(sender), &ReplicaMessage::Claimed { ticket: ticket.clone() }).await;
    let (reply, mut result) = oneshot::channel();
    let relay = ReplicaEvent::CallAnswered { ticket: ticket.clone(), request, reply };
    if replicas.relay.send(relay).await.is_err() {
        replicas.send(Some(sender), &ReplicaMessage::Expired { ticket }).await;
        return;
    }
    let mut message = ReplicaMessage::Expired { ticket: ticket.clone() };
    for _ in 0..PROGRESS_MAX {
        match timeout(PROGRESS_INTERVAL, &mut result).await {
            Ok(Ok(reply)) => {
                message = ReplicaMessage::from_reply(ticket.clone(), reply);
                break;
            }
            Ok(Err(_)) => break,
            Err(_) => {
                replicas.send(Some(sender), &ReplicaMessage::Working { ticket: ticket.clone() }).await;
            }
        }
    }
    if !replicas.send(Some(sender), &message).await {
        // The waiting process must learn that the call was made, even without its result.
        let text = r#"{"code":-32603,"message":"the call was made, but its result is too large to be passed between processes, or the store does not accept it"}"#;
        replicas.send(Some(sender), &ReplicaMessage::Error { ticket, text: text.to_owned() }).await;
    }
}

impl Replicas {
    /// Forwards an event to the HTTP server. The event is lost if the queue is full.
    fn relay_to_server(&self, relay: ReplicaEvent) {
        if self.relay.try_send(relay).is_err() {
            tracing::warn!("messages of another process are lost: the queue is full");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_arrives_as_it_was_written() {
        let text = r#"{ "content":[{"x":1.0,"y":12345678901234567890}] }"#;
        let reply = ResumeResult::Done(Outcome::Result(RawValue::from_string(text.to_owned()).unwrap()));
        let message = serde_json::to_string(&ReplicaMessage::from_reply("t".to_owned(), reply)).unwrap();
        let message: ReplicaMessage = serde_json::from_str(&message).unwrap();
        assert_eq!(message.ticket(), Some("t"));
        let Some(ResumeResult::Done(Outcome::Result(result))) = message.into_reply() else { panic!() };
        assert_eq!(result.get(), text);
    }
}
