//! Tokens that are revoked while something is open that they let in. Its sessions and their streams, the requests without a
//! session and the calls that wait for their host end with the token.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use super::Face;
use crate::secret::Secret;
use crate::serve::conversation::{Conversation, Ending};
use crate::serve::lane::Lane;
use crate::serve::service::Service;

/// How often tokens are looked up.
const INTERVAL: Duration = Duration::from_millis(400);

/// Looks tokens up until the server is ending.
pub(super) async fn watch<S: Service>(face: Weak<Face<S>>, mut ending: Ending) {
    loop {
        tokio::select! {
            () = ending.wait() => return,
            () = tokio::time::sleep(INTERVAL) => {}
        }
        let Some(face) = face.upgrade() else { return };
        for bearer in face.bearers() {
            if !face.service.is_valid(&bearer).await {
                face.end_all_of(&bearer);
            }
        }
    }
}

impl<S: Service> Face<S> {
    fn bearers(&self) -> HashSet<Secret> {
        let requests = self.requests.bearers();
        self.sessions.bearers().into_iter().chain(requests).chain(self.parked.bearers()).collect()
    }

    fn end_all_of(&self, bearer: &Secret) {
        for session in self.sessions.take_of(bearer) {
            let service = Arc::clone(&self.service);
            // Its servers take their time to end; other sessions do not wait for them.
            tokio::spawn(async move {
                session.close().await;
                service.left(&session.conversation.host).await;
            });
        }
        self.requests.cancel_of(bearer);
        self.parked.cancel_of(bearer);
    }
}

/// The requests without a session that run.
pub(super) struct Requests<S: Service> {
    running: Mutex<HashMap<u64, Request<S>>>,
    last: AtomicU64,
}

type Request<S> = (Arc<Conversation<S>>, Arc<Lane>);

impl<S: Service> Default for Requests<S> {
    fn default() -> Self {
        Self { running: Mutex::default(), last: AtomicU64::new(0) }
    }
}

impl<S: Service> Requests<S> {
    fn running(&self) -> MutexGuard<'_, HashMap<u64, Request<S>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn bearers(&self) -> Vec<Secret> {
        self.running().values().filter_map(|(conversation, _)| conversation.host.bearer.clone()).collect()
    }

    fn cancel_of(&self, bearer: &Secret) {
        for (conversation, lane) in self.running().values() {
            if conversation.host.bearer.as_ref() == Some(bearer) {
                conversation.cancel_all();
                lane.finish();
            }
        }
    }
}

/// One of them. It is cancelled when its answer has no reader any more.
pub(super) struct Running<S: Service> {
    face: Arc<Face<S>>,
    number: u64,
}

impl<S: Service> Running<S> {
    pub(super) fn new(face: &Arc<Face<S>>, conversation: Arc<Conversation<S>>, lane: Arc<Lane>) -> Self {
        let number = face.requests.last.fetch_add(1, Ordering::Relaxed);
        face.requests.running().insert(number, (conversation, lane));
        Self { face: Arc::clone(face), number }
    }
}

impl<S: Service> Drop for Running<S> {
    fn drop(&mut self) {
        let removed = self.face.requests.running().remove(&self.number);
        if let Some((conversation, lane)) = removed {
            conversation.cancel_all();
            lane.close();
        }
    }
}
