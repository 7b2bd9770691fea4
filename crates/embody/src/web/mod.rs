//! The HTTP routes of `embody up` besides MCP: console, chat, approvals, monitoring. Owns routes, access and response headers.

mod approvals;
mod audit;
mod auth;
mod chat;
mod error;
mod login;
mod model;
mod monitoring;
mod notices;
mod openai;
mod threads;
mod tour;
mod usage;

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use embody_agent::turn::Agent;
use embody_agent::web_turns::Turns;
use embody_broker::Broker;
use embody_store::{Scope, Store};
use embody_wire::server::CancellationToken;
use embody_wire::server::http::OriginGuard;

pub(crate) use self::chat::WEB;
use self::error::ApiError;
pub(crate) use self::login::{LoginCookie, sign_in_link};
pub(crate) use self::monitoring::standalone as standalone_metrics;
pub(crate) use self::tour::Tour;
use crate::prompt_service::PromptService;
use crate::reload::Reloader;

/// Only our own files, and no embedding in other pages.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(crate) struct WebState {
    pub(crate) reloader: Arc<Reloader>,
    pub(crate) store: Store,
    pub(crate) prompts: Arc<PromptService>,
    pub(crate) agent: Agent,
    pub(crate) broker: Arc<Broker>,
    /// The owner and the agent.
    pub(crate) scope: Scope,
    pub(crate) origin_guard: OriginGuard,
    pub(crate) turns: Turns,
    pub(crate) cookie: LoginCookie,
    pub(crate) since: Instant,
    /// The shutdown of the process: it ends streams that have no end of their own.
    pub(crate) ending: CancellationToken,
    pub(crate) tour: Tour,
}

pub(crate) fn router(web: Arc<WebState>) -> Router {
    let open = Router::new()
        .route("/healthz", get(monitoring::healthz))
        .route("/readyz", get(monitoring::readyz))
        .with_state(Arc::clone(&web));
    let guarded = Router::new()
        .route("/api/login", post(login::login))
        .route("/api/logout", post(login::logout))
        .route("/api/me", get(login::me))
        .route("/api/chat", post(chat::begin))
        .route("/api/chat/{turn}", get(chat::resume).delete(chat::cancel))
        .route("/api/threads", get(threads::list))
        .route("/api/threads/{id}", get(threads::show))
        .route("/api/approvals", get(approvals::list).post(approvals::decide))
        .route("/api/notices", get(notices::list))
        .route("/api/notices/read", post(notices::read))
        .route("/api/notices/events", get(notices::events))
        .route("/api/tour", post(tour::begin))
        .route("/api/tour/answer", post(tour::answer))
        .route("/api/status", get(monitoring::status))
        .route("/api/memories", get(audit::memories))
        .route("/api/audit", get(audit::audit))
        .route("/api/usage", get(usage::usage))
        .route("/api/model", get(model::show).post(model::set))
        .route("/api/prompt", get(audit::prompt))
        .route("/api/openapi.json", get(audit::openapi))
        .route("/metrics", get(monitoring::metrics))
        .route("/v1/models", get(openai::models))
        .route("/v1/chat/completions", post(openai::complete))
        .merge(console())
        .fallback(async || ApiError::not_found("not found"))
        .method_not_allowed_fallback(async || ApiError::method_not_allowed())
        .layer(middleware::from_fn_with_state(Arc::clone(&web), origin_check))
        .with_state(web);
    open.merge(guarded).layer(middleware::map_response(security_headers))
}

async fn origin_check(State(web): State<Arc<WebState>>, request: Request, next: Next) -> Response {
    match web.origin_guard.check(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(message) => ApiError::forbidden(message).into_response(),
    }
}

async fn security_headers(mut response: Response) -> Response {
    const ISOLATED: [(&str, &str); 3] = [
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("permissions-policy", "camera=(), microphone=(), geolocation=()"),
    ];
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    for (name, value) in ISOLATED {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

macro_rules! files {
    ($($path:literal = $file:literal, $kind:ident;)*) => {
        &[$(($path, include_str!(concat!("../../../../console/", $file)), $kind)),*]
    };
}

const FILES: &[(&str, &str, &str)] = files![
    "/" = "index.html", HTML;
    "/console/style.css" = "style.css", CSS;
    "/console/icon.svg" = "icon.svg", SVG;
    "/console/main.js" = "main.js", JS;
    "/console/api.js" = "api.js", JS;
    "/console/approvals.js" = "approvals.js", JS;
    "/console/chat.js" = "chat.js", JS;
    "/console/drawing.js" = "drawing.js", JS;
    "/console/events.js" = "events.js", JS;
    "/console/markdown.js" = "markdown.js", JS;
    "/console/model.js" = "model.js", JS;
    "/console/nodes.js" = "nodes.js", JS;
    "/console/notices.js" = "notices.js", JS;
    "/console/threads.js" = "threads.js", JS;
    "/console/tour.js" = "tour.js", JS;
];

/// The routes of the static files of the console, which are embedded in the binary.
fn console() -> Router<Arc<WebState>> {
    FILES.iter().fold(Router::new(), |router, (path, content, kind)| {
        let file = move || async move {
            ([(CONTENT_TYPE, *kind), (CACHE_CONTROL, "no-cache")], *content).into_response()
        };
        router.route(path, get(file))
    })
}
