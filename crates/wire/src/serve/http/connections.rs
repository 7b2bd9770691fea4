//! How many connections there are, from where, and how long each may take to say what it wants. Owns the loop that accepts
//! them. At a bound the connection that has waited for the head of a request for longest, half-sent or not begun, is closed for the new
//! one; when all of them serve requests, the new one is refused.
//!
//! Some connections are kept for everything but the protocol: when hosts hold all others, the owner can still open the
//! console and stop them.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{self, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, Request};
use axum::http::StatusCode;
use axum::http::header::{CONNECTION, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};

use super::door::Refused;
use crate::limits::Limits;
use crate::serve::conversation::Ending;

/// Time for a request on a connection of those that are kept: a silent one must not hold it.
const KEPT_TIMEOUT: Duration = Duration::from_secs(5);
/// After an error that concerns no single connection, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);
/// What a connection beyond the bounds is answered.
const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// On requests of a connection that is not for the protocol.
#[derive(Clone, Copy)]
struct Kept;

/// Accepts connections and serves them until the server is ending; returns when the last one is closed.
pub(super) async fn accept(listener: TcpListener, router: Router, limits: &Limits, mut ending: Ending) {
    let open = Open::new(limits);
    let (alive, mut all_closed) = mpsc::channel::<Infallible>(1);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = ending.wait() => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) if is_of_one_connection(&error) => continue,
            Err(_) => {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Some(place) = open.enter(peer.ip()) else {
            // A courtesy: what is not taken at once is not waited for.
            let _ = stream.try_write(FULL);
            continue;
        };
        // Without this a small answer waits for the other side's acknowledgement: 40 ms instead of 40 µs.
        let _ = stream.set_nodelay(true);
        let connection = serve(stream, peer, router.clone(), place, ending.clone());
        let alive = alive.clone();
        tokio::spawn(async move {
            connection.await;
            drop(alive);
        });
    }
    drop((listener, alive));
    all_closed.recv().await;
}

/// Serves one connection. It ends after the request that runs, once the server is ending.
async fn serve(stream: TcpStream, peer: SocketAddr, router: Router, place: Place, mut ending: Ending) {
    let place = Arc::new(place);
    let is_kept = place.is_kept;
    let timeout = place.open.limits.header_timeout;
    let router = TowerToHyperService::new(router);
    let here = Arc::clone(&place);
    let service = service_fn(move |mut request: axum::http::Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        if is_kept {
            request.extensions_mut().insert(Kept);
        }
        let answer = here.run().map(|running| (router.call(request), running));
        async move {
            let Some((answer, running)) = answer else { return Ok(too_many()) };
            let answer = answer.await?;
            Ok::<_, Infallible>(answer.map(|body| Body::new(Answer { body, _running: running })))
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // Also the time that an idle connection is kept open for its next request.
        .header_read_timeout(if is_kept { timeout.min(KEPT_TIMEOUT) } else { timeout })
        .keep_alive(!is_kept)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        () = place.evicted.notified() => return,
        () = ending.wait() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// Answers a request of the protocol, unless its connection is kept for other things.
pub(super) async fn refuse_on_kept(request: Request, next: Next) -> Response {
    if request.extensions().get::<Kept>().is_none() {
        return next.run(request).await;
    }
    too_many()
}

fn too_many() -> Response {
    let message = "too many connections are open; close some, or try again later";
    let mut response = Refused::new(StatusCode::SERVICE_UNAVAILABLE, message).into_response();
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

fn is_of_one_connection(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// The connections that are open.
struct Open {
    limits: Limits,
    registry: Mutex<Registry>,
}

#[derive(Default)]
struct Registry {
    connections: HashMap<u64, Connection>,
    by_address: HashMap<IpAddr, usize>,
    /// The number of the last connection, and of the last time that one began to wait.
    last: u64,
}

struct Connection {
    address: IpAddr,
    is_kept: bool,
    /// Requests whose head has arrived and whose answer is not over.
    running: usize,
    /// When it began to wait for a head, in order.
    waiting_since: u64,
    evicted: Arc<Notify>,
}

/// One connection among them.
struct Place {
    open: Arc<Open>,
    number: u64,
    is_kept: bool,
    evicted: Arc<Notify>,
}

/// A request on a connection, until its answer is over.
struct Running {
    open: Arc<Open>,
    number: u64,
}

impl Open {
    fn new(limits: &Limits) -> Arc<Self> {
        Arc::new(Self { limits: limits.clone(), registry: Mutex::default() })
    }

    /// A place for a connection from there: a free one, or that of the connection that has waited for a head for longest.
    fn enter(self: &Arc<Self>, ip: IpAddr) -> Option<Place> {
        let Limits { connections_max, connections_each_max, connections_kept, .. } = self.limits;
        let address = network(ip);
        let mut registry = self.registry();
        let (all_max, each_max) = (
            connections_max.saturating_sub(connections_kept),
            connections_each_max.saturating_sub(connections_kept),
        );
        // Only connections that serve the protocol make room for one more of them: the others stay for the console.
        let is_kept = !registry.make_room(address, (all_max, each_max), |connection| !connection.is_kept);
        if is_kept && !registry.make_room(address, (connections_max, connections_each_max), |_| true) {
            return None;
        }
        registry.last += 1;
        let (number, evicted) = (registry.last, Arc::new(Notify::new()));
        let connection =
            Connection { address, is_kept, running: 0, waiting_since: number, evicted: Arc::clone(&evicted) };
        registry.connections.insert(number, connection);
        *registry.by_address.entry(address).or_default() += 1;
        drop(registry);
        Some(Place { open: Arc::clone(self), number, is_kept, evicted })
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Registry {
    /// Whether there is room below these bounds for one more from there, if need be in place of another that waits.
    fn make_room(
        &mut self,
        address: IpAddr,
        (all_max, each_max): (usize, usize),
        may_go: impl Fn(&Connection) -> bool,
    ) -> bool {
        let each = self.by_address.get(&address).copied().unwrap_or_default();
        let is_address_full = each >= each_max;
        if !is_address_full && self.connections.len() < all_max {
            return true;
        }
        let waits = |connection: &Connection| {
            connection.running == 0
                && may_go(connection)
                && (!is_address_full || connection.address == address)
        };
        let waiting = self.connections.iter().filter(|(_, connection)| waits(connection));
        let oldest = waiting.min_by_key(|(_, connection)| connection.waiting_since);
        let Some(number) = oldest.map(|(number, _)| *number) else { return false };
        self.remove(number);
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

impl Place {
    /// The head of a request has arrived. `None` if the connection was closed for another at the same time.
    fn run(&self) -> Option<Running> {
        let mut registry = self.open.registry();
        registry.connections.get_mut(&self.number)?.running += 1;
        drop(registry);
        Some(Running { open: Arc::clone(&self.open), number: self.number })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.open.registry().remove(self.number);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut registry = self.open.registry();
        registry.last += 1;
        let last = registry.last;
        if let Some(connection) = registry.connections.get_mut(&self.number) {
            connection.running = connection.running.saturating_sub(1);
            connection.waiting_since = last;
        }
    }
}

/// The body of an answer. When it is over, or given up, its connection waits for the next head.
struct Answer {
    body: Body,
    _running: Running,
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut task::Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// What counts as one address: of IPv6 the network, which one machine has for itself.
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

    fn open(connections_max: usize, connections_each_max: usize, connections_kept: usize) -> Arc<Open> {
        Open::new(&Limits { connections_max, connections_each_max, connections_kept, ..Limits::default() })
    }

    #[test]
    fn places_are_bounded_in_total_and_for_each_address() {
        let open = open(6, 4, 1);
        let enter = |address: &str| {
            let place = open.enter(ip(address))?;
            let running = place.run().unwrap();
            Some((place, running))
        };
        let mut places: Vec<(Place, Running)> = (0..4).map_while(|_| enter("10.0.0.1")).collect();
        let is_kept: Vec<bool> = places.iter().map(|(place, _)| place.is_kept).collect();
        assert_eq!(is_kept, [false, false, false, true]);
        assert!(open.enter(ip("10.0.0.1")).is_none());
        assert!(open.enter(ip("::ffff:10.0.0.1")).is_none(), "the same address");
        places.extend([enter("2001:db8::1").unwrap(), enter("2001:db8::2").unwrap()]);
        assert!(!places[4].0.is_kept && places[5].0.is_kept);
        assert!(open.enter(ip("10.0.0.2")).is_none());
        places.clear();
        assert!(open.registry().connections.is_empty());
        assert!(open.registry().by_address.is_empty());
        assert_eq!(network(ip("2001:db8::1:2:3:4")), network(ip("2001:db8::9")));
        assert_ne!(network(ip("2001:db8:1::1")), network(ip("2001:db8:2::1")));
    }

    #[test]
    fn the_connection_that_waits_for_longest_makes_room() {
        let open = open(5, 4, 1);
        let is_open = |place: &Place| open.registry().connections.contains_key(&place.number);
        let enter = || open.enter(ip("10.0.0.1")).unwrap();
        let (first, second, third) = (enter(), enter(), enter());
        // The first one is answered a request, and waits again: now the second has waited for longest.
        let running = first.run().unwrap();
        drop(running);
        let fourth = enter();
        assert!(is_open(&first) && !is_open(&second) && is_open(&third) && is_open(&fourth));
        assert!(second.run().is_none(), "its request came too late");
        assert!(!fourth.is_kept, "those that wait do not keep hosts out either");
        drop(second);
        // Another address is not closed for this one, and serves on.
        let other = open.enter(ip("10.0.0.2")).unwrap();
        let running: Vec<Running> = [&first, &third, &fourth].map(|place| place.run().unwrap()).into();
        let kept = enter();
        assert!(kept.is_kept && is_open(&other));
        let (kept_running, after) = (kept.run().unwrap(), open.enter(ip("10.0.0.1")));
        assert!(after.is_none() && is_open(&other), "all of them serve requests");
        drop((running, kept_running));
        let next = enter();
        assert!(!is_open(&first) && !next.is_kept);
    }
}
