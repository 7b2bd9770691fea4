//! Ends everything that a revoked token has opened: its sessions and their streams, its stateless requests, and its
//! suspended calls.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::HttpServer;
use crate::secret::Secret;
use crate::server::connection::Connection;
use crate::server::replay_buffer::ReplayBuffer;
use crate::server::service::Service;

const INTERVAL: Duration = Duration::from_millis(400);

/// Checks the open tokens periodically until shutdown.
pub(super) async fn watch<S: Service>(server: Weak<HttpServer<S>>, shutdown: CancellationToken) {
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(INTERVAL) => {}
        }
        let Some(server) = server.upgrade() else { return };
        let bearers: Vec<Secret> = server.bearers().into_iter().collect();
        if bearers.is_empty() {
            continue;
        }
        // Concurrently: in sequence, many tokens would take longer than the second within which a revocation must take
        // effect.
        let are_valid = server.service.are_valid(&bearers).await;
        for (bearer, is_valid) in bearers.iter().zip(are_valid) {
            if !is_valid {
                server.end_all_of(bearer);
            }
        }
    }
}

impl<S: Service> HttpServer<S> {
    fn bearers(&self) -> HashSet<Secret> {
        let requests = self.requests.bearers();
        self.sessions.bearers().into_iter().chain(requests).chain(self.suspended.bearers()).collect()
    }

    fn end_all_of(&self, bearer: &Secret) {
        for session in self.sessions.take_of(bearer) {
            let service = Arc::clone(&self.service);
            // In the background: closing its upstream servers takes time, and other sessions must not wait.
            tokio::spawn(async move {
                session.close().await;
                if let Some(service) = service.replicated() {
                    service.on_session_deleted(&session.connection.host).await;
                }
            });
        }
        self.requests.cancel_of(bearer);
        self.suspended.cancel_of(bearer);
    }
}

/// The running stateless requests.
pub(super) struct StatelessRequests<S: Service> {
    running: Mutex<HashMap<u64, Request<S>>>,
    last: AtomicU64,
}

type Request<S> = (Arc<Connection<S>>, Arc<ReplayBuffer>);

impl<S: Service> Default for StatelessRequests<S> {
    fn default() -> Self {
        Self { running: Mutex::default(), last: AtomicU64::new(0) }
    }
}

impl<S: Service> StatelessRequests<S> {
    fn running(&self) -> MutexGuard<'_, HashMap<u64, Request<S>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn bearers(&self) -> Vec<Secret> {
        self.running().values().filter_map(|(connection, _)| connection.host.bearer.clone()).collect()
    }

    fn cancel_of(&self, bearer: &Secret) {
        for (connection, buffer) in self.running().values() {
            if connection.host.bearer.as_ref() == Some(bearer) {
                connection.cancel_all();
                buffer.finish();
            }
        }
    }
}

/// A running stateless request. Dropping it cancels the request.
pub(super) struct StatelessRequest<S: Service> {
    server: Arc<HttpServer<S>>,
    number: u64,
}

impl<S: Service> StatelessRequest<S> {
    pub(super) fn new(
        server: &Arc<HttpServer<S>>,
        connection: Arc<Connection<S>>,
        buffer: Arc<ReplayBuffer>,
    ) -> Self {
        let number = server.requests.last.fetch_add(1, Ordering::Relaxed);
        server.requests.running().insert(number, (connection, buffer));
        Self { server: Arc::clone(server), number }
    }
}

impl<S: Service> Drop for StatelessRequest<S> {
    fn drop(&mut self) {
        let removed = self.server.requests.running().remove(&self.number);
        if let Some((connection, buffer)) = removed {
            connection.cancel_all();
            buffer.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize};

    use tokio::time::Instant;

    use super::super::auth::Caller;
    use super::super::sessions::Session;
    use super::super::{Options, OriginGuard};
    use super::*;
    use crate::limits::Limits;
    use crate::message::Outcome;
    use crate::server::service::{Call, Credentials};
    use crate::server::{AuthError, code, failure};

    /// Accepts every token. A lookup takes as long as a store under load.
    #[derive(Default)]
    struct Slow {
        is_revoked: AtomicBool,
        lookups: AtomicUsize,
    }

    impl Service for Slow {
        type Principal = String;

        async fn authenticate(&self, _: Credentials) -> Result<String, AuthError> {
            Ok("ann".to_owned())
        }

        async fn are_valid(&self, bearers: &[Secret]) -> Vec<bool> {
            self.lookups.fetch_add(1, Ordering::AcqRel);
            let is_revoked = self.is_revoked.load(Ordering::Acquire);
            tokio::time::sleep(Duration::from_millis(300)).await;
            bearers.iter().map(|bearer| bearer.expose() != "lost" || !is_revoked).collect()
        }

        async fn call(&self, _: Call<String>) -> Outcome {
            failure(code::METHOD_NOT_FOUND, "unknown method")
        }
    }

    fn open(server: &HttpServer<Slow>, token: &str) -> Arc<Session<Slow>> {
        let by = Caller { principal: "ann".to_owned(), bearer: Some(Secret::new(token)) };
        let session = Session::streamable(server, by);
        assert!(server.sessions.keep(&session));
        session
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_token_opened_ends_within_a_second_of_its_end_however_many_others_there_are() {
        let shutdown = CancellationToken::new();
        let options = Options { origin_guard: OriginGuard::default(), limits: Limits::default() };
        let service = Arc::new(Slow::default());
        let server = Arc::new(HttpServer::new(Arc::clone(&service), options, shutdown.clone()));
        let others: Vec<_> = (0..32).map(|number| open(&server, &format!("kept {number}"))).collect();
        let lost = open(&server, "lost");
        tokio::spawn(watch(Arc::downgrade(&server), shutdown));
        // The revocation may come at any time, also in the middle of a lookup.
        tokio::time::sleep(Duration::from_millis(450)).await;
        service.is_revoked.store(true, Ordering::Release);
        let since = Instant::now();
        lost.closed.cancelled().await;
        assert!(since.elapsed() <= Duration::from_secs(1), "{:?}", since.elapsed());
        assert!(others.iter().all(|other| !other.closed.is_cancelled()));
        assert_eq!(service.lookups.load(Ordering::Acquire), 2, "one for all tokens, each time");
    }
}
