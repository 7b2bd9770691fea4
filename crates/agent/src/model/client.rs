//! Sends one chat request over HTTP: the request, its retries, the stream and the response. Does not follow redirects,
//! which could carry the key elsewhere.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use embody_wire::Url;
use jiff::Timestamp;
use reqwest::header::{
    AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER,
};
use reqwest::{Client, Response};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::chat::{ChatRequest, ChatResponse, StopReason};
use super::errors::{ErrorContext, ErrorResponse, ModelError, TimeoutStage};
use super::names::Names;
use super::response_builder::{ResponseBuilder, StreamState};
use super::retry::{self, FailedAttempt, RetryState};
use super::settings::{FailureLog, ModelSettings, Provider, redacted_url};
use super::stream::{Events, cause, error_body};
use super::text_tool_calls::{StreamSplitter, as_plain_text};
use super::{anthropic, openai};
use crate::event::TurnEvent;

/// An idle connection is kept for the next request of a turn, and not much longer.
const IDLE_CONNECTION: Duration = Duration::from_secs(20);

/// How long to wait for usage figures after a complete response.
const TRAILER_TIMEOUT: Duration = Duration::from_millis(250);

#[derive(Clone)]
pub struct ChatModel(Arc<Inner>);

struct Inner {
    settings: ModelSettings,
    client: Client,
    url: Url,
    headers: HeaderMap,
    context: ErrorContext,
}

type Listener<'a> = &'a mut (dyn FnMut(TurnEvent) + Send);

impl ChatModel {
    /// Builds a client. Sends nothing.
    pub fn new(settings: ModelSettings) -> Result<Self, ModelError> {
        if settings.model.trim().is_empty() {
            return Err(ModelError::Settings { why: "`model` is empty".to_owned() });
        }
        let url = endpoint(&settings)?;
        let headers = headers(&settings)?;
        let builder = Client::builder()
            .tcp_nodelay(true)
            .connect_timeout(settings.times.connect)
            .pool_idle_timeout(IDLE_CONNECTION)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false);
        let client = settings.proxies.apply(builder, &url).build();
        let client = client.map_err(|error| ModelError::Settings { why: cause(&error) })?;
        let context = ErrorContext {
            endpoint: redacted_url(&url),
            model: settings.model.clone(),
            key: settings.api_key.clone(),
            key_source: settings.key_source.clone(),
        };
        Ok(Self(Arc::new(Inner { settings, client, url, headers, context })))
    }

    pub fn name(&self) -> &str {
        &self.0.settings.model
    }

    /// Whether tools are sent beside the prompt; the prompt explains them otherwise.
    pub fn native_tools(&self) -> bool {
        self.0.settings.native_tools
    }

    pub(crate) fn settings(&self) -> &ModelSettings {
        &self.0.settings
    }

    /// Sends a request and reports deltas as they arrive; after an error the caller must discard them. Dropping the
    /// future aborts the request.
    pub async fn complete(
        &self,
        request: ChatRequest<'_>,
        on: Listener<'_>,
    ) -> Result<ChatResponse, ModelError> {
        let total = self.0.settings.times.total;
        let timed_out = |_| ModelError::Timeout {
            endpoint: self.0.context.endpoint.clone(),
            what: TimeoutStage::WholeAnswer,
            after: total,
        };
        timeout(total, self.0.complete(request, on)).await.unwrap_or_else(|elapsed| Err(timed_out(elapsed)))
    }
}

/// A URL may contain a password or a token, which are not shown.
impl fmt::Debug for ChatModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} model `{}` at `{}`",
            self.0.settings.provider.name(),
            self.name(),
            self.0.context.endpoint
        )
    }
}

impl Inner {
    async fn complete(&self, request: ChatRequest<'_>, on: Listener<'_>) -> Result<ChatResponse, ModelError> {
        let names = if self.settings.native_tools { Names::new(request.tools) } else { Names::default() };
        let body = self.body(&request, &names)?;
        let started = Instant::now();
        let mut attempts = 0;
        loop {
            let attempt_started = Instant::now();
            let failed = match self.attempt(body.clone(), &names, on).await {
                Ok(answer) => return Ok(answer),
                Err(failed) => failed,
            };
            attempts += 1;
            let state = RetryState { attempts, elapsed: started.elapsed(), last: attempt_started.elapsed() };
            let dice = getrandom::u32().unwrap_or_default();
            let after = retry::wait(&failed, state, &self.settings.times, dice);
            self.log_failure(attempts, after, &failed.error);
            let Some(after) = after else { return Err(failed.error) };
            let most = self.settings.times.attempts.map(|most| most.saturating_sub(1));
            on(TurnEvent::Waiting { after, retry: attempts, most, reason: failed.error.to_string() });
            sleep(after).await;
        }
    }

    fn log_failure(&self, attempts: u32, retry_after: Option<Duration>, error: &ModelError) {
        let retry_after_ms = retry_after.map(|after| u64::try_from(after.as_millis()).unwrap_or(u64::MAX));
        let reason = embody_text::visible::line(&error.to_string()).into_owned();
        match self.settings.failures {
            FailureLog::Warn => {
                tracing::warn!(attempts, retry_after_ms, reason, "a request to the model failed")
            }
            FailureLog::Debug => {
                tracing::debug!(attempts, retry_after_ms, reason, "a request to the model failed")
            }
        }
    }

    fn body(&self, request: &ChatRequest<'_>, names: &Names) -> Result<Vec<u8>, ModelError> {
        let build = match self.settings.provider {
            Provider::OpenAi => openai::body,
            Provider::Anthropic => anthropic::body,
        };
        if self.settings.native_tools && !request.tools.is_empty() {
            return build(&self.settings, request, names);
        }
        // Providers reject past calls in a request that offers no tools.
        let messages = as_plain_text(request.messages);
        build(&self.settings, &ChatRequest { messages: &messages, tools: &[], ..*request }, names)
    }

    async fn attempt(
        &self,
        body: Vec<u8>,
        names: &Names,
        on: Listener<'_>,
    ) -> Result<ChatResponse, FailedAttempt> {
        let first_due = Instant::now() + self.settings.times.first_byte;
        let response = self.send(body, first_due).await?;
        let mut events = Events::new(response, &self.context, self.settings.times, first_due)?;
        let mut builder = ResponseBuilder::default();
        let mut splitter = (!self.settings.native_tools).then(StreamSplitter::default);
        let read = self.read(&mut events, &mut builder, |delta| emit(delta, splitter.as_mut(), on)).await;
        if let Err(error) = read {
            let is_final = builder.has_begun();
            return Err(FailedAttempt { error, asked_wait: None, is_final });
        }
        builder.finish_text();
        builder.take_deltas().into_iter().for_each(|delta| emit(delta, splitter.as_mut(), on));
        let mut answer = builder.finish()?;
        if let Some(splitter) = &mut splitter {
            let split = splitter.finish();
            splitter.take_deltas().into_iter().for_each(on);
            answer.text = split.text;
            answer.malformed.extend(split.malformed);
            answer.calls.extend(split.calls);
            if answer.stop == StopReason::End && !answer.calls.is_empty() {
                answer.stop = StopReason::Calls;
            }
        }
        for call in &mut answer.calls {
            call.name = names.back(&call.name).to_owned();
        }
        Ok(answer)
    }

    async fn send(&self, body: Vec<u8>, first_due: Instant) -> Result<Response, FailedAttempt> {
        let request = self.client.post(self.url.clone()).headers(self.headers.clone()).body(body);
        let attempt_started = Instant::now();
        let sent = timeout_at(first_due, request.send()).await.map_err(|_| ModelError::Timeout {
            endpoint: self.context.endpoint.clone(),
            what: TimeoutStage::FirstByte,
            after: self.settings.times.first_byte,
        })?;
        let response = sent.map_err(|error| self.send_error(&error, attempt_started.elapsed()))?;
        if response.status().is_success() { Ok(response) } else { Err(self.response_error(response).await) }
    }

    fn send_error(&self, error: &reqwest::Error, waited: Duration) -> ModelError {
        let endpoint = self.context.endpoint.clone();
        let blame = |why| self.settings.proxies.describe_error(&self.url, why);
        let limit = self.settings.times.connect;
        // The operating system has its own timeout, which our settings do not change.
        if error.is_connect() && error.is_timeout() && waited >= limit {
            return ModelError::Unreached { endpoint, why: blame(format!("no connection within {limit:?}")) };
        }
        ModelError::Unavailable { endpoint, why: blame(self.context.quote(&cause(error))) }
    }

    async fn response_error(&self, response: Response) -> FailedAttempt {
        let status = response.status();
        let header = |name: HeaderName| response.headers().get(name).and_then(|value| value.to_str().ok());
        let asked_wait = header(HeaderName::from_static("retry-after-ms"))
            .and_then(|value| value.trim().parse().ok().map(Duration::from_millis))
            .or_else(|| header(RETRY_AFTER).and_then(|value| retry::retry_after(value, Timestamp::now())));
        let is_final = header(HeaderName::from_static("x-should-retry")) == Some("false");
        if let Some(location) = header(LOCATION).filter(|_| status.is_redirection()) {
            let location = self
                .context
                .quote(&self.url.join(location).as_ref().map_or_else(|_| String::new(), redacted_url));
            let message = format!("it redirects to `{location}`; the key is not sent to another address");
            return ModelError::Refused { status: status.as_u16(), message }.into();
        }
        let body = error_body(response).await;
        let error = ErrorResponse { status: status.as_u16(), retry_after: asked_wait, body };
        FailedAttempt { error: self.context.classify(&error), asked_wait, is_final }
    }

    async fn read(
        &self,
        events: &mut Events<'_>,
        builder: &mut ResponseBuilder,
        mut emit: impl FnMut(TurnEvent) + Send,
    ) -> Result<(), ModelError> {
        let fold = match self.settings.provider {
            Provider::OpenAi => openai::fold,
            Provider::Anthropic => anthropic::fold,
        };
        loop {
            let next = events.next();
            let next = if builder.is_whole {
                // Only usage figures can follow, and a server may keep the connection open for ever.
                timeout(TRAILER_TIMEOUT, next).await.unwrap_or(Ok(None))
            } else {
                next.await
            };
            let event = match next {
                Ok(Some(event)) => event,
                Ok(None) => return Ok(()),
                Err(_) if builder.is_whole => return Ok(()),
                Err(error) => return Err(error),
            };
            let is_over = fold(builder, &event, &self.context)? == StreamState::Closed;
            builder.take_deltas().into_iter().for_each(&mut emit);
            if is_over {
                return Ok(());
            }
        }
    }
}

/// Reports a delta; for a model that writes its calls as text, only the text part.
fn emit(delta: TurnEvent, splitter: Option<&mut StreamSplitter>, on: Listener<'_>) {
    match (delta, splitter) {
        (TurnEvent::Text(text), Some(splitter)) => {
            splitter.push(&text);
            splitter.take_deltas().into_iter().for_each(on);
        }
        (delta, _) => on(delta),
    }
}

/// The request URL. Accepts a redundant `/v1`, and a URL that is already complete.
fn endpoint(settings: &ModelSettings) -> Result<Url, ModelError> {
    let wrong = |why: &str| ModelError::Settings {
        why: format!("`base_url` `{}` {why}", redacted_url(&settings.base_url)),
    };
    let mut url = settings.base_url.clone();
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(wrong("is not an http or https URL"));
    }
    if settings.api_key.is_some() {
        // A user in the URL would become a second `Authorization` header.
        let _ = url.set_username("");
        let _ = url.set_password(None);
    }
    let path = url.path().trim_end_matches('/').to_owned();
    let end = match settings.provider {
        Provider::OpenAi if path.ends_with("/chat/completions") => "",
        Provider::OpenAi => "/chat/completions",
        Provider::Anthropic if path.ends_with("/v1/messages") => "",
        Provider::Anthropic if path.ends_with("/v1") => "/messages",
        Provider::Anthropic => "/v1/messages",
    };
    url.set_path(&format!("{path}{end}"));
    Ok(url)
}

fn headers(settings: &ModelSettings) -> Result<HeaderMap, ModelError> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if settings.provider == Provider::Anthropic {
        headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
    }
    if let Some(key) = &settings.api_key {
        let (name, text) = match settings.provider {
            Provider::OpenAi => (AUTHORIZATION, format!("Bearer {}", key.expose())),
            Provider::Anthropic => (HeaderName::from_static("x-api-key"), key.expose().to_owned()),
        };
        let mut value = HeaderValue::from_str(&text).map_err(|_| ModelError::Settings {
            why: "the key contains characters that are not allowed in a header".to_owned(),
        })?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

/// The server's response to the probe. It does not predict the response to a chat request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeResult {
    /// The server returned its list of models.
    Lists,
    /// The server responded with this status: the path may be wrong, or it has no list, or none for this key.
    Answers(u16),
}

impl ChatModel {
    /// Requests the list of models.
    pub async fn probe(&self, within: Duration) -> Result<ProbeResult, ModelError> {
        let inner = &*self.0;
        let timed_out = |_| ModelError::Unavailable {
            endpoint: inner.context.endpoint.clone(),
            why: inner.settings.proxies.describe_error(&inner.url, format!("no answer within {within:?}")),
        };
        let attempt_started = Instant::now();
        let probing = async {
            let request = inner.client.get(list_of(&inner.url)).headers(inner.headers.clone());
            let response =
                request.send().await.map_err(|error| inner.send_error(&error, attempt_started.elapsed()))?;
            match response.status().as_u16() {
                200..=299 => Ok(ProbeResult::Lists),
                300..=399 | 401 | 500..=599 => Err(inner.response_error(response).await.error),
                status => Ok(ProbeResult::Answers(status)),
            }
        };
        timeout(within, probing).await.unwrap_or_else(|elapsed| Err(timed_out(elapsed)))
    }
}

/// The list URL next to the chat URL.
fn list_of(questions: &Url) -> Url {
    let mut url = questions.clone();
    let path = url.path();
    let base = path.strip_suffix("/chat/completions").or_else(|| path.strip_suffix("/messages"));
    let list = format!("{}/models", base.unwrap_or(path));
    url.set_path(&list);
    url
}
