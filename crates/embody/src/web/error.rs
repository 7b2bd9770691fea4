//! The error response of the API: a status and `{"error": {"message", "hint"}}`.

use axum::Json;
use axum::http::header::WWW_AUTHENTICATE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Value, json};

use crate::error::CliError;

#[derive(Debug, Serialize)]
pub(super) struct ApiError {
    #[serde(skip)]
    status: StatusCode,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// The running turn that caused a conflict.
    #[serde(skip_serializing_if = "Option::is_none")]
    turn: Option<String>,
}

impl ApiError {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), hint: None, turn: None }
    }

    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub(super) fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, message)
    }

    pub(super) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, message)
    }

    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    pub(super) fn method_not_allowed() -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method not allowed for this path")
    }

    pub(super) fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, message)
    }

    pub(super) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message)
    }

    pub(super) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    pub(super) fn with_turn(self, turn: String) -> Self {
        Self { turn: Some(turn), ..self }
    }

    pub(super) fn body(&self) -> Value {
        json!({ "error": self })
    }

    pub(super) fn from_cli_error(status: StatusCode, failure: &CliError) -> Self {
        let (message, hint) = failure.summary();
        let error = Self::new(status, message);
        if hint.is_empty() { error } else { error.hint(hint) }
    }
}

/// Details of a failing store go to the log, not to the client.
impl From<embody_store::Error> for ApiError {
    fn from(error: embody_store::Error) -> Self {
        match error.kind() {
            embody_store::ErrorKind::Invalid => Self::bad_request(error.to_string()),
            embody_store::ErrorKind::NotFound => Self::not_found(error.to_string()),
            _ => {
                tracing::error!(reason = %error, "the store failed");
                Self::unavailable("the store does not answer").hint("run `embody doctor`")
            }
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body())).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
