//! Admission: checks the `Host` and `Origin` of a request, and its token.

use std::fmt::Write;

use axum::http::header::{AUTHORIZATION, HOST, ORIGIN, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::HttpServer;
use super::response;
use crate::message::Response as Message;
use crate::message::{Id, Outcome};
use crate::secret::Secret;
use crate::server::errors::{AuthError, code, failure};
use crate::server::service::{Credentials, Service};

/// The path of the protected resource metadata (RFC 9728).
pub(super) const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

/// The host names under which this machine may be reached, besides its own.
#[derive(Debug, Clone, Default)]
pub struct OriginGuard {
    /// Host names without a port, such as `agent.example.com`.
    pub hosts: Vec<String>,
    /// Whether requests come over TLS, through a reverse proxy.
    pub is_behind_tls: bool,
}

/// A rejected request: its status and reason.
#[derive(Debug)]
pub(super) struct HttpError {
    status: StatusCode,
    id: Option<Id>,
    outcome: Outcome,
    challenge: Option<String>,
}

impl OriginGuard {
    /// Checks `Host` and `Origin`. Either reveals a page that uses DNS rebinding to reach this machine.
    ///
    /// # Errors
    /// The reason for the rejection, as text for the client.
    pub fn check(&self, headers: &HeaderMap) -> Result<(), String> {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        if !self.knows(name(host)) {
            return Err(format!("the host name `{}` is not allowed", printable(host)));
        }
        let Some(origin) = headers.get(ORIGIN) else { return Ok(()) };
        let origin = origin.to_str().unwrap_or_default();
        let known = ["http://", "https://"]
            .iter()
            .find_map(|scheme| origin.strip_prefix(scheme))
            .is_some_and(|host| self.knows(name(host)));
        if known {
            return Ok(());
        }
        Err(format!("the origin `{}` is not allowed", printable(origin)))
    }

    fn knows(&self, name: &str) -> bool {
        let is_this_machine =
            ["localhost", "127.0.0.1", "[::1]"].iter().any(|own| own.eq_ignore_ascii_case(name));
        is_this_machine || self.hosts.iter().any(|host| host.eq_ignore_ascii_case(name))
    }

    /// The protected resource metadata (RFC 9728). The `Host` was checked before.
    pub(super) fn metadata(&self, headers: &HeaderMap) -> String {
        json!({
            "resource": format!("{}/mcp", self.base(headers)),
            "resource_name": "embody",
            "bearer_methods_supported": ["header"],
        })
        .to_string()
    }

    fn base(&self, headers: &HeaderMap) -> String {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
        let scheme = if self.is_behind_tls { "https" } else { "http" };
        format!("{scheme}://{host}")
    }
}

/// The authenticated principal, and the token it used.
#[derive(Clone, PartialEq)]
pub(super) struct Caller<P> {
    pub(super) principal: P,
    pub(super) bearer: Option<Secret>,
}

impl<S: Service> HttpServer<S> {
    /// Rejects a request whose `Host` or `Origin` is not served.
    pub(super) fn check_origin(&self, headers: &HeaderMap) -> Result<(), HttpError> {
        self.origin_guard.check(headers).map_err(|message| HttpError::new(StatusCode::FORBIDDEN, message))
    }

    pub(super) async fn authenticate(&self, headers: &HeaderMap) -> Result<Caller<S::Principal>, HttpError> {
        self.check_origin(headers)?;
        let bearer = headers
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, token)| Secret::new(token.trim()));
        let principal = self.service.authenticate(Credentials { bearer: bearer.clone() }).await;
        principal.map(|principal| Caller { principal, bearer: bearer.clone() }).map_err(|refusal| {
            let mut challenge =
                format!("Bearer resource_metadata=\"{}{METADATA_PATH}\"", self.origin_guard.base(headers));
            let (status, message) = match refusal {
                AuthError::Unknown(message) => {
                    if bearer.is_some() {
                        let _ = write!(challenge, ", error=\"invalid_token\"");
                    }
                    (StatusCode::UNAUTHORIZED, message)
                }
                AuthError::Forbidden(message) => {
                    let _ = write!(challenge, ", error=\"insufficient_scope\"");
                    (StatusCode::FORBIDDEN, message)
                }
                AuthError::Unavailable(message) => {
                    return HttpError::new(StatusCode::SERVICE_UNAVAILABLE, message);
                }
            };
            HttpError { challenge: Some(challenge), ..HttpError::new(status, message) }
        })
    }
}

impl HttpError {
    pub(super) fn new(status: StatusCode, message: impl AsRef<str>) -> Self {
        Self::with(status, None, failure(code::INVALID_REQUEST, message))
    }

    pub(super) fn with(status: StatusCode, id: Option<Id>, outcome: Outcome) -> Self {
        Self { status, id, outcome, challenge: None }
    }

    pub(super) fn about(self, id: Option<Id>) -> Self {
        Self { id, ..self }
    }
}

impl IntoResponse for HttpError {
    fn into_response(self) -> Response {
        let message = Message { id: self.id, outcome: self.outcome };
        let mut response = response::json(self.status, message.print());
        if let Some(challenge) = self.challenge.and_then(|text| HeaderValue::from_str(&text).ok()) {
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

/// A host without its port.
fn name(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.is_empty() => name,
        _ => host,
    }
}

fn printable(value: &str) -> String {
    value.chars().filter(|c| !c.is_control()).take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(host).unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        OriginGuard { hosts: vec!["agent.example.com".into()], is_behind_tls: false }.check(&headers).is_ok()
    }

    #[test]
    fn only_this_machine_and_its_names_are_served() {
        for host in [
            "localhost",
            "localhost:7717",
            "127.0.0.1:1",
            "[::1]",
            "[::1]:80",
            "LOCALHOST",
            "agent.example.com:443",
        ] {
            assert!(check(host, None), "{host}");
        }
        for host in [
            "",
            "evil.example.com",
            "localhost.evil.com",
            "127.0.0.1.evil.com:80",
            "127.0.0.1@evil.com",
            "[::1].evil.com",
        ] {
            assert!(!check(host, None), "{host}");
        }
    }

    #[test]
    fn a_page_from_elsewhere_is_turned_away() {
        assert!(check("localhost", Some("http://localhost:3000")));
        for origin in
            ["null", "http://evil.example.com", "https://localhost.evil.com", "file://localhost", ""]
        {
            assert!(!check("localhost", Some(origin)), "{origin}");
        }
    }
}
