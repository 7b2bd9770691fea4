//! Streamable HTTP, client side: every message is a POST; the answer is a JSON body or an event stream.
//!
//! Owns the session header. Opens no GET stream and resumes none: a stream that ends without the answer is an error.

use reqwest::header::{ACCEPT, HeaderValue};
use reqwest::{Method, RequestBuilder, Url};

use crate::error::Error;
use crate::inbound::Inbound;
use crate::link::{Body, EventStream, Link};
use crate::message::{Id, Message, Request, Response};
use crate::version::Version;

const SESSION_ID: &str = "mcp-session-id";
const PROTOCOL_VERSION: &str = "mcp-protocol-version";
const SESSION_ID_MAX_BYTES: usize = 1024;

/// One streamable HTTP connection, with its session once the server has given one.
pub(crate) struct Http {
    link: Link,
    url: Url,
    inbound: Inbound,
    session: Option<HeaderValue>,
    version: Option<Version>,
}

impl Http {
    pub(crate) fn new(link: Link, url: Url, inbound: Inbound) -> Self {
        Self { link, url, inbound, session: None, version: None }
    }

    /// Sends `initialize` and keeps the session the server opens with it.
    pub(crate) async fn initialize(&mut self, request: &Request) -> Result<Response, Error> {
        let http = self.post(request.print()).await?;
        if let Some(value) = http.headers().get(SESSION_ID) {
            self.session = Some(session_id(value)?);
        }
        self.answer(http, &request.id).await
    }

    /// Fixes the version every later message names.
    pub(crate) fn agree(&mut self, version: Version) {
        self.version = Some(version);
    }

    pub(crate) async fn exchange(&self, request: &Request) -> Result<Response, Error> {
        let http = self.post(request.print()).await?;
        self.answer(http, &request.id).await
    }

    /// Sends a message that has no answer.
    pub(crate) async fn send(&self, text: String) -> Result<(), Error> {
        self.post(text).await.map(drop)
    }

    /// Ends the session, if there is one. A server that cannot is not asked twice.
    pub(crate) async fn close(self) {
        if self.session.is_some() {
            let request = self.dress(self.link.request(Method::DELETE, &self.url));
            let _ = tokio::time::timeout(self.link.limits().courtesy_timeout, request.send()).await;
        }
    }

    async fn post(&self, text: String) -> Result<reqwest::Response, Error> {
        let request = self.dress(self.link.post(&self.url, text)?);
        let sent = self.link.send(request.header(ACCEPT, "application/json, text/event-stream")).await;
        match sent {
            Err(Error::Status { status: 404, .. }) if self.session.is_some() => Err(Error::SessionLost),
            sent => sent,
        }
    }

    fn dress(&self, mut request: RequestBuilder) -> RequestBuilder {
        if let Some(session) = &self.session {
            request = request.header(SESSION_ID, session.clone());
        }
        if let Some(version) = self.version {
            request = request.header(PROTOCOL_VERSION, version.as_str());
        }
        request
    }

    async fn answer(&self, http: reqwest::Response, id: &Id) -> Result<Response, Error> {
        if http.status() == reqwest::StatusCode::ACCEPTED {
            return Err(Error::NoAnswer);
        }
        match self.link.body(http)? {
            Body::Json(http) => {
                let messages = self.link.read_json(http).await?;
                self.sift(messages, id).await.ok_or(Error::NoAnswer)
            }
            Body::Events(events) => self.read_events(events, id).await,
        }
    }

    async fn read_events(&self, mut events: EventStream, id: &Id) -> Result<Response, Error> {
        while let Some(event) = events.next().await? {
            // An event without data only marks a place to resume from.
            if event.name != "message" || event.data.is_empty() {
                continue;
            }
            let messages = self.link.messages(event.data.as_bytes())?;
            if let Some(response) = self.sift(messages, id).await {
                return Ok(response);
            }
        }
        Err(Error::NoAnswer)
    }

    /// Deals with all messages in order and keeps the awaited answer.
    async fn sift(&self, messages: Vec<Message>, id: &Id) -> Option<Response> {
        let mut answer = None;
        for message in messages {
            match message {
                // An error without an id can only be about the one request this exchange carried.
                Message::Response(response) if response.id.as_ref().is_none_or(|given| given == id) => {
                    answer = Some(response);
                }
                message => {
                    if let Some(reply) = self.inbound.take(message).await {
                        let limit = self.link.limits().courtesy_timeout;
                        // The server learns of a lost reply by its own time limit; our call goes on.
                        let _ = tokio::time::timeout(limit, self.send(reply.print())).await;
                    }
                }
            }
        }
        answer
    }
}

fn session_id(value: &HeaderValue) -> Result<HeaderValue, Error> {
    let bytes = value.as_bytes();
    if bytes.is_empty() || bytes.len() > SESSION_ID_MAX_BYTES || !bytes.iter().all(u8::is_ascii_graphic) {
        return Err(Error::Protocol("the server's session id is empty, too long or not visible ASCII"));
    }
    let mut value = value.clone();
    value.set_sensitive(true);
    Ok(value)
}
