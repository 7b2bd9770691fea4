//! Liveness, readiness, status and metrics. `/metrics` is a Prometheus page for tokens with the scope `operate`, next to the console
//! in `embody up`, or alone next to `/mcp`.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router, middleware};
use embody_broker::Broker;
use embody_broker::meter::{self, Kind, Page};
use embody_store::Store;
use embody_store::approvals::ApprovalFilter;
use embody_wire::server::http::OriginGuard;
use rustix::process::{Resource, getrlimit};
use serde_json::{Value, json};

use super::auth::{ApiCaller, bearer};
use super::error::ApiError;
use super::{WebState, security_headers};
use crate::broker_setup::visible_bodies;
use crate::prompt_service::PromptService;
use crate::status;

/// Limit for the store in the readiness check.
const READY_TIMEOUT: Duration = Duration::from_secs(2);
const APPROVALS: u32 = 1000;

pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

pub(super) async fn readyz(State(web): State<Arc<WebState>>) -> Response {
    let response = tokio::time::timeout(READY_TIMEOUT, web.store.threads().get("", "")).await;
    match response {
        Ok(Ok(_)) => "ok\n".into_response(),
        _ => (StatusCode::SERVICE_UNAVAILABLE, "the store does not answer\n").into_response(),
    }
}

pub(super) async fn status(
    State(web): State<Arc<WebState>>,
    caller: ApiCaller,
) -> Result<Json<Value>, ApiError> {
    let user = caller.require_operator()?;
    let settings = web.prompts.settings();
    let config = &settings.config;
    let url = web.store.url().to_string();
    let status = status::read(&web.store, (user, web.scope.user()), config, url).await;
    let mut status =
        status.map_err(|failure| ApiError::from_cli_error(StatusCode::SERVICE_UNAVAILABLE, &failure))?.json();
    if let Some(members) = status.as_object_mut() {
        members.extend([
            ("model".to_owned(), json!(config.model.model)),
            ("uptime_s".to_owned(), json!(web.since.elapsed().as_secs())),
            ("turns".to_owned(), json!(web.turns.counters())),
        ]);
    }
    Ok(Json(status))
}

pub(super) async fn metrics(
    State(web): State<Arc<WebState>>,
    caller: ApiCaller,
) -> Result<Response, ApiError> {
    let user = caller.require_operator()?;
    let turns = web.turns.counters();
    let approvals = web.store.approvals().list(user, ApprovalFilter::Pending, APPROVALS).await?.len();
    let mut page = page_for(user, &web.prompts);
    put_metrics(&mut page, &web.broker, &web.store, web.since).await?;
    let running = "Turns of the web channel in progress.";
    page.number("embody_turns_running", Kind::Gauge, running, turns.running);
    let over = "Turns of the web channel that ended.";
    let mut family = page.family("embody_turns_total", Kind::Counter, over);
    for (end, count) in [("done", turns.done), ("failed", turns.failed), ("cancelled", turns.cancelled)] {
        family.sample(&[("end", end)], count);
    }
    page.number("embody_approvals_pending", Kind::Gauge, "Calls that wait for approval.", approvals);
    let observations = web.store.outbox().pending(user).await?.count;
    page.number(
        "embody_observations_waiting",
        Kind::Gauge,
        "Observations not yet delivered to the mind.",
        observations,
    );
    Ok(response(page))
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
        ApiError::unauthorized("a token is required")
            .hint("create one with `embody token add --user NAME --scope operate`")
    })?;
    let caller = ApiCaller::with_token(&state.store, token).await?;
    let mut page = page_for(caller.require_operator()?, &state.prompts);
    put_metrics(&mut page, &state.broker, &state.store, state.since).await?;
    Ok(response(page))
}

/// A page without the bodies that this user may not use.
fn page_for(user: &str, prompts: &PromptService) -> Page {
    visible_bodies(&prompts.settings().config, user, prompts.owner())
        .map_or_else(Page::default, Page::of_bodies)
}

fn response(page: Page) -> Response {
    ([(CONTENT_TYPE, meter::CONTENT_TYPE)], page.into_text()).into_response()
}

async fn put_metrics(
    page: &mut Page,
    broker: &Broker,
    store: &Store,
    since: Instant,
) -> embody_store::Result<()> {
    page.family("embody_build_info", Kind::Gauge, "The running version.")
        .sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    let up = "Time since the start of the process.";
    page.number("embody_up_seconds", Kind::Gauge, up, since.elapsed().as_secs());
    broker.metrics(page);
    let waiting = store.outbox().pending_total().await?;
    page.number(
        "embody_outbox_observations",
        Kind::Gauge,
        "Observations not yet delivered to the mind, of all users.",
        waiting.count,
    );
    let now = jiff::Timestamp::now().as_microsecond();
    let oldest_us = waiting.oldest_at.map_or(0, |at| now.saturating_sub(at).max(0));
    page.number(
        "embody_outbox_oldest_seconds",
        Kind::Gauge,
        "Age of the oldest undelivered observation.",
        std::time::Duration::from_micros(oldest_us.unsigned_abs()).as_secs_f64(),
    );
    put_process(page, since);
    Ok(())
}

/// The unit of processor time in `/proc`, on every machine.
const TICKS_PER_SECOND: f64 = 100.0;

fn put_process(page: &mut Page, since: Instant) {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let mut put = |name, kind, help, value: Option<f64>| {
        if let Some(value) = value {
            page.number(name, kind, help, value);
        }
    };
    put("process_resident_memory_bytes", Kind::Gauge, "Resident memory.", bytes(&status, "VmRSS"));
    put("process_virtual_memory_bytes", Kind::Gauge, "Virtual memory.", bytes(&status, "VmSize"));
    put("process_cpu_seconds_total", Kind::Counter, "CPU time used.", cpu_seconds(&stat));
    let open = fs::read_dir("/proc/self/fd").ok().map(|entries| number(entries.count()));
    put("process_open_fds", Kind::Gauge, "Open file descriptors.", open);
    let most = getrlimit(Resource::Nofile).current.and_then(|most| usize::try_from(most).ok());
    put("process_max_fds", Kind::Gauge, "Limit of open file descriptors.", most.map(number));
    put("process_threads", Kind::Gauge, "Threads.", field(&status, "Threads").map(number));
    let started = jiff::Timestamp::now().as_duration().as_secs_f64() - since.elapsed().as_secs_f64();
    put("process_start_time_seconds", Kind::Gauge, "Start time, in seconds since 1970.", Some(started));
}

/// A line like `VmRSS:     1234 kB`.
fn bytes(status: &str, name: &str) -> Option<f64> {
    field(status, name).map(|kilobytes| number(kilobytes) * 1024.0)
}

fn field(status: &str, name: &str) -> Option<usize> {
    let rest = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// The name is in brackets and may contain anything; the twelfth and thirteenth fields after it are user and kernel time.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut times = rest.split(' ').skip(11).map(|ticks| ticks.parse::<usize>().ok());
    let (user, kernel) = (times.next()??, times.next()??);
    Some(number(user + kernel) / TICKS_PER_SECOND)
}

#[expect(clippy::cast_precision_loss, reason = "no such number is beyond what a float holds exactly")]
fn number(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_and_stat_are_parsed() {
        let status = "Name:\tembody\nVmSize:\t  2048 kB\nVmRSS:\t    12 kB\nThreads:\t3\n";
        assert_eq!(bytes(status, "VmRSS"), Some(12_288.0));
        assert_eq!(field(status, "Threads"), Some(3));
        assert_eq!(bytes(status, "VmSwap"), None);
        let stat = "12 (a) b) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20";
        assert_eq!(cpu_seconds(stat), Some(2.0));
        assert_eq!(cpu_seconds("12 (a) S 1"), None);
    }

    #[test]
    fn the_page_has_numbers_of_this_process() {
        let mut page = Page::default();
        put_process(&mut page, Instant::now());
        let text = page.into_text();
        for name in ["process_resident_memory_bytes", "process_open_fds", "process_cpu_seconds_total"] {
            let line =
                text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {text}"));
            let value: f64 = line.rsplit(' ').next().unwrap().parse().unwrap();
            assert!(value >= 0.0 && (name == "process_cpu_seconds_total" || value > 1.0), "{line}");
        }
    }
}
