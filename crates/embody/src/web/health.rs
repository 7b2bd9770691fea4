//! Whether it runs, how it goes, and the same in numbers.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use embody_store::ApprovalFilter;
use serde_json::{Value, json};

use super::Web;
use super::access::Visitor;
use super::refusal::Refused;
use crate::cli::status::as_json;

/// How long the store may take to be called ready.
const READY: Duration = Duration::from_secs(2);

/// The process runs.
pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

/// The store answers.
pub(super) async fn readyz(State(web): State<Arc<Web>>) -> Response {
    let looked = tokio::time::timeout(READY, web.store.thread("", "")).await;
    match looked {
        Ok(Ok(_)) => "ok\n".into_response(),
        _ => (StatusCode::SERVICE_UNAVAILABLE, "the store does not answer\n").into_response(),
    }
}

/// What runs, what does not work, and what waits.
pub(super) async fn status(State(web): State<Arc<Web>>, visitor: Visitor) -> Result<Json<Value>, Refused> {
    let user = visitor.operates()?;
    let config = &web.voice.context().config;
    let bodies: Vec<String> = config.bodies.iter().map(|body| body.name.clone()).collect();
    let status = as_json(&web.store, user, &bodies).await;
    let mut status =
        status.map_err(|failure| Refused::from_failure(StatusCode::SERVICE_UNAVAILABLE, &failure))?;
    let tally = web.turns.tally();
    if let Some(members) = status.as_object_mut() {
        members.extend([
            ("model".to_owned(), json!(config.model.model)),
            ("uptime_s".to_owned(), json!(web.since.elapsed().as_secs())),
            ("turns".to_owned(), json!(tally)),
        ]);
    }
    Ok(Json(status))
}

/// The numbers, as Prometheus reads them.
pub(super) async fn metrics(State(web): State<Arc<Web>>, visitor: Visitor) -> Result<Response, Refused> {
    let user = visitor.operates()?;
    let tally = web.turns.tally();
    let approvals = web.store.approvals(user, ApprovalFilter::Pending, 1000).await?.len();
    let observations = web.store.pending_observations(user).await?.count;
    let mut out = String::new();
    let mut number = |name: &str, kind: &str, help: &str, values: &[(&str, u64)]| {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in values {
            let _ = writeln!(out, "{name}{labels} {value}");
        }
    };
    number(
        "embody_up_seconds",
        "gauge",
        "How long it has been running.",
        &[("", web.since.elapsed().as_secs())],
    );
    number("embody_turns_running", "gauge", "Turns of the web channel that go on.", &[("", tally.running)]);
    number(
        "embody_turns_total",
        "counter",
        "Turns of the web channel that are over.",
        &[
            ("{end=\"done\"}", tally.done),
            ("{end=\"failed\"}", tally.failed),
            ("{end=\"cancelled\"}", tally.cancelled),
        ],
    );
    number("embody_approvals_pending", "gauge", "Calls that wait for you.", &[("", approvals as u64)]);
    let observations = u64::try_from(observations).unwrap_or_default();
    number("embody_observations_waiting", "gauge", "What the mind has not heard.", &[("", observations)]);
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], out).into_response())
}
