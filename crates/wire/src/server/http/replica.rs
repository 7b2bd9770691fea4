//! Handles events of other processes about hosts that this server serves too.

use std::sync::{Arc, Weak};

use tokio::sync::mpsc;

use super::HttpServer;
use crate::message::Message;
use crate::server::replica::ReplicaEvent;
use crate::server::service::Service;
use crate::server::stateless::{cancel_suspended, resume_for_replica};

/// Runs for as long as the server exists.
pub(super) async fn receive<S: Service>(
    server: Weak<HttpServer<S>>,
    mut relays: mpsc::Receiver<ReplicaEvent>,
) {
    while let Some(relay) = relays.recv().await {
        let Some(server) = server.upgrade() else { return };
        match relay {
            ReplicaEvent::FromHost { session, message } => on_host_message(&server, &session, message).await,
            ReplicaEvent::SessionDeleted { session } => {
                // In the background: closing its upstream servers takes time, and other events must not wait.
                tokio::spawn(async move {
                    if let Some(session) = server.sessions.of_anyone(&session) {
                        server.sessions.close(&session).await;
                    }
                });
            }
            ReplicaEvent::CallClaimed { ticket } => cancel_suspended(&server.suspended, &ticket),
            ReplicaEvent::CallAnswered { ticket, request, reply } => {
                let (service, suspended) = (Arc::clone(&server.service), Arc::clone(&server.suspended));
                tokio::spawn(async move {
                    let Some(service) = service.multi_round() else { return };
                    if let Some(outcome) = resume_for_replica(service, &suspended, &ticket, &request).await {
                        // The requester may have left meanwhile.
                        let _ = reply.send(outcome);
                    }
                });
            }
        }
    }
}

/// Handles a host's message to another process; ignored if the host has no session here.
async fn on_host_message<S: Service>(server: &HttpServer<S>, session: &str, message: Message) {
    let Some(session) = server.sessions.of_anyone(session) else { return };
    match message {
        Message::Response(response) => drop(session.connection.host.server_requests.answer(response)),
        Message::Notification(notification) => session.connection.on_notification(notification).await,
        Message::Request(_) => {}
    }
}
