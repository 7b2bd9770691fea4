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
        let bearers: Vec<Secret> = face.bearers().into_iter().collect();
        if bearers.is_empty() {
            continue;
        }
        // Together: one after the other, many tokens would take longer than the second that a revoked one may have.
        let are_valid = face.service.are_valid(&bearers).await;
        for (bearer, is_valid) in bearers.iter().zip(are_valid) {
            if !is_valid {
                face.end_all_of(bearer);
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize};

    use tokio::time::Instant;

    use super::super::door::Admitted;
    use super::super::sessions::Session;
    use super::super::{Door, Options};
    use super::*;
    use crate::limits::Limits;
    use crate::message::Outcome;
    use crate::serve::service::{Call, Credentials};
    use crate::serve::{Refusal, code, failure};

    /// Lets everyone in. A lookup takes as long as a store under load.
    #[derive(Default)]
    struct Slow {
        is_revoked: AtomicBool,
        lookups: AtomicUsize,
    }

    impl Service for Slow {
        type Principal = String;

        async fn admit(&self, _: Credentials) -> Result<String, Refusal> {
            Ok("ann".to_owned())
        }

        async fn are_valid(&self, bearers: &[Secret]) -> Vec<bool> {
            self.lookups.fetch_add(1, Ordering::AcqRel);
            let is_revoked = self.is_revoked.load(Ordering::Acquire);
            tokio::time::sleep(Duration::from_millis(300)).await;
            bearers.iter().map(|bearer| bearer.expose() != "lost" || !is_revoked).collect()
        }

        async fn call(&self, _: Call<String>) -> Outcome {
            failure(code::METHOD_NOT_FOUND, "there are no methods")
        }
    }

    fn open(face: &Face<Slow>, token: &str) -> Arc<Session<Slow>> {
        let by = Admitted { principal: "ann".to_owned(), bearer: Some(Secret::new(token)) };
        let session = Session::streamable(face, by);
        assert!(face.sessions.keep(&session));
        session
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_token_opened_ends_within_a_second_of_its_end_however_many_others_there_are() {
        let (_switch, ending) = Ending::new();
        let options = Options { door: Door::default(), limits: Limits::default() };
        let service = Arc::new(Slow::default());
        let face = Arc::new(Face::new(Arc::clone(&service), options, ending.clone()));
        let others: Vec<_> = (0..32).map(|number| open(&face, &format!("kept {number}"))).collect();
        let lost = open(&face, "lost");
        tokio::spawn(watch(Arc::downgrade(&face), ending));
        // Whenever it is revoked, also in the middle of a lookup.
        tokio::time::sleep(Duration::from_millis(450)).await;
        service.is_revoked.store(true, Ordering::Release);
        let since = Instant::now();
        lost.closed.wait().await;
        assert!(since.elapsed() <= Duration::from_secs(1), "{:?}", since.elapsed());
        assert!(others.iter().all(|other| !other.closed.is_cancelled()));
        assert_eq!(service.lookups.load(Ordering::Acquire), 2, "one for all tokens, each time");
    }
}
