//! How many connections there are, from where, and how long each may take to say what it wants. Owns the loop that accepts
//! them; refuses what is beyond a bound.
//!
//! Some connections are kept for everything but the protocol: when hosts hold all others, the owner can still open the
//! console and stop them.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{ConnectInfo, Request};
use axum::http::StatusCode;
use axum::http::header::{CONNECTION, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

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
    let open = Arc::new(Open { limits: limits.clone(), counts: Mutex::default() });
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
    let is_kept = place.is_kept;
    let timeout = place.open.limits.header_timeout;
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: axum::http::Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        if is_kept {
            request.extensions_mut().insert(Kept);
        }
        router.call(request)
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
        () = ending.wait() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// Answers a request of the protocol, unless its connection is kept for other things.
pub(super) async fn refuse_on_kept(request: Request, next: Next) -> Response {
    if request.extensions().get::<Kept>().is_none() {
        return next.run(request).await;
    }
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
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    all: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// One connection among them.
struct Place {
    open: Arc<Open>,
    address: IpAddr,
    is_kept: bool,
}

impl Open {
    /// A place for a connection from there, if one is free.
    fn enter(self: &Arc<Self>, ip: IpAddr) -> Option<Place> {
        let Limits { connections_max, connections_each_max, connections_kept, .. } = self.limits;
        let address = network(ip);
        let mut counts = self.counts();
        let all = counts.all;
        let each = counts.by_address.entry(address).or_default();
        if all >= connections_max || *each >= connections_each_max {
            if *each == 0 {
                counts.by_address.remove(&address);
            }
            return None;
        }
        let is_kept =
            all + connections_kept >= connections_max || *each + connections_kept >= connections_each_max;
        *each += 1;
        counts.all += 1;
        drop(counts);
        Some(Place { open: Arc::clone(self), address, is_kept })
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.open.counts();
        counts.all = counts.all.saturating_sub(1);
        if let Some(each) = counts.by_address.get_mut(&self.address) {
            *each = each.saturating_sub(1);
            if *each == 0 {
                counts.by_address.remove(&self.address);
            }
        }
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

    #[test]
    fn places_are_bounded_in_total_and_for_each_address() {
        let limits =
            Limits { connections_max: 6, connections_each_max: 4, connections_kept: 1, ..Limits::default() };
        let open = Arc::new(Open { limits, counts: Mutex::default() });
        let mut places: Vec<Place> = (0..4).map_while(|_| open.enter(ip("10.0.0.1"))).collect();
        assert_eq!(places.iter().map(|place| place.is_kept).collect::<Vec<_>>(), [false, false, false, true]);
        assert!(open.enter(ip("10.0.0.1")).is_none());
        assert!(open.enter(ip("::ffff:10.0.0.1")).is_none(), "the same address");
        places.extend([open.enter(ip("2001:db8::1")).unwrap(), open.enter(ip("2001:db8::2")).unwrap()]);
        assert!(!places[4].is_kept && places[5].is_kept);
        assert!(open.enter(ip("10.0.0.2")).is_none());
        places.clear();
        assert_eq!(open.counts().all, 0);
        assert!(open.counts().by_address.is_empty());
        assert_eq!(network(ip("2001:db8::1:2:3:4")), network(ip("2001:db8::9")));
        assert_ne!(network(ip("2001:db8:1::1")), network(ip("2001:db8:2::1")));
    }
}
