//! The JSON-RPC 2.0 envelope: parsing, printing and ids; payloads stay raw text. Rejects text that is too long, too deeply
//! nested, or not exactly one request, notification (`notifications/*`) or response. Unknown envelope fields are ignored, and
//! the last of repeated fields counts. Does not panic on any input.

mod envelope;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::blocking::off_runtime;
use crate::error::Error;
use crate::limits::Limits;
use crate::secret::Redactor;
use envelope::Envelope;

#[derive(Debug, Clone)]
pub enum Message {
    Request(Request),
    Notification(Notification),
    Response(Response),
}

/// The id of a request: a JSON number or string, kept exactly as written. Two ids are equal if they are the same string after
/// unescaping, or the same number text: `1` and `1.0` differ.
#[derive(Clone)]
pub struct Id {
    json: Arc<str>,
    /// Present only when the text has escapes, so that the usual id needs one allocation.
    unescaped: Option<Box<str>>,
}

impl Id {
    /// The id as on the wire, including quotes.
    #[must_use]
    pub fn as_json(&self) -> &str {
        &self.json
    }

    /// Parses the JSON text of an id; `None` when it is neither a number nor a string.
    pub(crate) fn from_json(json: &str) -> Option<Self> {
        match json.as_bytes().first()? {
            b'"' if json.contains('\\') => {
                let unescaped: String = serde_json::from_str(json).ok()?;
                Some(Self { json: json.into(), unescaped: Some(unescaped.into()) })
            }
            b'"' | b'-' | b'0'..=b'9' => Some(Self { json: json.into(), unescaped: None }),
            _ => None,
        }
    }

    fn key(&self) -> (bool, &str) {
        let quoted = self.json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        match (&self.unescaped, quoted) {
            (Some(text), _) => (true, text),
            (None, Some(text)) => (true, text),
            (None, None) => (false, &self.json),
        }
    }
}

impl From<u64> for Id {
    fn from(number: u64) -> Self {
        Self { json: number.to_string().into(), unescaped: None }
    }
}

impl From<&str> for Id {
    fn from(text: &str) -> Self {
        let json = Value::from(text).to_string();
        let unescaped = json.contains('\\').then(|| text.into());
        Self { json: json.into(), unescaped }
    }
}

impl PartialEq for Id {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Id {}

impl Hash for Id {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Id({})", self.json)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.json)
    }
}

#[derive(Debug, Clone)]
pub struct Request {
    pub id: Id,
    pub method: String,
    /// The raw parameters; `None` if the member is absent.
    pub params: Option<Box<RawValue>>,
}

#[derive(Debug, Clone)]
pub struct Notification {
    pub method: String,
    /// The raw parameters; `None` if the member is absent.
    pub params: Option<Box<RawValue>>,
}

/// Whether a message with this method may lack an id: MCP has no other notifications. Applies to inbound and outbound
/// messages.
#[must_use]
pub(crate) fn is_notification(method: &str) -> bool {
    method.starts_with("notifications/")
}

#[derive(Debug, Clone)]
pub struct Response {
    /// The request's id; `None` (`null` on the wire) only in an error about a request that could not be read.
    pub id: Option<Id>,
    pub outcome: Outcome,
}

#[derive(Debug, Clone)]
pub enum Outcome {
    /// The raw `result` member.
    Result(Box<RawValue>),
    /// The raw `error` member.
    Error(Box<RawValue>),
}

/// The readable members of an `error` object.
#[derive(Debug, Clone, Deserialize)]
pub struct ErrorObject {
    pub code: i64,
    #[serde(default)]
    pub message: String,
}

#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    #[error("a message is longer than {max_bytes} bytes")]
    TooLong { max_bytes: usize },
    #[error("a message is nested deeper than {max_depth} levels")]
    TooDeep { max_depth: usize },
    #[error("a batch has more than {max_messages} messages")]
    BatchTooLong { max_messages: usize },
    /// A batch where a single message is expected.
    #[error("expected one message, not a batch")]
    Batch,
    #[error("a message is not JSON")]
    NotJson(#[source] serde_json::Error),
    /// JSON, but not a JSON-RPC 2.0 message.
    #[error("not a JSON-RPC 2.0 message: {0}")]
    Malformed(&'static str),
}

/// Parses a body, line or event: a message, or a batch of messages (valid only in 2025-03-26, but accepted).
///
/// # Errors
/// When the text exceeds a limit or any part of it is not a message.
pub fn parse_frame(bytes: &[u8], limits: &Limits) -> Result<Vec<Message>, MessageError> {
    off_runtime(bytes.len(), || {
        check_bounds(bytes, limits)?;
        if first_byte(bytes) != Some(b'[') {
            return Ok(vec![envelope::read(bytes)?]);
        }
        let parts: Vec<&RawValue> = serde_json::from_slice(bytes).map_err(MessageError::NotJson)?;
        if parts.is_empty() {
            return Err(MessageError::Malformed("the batch is empty"));
        }
        if parts.len() > limits.batch_max {
            return Err(MessageError::BatchTooLong { max_messages: limits.batch_max });
        }
        parts.into_iter().map(|part| envelope::read(part.get().as_bytes())).collect()
    })
}

impl Message {
    /// Parses exactly one message; rejects a batch.
    ///
    /// # Errors
    /// When the text exceeds a limit, is a batch, or is not a message.
    pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Self, MessageError> {
        off_runtime(bytes.len(), || {
            check_bounds(bytes, limits)?;
            if first_byte(bytes) == Some(b'[') {
                return Err(MessageError::Batch);
            }
            envelope::read(bytes)
        })
    }

    /// The message as JSON text. Payloads are inserted unchanged, including their line breaks.
    #[must_use]
    pub fn print(&self) -> String {
        match self {
            Self::Request(request) => request.print(),
            Self::Notification(notification) => notification.print(),
            Self::Response(response) => response.print(),
        }
    }
}

impl Request {
    #[must_use]
    pub fn print(&self) -> String {
        Envelope {
            id: Some(self.id.as_json()),
            method: Some(&self.method),
            params: self.params.as_deref(),
            outcome: None,
        }
        .print()
    }
}

impl Notification {
    #[must_use]
    pub fn print(&self) -> String {
        Envelope { id: None, method: Some(&self.method), params: self.params.as_deref(), outcome: None }
            .print()
    }
}

impl Outcome {
    /// The result, or the error response as an [`Error`].
    pub(crate) fn into_result(self, redactor: &Redactor) -> Result<Box<RawValue>, Error> {
        let object = match self {
            Self::Result(result) => return Ok(result),
            Self::Error(object) => object,
        };
        match serde_json::from_str::<ErrorObject>(object.get()) {
            Ok(ErrorObject { code, message }) => Err(Error::Rpc { code, message: redactor.quote(&message) }),
            Err(_) => Err(Error::Protocol("the server answered with an error that has no code")),
        }
    }
}

impl Response {
    #[must_use]
    pub fn success(id: Id, result: Box<RawValue>) -> Self {
        Self { id: Some(id), outcome: Outcome::Result(result) }
    }

    #[must_use]
    pub fn failure(id: Id, code: i64, message: &str) -> Self {
        let object = format!(r#"{{"code":{code},"message":{}}}"#, Value::from(message));
        // The text above is JSON by construction; `null` would still be a readable error.
        let object = RawValue::from_string(object).unwrap_or_else(|_| RawValue::NULL.to_owned());
        Self { id: Some(id), outcome: Outcome::Error(object) }
    }

    #[must_use]
    pub fn print(&self) -> String {
        let id = self.id.as_ref().map_or("null", Id::as_json);
        Envelope { id: Some(id), method: None, params: None, outcome: Some(&self.outcome) }.print()
    }
}

/// The id of a text that is not a valid message, for the error response.
pub(crate) fn find_id(bytes: &[u8]) -> Option<Id> {
    envelope::find_id(bytes)
}

/// Whether a payload can contain a member of this name, at any depth: a cheap check that avoids parsing most payloads.
/// The name must consist of ASCII letters. An escape could spell any name, so a payload with escapes always passes.
#[must_use]
pub fn may_contain(payload: &RawValue, name: &str) -> bool {
    payload.get().as_bytes().contains(&b'\\') || payload.get().contains(name)
}

/// The members of an object. An array is rejected, although serde would accept its items as members.
pub(crate) fn members<'a, T: Deserialize<'a>>(payload: &'a RawValue) -> Option<T> {
    payload.get().starts_with('{').then(|| serde_json::from_str(payload.get()).ok()).flatten()
}

fn check_bounds(bytes: &[u8], limits: &Limits) -> Result<(), MessageError> {
    if bytes.len() > limits.message_max_bytes {
        return Err(MessageError::TooLong { max_bytes: limits.message_max_bytes });
    }
    if is_deeper_than(bytes, limits.depth_max) {
        return Err(MessageError::TooDeep { max_depth: limits.depth_max });
    }
    Ok(())
}

/// Raw payloads are skipped, not built, so the JSON parser never counts their depth.
fn is_deeper_than(bytes: &[u8], max: usize) -> bool {
    // Most messages have fewer brackets than that, inside and outside strings: no need to distinguish.
    if bytes.iter().filter(|byte| matches!(byte, b'{' | b'[')).count() <= max {
        return false;
    }
    let mut depth = 0_usize;
    let mut rest = bytes.iter();
    while let Some(byte) = rest.next() {
        match byte {
            b'"' => skip_string(&mut rest),
            b'{' | b'[' => {
                depth += 1;
                if depth > max {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// Skips to the end of the current string, or to the end of the text.
fn skip_string(rest: &mut std::slice::Iter<'_, u8>) {
    while let Some(end) = memchr::memchr2(b'"', b'\\', rest.as_slice()) {
        if rest.nth(end) == Some(&b'"') {
            return;
        }
        // An escaped character does not end the string.
        rest.next();
    }
    *rest = [].iter();
}

fn first_byte(bytes: &[u8]) -> Option<u8> {
    bytes.iter().copied().find(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
}

#[cfg(test)]
mod tests;
