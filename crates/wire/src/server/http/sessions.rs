//! The open HTTP sessions, and the replay buffers of each.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::auth::{Caller, HttpError};
use super::post::SESSION_ID;
use super::{GRACE, HttpServer, response};
use crate::limits::Limits;
use crate::secret::Secret;
use crate::server::connection::Connection;
use crate::server::new_session_id;
use crate::server::outbound::Outbound;
use crate::server::outbound::OutboundMessage;
use crate::server::replay_buffer::{Capacity, ReplayBuffer};
use crate::server::replica::ResumedSession;
use crate::server::service::{Host, Service};

/// Finished and read buffers that are kept for a host that lost the end of a stream.
const SPENT_BUFFERS: usize = 16;
/// Bytes kept in one buffer; a longer message is kept alone.
const BUFFER_BYTES: usize = 4 * 1024 * 1024;
/// Finished buffers that were not read to their end: the host may still resume them.
const UNREAD_BUFFERS: usize = 32;
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);
const SWEEP_INTERVAL_LEAST: Duration = Duration::from_millis(10);

/// The number of the buffer for messages that belong to no request.
pub(super) const GENERAL: u64 = 0;

pub(crate) struct Sessions<S: Service> {
    open: Mutex<HashMap<Arc<str>, Arc<Session<S>>>>,
    limits: Limits,
}

pub(super) struct Session<S: Service> {
    pub(super) connection: Connection<S>,
    buffers: Mutex<BTreeMap<u64, Arc<ReplayBuffer>>>,
    next_stream: AtomicU64,
    used: Mutex<Instant>,
    streams: AtomicUsize,
    /// The queue of a legacy session, which has no replay buffers.
    pub(super) pipe: Option<Outbound>,
    pub(super) closed: CancellationToken,
}

/// Keeps a session open while one of its streams is read.
pub(super) struct Streaming<S: Service>(Arc<Session<S>>);

impl<S: Service> Drop for Streaming<S> {
    fn drop(&mut self) {
        self.0.touch();
        self.0.streams.fetch_sub(1, Ordering::AcqRel);
    }
}

impl<S: Service> Sessions<S> {
    pub(super) fn new(limits: &Limits) -> Self {
        Self { open: Mutex::default(), limits: limits.clone() }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<Session<S>>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session with this id, if this principal opened it with this token.
    pub(super) fn find(&self, id: &str, by: &Caller<S::Principal>) -> Option<Arc<Session<S>>> {
        let session = self.open().get(id).cloned()?;
        let host = &session.connection.host;
        if host.principal != by.principal || host.bearer != by.bearer {
            return None;
        }
        session.touch();
        Some(session)
    }

    /// The session with this id, regardless of its owner.
    pub(super) fn of_anyone(&self, id: &str) -> Option<Arc<Session<S>>> {
        self.open().get(id).cloned()
    }

    /// Stores a session; returns `false` if there are too many.
    pub(super) fn keep(&self, session: &Arc<Session<S>>) -> bool {
        let mut open = self.open();
        let Some(id) = session.connection.host.session.clone() else { return false };
        let same = |other: &Session<S>| other.connection.host.principal == session.connection.host.principal;
        let own = open.values().filter(|other| same(other));
        if own.clone().count() >= self.limits.sessions_each_max
            && let Some(oldest) = own.min_by_key(|other| other.last_used()).cloned()
            && let Some(id) = &oldest.connection.host.session
        {
            open.remove(id);
            tokio::spawn(async move { oldest.close().await });
        }
        if open.len() >= self.limits.sessions_max {
            return false;
        }
        open.insert(id, Arc::clone(session));
        true
    }

    pub(super) async fn close(&self, session: &Arc<Session<S>>) {
        if let Some(id) = &session.connection.host.session {
            self.open().remove(id);
        }
        session.close().await;
    }

    pub(super) fn bearers(&self) -> Vec<Secret> {
        self.open().values().filter_map(|session| session.connection.host.bearer.clone()).collect()
    }

    /// Removes and returns the sessions of a token. The caller must close them.
    pub(super) fn take_of(&self, bearer: &Secret) -> Vec<Arc<Session<S>>> {
        let of_token = |_: &Arc<str>, session: &mut Arc<Session<S>>| {
            session.connection.host.bearer.as_ref() == Some(bearer)
        };
        self.open().extract_if(of_token).map(|(_, session)| session).collect()
    }

    async fn close_idle(&self) {
        let idle: Vec<_> = {
            let mut open = self.open();
            let limit = self.limits.session_idle_timeout;
            open.extract_if(|_, session| session.is_idle(limit)).map(|(_, session)| session).collect()
        };
        for session in idle {
            session.close().await;
        }
    }

    async fn close_all(&self) {
        let all: Vec<_> = self.open().drain().map(|(_, session)| session).collect();
        // One deadline for all: a separate one for each would add up.
        let deadline = Instant::now() + GRACE;
        for session in all {
            session.connection.wait_idle(deadline.saturating_duration_since(Instant::now())).await;
            session.close().await;
        }
    }
}

/// Closes idle sessions until shutdown; then closes all.
pub(super) async fn expire_idle<S: Service>(
    server: Weak<HttpServer<S>>,
    limits: Limits,
    shutdown: CancellationToken,
) {
    let interval = limits.session_idle_timeout.clamp(SWEEP_INTERVAL_LEAST, SWEEP_INTERVAL);
    loop {
        let is_ending = tokio::select! {
            () = shutdown.cancelled() => true,
            () = tokio::time::sleep(interval) => false,
        };
        let Some(server) = server.upgrade() else { return };
        if is_ending {
            server.sessions.close_all().await;
            return;
        }
        server.sessions.close_idle().await;
    }
}

impl<S: Service> Session<S> {
    pub(super) fn streamable(server: &HttpServer<S>, by: Caller<S::Principal>) -> Arc<Self> {
        let Caller { principal, bearer } = by;
        let host = |outbound| Host::session(principal, new_session_id(), outbound).with_bearer(bearer);
        Self::with(server, GENERAL + 1, host)
    }

    /// A session that was opened in another process.
    pub(super) fn resumed(
        server: &HttpServer<S>,
        by: Caller<S::Principal>,
        id: Arc<str>,
        known: ResumedSession,
    ) -> Arc<Self> {
        let Caller { principal, bearer } = by;
        // Stream numbers of this process must differ from those of the other.
        let first = 1 + (u64::from(uuid::Uuid::new_v4().as_fields().0) << 16);
        Self::with(server, first, |outbound| {
            Host::resumed(principal, id, outbound, known).with_bearer(bearer)
        })
    }

    fn with(
        server: &HttpServer<S>,
        first_stream: u64,
        host: impl FnOnce(Outbound) -> Host<S::Principal>,
    ) -> Arc<Self> {
        let general = Arc::new(ReplayBuffer::new(capacity(&server.limits, true)));
        let host = host(Outbound::Buffer(Arc::clone(&general)));
        Arc::new(Self {
            connection: server.connection(host),
            buffers: Mutex::new(BTreeMap::from([(GENERAL, general)])),
            next_stream: AtomicU64::new(first_stream),
            used: Mutex::new(Instant::now()),
            streams: AtomicUsize::new(0),
            pipe: None,
            closed: CancellationToken::default(),
        })
    }

    /// A session of legacy HTTP+SSE: all messages go back through one queue.
    pub(super) fn legacy(
        server: &HttpServer<S>,
        by: Caller<S::Principal>,
        queue: mpsc::Sender<OutboundMessage>,
    ) -> Arc<Self> {
        let outbound = Outbound::Pipe(queue);
        let host = Host::session(by.principal, new_session_id(), outbound.clone()).with_bearer(by.bearer);
        Arc::new(Self {
            connection: server.connection(host),
            buffers: Mutex::default(),
            next_stream: AtomicU64::new(GENERAL + 1),
            used: Mutex::new(Instant::now()),
            streams: AtomicUsize::new(0),
            pipe: Some(outbound),
            closed: CancellationToken::default(),
        })
    }

    /// Opens a buffer for the requests of one POST.
    pub(super) fn open_buffer(&self, limits: &Limits) -> (u64, Arc<ReplayBuffer>) {
        let number = self.next_stream.fetch_add(1, Ordering::Relaxed);
        let buffer = Arc::new(ReplayBuffer::new(capacity(limits, true)));
        let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        forget(&mut buffers, ReplayBuffer::is_spent, SPENT_BUFFERS);
        forget(&mut buffers, ReplayBuffer::is_done, SPENT_BUFFERS + UNREAD_BUFFERS);
        buffers.insert(number, Arc::clone(&buffer));
        (number, buffer)
    }

    pub(super) fn buffer(&self, number: u64) -> Option<Arc<ReplayBuffer>> {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner).get(&number).cloned()
    }

    /// Drops a buffer whose response went out as a JSON body.
    pub(super) fn drop_buffer(&self, number: u64) {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
    }

    /// Marks a stream of the session as being read.
    pub(super) fn streaming(self: &Arc<Self>) -> Streaming<S> {
        self.streams.fetch_add(1, Ordering::AcqRel);
        Streaming(Arc::clone(self))
    }

    fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn last_used(&self) -> Instant {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A running call does not count as use: a host that wants its response reads a stream.
    fn is_idle(&self, limit: Duration) -> bool {
        let unused = self.used.lock().unwrap_or_else(PoisonError::into_inner).elapsed();
        unused >= limit && self.streams.load(Ordering::Acquire) == 0
    }

    pub(super) async fn close(&self) {
        self.closed.cancel();
        let buffers = std::mem::take(&mut *self.buffers.lock().unwrap_or_else(PoisonError::into_inner));
        buffers.values().for_each(|buffer| buffer.finish());
        self.connection.close().await;
    }
}

/// Drops the oldest buffers of a kind beyond `most`.
fn forget(buffers: &mut BTreeMap<u64, Arc<ReplayBuffer>>, kind: fn(&ReplayBuffer) -> bool, most: usize) {
    let numbers: Vec<u64> =
        buffers.iter().filter(|(_, buffer)| kind(buffer)).map(|(number, _)| *number).collect();
    for number in numbers.iter().take(numbers.len().saturating_sub(most)) {
        buffers.remove(number);
    }
}

impl<S: Service> HttpServer<S> {
    /// The session with this id, if it belongs to the caller: of this process, or taken over from another one.
    pub(super) async fn session(&self, id: &str, by: &Caller<S::Principal>) -> Option<Arc<Session<S>>> {
        if let Some(session) = self.sessions.find(id, by) {
            return Some(session);
        }
        // A session of another caller must look like one that does not exist.
        if self.sessions.of_anyone(id).is_some() || self.shutdown.is_cancelled() {
            return None;
        }
        // Boxed, because the future is large and rarely needed.
        Box::pin(self.resume(id, by)).await
    }

    /// Takes a session over from another process.
    async fn resume(&self, id: &str, by: &Caller<S::Principal>) -> Option<Arc<Session<S>>> {
        let _one_at_a_time = self.resuming.lock().await;
        if let Some(session) = self.sessions.find(id, by) {
            return Some(session);
        }
        let known = self.service.replicated()?.resume(&by.principal, id).await?;
        let session = Session::resumed(self, by.clone(), Arc::from(id), known);
        self.sessions.keep(&session).then_some(session)
    }

    pub(super) fn connection(&self, host: Host<S::Principal>) -> Connection<S> {
        Connection::new(Arc::clone(&self.service), host, self.limits.clone(), self.shutdown.clone())
            .with(&self.suspended)
    }
}

/// `DELETE /mcp`: a host ends its session.
pub(super) async fn delete<S: Service>(
    State(server): State<Arc<HttpServer<S>>>,
    headers: HeaderMap,
) -> Result<Response, HttpError> {
    let by = server.authenticate(&headers).await?;
    let Some(id) = headers.get(SESSION_ID).and_then(|id| id.to_str().ok()) else {
        // The stateless era has no sessions, so there is nothing to delete.
        return Err(HttpError::new(StatusCode::METHOD_NOT_ALLOWED, "`Mcp-Session-Id` is missing"));
    };
    let Some(session) = server.session(id, &by).await else {
        return Err(HttpError::new(StatusCode::NOT_FOUND, "unknown session"));
    };
    if let Some(service) = server.service.replicated() {
        service.on_session_deleted(&session.connection.host).await;
    }
    server.sessions.close(&session).await;
    Ok(response::empty(StatusCode::NO_CONTENT))
}

pub(super) fn capacity(limits: &Limits, replays: bool) -> Capacity {
    Capacity { messages: limits.unread_max, bytes: BUFFER_BYTES, replays }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_lanes_of_a_kind_the_oldest_go_first() {
        let buffer = |is_done: bool| {
            let buffer = ReplayBuffer::new(capacity(&Limits::default(), true));
            if is_done {
                // No reader has read this, so the buffer is done but not spent.
                buffer.offer("unread".to_owned().into()).unwrap();
                buffer.finish();
            }
            Arc::new(buffer)
        };
        let mut buffers: BTreeMap<u64, Arc<ReplayBuffer>> = [false, true, true, false, true]
            .into_iter()
            .map(buffer)
            .zip(0..)
            .map(|(buffer, at)| (at, buffer))
            .collect();
        forget(&mut buffers, ReplayBuffer::is_spent, 0);
        assert_eq!(buffers.len(), 5);
        forget(&mut buffers, ReplayBuffer::is_done, 1);
        assert_eq!(buffers.keys().copied().collect::<Vec<_>>(), [0, 3, 4]);
    }
}
