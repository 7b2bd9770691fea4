//! The methods of the Bot API that the channel uses, and their errors. The token is part of every request path; no error and no log
//! contains it.

use std::error::Error as _;
use std::time::Duration;

use embody_wire::{Proxies, Secret, Url};
use serde::Deserialize;
use serde_json::{Value, json};

use super::update::ChatRef;

const MAX_RESPONSE_BYTES: usize = 32 * 1024 * 1024;
const MAX_UPDATES: u32 = 100;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(15);
/// Timeout of a method; a poll adds its own wait.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest description of an error that is kept.
const MAX_DESCRIPTION_CHARS: usize = 300;

/// The bot's own account.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Me {
    pub(super) id: i64,
    #[serde(default)]
    pub(super) username: String,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct NewText<'a> {
    pub(super) chat_ref: ChatRef,
    pub(super) text: &'a str,
    pub(super) is_html: bool,
    pub(super) reply_to: Option<i64>,
    /// Buttons in one row: label and data.
    pub(super) buttons: &'a [(&'a str, String)],
}

#[derive(Debug, Clone)]
pub(super) struct Api {
    http: reqwest::Client,
    base: Url,
    token: Secret,
    proxies: Proxies,
}

impl Api {
    pub(super) fn new(base: &Url, token: &Secret, proxies: &Proxies) -> Result<Self, ApiError> {
        let is_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '_' | '-');
        if token.expose().is_empty() || !token.expose().chars().all(is_token) {
            return Err(ApiError::Setup("the token of the Telegram bot is invalid".to_owned()));
        }
        let builder = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            // Shorter than servers keep connections: the outcome of a message sent on a closing connection is unknown.
            .pool_idle_timeout(POOL_IDLE_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            // A message that may have been sent is never sent again, also not by the HTTP client.
            .retry(reqwest::retry::never())
            .referer(false);
        let http = proxies.apply(builder, base).build();
        let http = http.map_err(|error| ApiError::Setup(describe_error(&error, token)))?;
        Ok(Self { http, base: base.clone(), token: token.clone(), proxies: proxies.clone() })
    }

    pub(super) async fn me(&self) -> Result<Me, ApiError> {
        let me = self.call("getMe", &json!({}), CALL_TIMEOUT).await?;
        Me::deserialize(me).map_err(|error| ApiError::Lost(error.to_string()))
    }

    /// Waits for updates from this id on; confirms all before it.
    pub(super) async fn updates(&self, offset: i64, wait: Duration) -> Result<Vec<Value>, ApiError> {
        let params = json!({
            "offset": offset,
            "timeout": wait.as_secs(),
            "limit": MAX_UPDATES,
            "allowed_updates": ["message", "edited_message", "callback_query"],
        });
        match self.call("getUpdates", &params, wait + CALL_TIMEOUT).await? {
            Value::Array(updates) => Ok(updates),
            _ => Err(ApiError::Lost("updates that are not a list".to_owned())),
        }
    }

    /// Switches the bot to polling.
    pub(super) async fn delete_webhook(&self) -> Result<(), ApiError> {
        self.call("deleteWebhook", &json!({ "drop_pending_updates": false }), CALL_TIMEOUT).await.map(drop)
    }

    /// Sends a message and returns its id.
    pub(super) async fn send(&self, new: NewText<'_>) -> Result<i64, ApiError> {
        let mut params = text_params(new.chat_ref, new.text, new.is_html);
        if let Some(topic) = new.chat_ref.topic {
            set(&mut params, "message_thread_id", topic.into());
        }
        if let Some(message) = new.reply_to {
            let reply = json!({ "message_id": message, "allow_sending_without_reply": true });
            set(&mut params, "reply_parameters", reply);
        }
        set_buttons(&mut params, new.buttons);
        let sent = self.call("sendMessage", &params, CALL_TIMEOUT).await?;
        Ok(sent.get("message_id").and_then(Value::as_i64).unwrap_or_default())
    }

    /// Shows the typing indicator for about five seconds.
    pub(super) async fn typing(&self, chat_ref: ChatRef) -> Result<(), ApiError> {
        let mut params = json!({ "chat_id": chat_ref.chat, "action": "typing" });
        if let Some(topic) = chat_ref.topic {
            set(&mut params, "message_thread_id", topic.into());
        }
        self.call("sendChatAction", &params, CALL_TIMEOUT).await.map(drop)
    }

    /// Replaces the text of a message, and its buttons.
    pub(super) async fn edit(
        &self,
        chat_ref: ChatRef,
        message: i64,
        text: &str,
        buttons: &[(&str, String)],
    ) -> Result<(), ApiError> {
        let mut params = text_params(chat_ref, text, false);
        set(&mut params, "message_id", message.into());
        set_buttons(&mut params, buttons);
        self.call("editMessageText", &params, CALL_TIMEOUT).await.map(drop)
    }

    pub(super) async fn delete(&self, chat_ref: ChatRef, message: i64) -> Result<(), ApiError> {
        let params = json!({ "chat_id": chat_ref.chat, "message_id": message });
        self.call("deleteMessage", &params, CALL_TIMEOUT).await.map(drop)
    }

    pub(super) async fn remove_buttons(&self, chat_ref: ChatRef, message: i64) -> Result<(), ApiError> {
        let params = json!({ "chat_id": chat_ref.chat, "message_id": message });
        self.call("editMessageReplyMarkup", &params, CALL_TIMEOUT).await.map(drop)
    }

    pub(super) async fn answer_press(&self, press: &str, text: &str) -> Result<(), ApiError> {
        let params = json!({ "callback_query_id": press, "text": text });
        self.call("answerCallbackQuery", &params, CALL_TIMEOUT).await.map(drop)
    }

    async fn call(&self, method: &str, params: &Value, within: Duration) -> Result<Value, ApiError> {
        let base = self.base.as_str().trim_end_matches('/');
        let url = format!("{base}/bot{}/{method}", self.token.expose());
        let request = self
            .http
            .post(url)
            .header("content-type", "application/json")
            .timeout(within)
            .body(params.to_string());
        let failed = |error: reqwest::Error| {
            let words = describe_error(&error, &self.token);
            if error.is_connect() || error.is_builder() {
                ApiError::Unreachable(self.proxies.describe_error(&self.base, words))
            } else {
                ApiError::Lost(words)
            }
        };
        let mut response = request.send().await.map_err(failed)?;
        let status = response.status().as_u16();
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if body.len() + chunk.len() > MAX_RESPONSE_BYTES {
                return Err(ApiError::Lost(format!("a response of more than {MAX_RESPONSE_BYTES} bytes")));
            }
            body.extend_from_slice(&chunk);
        }
        self.read(status, &body)
    }

    fn read(&self, status: u16, body: &[u8]) -> Result<Value, ApiError> {
        #[derive(Deserialize)]
        struct Answer {
            ok: bool,
            result: Option<Value>,
            error_code: Option<u16>,
            description: Option<String>,
            parameters: Option<Parameters>,
        }
        #[derive(Deserialize)]
        struct Parameters {
            retry_after: Option<u64>,
        }
        let answer: Option<Answer> = serde_json::from_slice(body).ok();
        let (status, description, retry_after) = match answer {
            Some(Answer { ok: true, result: Some(result), .. }) if status == 200 => return Ok(result),
            Some(answer) => (
                answer.error_code.unwrap_or(status),
                answer.description.unwrap_or_default(),
                answer.parameters.and_then(|parameters| parameters.retry_after),
            ),
            None => (status, "not a Bot API response".to_owned(), None),
        };
        let description = self.token.redact(&description).chars().take(MAX_DESCRIPTION_CHARS).collect();
        // A server may have sent the message before it failed.
        if !(400..500).contains(&status) {
            return Err(ApiError::Lost(format!("it answered {status}: {description}")));
        }
        Err(ApiError::Refused { status, description, retry_after: retry_after.map(Duration::from_secs) })
    }
}

fn set_buttons(params: &mut Value, buttons: &[(&str, String)]) {
    if !buttons.is_empty() {
        let button = |(label, data): &(&str, String)| json!({ "text": label, "callback_data": data });
        let row: Vec<Value> = buttons.iter().map(button).collect();
        set(params, "reply_markup", json!({ "inline_keyboard": [row] }));
    }
}

fn text_params(chat_ref: ChatRef, text: &str, is_html: bool) -> Value {
    let mut params = json!({
        "chat_id": chat_ref.chat,
        "text": text,
        // For a preview, Telegram's servers open the URL: a reply must not cause requests by itself.
        "link_preview_options": { "is_disabled": true },
    });
    if is_html {
        set(&mut params, "parse_mode", "HTML".into());
    }
    params
}

fn set(params: &mut Value, key: &str, value: Value) {
    if let Value::Object(params) = params {
        params.insert(key.to_owned(), value);
    }
}

/// An error with its causes, without the URL.
fn describe_error(error: &reqwest::Error, token: &Secret) -> String {
    let kind = if error.is_timeout() {
        "no answer in time"
    } else if error.is_connect() {
        "no connection"
    } else {
        "the connection broke"
    };
    let mut words = kind.to_owned();
    let mut source = error.source();
    while let Some(cause) = source {
        words.push_str(": ");
        words.push_str(&cause.to_string());
        source = cause.source();
    }
    token.redact(&words).chars().take(MAX_DESCRIPTION_CHARS).collect()
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// The token is malformed, or the client cannot be built.
    #[error("{0}")]
    Setup(String),
    /// The request was not sent.
    #[error("Telegram cannot be reached: {0}")]
    Unreachable(String),
    /// The connection or the server failed: the method may have been executed.
    #[error("it is unknown whether Telegram accepted it: {0}")]
    Lost(String),
    #[error("Telegram returned {status}: {description}")]
    Refused { status: u16, description: String, retry_after: Option<Duration> },
}

impl ApiError {
    /// Whether the same message will always be rejected.
    pub(super) fn is_final(&self) -> bool {
        matches!(self, Self::Refused { status: 400 | 403 | 404, .. })
    }

    /// Whether Telegram could not parse the formatting of a text.
    pub(super) fn is_about_formatting(&self) -> bool {
        self.is_rejection(400, "can't parse entities")
    }

    /// Whether the message already has this text.
    pub(super) fn is_same_already(&self) -> bool {
        self.is_rejection(400, "message is not modified")
    }

    /// Whether a webhook receives the updates instead.
    pub(super) fn is_about_webhook(&self) -> bool {
        self.is_rejection(409, "webhook")
    }

    /// Whether another process polls the updates of this bot.
    pub(super) fn is_about_another_poller(&self) -> bool {
        matches!(self, Self::Refused { status: 409, .. })
    }

    pub(super) fn is_about_token(&self) -> bool {
        matches!(self, Self::Refused { status: 401, .. })
    }

    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    fn is_rejection(&self, wanted: u16, words: &str) -> bool {
        matches!(self, Self::Refused { status, description, .. } if *status == wanted && description.contains(words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api() -> Api {
        let (base, token) = (Url::parse("http://127.0.0.1:9/base/").unwrap(), Secret::new("42:TEST-token"));
        Api::new(&base, &token, &Proxies::default()).unwrap()
    }

    #[test]
    fn what_telegram_says_is_understood() {
        let read = |status, body: &str| api().read(status, body.as_bytes());
        assert_eq!(read(200, r#"{"ok":true,"result":[1]}"#), Ok(json!([1])));
        let limited = read(
            429,
            r#"{"ok":false,"error_code":429,"description":"Too Many Requests: retry after 7","parameters":{"retry_after":7}}"#,
        );
        assert_eq!(limited.unwrap_err().retry_after(), Some(Duration::from_secs(7)));
        let parse = r#"{"ok":false,"error_code":400,"description":"Bad Request: can't parse entities: Unsupported start tag"}"#;
        assert!(read(400, parse).unwrap_err().is_about_formatting());
        let blocked =
            r#"{"ok":false,"error_code":403,"description":"Forbidden: bot was blocked by the user"}"#;
        assert!(read(403, blocked).unwrap_err().is_final());
        for (status, body) in [(500, "{}"), (502, "<html>"), (200, "no"), (302, ""), (200, r#"{"ok":true}"#)]
        {
            assert!(matches!(read(status, body), Err(ApiError::Lost(_))), "{status} {body}");
        }
        assert!(matches!(read(404, "<html>"), Err(ApiError::Refused { status: 404, .. })));
    }

    #[tokio::test]
    async fn the_token_is_in_no_error() {
        let api = api();
        let error = api.me().await.unwrap_err();
        assert!(matches!(error, ApiError::Unreachable(_)), "{error:?}");
        let echo = format!(r#"{{"ok":false,"description":"no /bot{}/x"}}"#, api.token.expose());
        for words in [
            format!("{error} {error:?}"),
            format!("{api:?}"),
            api.read(400, echo.as_bytes()).unwrap_err().to_string(),
        ] {
            assert!(!words.contains("TEST-token"), "{words}");
        }
        let base = Url::parse("http://h/").unwrap();
        let wrong = Api::new(&base, &Secret::new("42:a/b?c"), &Proxies::default());
        assert_eq!(wrong.unwrap_err().to_string(), "the token of the Telegram bot is invalid");
    }
}
