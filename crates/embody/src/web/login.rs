//! Signs a browser in: exchanges a one-time code from the owner's terminal, or a token, for a cookie. Codes and sessions live
//! in this process. Codes and cookies are stored as hashes; a token stays in memory as long as its session, because each
//! request checks that it is still valid.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::{Request, State};
use axum::http::header::{COOKIE, HOST, ORIGIN, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use blake3::Hash;
use embody_wire::Secret;
use serde::Deserialize;
use serde_json::{Value, json};

use super::WebState;
use super::auth::{self, ApiCaller};
use super::error::ApiError;
use crate::app;
use crate::error::CliError;

const CODE_TTL: Duration = Duration::from_secs(600);
const SESSION_TTL: Duration = Duration::from_secs(12 * 3600);
const MAX_CODES: usize = 8;
/// The maximum number of sessions per user. A new one ends the user's own oldest.
const SESSIONS_EACH: usize = 32;

#[derive(Debug, Clone)]
pub(super) enum Session {
    /// Signed in with a code.
    Owner,
    /// Signed in with this token; valid as long as the token.
    Token(Secret),
}

#[derive(Debug)]
pub(crate) struct LoginSessions {
    /// Browsers distinguish cookies by name, not by port.
    cookie: String,
    is_secure: bool,
    state: Mutex<LoginState>,
}

#[derive(Debug, Default)]
struct LoginState {
    codes: Vec<(Hash, Instant)>,
    sessions: HashMap<Hash, SessionEntry>,
}

#[derive(Debug)]
struct SessionEntry {
    user: String,
    until: Instant,
    session: Session,
}

impl LoginSessions {
    pub(crate) fn new(port: u16, is_secure: bool) -> Self {
        let cookie = if is_secure { "__Host-embody".to_owned() } else { format!("embody-{port}") };
        Self { cookie, is_secure, state: Mutex::default() }
    }

    pub(crate) fn new_code(&self) -> Result<String, CliError> {
        let code = random().map_err(CliError::new)?;
        let mut state = self.lock();
        state.codes.retain(|(_, since)| since.elapsed() < CODE_TTL);
        if state.codes.len() >= MAX_CODES {
            state.codes.remove(0);
        }
        state.codes.push((hash(&code), Instant::now()));
        Ok(code)
    }

    fn use_code(&self, code: &str) -> bool {
        let (wanted, mut state) = (hash(code), self.lock());
        let position = state.codes.iter().position(|(known, _)| *known == wanted);
        position.is_some_and(|position| state.codes.remove(position).1.elapsed() < CODE_TTL)
    }

    pub(super) fn find(&self, headers: &HeaderMap) -> Option<Session> {
        let state = self.lock();
        let SessionEntry { until, session, .. } = state.sessions.get(&self.named(headers)?)?;
        (*until > Instant::now()).then(|| session.clone())
    }

    fn begin(&self, user: &str, session: Session) -> Result<HeaderValue, ApiError> {
        let secret = random().map_err(ApiError::unavailable)?;
        let mut state = self.lock();
        let now = Instant::now();
        state.sessions.retain(|_, one| one.until > now);
        let own = state.sessions.iter().filter(|(_, one)| one.user == user);
        if own.clone().count() >= SESSIONS_EACH
            && let Some(oldest) = own.min_by_key(|(_, one)| one.until).map(|(key, _)| *key)
        {
            state.sessions.remove(&oldest);
        }
        let entry = SessionEntry { user: user.to_owned(), until: now + SESSION_TTL, session };
        state.sessions.insert(hash(&secret), entry);
        self.set_cookie(&secret, SESSION_TTL)
    }

    fn end(&self, headers: &HeaderMap) {
        if let Some(named) = self.named(headers) {
            self.lock().sessions.remove(&named);
        }
    }

    fn set_cookie(&self, value: &str, age: Duration) -> Result<HeaderValue, ApiError> {
        let secure = if self.is_secure { "; Secure" } else { "" };
        let (name, age) = (&self.cookie, age.as_secs());
        let text = format!("{name}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{secure}");
        let mut value = HeaderValue::from_str(&text)
            .map_err(|_| ApiError::unavailable("the cookie cannot be created"))?;
        value.set_sensitive(true);
        Ok(value)
    }

    fn named(&self, headers: &HeaderMap) -> Option<Hash> {
        let cookies = headers.get_all(COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
        let mut pairs =
            cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(name, _)| *name == self.cookie).map(|(_, value)| hash(value))
    }

    fn lock(&self) -> MutexGuard<'_, LoginState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
    let before = headers.clone();
    let (session, caller) = match auth::json(request).await? {
        Login { code: Some(code), token: None } => {
            if !web.logins.use_code(&code) {
                return Err(ApiError::unauthorized(
                    "this code was used already, or is older than ten minutes",
                )
                .hint("get a new code from the terminal where embody runs"));
            }
            (Session::Owner, ApiCaller::owner(web.scope.user()))
        }
        Login { code: None, token: Some(token) } => {
            let caller = ApiCaller::with_token(&web.store, token.trim()).await?;
            (Session::Token(Secret::new(token.trim())), caller)
        }
        Login { .. } => return Err(ApiError::bad_request("either `code` or `token` is needed")),
    };
    let cookie = web.logins.begin(&caller.user, session)?;
    // A browser has one session: end the previous one.
    web.logins.end(&before);
    Ok(([(SET_COOKIE, cookie)], Json(caller_json(&web, &caller))).into_response())
}

pub(super) async fn logout(
    State(web): State<Arc<WebState>>,
    _: ApiCaller,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    web.logins.end(&headers);
    let cookie = web.logins.set_cookie("", Duration::ZERO)?;
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
        "version": env!("CARGO_PKG_VERSION"),
    })
}

impl WebState {
    /// What is missing in an incomplete model configuration.
    fn lacks(&self) -> Option<String> {
        let (message, hint) = app::missing_model_name(&self.prompts.settings().config)?.summary();
        Some(format!("{message}; {hint}, and start `embody up` again."))
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

fn random() -> Result<String, &'static str> {
    let mut bytes = [0u8; 32];
    getrandom::fill(&mut bytes).map_err(|_| "the system returned no random bytes")?;
    Ok(Hash::from_bytes(bytes).to_hex().to_string())
}

/// The secrets are random and long, so a plain hash is sufficient.
fn hash(secret: &str) -> Hash {
    blake3::hash(secret.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_cookie(cookie: &HeaderValue) -> HeaderMap {
        let pair = cookie.to_str().unwrap().split(';').next().unwrap().to_owned();
        HeaderMap::from_iter([(COOKIE, HeaderValue::from_str(&format!("other=1; {pair}; x=y")).unwrap())])
    }

    #[test]
    fn a_code_works_once() {
        let logins = LoginSessions::new(7717, false);
        let code = logins.new_code().unwrap();
        assert!(!logins.use_code("") && !logins.use_code(&code[1..]));
        assert!(logins.use_code(&code));
        assert!(!logins.use_code(&code));
    }

    #[test]
    fn the_oldest_code_is_dropped_when_there_are_too_many() {
        let logins = LoginSessions::new(7717, false);
        let codes: Vec<String> = (0..=MAX_CODES).map(|_| logins.new_code().unwrap()).collect();
        assert!(!logins.use_code(&codes[0]) && logins.use_code(&codes[1]));
    }

    #[test]
    fn a_cookie_finds_its_session_until_that_ends() {
        let logins = LoginSessions::new(7717, false);
        let cookie = logins.begin("owner", Session::Owner).unwrap();
        let text = cookie.to_str().unwrap();
        assert!(text.starts_with("embody-7717=") && text.contains("HttpOnly; SameSite=Strict"), "{text}");
        assert!(matches!(logins.find(&with_cookie(&cookie)), Some(Session::Owner)));
        assert!(logins.find(&HeaderMap::new()).is_none());
        assert!(LoginSessions::new(7717, false).find(&with_cookie(&cookie)).is_none());
        logins.end(&with_cookie(&cookie));
        assert!(logins.find(&with_cookie(&cookie)).is_none());
        let secure = LoginSessions::new(443, true).begin("owner", Session::Owner).unwrap();
        assert!(
            secure.to_str().unwrap().starts_with("__Host-embody=")
                && secure.to_str().unwrap().ends_with("; Secure")
        );
    }

    #[test]
    fn sessions_of_one_user_do_not_end_those_of_others() {
        let logins = LoginSessions::new(7717, false);
        let owner = logins.begin("owner", Session::Owner).unwrap();
        let token = || Session::Token(Secret::new("embody_x"));
        let theirs: Vec<HeaderValue> = (0..300).map(|_| logins.begin("ann", token()).unwrap()).collect();
        assert!(logins.find(&with_cookie(&owner)).is_some());
        let live = theirs.iter().filter(|cookie| logins.find(&with_cookie(cookie)).is_some()).count();
        assert_eq!(live, SESSIONS_EACH);
        assert!(logins.find(&with_cookie(theirs.last().unwrap())).is_some());
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
