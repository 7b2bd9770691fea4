//! Everything that `embody up` serves besides MCP: the page, the chat, and what an operator looks at. Owns routes, who may
//! take them, and the headers of every answer; what happens behind a route is another room's.

mod access;
mod answer;
mod approvals;
mod chat;
mod health;
mod login;
mod page;
mod records;
mod refusal;
mod threads;
mod watch;

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use embody_agent::turn::Agent;
use embody_agent::web::Turns;
use embody_broker::Broker;
use embody_store::{Scope, Store};
use embody_wire::serve::http::Door;

pub(crate) use self::answer::WEB;
pub(crate) use self::login::Logins;
use self::refusal::Refused;
pub(crate) use self::watch::alone as metrics_alone;
use crate::contract::Voice;

/// Nothing but our own files, and nobody may put the page into another.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// What the routes work with.
pub(crate) struct Web {
    pub(crate) store: Store,
    pub(crate) voice: Arc<Voice>,
    pub(crate) agent: Agent,
    pub(crate) broker: Arc<Broker>,
    /// Whose house it is, and which agent answers.
    pub(crate) scope: Scope,
    pub(crate) door: Door,
    pub(crate) turns: Turns,
    pub(crate) logins: Logins,
    pub(crate) since: Instant,
}

/// The routes.
pub(crate) fn router(web: Arc<Web>) -> Router {
    let open = Router::new()
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
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
        .route("/api/status", get(health::status))
        .route("/api/memories", get(records::memories))
        .route("/api/audit", get(records::audit))
        .route("/api/prompt", get(records::prompt))
        .route("/api/openapi.json", get(records::openapi))
        .route("/metrics", get(watch::metrics))
        .merge(page::routes())
        .fallback(async || Refused::missing("there is nothing at this address"))
        .method_not_allowed_fallback(async || Refused::wrong_method())
        .layer(middleware::from_fn_with_state(Arc::clone(&web), at_the_door))
        .with_state(web);
    open.merge(guarded).layer(middleware::map_response(sealed))
}

/// Names and origins are looked at before anything else.
async fn at_the_door(State(web): State<Arc<Web>>, request: Request, next: Next) -> Response {
    match web.door.judge(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(message) => Refused::forbidden(message).into_response(),
    }
}

/// What every answer says to the browser.
async fn sealed(mut response: Response) -> Response {
    const ISOLATED: [(&str, &str); 3] = [
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("permissions-policy", "camera=(), microphone=(), geolocation=()"),
    ];
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    for (name, value) in ISOLATED {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}
