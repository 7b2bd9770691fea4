//! One HTTP face: streamable HTTP at `/mcp` (both eras), legacy HTTP+SSE at `/sse`, and what says how to get a token.
//!
//! Every request passes the [`door`] first: `Host` and `Origin` are checked, then the token. A session belongs to the token
//! that opened it, and ends with it; for other tokens it does not exist.

mod answer;
mod connections;
mod delete;
mod door;
mod get;
mod headers;
mod legacy;
mod post;
mod relays;
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

pub use self::door::Door;
use self::door::{Admitted, Refused};
use self::revocation::Requests;
use self::sessions::Sessions;
use super::conversation::Ending;
use super::in_flight::Budget;
use super::rounds::Parked;
use super::service::Service;
use crate::limits::Limits;

/// How long requests may still run when the server is ending.
const GRACE: Duration = Duration::from_secs(10);

/// What a face needs to know.
#[derive(Debug, Clone)]
pub struct Options {
    /// Who may come in at all.
    pub door: Door,
    /// The bounds.
    pub limits: Limits,
}

/// The shared state of all requests.
pub(crate) struct Face<S: Service> {
    service: Arc<S>,
    sessions: Sessions<S>,
    /// How many requests without a session run, by principal.
    alone: Mutex<Vec<(S::Principal, usize)>>,
    /// Those requests, as long as they run.
    requests: Requests<S>,
    /// Bytes of requests that are under way, by token.
    budget: Arc<Budget<Admitted<S::Principal>>>,
    /// Those that were read so far.
    arrived: Arc<AtomicU64>,
    /// Calls that wait for the answers of such requests.
    parked: Arc<Parked<S::Principal>>,
    /// One session at a time is taken over from another process.
    resuming: tokio::sync::Mutex<()>,
    door: Door,
    limits: Limits,
    ending: Ending,
}

impl<S: Service> Face<S> {
    fn new(service: Arc<S>, Options { door, limits }: Options, ending: Ending) -> Self {
        Self {
            service,
            sessions: Sessions::new(&limits),
            alone: Mutex::default(),
            requests: Requests::default(),
            budget: Budget::new(&limits),
            arrived: Arc::default(),
            parked: Arc::default(),
            resuming: tokio::sync::Mutex::default(),
            door,
            limits,
            ending,
        }
    }
}

/// The routes of a service.
pub fn router<S: Service>(service: Arc<S>, options: Options, ending: Ending) -> Router {
    let limits = options.limits.clone();
    let face = Arc::new(Face::new(service, options, ending.clone()));
    tokio::spawn(revocation::watch(Arc::downgrade(&face), ending.clone()));
    tokio::spawn(sessions::sweep(Arc::downgrade(&face), limits, ending));
    if let Some(relays) = face.service.relays() {
        tokio::spawn(relays::hear(Arc::downgrade(&face), relays));
    }
    Router::new()
        .route("/mcp", routing::post(post::post::<S>).get(get::get::<S>).delete(delete::delete::<S>))
        .route("/sse", routing::get(legacy::open::<S>))
        .route("/messages", routing::post(legacy::post::<S>))
        .route(door::METADATA_PATH, routing::get(metadata::<S>))
        .route(&format!("{}/mcp", door::METADATA_PATH), routing::get(metadata::<S>))
        .route_layer(middleware::from_fn(connections::refuse_on_kept))
        .with_state(face)
}

/// Serves the routes until the server is ending; then running requests get a moment to finish. Requests know the address
/// that they come from, as `ConnectInfo<SocketAddr>`.
pub async fn serve(listener: TcpListener, router: Router, limits: &Limits, mut ending: Ending) {
    let serving = connections::accept(listener, router, limits, ending.clone());
    let late = async {
        ending.wait().await;
        // A moment more than the calls have, so that their answers can still be read.
        tokio::time::sleep(GRACE + Duration::from_secs(1)).await;
    };
    tokio::select! {
        () = serving => {}
        () = late => {}
    }
}

/// Who gives out tokens is the operator's business: there is no authorization server to name.
async fn metadata<S: Service>(
    State(face): State<Arc<Face<S>>>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    face.door.check(&headers)?;
    Ok(answer::json(StatusCode::OK, face.door.metadata(&headers)))
}
