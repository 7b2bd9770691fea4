//! Reads the body of a response as events, within timeouts and limits. Independent of the wire format.

use std::collections::VecDeque;
use std::error::Error;
use std::time::Duration;

use embody_wire::sse::{Event, Parser};
use reqwest::Response;
use reqwest::header::CONTENT_TYPE;
use tokio::time::{Instant, timeout, timeout_at};

use super::errors::{ErrorContext, ModelError, TimeoutStage};
use super::settings::ModelTimes;

/// Twice the arguments of a call: JSON escaped within JSON is longer.
const EVENT_MAX_BYTES: usize = 2 * super::response_builder::ARGUMENTS_MAX_BYTES;
/// A response that comes as one JSON text, with its envelope.
const JSON_BODY_MAX_BYTES: usize = 2 * super::response_builder::ANSWER_MAX_BYTES;
/// All bytes of one response, including reasoning and framing.
const STREAM_MAX_BYTES: usize = 256 * 1024 * 1024;
/// Limits for reading an error body, in bytes and in time.
const REFUSAL_MAX_BYTES: usize = 64 * 1024;
const REFUSAL_TIME: Duration = Duration::from_secs(5);

pub(super) struct Events<'a> {
    response: Response,
    context: &'a ErrorContext,
    times: ModelTimes,
    /// When the first byte is due; `None` once it has arrived.
    first_due: Option<Instant>,
    parser: Parser,
    ready: VecDeque<Event>,
    fault: Option<ModelError>,
    read_bytes: usize,
    /// A server may answer with one JSON text although a stream was requested: it becomes one event.
    whole: Option<Vec<u8>>,
}

impl<'a> Events<'a> {
    pub(super) fn new(
        response: Response,
        context: &'a ErrorContext,
        times: ModelTimes,
        first_due: Instant,
    ) -> Result<Self, ModelError> {
        let media = response.headers().get(CONTENT_TYPE).map_or("", |value| value.to_str().unwrap_or("?"));
        let media = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let whole = match media.as_str() {
            "" | "text/event-stream" => None,
            "application/json" => Some(Vec::new()),
            _ => {
                let why = format!("its content type is `{}`, not an event stream", context.quote(&media));
                return Err(ModelError::broken(why));
            }
        };
        Ok(Self {
            response,
            context,
            times,
            first_due: Some(first_due),
            parser: Parser::new(EVENT_MAX_BYTES),
            ready: VecDeque::new(),
            fault: None,
            read_bytes: 0,
            whole,
        })
    }

    /// The next event; `None` at the end of the body.
    pub(super) async fn next(&mut self) -> Result<Option<Event>, ModelError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            // Events that were complete before a fault are returned first.
            if let Some(fault) = self.fault.take() {
                return Err(fault);
            }
            let (due, what, after) = match self.first_due.take() {
                Some(due) => (due, TimeoutStage::FirstByte, self.times.first_byte),
                None => (Instant::now() + self.times.idle, TimeoutStage::FurtherByte, self.times.idle),
            };
            let late = |_| ModelError::Timeout { endpoint: self.context.endpoint.clone(), what, after };
            let read = timeout_at(due, self.response.chunk()).await.map_err(late)?;
            let cut = |error| ModelError::broken(format!("the stream was cut off ({})", cause(&error)));
            let Some(chunk) = read.map_err(cut)? else {
                return self.whole.take().map(|bytes| whole_event(&bytes)).transpose();
            };
            self.take(&chunk)?;
        }
    }

    fn take(&mut self, chunk: &[u8]) -> Result<(), ModelError> {
        self.read_bytes += chunk.len();
        if self.read_bytes > STREAM_MAX_BYTES {
            return Err(ModelError::broken(format!("the stream is longer than {STREAM_MAX_BYTES} bytes")));
        }
        match &mut self.whole {
            None => {
                let pushed = self.parser.push(chunk, &mut self.ready);
                self.fault = pushed.err().map(|error| ModelError::broken(error.to_string()));
            }
            Some(whole) if whole.len() + chunk.len() > JSON_BODY_MAX_BYTES => {
                return Err(ModelError::broken(format!(
                    "the answer is longer than {JSON_BODY_MAX_BYTES} bytes"
                )));
            }
            Some(whole) => whole.extend_from_slice(chunk),
        }
        Ok(())
    }
}

fn whole_event(bytes: &[u8]) -> Result<Event, ModelError> {
    let data = std::str::from_utf8(bytes).map_err(|_| ModelError::broken("the answer is not UTF-8"))?;
    Ok(Event { name: "message".to_owned(), data: data.to_owned(), id: None })
}

/// Reads an error body, as far as it arrives in time.
pub(super) async fn error_body(mut response: Response) -> String {
    let mut body = Vec::new();
    let reading = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            let room = REFUSAL_MAX_BYTES - body.len();
            body.extend(chunk.iter().take(room));
            if chunk.len() >= room {
                break;
            }
        }
    };
    // A partial body is good enough.
    let _ = timeout(REFUSAL_TIME, reading).await;
    String::from_utf8_lossy(&body).into_owned()
}

/// The innermost cause, which is the informative one; it contains no URL.
pub fn cause(error: &reqwest::Error) -> String {
    let mut text = "the request could not be made".to_owned();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = inner.to_string();
        cause = inner.source();
    }
    text
}
