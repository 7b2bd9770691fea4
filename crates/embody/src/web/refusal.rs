//! What a request that is not served is told: `{"error": {"message", "hint"}}` and a status.

use axum::Json;
use axum::http::header::WWW_AUTHENTICATE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::json;

use crate::failure::Failure;

/// A request that is not served, and why.
#[derive(Debug, Serialize)]
pub(super) struct Refused {
    #[serde(skip)]
    status: StatusCode,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// The turn that is in the way.
    #[serde(skip_serializing_if = "Option::is_none")]
    turn: Option<String>,
}

impl Refused {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), hint: None, turn: None }
    }

    /// What was sent cannot be meant.
    pub(super) fn wrong(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// Nobody knows who is speaking.
    pub(super) fn unknown(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, message)
    }

    pub(super) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, message)
    }

    pub(super) fn missing(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    pub(super) fn wrong_method() -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "this address does not take this method")
    }

    /// It is not so any more, or not yet.
    pub(super) fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, message)
    }

    pub(super) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message)
    }

    pub(super) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    pub(super) fn about_turn(self, turn: String) -> Self {
        Self { turn: Some(turn), ..self }
    }

    /// A failure of a command, as an answer with this status.
    pub(super) fn from_failure(status: StatusCode, failure: &Failure) -> Self {
        let (message, hint) = failure.in_short();
        let refused = Self::new(status, message);
        if hint.is_empty() { refused } else { refused.hint(hint) }
    }
}

/// Whoever asks cannot help it; the log says more.
impl From<embody_store::Error> for Refused {
    fn from(error: embody_store::Error) -> Self {
        match error.kind() {
            embody_store::ErrorKind::Invalid => Self::wrong(error.to_string()),
            embody_store::ErrorKind::NotFound => Self::missing(error.to_string()),
            _ => {
                tracing::error!(reason = %error, "the store failed");
                Self::unavailable("the store does not answer").hint("`embody doctor` says what is wrong")
            }
        }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(json!({ "error": &self }))).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
