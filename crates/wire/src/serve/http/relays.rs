//! What other processes say about hosts that this face serves too.

use std::sync::{Arc, Weak};

use tokio::sync::mpsc;

use super::Face;
use crate::message::Message;
use crate::serve::relay::Relay;
use crate::serve::service::Service;
use crate::serve::turns::{give_up, go_on_for_another};

/// Hears them for as long as the face is there.
pub(super) async fn hear<S: Service>(face: Weak<Face<S>>, mut relays: mpsc::Receiver<Relay>) {
    while let Some(relay) = relays.recv().await {
        let Some(face) = face.upgrade() else { return };
        match relay {
            Relay::Said { session, message } => said(&face, &session, message).await,
            Relay::Left { session } => {
                // Its servers take their time to end; others wait for what they are told.
                tokio::spawn(async move {
                    if let Some(session) = face.sessions.of_anyone(&session) {
                        face.sessions.close(&session).await;
                    }
                });
            }
            Relay::Taken { ticket } => give_up::<S>(&face.parked, &ticket),
            Relay::Answers { ticket, request, reply } => {
                let (service, parked) = (Arc::clone(&face.service), Arc::clone(&face.parked));
                tokio::spawn(async move {
                    if let Some(told) = go_on_for_another(&*service, &parked, &ticket, &request).await {
                        // Whoever asked may have left meanwhile.
                        let _ = reply.send(told);
                    }
                });
            }
        }
    }
}

/// What a host has said elsewhere; nothing, if it has no session here.
async fn said<S: Service>(face: &Face<S>, session: &str, message: Message) {
    let Some(session) = face.sessions.of_anyone(session) else { return };
    match message {
        Message::Response(response) => drop(session.conversation.host.asks.answer(response)),
        Message::Notification(notification) => session.conversation.notice(notification).await,
        Message::Request(_) => {}
    }
}
