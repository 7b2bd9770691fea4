//! Authenticates callers by a bearer token or by the cookie of a signed-in browser, and reads request bodies: bounded in size
//! and time, JSON only.

use std::sync::Arc;
use std::time::Duration;

use axum::body::to_bytes;
use axum::extract::{FromRequestParts, Request};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};
use embody_store::tokens::{TokenScope, ValidToken};
use embody_store::{Scope, Store};
use embody_wire::Secret;
use serde::de::DeserializeOwned;

use super::WebState;
use super::error::ApiError;
use super::login::{self, Session};
use crate::store;

const MAX_BODY_BYTES: usize = 512 * 1024;
/// How long a request body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ApiCaller {
    pub(super) user: String,
    pub(super) may_chat: bool,
    pub(super) may_operate: bool,
    /// The owner, signed in with a code from the terminal, who also decides about the calls of others. A token belongs to one
    /// user, even the owner's.
    pub(super) is_owner: bool,
    pub(super) token: Option<Secret>,
}

impl ApiCaller {
    /// The owner in their own browser.
    pub(super) fn owner(user: &str) -> Self {
        Self { user: user.to_owned(), may_chat: true, may_operate: true, is_owner: true, token: None }
    }

    /// A token grants only its own permissions.
    pub(super) async fn with_token(store: &Store, secret: &str) -> Result<Self, ApiError> {
        let ValidToken { user, scope, .. } = principal(store, secret).await?;
        let (may_chat, may_operate) = match scope {
            TokenScope::Chat => (true, false),
            TokenScope::Operate => (false, true),
            TokenScope::Mcp => {
                let message = "this token has the scope `mcp`; the scope `chat` or `operate` is required";
                return Err(ApiError::forbidden(message));
            }
        };
        Ok(Self { user, may_chat, may_operate, is_owner: false, token: Some(Secret::new(secret)) })
    }

    /// Returns when the caller's token is no longer valid; never for a caller without one.
    pub(super) async fn wait_until_revoked(self, store: Store) {
        match self.token {
            Some(token) => store::wait_until_revoked(&store, token.expose()).await,
            None => std::future::pending().await,
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
        let session = web.logins.find(&parts.headers).ok_or_else(|| {
            ApiError::unauthorized("a token or a signed-in browser is required").hint(
                "open the URL that `embody up` printed, or create a token with `embody token add --user NAME --scope SCOPE`: \
                 `chat` for conversations, `operate` for everything else",
            )
        })?;
        // A browser attaches the cookie to every request; accept only requests of our own page.
        is_from_our_page(parts)?;
        match session {
            Session::Owner => Ok(Self::owner(web.scope.user())),
            // Revoking a token ends its sessions too.
            Session::Token(secret) => Self::with_token(&web.store, secret.expose()).await,
        }
    }
}

async fn principal(store: &Store, secret: &str) -> Result<ValidToken, ApiError> {
    let known = store.tokens().authenticate(secret).await?;
    known.ok_or_else(|| {
        ApiError::unauthorized("the token is unknown, revoked or expired")
            .hint("ask the owner for another; `embody token add --user NAME --scope chat` creates one")
    })
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

pub(super) async fn json<T: DeserializeOwned>(request: Request) -> Result<T, ApiError> {
    let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json")) {
        return Err(ApiError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "the request body must be `application/json`",
        ));
    }
    let body = tokio::time::timeout(BODY_TIMEOUT, to_bytes(request.into_body(), MAX_BODY_BYTES)).await;
    let body =
        body.map_err(|_| ApiError::new(StatusCode::REQUEST_TIMEOUT, "the request body took too long"))?;
    let body = body.map_err(|_| {
        ApiError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the request body has more than {MAX_BODY_BYTES} bytes"),
        )
    })?;
    serde_json::from_slice(&body)
        .map_err(|error| ApiError::bad_request(format!("invalid request body: {error}")))
}
