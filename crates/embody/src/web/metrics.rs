//! `/metrics` for Prometheus, with a token for `operate`: next to the console in `embody up`, or alone next to `/mcp`.

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
use embody_store::Store;
use embody_store::approvals::ApprovalFilter;
use embody_wire::server::http::OriginGuard;

use super::auth::{ApiCaller, bearer};
use super::error::ApiError;
use super::{WebState, security_headers};
use crate::broker_setup::visible_bodies;
use crate::metrics;
use crate::prompt_service::PromptService;

const APPROVALS: u32 = 1000;

pub(super) async fn metrics(
    State(web): State<Arc<WebState>>,
    caller: ApiCaller,
) -> Result<Response, ApiError> {
    let user = caller.require_operator()?;
    let tally = web.turns.counters();
    let approvals = web.store.approvals().list(user, ApprovalFilter::Pending, APPROVALS).await?.len();
    let mut page = page_for(user, &web.prompts);
    metrics::put(&mut page, &web.broker, &web.store, web.since).await?;
    let running = "Turns of the web channel that go on.";
    page.number("embody_turns_running", Kind::Gauge, running, tally.running);
    let over = "Turns of the web channel that are over.";
    let mut family = page.family("embody_turns_total", Kind::Counter, over);
    for (end, turns) in [("done", tally.done), ("failed", tally.failed), ("cancelled", tally.cancelled)] {
        family.sample(&[("end", end)], turns);
    }
    page.number("embody_approvals_pending", Kind::Gauge, "Calls that wait for you.", approvals);
    let observations = web.store.outbox().pending(user).await?.count;
    page.number("embody_observations_waiting", Kind::Gauge, "What the mind has not heard.", observations);
    Ok(shown(page))
}

struct MetricsState {
    broker: Arc<Broker>,
    prompts: Arc<PromptService>,
    store: Store,
    origin_guard: OriginGuard,
    since: Instant,
}

/// `/metrics` for a broker without the console.
pub(crate) fn standalone(
    broker: Arc<Broker>,
    prompts: Arc<PromptService>,
    store: Store,
    origin_guard: OriginGuard,
) -> Router {
    let state = Arc::new(MetricsState { broker, prompts, store, origin_guard, since: Instant::now() });
    Router::new()
        .route("/metrics", get(standalone_metrics))
        .with_state(state)
        .layer(middleware::map_response(security_headers))
}

async fn standalone_metrics(
    State(state): State<Arc<MetricsState>>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    state.origin_guard.check(&headers).map_err(ApiError::forbidden)?;
    let token = bearer(&headers).ok_or_else(|| {
        ApiError::unauthorized("a token is needed")
            .hint("make one with `embody token add --user NAME --scope operate`")
    })?;
    let caller = ApiCaller::with_token(&state.store, token).await?;
    let mut page = page_for(caller.require_operator()?, &state.prompts);
    metrics::put(&mut page, &state.broker, &state.store, state.since).await?;
    Ok(shown(page))
}

/// A page without the bodies that this user may not use.
fn page_for(user: &str, prompts: &PromptService) -> Page {
    visible_bodies(&prompts.context().config, user, prompts.owner())
        .map_or_else(Page::default, Page::of_bodies)
}

fn shown(page: Page) -> Response {
    ([(CONTENT_TYPE, meter::CONTENT_TYPE)], page.into_text()).into_response()
}
