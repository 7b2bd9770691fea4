//! Processes on one database that serve the same hosts behind one address. Sessions and suspended calls are rows in the store, so
//! that another process can continue them. Messages between processes go through the store, on PostgreSQL only: a SQLite file
//! has a single process that hosts reach over HTTP.
//!
//! - `claim`: resumes a suspended call
//! - `messages`: what one process sends to another, and how it is handled

mod claim;
mod messages;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use embody_store::replica_messages::NewReplicaMessage;
use embody_store::{DatabaseUrl, Principal, Store};
use embody_wire::server::{BoxFuture, Host, ReplicaEvent, ReplicatedService, ResumedSession};
use embody_wire::{InitializeParams, Message, Version};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use self::messages::{ReplicaMessage, receive};
use crate::session::lock;
use crate::{Broker, BrokerConfig, Sessions};

/// Events that the HTTP server has not processed yet.
const RELAYS: usize = 256;

impl ReplicatedService<Principal> for Broker {
    fn events(&self) -> Option<mpsc::Receiver<ReplicaEvent>> {
        self.replicas.relays(&self.sessions, &self.config)
    }

    fn forward<'a>(&'a self, host: &'a Host<Principal>, message: Message) -> BoxFuture<'a, ()> {
        Box::pin(self.replicas.forward_message(host, message))
    }

    fn resume<'a>(
        &'a self,
        principal: &'a Principal,
        session: &'a str,
    ) -> BoxFuture<'a, Option<ResumedSession>> {
        Box::pin(self.replicas.resume(principal, session))
    }

    fn on_session_deleted<'a>(&'a self, host: &'a Host<Principal>) -> BoxFuture<'a, ()> {
        Box::pin(self.replicas.end_session(host))
    }
}

pub(crate) struct Replicas {
    replica_id: String,
    store: Store,
    is_shared: bool,
    /// The queue to the HTTP server, and its receiver until the server takes it.
    relay: mpsc::Sender<ReplicaEvent>,
    relays: Mutex<Option<mpsc::Receiver<ReplicaEvent>>>,
    reader: Mutex<Option<AbortHandle>>,
    /// Channels that wait for replies about a call, by its ticket.
    waiting: Mutex<HashMap<String, mpsc::Sender<ReplicaMessage>>>,
}

impl Replicas {
    pub(crate) fn new(store: Store) -> Arc<Self> {
        let (relay, relays) = mpsc::channel(RELAYS);
        let is_shared = matches!(store.url(), DatabaseUrl::Postgres { .. });
        let replica_id = uuid::Uuid::new_v4().simple().to_string();
        let (relays, reader, waiting) = (Mutex::new(Some(relays)), Mutex::default(), Mutex::default());
        Arc::new(Self { replica_id, store, is_shared, relay, relays, reader, waiting })
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Returns the events for the HTTP server, once; from then on messages of other processes are received.
    fn relays(
        self: &Arc<Self>,
        sessions: &Arc<Sessions>,
        config: &Arc<BrokerConfig>,
    ) -> Option<mpsc::Receiver<ReplicaEvent>> {
        let relays = if self.is_shared { lock(&self.relays).take() } else { None }?;
        let reading = tokio::spawn(receive(Arc::clone(self), Arc::clone(sessions), Arc::clone(config)));
        *lock(&self.reader) = Some(reading.abort_handle());
        Some(relays)
    }

    pub(crate) fn shutdown(&self) {
        if let Some(reader) = lock(&self.reader).take() {
            reader.abort();
        }
    }

    /// Sends a message to one process, or to all others; returns whether it was stored.
    async fn send(&self, recipient: Option<&str>, message: &ReplicaMessage) -> bool {
        let Ok(content) = serde_json::to_string(message) else { return false };
        let (sender, recipient) = (self.replica_id.clone(), recipient.map(str::to_owned));
        let sent = self.store.replica_messages().send(NewReplicaMessage { sender, recipient, content }).await;
        if let Err(error) = &sent {
            tracing::warn!(reason = %error, "a message of a host cannot be passed to other processes");
        }
        sent.is_ok()
    }

    async fn forward_message(&self, host: &Host<Principal>, message: Message) {
        let Some(session) = host.session.as_deref().filter(|_| self.is_shared) else { return };
        let text = match message {
            Message::Response(response) => response.print(),
            Message::Notification(notification) => notification.print(),
            Message::Request(_) => return,
        };
        self.send(None, &ReplicaMessage::HostMessage { session: session.to_owned(), text }).await;
    }

    /// Applies the host's setting to the connections of the other processes too.
    pub(crate) async fn mirror_setting(&self, session: &str, method: &str, params: Option<&RawValue>) {
        let is_set = matches!(method, "resources/subscribe" | "resources/unsubscribe" | "logging/setLevel");
        if !is_set || !self.is_shared {
            return;
        }
        let params = params.map_or("{}", RawValue::get).to_owned();
        let message =
            ReplicaMessage::Setting { session: session.to_owned(), method: method.to_owned(), params };
        self.send(None, &message).await;
    }

    async fn end_session(&self, host: &Host<Principal>) {
        let Some(session) = host.session.as_deref() else { return };
        if let Err(error) = self.store.sessions().close(host.principal.user(), session).await {
            tracing::warn!(session, reason = %error, "the end of the session could not be stored");
        }
        if self.is_shared {
            self.send(None, &ReplicaMessage::SessionEnded { session: session.to_owned() }).await;
        }
    }

    /// The stored state of a session that this process has not opened.
    async fn resume(&self, principal: &Principal, session: &str) -> Option<ResumedSession> {
        let known = match self.store.sessions().get(principal.user(), session).await {
            Ok(known) => known?,
            Err(error) => {
                tracing::warn!(session, reason = %error, "the session cannot be looked up");
                return None;
            }
        };
        if known.agent != principal.agent() || known.channel != principal.channel {
            return None;
        }
        let stored: StoredHost = serde_json::from_str(&known.hello?).ok()?;
        // A session belongs to the token that opened it, and a host without the right to approve must not answer its forms.
        if stored.token != principal.token || stored.may_approve != principal.may_approve {
            return None;
        }
        if !self.is_valid(principal).await {
            return None;
        }
        let StoredHost { version, capabilities, client, .. } = stored;
        let params = InitializeParams { capabilities, client_info: client, log_level: None };
        tracing::info!(session, "a session that another process opened is continued");
        Some(ResumedSession { version: Version::parse(&version)?, params })
    }

    /// Whether the principal's token is valid now: it may have been revoked since the request arrived.
    async fn is_valid(&self, principal: &Principal) -> bool {
        let Some(token) = &principal.token else { return true };
        self.store.tokens().is_valid_id(principal.user(), token).await.unwrap_or_else(|error| {
            tracing::warn!(reason = %error, "cannot look up whether a token was revoked");
            false
        })
    }
}

/// The stored client info of a host, and the token that it used.
#[derive(Serialize, Deserialize)]
struct StoredHost {
    version: String,
    capabilities: Option<Box<RawValue>>,
    client: Option<Box<RawValue>>,
    #[serde(default)]
    may_approve: bool,
    #[serde(default)]
    token: Option<String>,
}

/// The state that another process needs to continue the session.
pub(crate) fn stored_host(
    principal: &Principal,
    params: &InitializeParams,
    version: Version,
) -> Option<String> {
    let (capabilities, client) = (params.capabilities.clone(), params.client_info.clone());
    let (version, may_approve) = (version.as_str().to_owned(), principal.may_approve);
    let token = principal.token.clone();
    serde_json::to_string(&StoredHost { version, capabilities, client, may_approve, token }).ok()
}

#[cfg(test)]
mod tests {
    use embody_store::Scope;
    use embody_store::sessions::OpenSession;
    use embody_store::tokens::{NewToken, TokenScope};

    use super::*;

    #[tokio::test]
    async fn a_token_that_is_revoked_takes_no_session_over() {
        let store = Store::open(DatabaseUrl::Memory).await.unwrap();
        let new = || NewToken {
            user: "ann".to_owned(),
            scope: TokenScope::Mcp,
            label: String::new(),
            expires_at: None,
            may_approve: false,
        };
        let ((token, _), (other, _)) =
            (store.tokens().add(new()).await.unwrap(), store.tokens().add(new()).await.unwrap());
        let ann = |token: &str| Principal {
            token: Some(token.to_owned()),
            ..Principal::host("ann", "main").unwrap()
        };
        for (token, id) in [(&token.id, "s-1"), (&other.id, "s-2")] {
            let open = OpenSession {
                scope: Scope::new("ann", "main").unwrap(),
                id: id.to_owned(),
                channel: "mcp".to_owned(),
                host: None,
                hello: stored_host(&ann(token), &InitializeParams::default(), Version::V2025_11_25),
                idle: None,
            };
            store.sessions().open(open).await.unwrap();
        }
        let replicas = Replicas::new(store.clone());
        assert!(replicas.resume(&ann(&token.id), "s-1").await.is_some());
        // The request arrived before the token was revoked.
        store.tokens().revoke(&token.id).await.unwrap();
        assert!(replicas.resume(&ann(&token.id), "s-1").await.is_none());
        assert!(replicas.resume(&ann(&other.id), "s-2").await.is_some(), "another token counts");
        assert!(replicas.resume(&ann(&other.id), "s-1").await.is_none(), "for its own session");
    }
}
