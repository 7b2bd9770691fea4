//! The HTTP client that both transports share: the token, the meaning of a status, bounded bodies and streams. Does not
//! follow redirects (they would carry the token elsewhere) and does not resend: a message is sent once, and once more only if
//! it was rejected because of its token. Has no knowledge of sessions.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use reqwest::{Method, Response, StatusCode, Url};

use crate::error::Error;
use crate::limits::Limits;
use crate::message::{self, ErrorObject, Message, Outcome};
use crate::proxies::Proxies;
use crate::secret::{Redactor, Secret, bare_url};
use crate::send_receipt::{MessageBody, SendNotifier};
use crate::sse::{End, Event, Parser, SseError};
use crate::upstream::{ConnectOptions, Freshness, TokenSource, is_web};

/// An idle connection is not reused after this time: many servers close theirs after five seconds, and a call that is
/// sent on a closing connection is lost.
const IDLE: Duration = Duration::from_secs(3);

#[derive(Debug, Clone)]
pub(crate) struct HttpClient {
    client: reqwest::Client,
    proxies: Proxies,
    tokens: Option<TokenSource>,
    redactor: Arc<Redactor>,
    limits: Limits,
}

pub(crate) struct HttpRequest<'a> {
    pub(crate) method: Method,
    pub(crate) url: &'a Url,
    pub(crate) headers: HeaderMap,
    pub(crate) text: Option<Bytes>,
    pub(crate) sent: Option<SendNotifier>,
    /// Whether an error status may carry the response: in the stateless era some errors have their own status.
    pub(crate) reads_error_body: bool,
}

pub(crate) enum Body {
    Json(Response),
    Events(Box<EventStream>),
}

impl HttpClient {
    pub(crate) fn new(url: &Url, options: &ConnectOptions) -> Result<Self, Error> {
        if !is_web(url) {
            return Err(Error::Url { url: bare_url(url) });
        }
        let (proxies, tokens, limits) =
            (options.proxies.clone(), options.tokens.clone(), options.limits.clone());
        let builder = reqwest::Client::builder()
            .tcp_nodelay(true)
            .connect_timeout(limits.connect_timeout)
            .pool_idle_timeout(IDLE)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false);
        let client = proxies.apply(builder, url).build().map_err(Error::from_http)?;
        Ok(Self { client, proxies, tokens, redactor: Arc::new(Redactor::new(url)), limits })
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn redactor(&self) -> Arc<Redactor> {
        Arc::clone(&self.redactor)
    }

    /// Sends a request. Returns success responses, and error responses that may carry the message.
    pub(crate) async fn send(&self, request: HttpRequest<'_>) -> Result<Response, Error> {
        let max_bytes = self.limits.message_max_bytes;
        if request.text.as_ref().is_some_and(|text| text.len() > max_bytes) {
            return Err(Error::TooLarge { what: "the message to send", max_bytes });
        }
        let token = self.token(Freshness::Any).await?;
        let mut response = self.send_with(&request, token.as_ref()).await?;
        // A rejected request was not executed, so it may be sent again.
        if response.status() == StatusCode::UNAUTHORIZED
            && let Some(refused) = token
            && let Some(other) = self.other_token(&refused).await?
        {
            response = self.send_with(&request, Some(&other)).await?;
        }
        let is_json = || media_type(&response).eq_ignore_ascii_case("application/json");
        let is_error = matches!(response.status(), StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND);
        if request.reads_error_body && is_error && is_json() {
            return Ok(response);
        }
        self.check_status(response).await
    }

    async fn send_with(&self, request: &HttpRequest<'_>, token: Option<&Secret>) -> Result<Response, Error> {
        let mut url = request.url.clone();
        let mut headers = request.headers.clone();
        if let Some(token) = token {
            headers.insert(AUTHORIZATION, authorization(token)?);
            // A user in the URL would become a second `Authorization` header.
            let _ = url.set_username("");
            let _ = url.set_password(None);
        }
        let mut builder = self.client.request(request.method.clone(), url).headers(headers);
        if let Some(text) = &request.text {
            let body = MessageBody::new(text.clone(), request.sent.clone());
            builder = builder.header(CONTENT_TYPE, "application/json").body(reqwest::Body::wrap(body));
        }
        let failed = |error| Error::from_http(error).through(self.proxies.proxy_for(request.url));
        builder.send().await.map_err(failed)
    }

    async fn token(&self, fresh: Freshness) -> Result<Option<Secret>, Error> {
        let Some(tokens) = &self.tokens else { return Ok(None) };
        let limit = self.limits.request_timeout;
        let token = tokio::time::timeout(limit, tokens.fetch(fresh))
            .await
            .map_err(|_| Error::timeout("the token", limit))?
            .map_err(|reason| Error::NoToken { reason: self.redactor.quote(&reason) })?;
        self.redactor.learn(&token);
        Ok(Some(token))
    }

    /// A token other than the rejected one, if the source has one.
    async fn other_token(&self, refused: &Secret) -> Result<Option<Secret>, Error> {
        let is_other = |token: &Secret| token.expose() != refused.expose();
        // Another message may have met the same rejection first.
        if let Some(token) = self.token(Freshness::Any).await?.filter(is_other) {
            return Ok(Some(token));
        }
        Ok(self.token(Freshness::New).await?.filter(is_other))
    }

    async fn check_status(&self, response: Response) -> Result<Response, Error> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Err(Error::Unauthorized { status: status.as_u16() });
        }
        if let Some(location) = response.headers().get(LOCATION).filter(|_| status.is_redirection()) {
            let location = String::from_utf8_lossy(location.as_bytes());
            let location = self.redactor.quote_url(response.url(), &location);
            return Err(Error::Redirect { status: status.as_u16(), location });
        }
        Err(Error::Status { status: status.as_u16(), detail: self.detail(response).await })
    }

    /// Classifies a response by its content type.
    pub(crate) fn body(&self, response: Response) -> Result<Body, Error> {
        let given = media_type(&response);
        match given.to_ascii_lowercase().as_str() {
            "application/json" => Ok(Body::Json(response)),
            "text/event-stream" => Ok(Body::Events(Box::new(EventStream::new(response, &self.limits)))),
            _ => Err(Error::ContentType { content_type: self.redactor.quote(&given) }),
        }
    }

    pub(crate) async fn read_json(&self, response: Response) -> Result<Vec<Message>, Error> {
        let bytes = read_bounded(response, self.limits.message_max_bytes).await?;
        self.messages(&bytes)
    }

    pub(crate) fn messages(&self, bytes: &[u8]) -> Result<Vec<Message>, Error> {
        message::parse_frame(bytes, &self.limits).map_err(Error::Message)
    }

    /// The reason a server gives for a rejection, if it is short plain text or a JSON-RPC error.
    async fn detail(&self, response: Response) -> String {
        const MAX_BYTES: usize = 8 * 1024;
        let is_json = match media_type(&response).to_ascii_lowercase().as_str() {
            "application/json" => true,
            "text/plain" => false,
            _ => return String::new(),
        };
        let reading = tokio::time::timeout(self.limits.courtesy_timeout, read_bounded(response, MAX_BYTES));
        let Ok(Ok(bytes)) = reading.await else { return String::new() };
        if !is_json {
            return self.redactor.quote(&String::from_utf8_lossy(&bytes));
        }
        Message::parse(&bytes, &self.limits).map_or_else(|_| String::new(), |message| self.reason(&message))
    }

    /// The message of an error response; empty for any other message.
    pub(crate) fn reason(&self, message: &Message) -> String {
        let Message::Response(message::Response { outcome: Outcome::Error(object), .. }) = message else {
            return String::new();
        };
        serde_json::from_str::<ErrorObject>(object.get())
            .map_or_else(|_| String::new(), |object| self.redactor.quote(&object.message))
    }
}

pub(crate) struct EventStream {
    response: Response,
    parser: Option<Parser>,
    ready: VecDeque<Event>,
    fault: Option<SseError>,
    place: ResumePoint,
}

/// The point from which a stream is resumed.
#[derive(Debug, Clone, Default)]
pub(crate) struct ResumePoint {
    /// The id of the last complete event.
    pub(crate) id: Option<Arc<str>>,
    /// The delay that the server asks for.
    pub(crate) retry: Option<Duration>,
}

impl EventStream {
    fn new(response: Response, limits: &Limits) -> Self {
        let parser = Some(Parser::new(limits.message_max_bytes));
        Self { response, parser, ready: VecDeque::new(), fault: None, place: ResumePoint::default() }
    }

    /// The next event; `None` when the stream has ended between events.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, Error> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            if let Some(fault) = self.fault {
                return Err(Error::Sse(fault));
            }
            let Some(parser) = &mut self.parser else { return Ok(None) };
            match self.response.chunk().await.map_err(Error::from_http)? {
                // Events that were complete before a fault are returned first.
                Some(chunk) => {
                    self.fault = parser.push(&chunk, &mut self.ready).err();
                    self.place = ResumePoint { id: parser.last_id(), retry: parser.retry() };
                }
                None => match self.parser.take().map(Parser::finish) {
                    Some(End::Truncated) => return Err(Error::Truncated),
                    Some(End::Complete) | None => return Ok(None),
                },
            }
        }
    }
}

impl EventStream {
    /// Where to resume once all received events are read.
    pub(crate) fn resume_point(&self) -> &ResumePoint {
        &self.place
    }
}

fn authorization(bearer: &Secret) -> Result<HeaderValue, Error> {
    let text = format!("Bearer {}", bearer.expose());
    let mut value = HeaderValue::from_str(&text).map_err(|_| Error::Token)?;
    value.set_sensitive(true);
    Ok(value)
}

fn media_type(response: &Response) -> String {
    let value = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let text = String::from_utf8_lossy(value);
    text.split(';').next().unwrap_or_default().trim().to_owned()
}

async fn read_bounded(mut response: Response, max_bytes: usize) -> Result<Vec<u8>, Error> {
    let too_large = || Error::TooLarge { what: "the answer", max_bytes };
    if response.content_length().is_some_and(|length| length > max_bytes as u64) {
        return Err(too_large());
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(Error::from_http)? {
        if body.len() + chunk.len() > max_bytes {
            return Err(too_large());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
