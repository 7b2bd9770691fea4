//! Reads event streams: that of a call until its response, that of the connection for as long as it lasts.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Method;
use reqwest::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue};
use tokio::time::sleep;

use super::Shared;
use crate::error::Error;
use crate::http_client::{Body, EventStream, ResumePoint};
use crate::upstream::calls::MessageSource;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Delay before a stream is resumed, if the server does not send `retry`.
const PAUSE: Duration = Duration::from_secs(1);
/// Bounds on the `retry` delay that a server may ask for.
const PAUSE_LEAST: Duration = Duration::from_millis(50);
const PAUSE_MOST: Duration = Duration::from_secs(30);
/// Consecutive failures before a call's stream is abandoned.
const FAILURES_MOST: u32 = 5;

struct StreamEnd {
    /// Why the stream broke; `None` if it ended normally.
    fault: Option<Error>,
    is_empty: bool,
}

impl Shared {
    /// Reads a call's stream, and resumes it when it breaks, until the response has arrived.
    pub(super) async fn hear_out(
        self: &Arc<Self>,
        mut events: Box<EventStream>,
        number: u64,
    ) -> Result<(), Error> {
        let mut place = ResumePoint::default();
        loop {
            let heard = self.hear_all(&mut events, MessageSource::Call(number)).await;
            if !self.calls.has(number) {
                return Ok(());
            }
            let fault = heard.fault.unwrap_or(Error::NoAnswer);
            place = later(place, events.place());
            if !matches!(fault, Error::NoAnswer | Error::Truncated | Error::Lost(_)) {
                return Err(fault);
            }
            let Some(id) = place.id.as_deref() else { return Err(fault) };
            match self.take_up(id, &place).await {
                Some(taken_up) => events = taken_up,
                // The reason it broke is more useful than the reason it could not be resumed.
                None => return Err(fault),
            }
        }
    }

    async fn take_up(&self, id: &str, place: &ResumePoint) -> Option<Box<EventStream>> {
        for failures in 0..FAILURES_MOST {
            sleep(pause(place, failures)).await;
            match self.get(Some(id)).await {
                Ok(events) => return Some(events),
                Err(error) if is_final(&error) => return None,
                Err(_) => {}
            }
        }
        None
    }

    /// Reads the GET stream until the connection closes or the server turns out to have no such stream.
    pub(super) async fn overhear(self: &Arc<Self>) {
        let (mut place, mut failures) = (ResumePoint::default(), 0_u32);
        loop {
            match self.get(place.id.as_deref()).await {
                Ok(mut events) => {
                    let heard = self.hear_all(&mut events, MessageSource::Apart).await;
                    failures = if heard.is_empty { failures.saturating_add(1) } else { 0 };
                    place = later(place, events.place());
                }
                // The events after that id may be gone while the session still exists.
                Err(error) if is_final(&error) && place.id.is_some() => place.id = None,
                Err(error) if is_final(&error) => return self.note_loss(&error),
                Err(_) => failures = failures.saturating_add(1),
            }
            sleep(pause(&place, failures)).await;
        }
    }

    /// Routes every message until the stream ends or its call is answered.
    async fn hear_all(self: &Arc<Self>, events: &mut EventStream, stream: MessageSource) -> StreamEnd {
        let mut is_empty = true;
        let fault = loop {
            let event = match events.next().await {
                Ok(Some(event)) => event,
                Ok(None) => break None,
                Err(error) => break Some(error),
            };
            is_empty = false;
            // An event without data only marks a point to resume from.
            if event.name != "message" || event.data.is_empty() {
                continue;
            }
            match self.client.messages(event.data.as_bytes()) {
                Ok(messages) => {
                    for message in messages {
                        self.hear(message, stream);
                    }
                }
                // On the stream of a call, the unreadable message may have been the response.
                Err(error) if stream != MessageSource::Apart => break Some(error),
                Err(_) => {}
            }
            if matches!(stream, MessageSource::Call(number) if !self.calls.has(number)) {
                break None;
            }
        };
        StreamEnd { fault, is_empty }
    }

    async fn get(&self, last: Option<&str>) -> Result<Box<EventStream>, Error> {
        let mut headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("text/event-stream"))]);
        if let Some(last) = last {
            let id = HeaderValue::from_bytes(last.as_bytes())
                .map_err(|_| Error::Protocol("the id of an event cannot stand in a header"))?;
            headers.insert(LAST_EVENT_ID, id);
        }
        // Some servers send no headers before their first event.
        match self.client.body(self.ask(Method::GET, headers, None, None).await?)? {
            Body::Events(events) => Ok(events),
            Body::Json(_) => Err(Error::ContentType { content_type: "application/json".to_owned() }),
        }
    }
}

/// Merges resume points: a resumed stream may not send an event id of its own.
fn later(before: ResumePoint, after: &ResumePoint) -> ResumePoint {
    ResumePoint { id: after.id.clone().or(before.id), retry: after.retry.or(before.retry) }
}

fn pause(place: &ResumePoint, failures: u32) -> Duration {
    let pause = place.retry.unwrap_or(PAUSE).clamp(PAUSE_LEAST, PAUSE_MOST);
    pause.saturating_mul(1 << failures.min(5)).min(PAUSE_MOST)
}

fn is_final(error: &Error) -> bool {
    match error {
        Error::Unreachable(_) | Error::Proxy { .. } | Error::Lost(_) => false,
        Error::Timeout { .. } | Error::NoToken { .. } => false,
        Error::Unauthorized { status } => *status != 401,
        // A server that allows one stream may not have noticed that the last one broke.
        Error::Status { status, .. } => !matches!(status, 408 | 409 | 429 | 500 | 502..=599),
        _ => true,
    }
}
