//! The numbers, as Prometheus reads them, for whoever may operate: on the web beside everything else, or alone beside `/mcp`.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use embody_broker::Broker;
use embody_broker::meter::{self, Kind, Page};
use embody_store::{ApprovalFilter, Store};
use embody_wire::serve::http::Door;

use super::access::{Visitor, bearer};
use super::refusal::Refused;
use super::{Web, sealed};
use crate::contract::Voice;
use crate::metrics;
use crate::nerves::bodies_seen_by;

/// The most approvals that are counted.
const APPROVALS: u32 = 1000;

/// Of `embody up`.
pub(super) async fn metrics(State(web): State<Arc<Web>>, visitor: Visitor) -> Result<Response, Refused> {
    let user = visitor.operates()?;
    let tally = web.turns.tally();
    let approvals = web.store.approvals(user, ApprovalFilter::Pending, APPROVALS).await?.len();
    let mut page = page_for(user, &web.voice);
    metrics::put(&mut page, &web.broker, &web.store, web.since).await?;
    let running = "Turns of the web channel that go on.";
    page.number("embody_turns_running", Kind::Gauge, running, tally.running);
    let over = "Turns of the web channel that are over.";
    let mut family = page.family("embody_turns_total", Kind::Counter, over);
    for (end, turns) in [("done", tally.done), ("failed", tally.failed), ("cancelled", tally.cancelled)] {
        family.sample(&[("end", end)], turns);
    }
    page.number("embody_approvals_pending", Kind::Gauge, "Calls that wait for you.", approvals);
    let observations = web.store.pending_observations(user).await?.count;
    page.number("embody_observations_waiting", Kind::Gauge, "What the mind has not heard.", observations);
    Ok(shown(page))
}

/// What a broker that is served without the web shows.
struct Watched {
    broker: Arc<Broker>,
    voice: Arc<Voice>,
    store: Store,
    door: Door,
    since: Instant,
}

/// `/metrics` alone.
pub(crate) fn alone(broker: Arc<Broker>, voice: Arc<Voice>, store: Store, door: Door) -> Router {
    let watched = Arc::new(Watched { broker, voice, store, door, since: Instant::now() });
    Router::new()
        .route("/metrics", get(metrics_alone))
        .with_state(watched)
        .layer(middleware::map_response(sealed))
}

async fn metrics_alone(State(watched): State<Arc<Watched>>, headers: HeaderMap) -> Result<Response, Refused> {
    watched.door.judge(&headers).map_err(Refused::forbidden)?;
    let token = bearer(&headers).ok_or_else(|| {
        Refused::unknown("a token is needed")
            .hint("make one with `embody token add --user NAME --scope operate`")
    })?;
    let visitor = Visitor::with_token(&watched.store, token).await?;
    let mut page = page_for(visitor.operates()?, &watched.voice);
    metrics::put(&mut page, &watched.broker, &watched.store, watched.since).await?;
    Ok(shown(page))
}

/// A page without the bodies that this user may not use.
fn page_for(user: &str, voice: &Voice) -> Page {
    bodies_seen_by(&voice.context().config, user, voice.owner()).map_or_else(Page::default, Page::of_bodies)
}

fn shown(page: Page) -> Response {
    ([(CONTENT_TYPE, meter::CONTENT_TYPE)], page.into_text()).into_response()
}
