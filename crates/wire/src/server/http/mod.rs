//! The HTTP server: streamable HTTP at `/mcp` (both eras), legacy HTTP+SSE at `/sse`, and the protected resource metadata.
//! Every request passes `auth` first: `Host` and `Origin` are checked, then the token. A session belongs to the token that
//! opened it, and ends with it; for other tokens it does not exist.

mod auth;
mod connections;
mod get;
mod headers;
mod legacy;
mod post;
mod replica;
mod response;
mod revocation;
mod sessions;
mod transfer;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::{middleware, routing};
use tokio::net::TcpListener;

pub use self::auth::OriginGuard;
use self::auth::{Caller, HttpError};
use self::revocation::StatelessRequests;
use self::sessions::Sessions;
use tokio_util::sync::CancellationToken;

use super::in_flight::Budget;
use super::multi_round::SuspendedCalls;
use super::service::Service;
use crate::limits::Limits;

/// How long requests may still run at shutdown.
const GRACE: Duration = Duration::from_secs(10);

#[derive(Debug, Clone)]
pub struct Options {
    pub origin_guard: OriginGuard,
    pub limits: Limits,
}

pub(crate) struct HttpServer<S: Service> {
    service: Arc<S>,
    sessions: Sessions<S>,
    /// The number of running stateless requests, by principal.
    stateless_counts: Mutex<Vec<(S::Principal, usize)>>,
    /// The running stateless requests.
    requests: StatelessRequests<S>,
    /// Bytes of requests in flight, by token.
    budget: Arc<Budget<Caller<S::Principal>>>,
    arrived: Arc<AtomicU64>,
    /// Stateless calls that wait for input from their host.
    suspended: Arc<SuspendedCalls<S::Principal>>,
    /// Serializes the takeover of sessions from another process.
    resuming: tokio::sync::Mutex<()>,
    origin_guard: OriginGuard,
    limits: Limits,
    shutdown: CancellationToken,
}

impl<S: Service> HttpServer<S> {
    fn new(service: Arc<S>, Options { origin_guard, limits }: Options, shutdown: CancellationToken) -> Self {
        Self {
            service,
            sessions: Sessions::new(&limits),
            stateless_counts: Mutex::default(),
            requests: StatelessRequests::default(),
            budget: Budget::new(&limits),
            arrived: Arc::default(),
            suspended: Arc::default(),
            resuming: tokio::sync::Mutex::default(),
            origin_guard,
            limits,
            shutdown,
        }
    }
}

pub fn router<S: Service>(service: Arc<S>, options: Options, shutdown: CancellationToken) -> Router {
    let limits = options.limits.clone();
    let server = Arc::new(HttpServer::new(service, options, shutdown.clone()));
    tokio::spawn(revocation::watch(Arc::downgrade(&server), shutdown.clone()));
    tokio::spawn(sessions::expire_idle(Arc::downgrade(&server), limits, shutdown));
    if let Some(relays) = server.service.replicated().and_then(|service| service.events()) {
        tokio::spawn(replica::receive(Arc::downgrade(&server), relays));
    }
    Router::new()
        .route("/mcp", routing::post(post::post::<S>).get(get::get::<S>).delete(sessions::delete::<S>))
        .route("/sse", routing::get(legacy::open::<S>))
        .route("/messages", routing::post(legacy::post::<S>))
        .route(auth::METADATA_PATH, routing::get(metadata::<S>))
        .route(&format!("{}/mcp", auth::METADATA_PATH), routing::get(metadata::<S>))
        .route_layer(middleware::from_fn(connections::reject_on_reserved))
        .with_state(server)
}

/// Serves the routes until shutdown; then running requests get a grace period. Requests carry the peer address as
/// `ConnectInfo<SocketAddr>`.
pub async fn serve(listener: TcpListener, router: Router, limits: &Limits, shutdown: CancellationToken) {
    let serving = connections::accept(listener, router, limits, shutdown.clone());
    let late = async {
        shutdown.cancelled().await;
        // One second more than the calls have, so that their responses can still be read.
        tokio::time::sleep(GRACE + Duration::from_secs(1)).await;
    };
    tokio::select! {
        () = serving => {}
        () = late => {}
    }
}

/// The operator issues the tokens, so the metadata names no authorization server.
async fn metadata<S: Service>(
    State(server): State<Arc<HttpServer<S>>>,
    headers: HeaderMap,
) -> Result<Response, HttpError> {
    server.check_origin(&headers)?;
    Ok(response::json(StatusCode::OK, server.origin_guard.metadata(&headers)))
}
