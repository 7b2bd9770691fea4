//! The HTTP plumbing both transports share: one client, the token, what a status means, bounded bodies and streams.
//!
//! Refuses redirects (they would carry the token elsewhere), proxies (the environment is not read here) and resending
//! (a call that was sent is never sent again). Knows nothing of sessions.

use std::collections::VecDeque;
use std::sync::Arc;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, LOCATION};
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};

use crate::client::Terms;
use crate::error::Error;
use crate::limits::Limits;
use crate::message::{self, ErrorObject, Message, Outcome};
use crate::secret::{Redactor, Secret};
use crate::sse::{End, Event, Parser, SseError};

/// A way to one server.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    client: reqwest::Client,
    authorization: Option<HeaderValue>,
    redactor: Arc<Redactor>,
    limits: Limits,
}

/// What a successful answer carries.
pub(crate) enum Body {
    Json(Response),
    Events(EventStream),
}

impl Link {
    pub(crate) fn new(url: &Url, terms: &Terms) -> Result<Self, Error> {
        let mut builder = reqwest::Client::builder()
            .tcp_nodelay(true)
            .connect_timeout(terms.limits.connect_timeout)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .referer(false);
        if url.scheme() == "http" {
            // Plain HTTP must work on a machine without certificates, and need not load them.
            builder = builder.tls_certs_only([]);
        }
        Ok(Self {
            client: builder.build().map_err(Error::from_http)?,
            authorization: terms.bearer.as_ref().map(authorization).transpose()?,
            redactor: Arc::new(Redactor::new(terms.bearer.as_ref(), url)),
            limits: terms.limits.clone(),
        })
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    pub(crate) fn request(&self, method: Method, url: &Url) -> RequestBuilder {
        let Some(authorization) = &self.authorization else {
            return self.client.request(method, url.clone());
        };
        // A user in the URL would become a second `Authorization` header.
        let mut url = url.clone();
        let _ = url.set_username("");
        let _ = url.set_password(None);
        self.client.request(method, url).header(AUTHORIZATION, authorization.clone())
    }

    /// A POST of one message.
    pub(crate) fn post(&self, url: &Url, text: String) -> Result<RequestBuilder, Error> {
        let max_bytes = self.limits.message_max_bytes;
        if text.len() > max_bytes {
            return Err(Error::TooLarge { what: "the message to send", max_bytes });
        }
        Ok(self.request(Method::POST, url).header(CONTENT_TYPE, "application/json").body(text))
    }

    /// Sends, and lets nothing but success through.
    pub(crate) async fn send(&self, request: RequestBuilder) -> Result<Response, Error> {
        let response = request.send().await.map_err(Error::from_http)?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Err(Error::Unauthorized { status: status.as_u16() });
        }
        if let Some(location) = response.headers().get(LOCATION).filter(|_| status.is_redirection()) {
            let location = String::from_utf8_lossy(location.as_bytes());
            let location = self.redactor.quote_place(response.url(), &location);
            return Err(Error::Redirect { status: status.as_u16(), location });
        }
        Err(Error::Status { status: status.as_u16(), detail: self.detail(response).await })
    }

    /// Tells by its content type what an answer carries.
    pub(crate) fn body(&self, response: Response) -> Result<Body, Error> {
        let given = media_type(&response);
        match given.to_ascii_lowercase().as_str() {
            "application/json" => Ok(Body::Json(response)),
            "text/event-stream" => Ok(Body::Events(EventStream::new(response, &self.limits))),
            _ => Err(Error::ContentType { content_type: self.redactor.quote(&given) }),
        }
    }

    /// Reads a JSON body to its end.
    pub(crate) async fn read_json(&self, response: Response) -> Result<Vec<Message>, Error> {
        let bytes = read_bounded(response, self.limits.message_max_bytes).await?;
        self.messages(&bytes)
    }

    pub(crate) fn messages(&self, bytes: &[u8]) -> Result<Vec<Message>, Error> {
        message::parse_frame(bytes, &self.limits).map_err(Error::Message)
    }

    /// The reason a server gives for a refusal, if it gives one briefly and in plain text or as a JSON-RPC error.
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
        match Message::parse(&bytes, &self.limits) {
            Ok(Message::Response(response)) => match response.outcome {
                Outcome::Error(object) => serde_json::from_str::<ErrorObject>(object.get())
                    .map_or_else(|_| String::new(), |object| self.redactor.quote(&object.message)),
                Outcome::Result(_) => String::new(),
            },
            _ => String::new(),
        }
    }
}

/// Events as they arrive.
pub(crate) struct EventStream {
    response: Response,
    parser: Option<Parser>,
    ready: VecDeque<Event>,
    fault: Option<SseError>,
}

impl EventStream {
    fn new(response: Response, limits: &Limits) -> Self {
        let parser = Some(Parser::new(limits.message_max_bytes));
        Self { response, parser, ready: VecDeque::new(), fault: None }
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
                // What was complete before a fault is handed out first.
                Some(chunk) => self.fault = parser.push(&chunk, &mut self.ready).err(),
                None => match self.parser.take().map(Parser::finish) {
                    Some(End::Truncated) => return Err(Error::Truncated),
                    Some(End::Complete) | None => return Ok(None),
                },
            }
        }
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
