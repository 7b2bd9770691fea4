//! Signs a browser in: exchanges a one-time code from the owner's terminal, or a token, for a cookie. Codes and sessions are in
//! the store, as hashes: sessions survive a restart, and `embody open` makes links for a running `embody up`.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::header::{COOKIE, HOST, ORIGIN, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use embody_store::Store;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::WebState;
use super::auth::{self, ApiCaller};
use super::error::ApiError;
use crate::app;
use crate::error::CliError;

/// Of a request that needs no token.
const MAX_LOGIN_BYTES: usize = 4096;
const CODE_TTL: Duration = Duration::from_secs(600);
const SESSION_TTL: Duration = Duration::from_secs(12 * 3600);

/// A new link that signs its owner in, once and for ten minutes.
pub(crate) async fn sign_in_link(store: &Store, owner: &str, base: &str) -> Result<String, CliError> {
    let code = store.sign_in().add_code(owner, expiry(CODE_TTL)).await?;
    Ok(format!("{base}/#code={}", code.expose()))
}

/// In microseconds since 1970.
fn expiry(ttl: Duration) -> i64 {
    Timestamp::now().as_microsecond().saturating_add(i64::try_from(ttl.as_micros()).unwrap_or(i64::MAX))
}

/// The cookie with the secret of a session.
#[derive(Debug)]
pub(crate) struct LoginCookie {
    /// Browsers distinguish cookies by name, not by port.
    name: String,
    is_secure: bool,
}

impl LoginCookie {
    pub(crate) fn new(port: u16, is_secure: bool) -> Self {
        let name = if is_secure { "__Host-embody".to_owned() } else { format!("embody-{port}") };
        Self { name, is_secure }
    }

    fn set(&self, value: &str, age: Duration) -> Result<HeaderValue, ApiError> {
        let secure = if self.is_secure { "; Secure" } else { "" };
        let (name, age) = (&self.name, age.as_secs());
        let text = format!("{name}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{secure}");
        let mut value = HeaderValue::from_str(&text)
            .map_err(|_| ApiError::unavailable("the cookie cannot be created"))?;
        value.set_sensitive(true);
        Ok(value)
    }

    pub(super) fn secret<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let cookies = headers.get_all(COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
        let mut pairs =
            cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(name, _)| *name == self.name).map(|(_, value)| value)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Login {
    code: Option<String>,
    token: Option<String>,
}

pub(super) async fn login(State(web): State<Arc<WebState>>, request: Request) -> Result<Response, ApiError> {
    let headers = request.headers();
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    if headers.contains_key(ORIGIN) && !is_same_origin(text(ORIGIN), text(HOST)) {
        return Err(ApiError::forbidden("sign-in is only possible on the console's own page"));
    }
    let before = web.cookie.secret(headers).map(str::to_owned);
    let owner = web.scope.user();
    let (user, token) = match auth::json_up_to(request, MAX_LOGIN_BYTES).await? {
        Login { code: Some(code), token: None } => {
            if !web.store.sign_in().use_code(owner, &code).await? {
                return Err(ApiError::unauthorized(
                    "this code was used already, or is older than ten minutes",
                )
                .hint("get a new code from the terminal where embody runs"));
            }
            (owner.to_owned(), None)
        }
        Login { code: None, token: Some(token) } => {
            let caller = ApiCaller::with_token(&web.store, token.trim()).await?;
            (caller.user, Some(caller.token))
        }
        Login { .. } => return Err(ApiError::bad_request("either `code` or `token` is needed")),
    };
    let session = web.store.sign_in().begin(&user, token.as_deref(), expiry(SESSION_TTL)).await?;
    // A browser has one session: end the previous one.
    if let Some(before) = before {
        web.store.sign_in().end(&before).await?;
    }
    let caller = ApiCaller::with_session(&web, session.expose()).await?;
    let cookie = web.cookie.set(session.expose(), SESSION_TTL)?;
    Ok(([(SET_COOKIE, cookie)], Json(caller_json(&web, &caller))).into_response())
}

pub(super) async fn logout(
    State(web): State<Arc<WebState>>,
    _: ApiCaller,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    if let Some(secret) = web.cookie.secret(&headers) {
        web.store.sign_in().end(secret).await?;
    }
    let cookie = web.cookie.set("", Duration::ZERO)?;
    Ok(([(SET_COOKIE, cookie)], Json(json!({}))).into_response())
}

pub(super) async fn me(State(web): State<Arc<WebState>>, caller: ApiCaller) -> Json<Value> {
    Json(caller_json(&web, &caller))
}

fn caller_json(web: &WebState, caller: &ApiCaller) -> Value {
    let runs_it = caller.may_operate && caller.user == web.scope.user();
    json!({
        "user": caller.user,
        "agent": web.scope.agent(),
        "may_chat": caller.may_chat,
        "may_operate": caller.may_operate,
        "is_owner": caller.is_owner,
        "has_model": web.agent.has_model(),
        // Only the owner sees paths on this machine.
        "config": runs_it.then(|| web.config_file()),
        "lacks": if runs_it { web.lacks() } else { None },
        "configuration": runs_it.then(|| web.reloader.state()),
        "version": env!("CARGO_PKG_VERSION"),
    })
}

impl WebState {
    /// What is missing in an incomplete model configuration.
    fn lacks(&self) -> Option<String> {
        let (message, hint) = app::missing_model_name(&self.prompts.settings().config)?.summary();
        Some(format!("{message}; {hint}."))
    }

    fn config_file(&self) -> String {
        let settings = self.prompts.settings();
        let file = settings.config.file.clone().unwrap_or_else(|| settings.workspace.join("embody.toml"));
        file.display().to_string()
    }
}

/// Whether an `Origin` equals the origin of the request.
pub(super) fn is_same_origin(origin: Option<&str>, host: Option<&str>) -> bool {
    let authority =
        origin.and_then(|origin| origin.strip_prefix("http://").or(origin.strip_prefix("https://")));
    matches!((authority, host), (Some(authority), Some(host)) if authority.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_found_by_its_own_name_and_is_not_for_scripts() {
        let (http, https) = (LoginCookie::new(7717, false), LoginCookie::new(443, true));
        let text =
            |cookie: &LoginCookie| cookie.set("secret", SESSION_TTL).unwrap().to_str().unwrap().to_owned();
        assert_eq!(text(&http), "embody-7717=secret; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict");
        assert!(text(&https).starts_with("__Host-embody=") && text(&https).ends_with("; Secure"));
        let sent = HeaderValue::from_static("other=1; embody-7717=secret; x=y");
        let headers = HeaderMap::from_iter([(COOKIE, sent)]);
        assert_eq!((http.secret(&headers), https.secret(&headers)), (Some("secret"), None));
        assert_eq!(http.secret(&HeaderMap::new()), None);
    }

    #[test]
    fn only_the_same_scheme_host_and_port_is_the_same_origin() {
        assert!(is_same_origin(Some("http://127.0.0.1:7717"), Some("127.0.0.1:7717")));
        for (origin, host) in [
            (Some("http://127.0.0.1:3000"), Some("127.0.0.1:7717")),
            (Some("http://localhost:7717"), Some("127.0.0.1:7717")),
            (Some("null"), Some("127.0.0.1:7717")),
            (None, Some("127.0.0.1:7717")),
            (Some("http://127.0.0.1:7717"), None),
        ] {
            assert!(!is_same_origin(origin, host), "{origin:?}");
        }
    }
}
