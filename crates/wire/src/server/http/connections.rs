//! Accepts connections and enforces their limits. At a limit, the connection that has waited longest for a request is closed
//! for the new one, or else the one whose client has not read a response for longest; if all serve requests, the new one is
//! rejected. Some connections are reserved for the console, so that hosts cannot block it.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::{self, poll_fn};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::http::StatusCode;
use axum::http::header::{CONNECTION, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};

use tokio_util::sync::CancellationToken;

use super::auth::HttpError;
use super::transfer::{RequestBody, ResponseBody, TrackedStream};
use crate::limits::Limits;

/// Timeout for the head and for the body of a request on a reserved connection, so that an idle client cannot hold it.
const RESERVED_TIMEOUT: Duration = Duration::from_secs(5);
/// Delay after an accept error that concerns no single connection, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);
/// The response to a connection beyond the limits.
const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// Marks requests on a reserved connection.
#[derive(Clone, Copy)]
struct Reserved;

/// Accepts and serves connections until shutdown; returns when the last one is closed.
pub(super) async fn accept(
    listener: TcpListener,
    router: Router,
    limits: &Limits,
    shutdown: CancellationToken,
) {
    let open = ConnectionTable::new(limits);
    let (alive, mut all_closed) = mpsc::channel::<Infallible>(1);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.cancelled() => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) if is_of_one_connection(&error) => continue,
            Err(_) => {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Some(slot) = open.enter(peer.ip()) else {
            // Best effort: the write is not awaited.
            let _ = stream.try_write(FULL);
            continue;
        };
        // Without this a small response waits for the peer's acknowledgement: 40 ms instead of 40 µs.
        let _ = stream.set_nodelay(true);
        let connection = serve(stream, peer, router.clone(), slot, shutdown.clone());
        let alive = alive.clone();
        tokio::spawn(async move {
            connection.await;
            drop(alive);
        });
    }
    drop((listener, alive));
    all_closed.recv().await;
}

/// Serves one connection. At shutdown it closes after the current request.
async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    slot: ConnectionSlot,
    shutdown: CancellationToken,
) {
    let slot = Arc::new(slot);
    let is_reserved = slot.is_reserved;
    let timeout = slot.open.limits.header_timeout;
    let router = TowerToHyperService::new(router);
    let here = Arc::clone(&slot);
    let service = service_fn(move |mut request: axum::http::Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        if is_reserved {
            request.extensions_mut().insert(Reserved);
        }
        let is_complete = request.body().is_end_stream();
        let exchange = ConnectionSlot::begin(&here, is_complete).map(Arc::new);
        let answer = exchange.map(|exchange| {
            let request = request.map(|body| RequestBody::new(body, &exchange));
            (router.call(request), exchange)
        });
        async move {
            let Some((answer, exchange)) = answer else { return Ok(too_many_connections()) };
            let answer = tokio::select! {
                answer = answer => answer?,
                () = exchange.body_timeout() => body_timed_out(),
            };
            Ok::<_, Infallible>(answer.map(|body| Body::new(ResponseBody::new(body, exchange))))
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // Also limits how long an idle connection is kept open for its next request.
        .header_read_timeout(if is_reserved { timeout.min(RESERVED_TIMEOUT) } else { timeout })
        .keep_alive(!is_reserved)
        .serve_connection(TokioIo::new(TrackedStream::new(stream, Arc::clone(&slot))), service);
    let mut connection = std::pin::pin!(connection);
    let served = poll_fn(|cx| {
        let polled = connection.as_mut().poll(cx);
        slot.update_phase();
        polled
    });
    tokio::select! {
        biased;
        () = slot.evicted.notified() => return,
        _ = served => return,
        () = shutdown.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// Rejects protocol requests on a reserved connection.
pub(super) async fn reject_on_reserved(request: Request, next: Next) -> Response {
    if request.extensions().get::<Reserved>().is_none() {
        return next.run(request).await;
    }
    too_many_connections()
}

fn too_many_connections() -> Response {
    let message = "too many connections are open; close some, or try again later";
    refuse_and_close(StatusCode::SERVICE_UNAVAILABLE, message)
}

fn body_timed_out() -> Response {
    refuse_and_close(StatusCode::REQUEST_TIMEOUT, "the body took too long")
}

fn refuse_and_close(status: StatusCode, message: &str) -> Response {
    let mut response = HttpError::new(status, message).into_response();
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

fn is_of_one_connection(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

struct ConnectionTable {
    limits: Limits,
    registry: Mutex<Registry>,
}

#[derive(Default)]
struct Registry {
    connections: HashMap<u64, ConnectionEntry>,
    by_address: HashMap<IpAddr, usize>,
    /// A counter that numbers connections and orders their progress.
    last: u64,
}

struct ConnectionEntry {
    address: IpAddr,
    is_reserved: bool,
    phase: Phase,
    /// The counter value of its last progress.
    last_progress: u64,
    evicted: Arc<Notify>,
}

/// What a connection is doing, in the order in which connections are closed for others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// Waiting for a request, or for the rest of one.
    Waiting,
    /// The response is complete, and the client has not read all of it.
    Flushing,
    /// A request has arrived, and its response is not complete. Never closed for others.
    Serving,
}

pub(super) struct ConnectionSlot {
    open: Arc<ConnectionTable>,
    number: u64,
    is_reserved: bool,
    evicted: Arc<Notify>,
    /// Whether the last write waits for the client to read.
    is_write_blocked: AtomicBool,
    /// Whether something has changed that [`ConnectionSlot::update_phase`] has not seen.
    is_dirty: AtomicBool,
}

/// A request on a connection, from its head until its response is complete.
pub(super) struct Exchange {
    slot: Arc<ConnectionSlot>,
}

impl ConnectionTable {
    fn new(limits: &Limits) -> Arc<Self> {
        Arc::new(Self { limits: limits.clone(), registry: Mutex::default() })
    }

    /// Allocates a slot for a connection from `ip`: a free one, or that of the connection that has waited longest.
    fn enter(self: &Arc<Self>, ip: IpAddr) -> Option<ConnectionSlot> {
        let Limits { connections_max, connections_each_max, connections_reserved, .. } = self.limits;
        let address = network(ip);
        let mut registry = self.registry();
        let (all_max, each_max) = (
            connections_max.saturating_sub(connections_reserved),
            connections_each_max.saturating_sub(connections_reserved),
        );
        // Only connections that serve the protocol are closed for one more of them: the others stay for the console.
        let is_reserved =
            !registry.make_room(address, (all_max, each_max), |connection| !connection.is_reserved);
        if is_reserved && !registry.make_room(address, (connections_max, connections_each_max), |_| true) {
            return None;
        }
        registry.last += 1;
        let (number, evicted) = (registry.last, Arc::new(Notify::new()));
        let connection = ConnectionEntry {
            address,
            is_reserved,
            phase: Phase::Waiting,
            last_progress: number,
            evicted: Arc::clone(&evicted),
        };
        registry.connections.insert(number, connection);
        *registry.by_address.entry(address).or_default() += 1;
        drop(registry);
        Some(ConnectionSlot {
            open: Arc::clone(self),
            number,
            is_reserved,
            evicted,
            is_write_blocked: AtomicBool::new(false),
            is_dirty: AtomicBool::new(false),
        })
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Registry {
    /// Whether one more connection from this address fits below the limits, if necessary by closing another.
    fn make_room(
        &mut self,
        address: IpAddr,
        (all_max, each_max): (usize, usize),
        may_go: impl Fn(&ConnectionEntry) -> bool,
    ) -> bool {
        let each = self.by_address.get(&address).copied().unwrap_or_default();
        let is_address_full = each >= each_max;
        if !is_address_full && self.connections.len() < all_max {
            return true;
        }
        let is_closable = |connection: &ConnectionEntry| {
            connection.phase != Phase::Serving
                && may_go(connection)
                && (!is_address_full || connection.address == address)
        };
        let closable = self.connections.iter().filter(|(_, connection)| is_closable(connection));
        let oldest = closable.min_by_key(|(_, connection)| (connection.phase, connection.last_progress));
        let Some(number) = oldest.map(|(number, _)| *number) else { return false };
        self.remove(number);
        true
    }

    /// Records progress of a connection, which may change its phase. Returns `false` if it was closed for another.
    fn progress(&mut self, number: u64, next: impl FnOnce(Phase) -> Phase) -> bool {
        let Some(connection) = self.connections.get_mut(&number) else { return false };
        self.last += 1;
        connection.last_progress = self.last;
        connection.phase = next(connection.phase);
        true
    }

    fn remove(&mut self, number: u64) {
        let Some(connection) = self.connections.remove(&number) else { return };
        connection.evicted.notify_one();
        if let Some(each) = self.by_address.get_mut(&connection.address) {
            *each = each.saturating_sub(1);
            if *each == 0 {
                self.by_address.remove(&connection.address);
            }
        }
    }
}

impl ConnectionSlot {
    /// The head of a request has arrived, or all of it. Returns `None` if the connection was closed for another at the
    /// same time.
    fn begin(this: &Arc<Self>, is_complete: bool) -> Option<Exchange> {
        let next = |phase| if is_complete { Phase::Serving } else { phase };
        this.progress(next).then(|| Exchange { slot: Arc::clone(this) })
    }

    pub(super) fn set_write_blocked(&self, is_blocked: bool) {
        if self.is_write_blocked.swap(is_blocked, Ordering::Relaxed) != is_blocked {
            self.is_dirty.store(true, Ordering::Relaxed);
        }
    }

    /// Called after each poll of the connection. It has then written everything, or the last write is blocked.
    fn update_phase(&self) {
        if !self.is_dirty.swap(false, Ordering::Relaxed) {
            return;
        }
        let is_blocked = self.is_write_blocked.load(Ordering::Relaxed);
        self.progress(|phase| match phase {
            Phase::Serving => Phase::Serving,
            Phase::Waiting | Phase::Flushing if is_blocked => Phase::Flushing,
            Phase::Waiting | Phase::Flushing => Phase::Waiting,
        });
    }

    fn progress(&self, next: impl FnOnce(Phase) -> Phase) -> bool {
        self.open.registry().progress(self.number, next)
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.open.registry().remove(self.number);
    }
}

impl Exchange {
    /// A part of the body has arrived. Returns `false` if the connection was closed for another.
    pub(super) fn progress(&self) -> bool {
        self.slot.progress(|phase| phase)
    }

    /// The whole request has arrived, or its rest is not needed. Returns `false` if the connection was closed for
    /// another.
    pub(super) fn serve(&self) -> bool {
        self.slot.progress(|_| Phase::Serving)
    }

    /// Completes when the body of a request on a reserved connection takes too long, otherwise never.
    async fn body_timeout(&self) {
        if self.slot.is_reserved {
            tokio::time::sleep(self.slot.open.limits.body_timeout.min(RESERVED_TIMEOUT)).await;
            if self.is_arriving() {
                return;
            }
        }
        future::pending().await
    }

    fn is_arriving(&self) -> bool {
        let registry = self.slot.open.registry();
        registry
            .connections
            .get(&self.slot.number)
            .is_some_and(|connection| connection.phase != Phase::Serving)
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        // Its last bytes are queued, not written.
        self.slot.progress(|_| Phase::Flushing);
        self.slot.is_dirty.store(true, Ordering::Relaxed);
    }
}

/// What counts as one address: for IPv6 the /64 network, which one machine may own.
fn network(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => {
            let [a, b, c, d, ..] = ip.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        ip => ip,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn open(
        connections_max: usize,
        connections_each_max: usize,
        connections_reserved: usize,
    ) -> Arc<ConnectionTable> {
        ConnectionTable::new(&Limits {
            connections_max,
            connections_each_max,
            connections_reserved,
            ..Limits::default()
        })
    }

    #[test]
    fn places_are_bounded_in_total_and_for_each_address() {
        let open = open(6, 4, 1);
        let enter = |address: &str| {
            let slot = Arc::new(open.enter(ip(address))?);
            let exchange = ConnectionSlot::begin(&slot, true).unwrap();
            Some((slot, exchange))
        };
        let mut slots: Vec<(Arc<ConnectionSlot>, Exchange)> =
            (0..4).map_while(|_| enter("10.0.0.1")).collect();
        let is_reserved: Vec<bool> = slots.iter().map(|(slot, _)| slot.is_reserved).collect();
        assert_eq!(is_reserved, [false, false, false, true]);
        assert!(open.enter(ip("10.0.0.1")).is_none());
        assert!(open.enter(ip("::ffff:10.0.0.1")).is_none(), "the same address");
        slots.extend([enter("2001:db8::1").unwrap(), enter("2001:db8::2").unwrap()]);
        assert!(!slots[4].0.is_reserved && slots[5].0.is_reserved);
        assert!(open.enter(ip("10.0.0.2")).is_none());
        slots.clear();
        assert!(open.registry().connections.is_empty());
        assert!(open.registry().by_address.is_empty());
        assert_eq!(network(ip("2001:db8::1:2:3:4")), network(ip("2001:db8::9")));
        assert_ne!(network(ip("2001:db8:1::1")), network(ip("2001:db8:2::1")));
    }

    #[test]
    fn the_connection_that_waits_for_longest_makes_room() {
        let open = open(5, 4, 1);
        let is_open = |slot: &ConnectionSlot| open.registry().connections.contains_key(&slot.number);
        let enter = || Arc::new(open.enter(ip("10.0.0.1")).unwrap());
        let (first, second, third) = (enter(), enter(), enter());
        // The first connection has been served and waits again: now the second has waited longest.
        drop(ConnectionSlot::begin(&first, true).unwrap());
        first.update_phase();
        let fourth = enter();
        assert!(is_open(&first) && !is_open(&second) && is_open(&third) && is_open(&fourth));
        assert!(ConnectionSlot::begin(&second, true).is_none(), "its request came too late");
        assert!(!fourth.is_reserved, "those that wait do not keep hosts out either");
        drop(second);
        // A connection of another address is not closed for this one.
        let other = open.enter(ip("10.0.0.2")).unwrap();
        let serving = [&first, &third, &fourth].map(|slot| ConnectionSlot::begin(slot, true).unwrap());
        let kept = enter();
        assert!(kept.is_reserved && is_open(&other));
        let (kept_serving, after) = (ConnectionSlot::begin(&kept, true).unwrap(), open.enter(ip("10.0.0.1")));
        assert!(after.is_none() && is_open(&other), "all of them serve requests");
        drop((serving, kept_serving));
        let next = enter();
        assert!(!is_open(&first) && !next.is_reserved);
    }

    #[test]
    fn a_request_that_has_not_arrived_holds_no_place() {
        let open = open(3, 3, 1);
        let is_open = |slot: &ConnectionSlot| open.registry().connections.contains_key(&slot.number);
        let enter = || Arc::new(open.enter(ip("10.0.0.1")).unwrap());
        let (first, second) = (enter(), enter());
        let [half_sent, growing] = [&first, &second].map(|slot| ConnectionSlot::begin(slot, false).unwrap());
        // The first one made progress last.
        assert!(half_sent.progress() && growing.progress() && half_sent.progress());
        let third = enter();
        assert!(is_open(&first) && !is_open(&second) && !third.is_reserved);
        assert!(!growing.progress() && !growing.serve(), "its body came too late");
        assert!(half_sent.serve());
        let fourth = enter();
        assert!(
            is_open(&first) && !is_open(&third) && is_open(&fourth),
            "a request that has arrived is served"
        );
    }

    #[test]
    fn an_answer_that_is_not_written_is_closed_last() {
        let open = open(3, 3, 1);
        let is_open = |slot: &ConnectionSlot| open.registry().connections.contains_key(&slot.number);
        let enter = || Arc::new(open.enter(ip("10.0.0.1")).unwrap());
        let (slow, silent) = (enter(), enter());
        let exchange = ConnectionSlot::begin(&slow, true).unwrap();
        // Complete, but queued: between these two another connection may arrive.
        drop(exchange);
        let silent = [silent, enter()];
        assert!(is_open(&slow) && !is_open(&silent[0]) && is_open(&silent[1]));
        slow.set_write_blocked(true);
        slow.update_phase();
        let next = enter();
        assert!(is_open(&slow) && !is_open(&silent[1]));
        // Clients that do not read their responses block others as little as silent ones.
        let serving = ConnectionSlot::begin(&next, true).unwrap();
        let last = enter();
        assert!(!is_open(&slow) && is_open(&next) && !last.is_reserved);
        drop(serving);
        // Flushed: it waits again, for longer than the last one.
        next.update_phase();
        let (_last, after) = (ConnectionSlot::begin(&last, true).unwrap(), enter());
        assert!(!is_open(&next) && is_open(&after));
    }
}
