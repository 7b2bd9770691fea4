//! Authenticates callers by a bearer token or by the cookie of a signed-in browser, and reads request bodies: bounded in size
//! and time, JSON only.

use std::sync::Arc;
use std::time::Duration;

use axum::body::to_bytes;
use axum::extract::{FromRequestParts, Request};
use axum::http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};
use embody_store::tokens::{TokenScope, ValidToken};
use embody_store::{Scope, Store};
use serde::de::DeserializeOwned;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::WebState;
use super::error::ApiError;
use super::login;
use crate::store;

const MAX_BODY_BYTES: usize = 512 * 1024;
/// Bodies up to this size are parsed on the runtime's threads and do not count below.
const SMALL_BODY_BYTES: usize = 64 * 1024;
/// The larger bodies that may be in progress at the same time, in KiB.
static LARGE_BODIES: Semaphore = Semaphore::const_new(64 * 1024);
/// How long a request body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ApiCaller {
    pub(super) user: String,
    pub(super) may_chat: bool,
    pub(super) may_operate: bool,
    /// The owner, signed in with a link from the terminal, who also decides about the calls of others. A token belongs to one
    /// user, even the owner's.
    pub(super) is_owner: bool,
    /// The id of the token or session.
    pub(super) token: String,
}

impl ApiCaller {
    /// A token grants only its own permissions.
    pub(super) async fn with_token(store: &Store, secret: &str) -> Result<Self, ApiError> {
        let valid = store.tokens().authenticate(secret).await?.ok_or_else(unknown_token)?;
        let scope = valid.scope;
        Self::with_scope(valid, scope)
    }

    /// The session of a browser grants what it was signed in with: a link everything, a token the permissions of that token.
    pub(super) async fn with_session(web: &WebState, secret: &str) -> Result<Self, ApiError> {
        let valid = web.store.tokens().authenticate(secret).await?;
        let valid = valid.filter(|valid| valid.scope == TokenScope::Console).ok_or_else(no_session)?;
        match valid.signed_in_with {
            Some(scope) => Self::with_scope(valid, scope),
            None if valid.user != web.scope.user() => Err(no_session()),
            None => Ok(Self {
                user: valid.user,
                may_chat: true,
                may_operate: true,
                is_owner: true,
                token: valid.token,
            }),
        }
    }

    fn with_scope(valid: ValidToken, scope: TokenScope) -> Result<Self, ApiError> {
        let (may_chat, may_operate) = match scope {
            TokenScope::Chat => (true, false),
            TokenScope::Operate => (false, true),
            TokenScope::Owner => (true, true),
            TokenScope::Mcp | TokenScope::Console => {
                let message = format!(
                    "this token has the scope `{}`; the scope `chat`, `operate` or `owner` is required",
                    scope.name()
                );
                return Err(ApiError::forbidden(message));
            }
        };
        Ok(Self { user: valid.user, may_chat, may_operate, is_owner: false, token: valid.token })
    }

    /// Returns when the caller's token or session has ended.
    pub(super) async fn wait_until_ended(self, store: Store) {
        store::wait_until_ended(&store, &self.user, &self.token).await;
    }

    /// Returns when the caller's token or session was revoked or has expired; never if its browser signs out.
    pub(super) async fn wait_until_revoked(self, store: Store) {
        if !store::wait_until_ended(&store, &self.user, &self.token).await {
            std::future::pending().await
        }
    }

    /// The scope of the caller's conversations.
    pub(super) fn chat_scope(&self, web: &WebState) -> Result<Scope, ApiError> {
        if !self.may_chat {
            return Err(ApiError::forbidden(
                "this token has the scope `operate`; the scope `chat` is required",
            ));
        }
        Ok(Scope::new(&self.user, web.scope.agent())?)
    }

    /// The user whose approvals and records the caller may access.
    pub(super) fn require_operator(&self) -> Result<&str, ApiError> {
        if !self.may_operate {
            return Err(ApiError::forbidden(
                "this token has the scope `chat`; the scope `operate` is required",
            ));
        }
        Ok(&self.user)
    }
}

impl FromRequestParts<Arc<WebState>> for ApiCaller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, web: &Arc<WebState>) -> Result<Self, ApiError> {
        if let Some(bearer) = bearer(&parts.headers) {
            return Self::with_token(&web.store, bearer).await;
        }
        let secret = web.cookie.secret(&parts.headers).ok_or_else(no_session)?;
        // A browser attaches the cookie to every request; accept only requests of our own page.
        is_from_our_page(parts)?;
        Self::with_session(web, secret).await
    }
}

fn no_session() -> ApiError {
    ApiError::unauthorized("a token or a signed-in browser is required").hint(
        "open the URL that `embody up` printed, or create a token with `embody token add --user NAME --scope SCOPE`: \
         `chat` for conversations, `operate` for everything else",
    )
}

fn unknown_token() -> ApiError {
    ApiError::unauthorized("the token is unknown, revoked or expired")
        .hint("ask the owner for another; `embody token add --user NAME --scope chat` creates one")
}

pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Other programs on this machine have the same host name on other ports, so the whole origin counts.
fn is_from_our_page(parts: &Parts) -> Result<(), ApiError> {
    let text = |name| parts.headers.get(name).and_then(|value: &axum::http::HeaderValue| value.to_str().ok());
    let changes = !matches!(parts.method, Method::GET | Method::HEAD);
    let is_ours = match parts.headers.get(ORIGIN) {
        Some(_) => login::is_same_origin(text(ORIGIN), text(HOST)),
        None => !changes,
    };
    let site = parts.headers.get("sec-fetch-site").and_then(|site| site.to_str().ok());
    if is_ours && site.is_none_or(|site| matches!(site, "same-origin" | "none")) {
        return Ok(());
    }
    Err(ApiError::forbidden("this request does not come from the console's own page"))
}

pub(super) async fn json<T: DeserializeOwned + Send + 'static>(request: Request) -> Result<T, ApiError> {
    json_up_to(request, MAX_BODY_BYTES).await
}

pub(super) async fn json_up_to<T: DeserializeOwned + Send + 'static>(
    request: Request,
    max_bytes: usize,
) -> Result<T, ApiError> {
    let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json")) {
        return Err(ApiError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "the request body must be `application/json`",
        ));
    }
    let length = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let length = length.map_or(max_bytes, |length: usize| length.min(max_bytes));
    // Held until the body is parsed.
    let _space = match length > SMALL_BODY_BYTES {
        true => Some(reserve(length)?),
        false => None,
    };
    let body = tokio::time::timeout(BODY_TIMEOUT, to_bytes(request.into_body(), max_bytes)).await;
    let body =
        body.map_err(|_| ApiError::new(StatusCode::REQUEST_TIMEOUT, "the request body took too long"))?;
    let body = body.map_err(|_| {
        ApiError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the request body has more than {max_bytes} bytes"),
        )
    })?;
    let parsed = match body.len() > SMALL_BODY_BYTES {
        true => tokio::task::spawn_blocking(move || serde_json::from_slice(&body)).await,
        false => Ok(serde_json::from_slice(&body)),
    };
    let parsed =
        parsed.map_err(|_| ApiError::unavailable("internal error: the request body was not read"))?;
    parsed.map_err(|error| ApiError::bad_request(format!("invalid request body: {error}")))
}

fn reserve(bytes: usize) -> Result<SemaphorePermit<'static>, ApiError> {
    let kibibytes = u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX);
    LARGE_BODIES.try_acquire_many(kibibytes).map_err(|_| {
        ApiError::unavailable("too many large requests are in progress").hint("try again in a few seconds")
    })
}
