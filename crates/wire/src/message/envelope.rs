//! Parses the members of a JSON-RPC object and classifies the message. The parent module enforces the limits.
//!
//! Hand-written because a derived deserializer rejects a repeated member and turns a `null` result into `None`.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{
    Id, Message, MessageError, Notification, Outcome, Request, Response, first_byte, is_notification,
};

pub(super) fn read(bytes: &[u8]) -> Result<Message, MessageError> {
    // Checked here because the JSON parser's own error would quote the value.
    match first_byte(bytes) {
        Some(b'{') => {}
        Some(b'[') => return Err(MessageError::Batch),
        _ => return Err(MessageError::Malformed("it is not an object")),
    }
    // Validated once as a whole; for invalid UTF-8 the JSON parser reports the position.
    let members = match std::str::from_utf8(bytes) {
        Ok(text) => serde_json::from_str::<Members<'_>>(text),
        // The parser skips parts that it does not need to look at.
        Err(no_text) => serde_json::from_slice::<Members<'_>>(bytes)
            .and_then(|_| Err(<serde_json::Error as serde::de::Error>::custom(no_text))),
    };
    let members = members.map_err(MessageError::NotJson)?;
    members.into_message()
}

/// The id of a text that cannot be parsed as a whole, if it comes before the error.
pub(super) fn find_id(bytes: &[u8]) -> Option<Id> {
    let found = Cell::new(None);
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    // This usually fails; the members seen until then count.
    let _ = reader.deserialize_map(IdVisitor(&found));
    found.take()
}

struct IdVisitor<'a>(&'a Cell<Option<Id>>);

impl<'de> Visitor<'de> for IdVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON-RPC object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<Name>()? {
            match name {
                Name::Id => self.0.set(Id::from_json(map.next_value::<&RawValue>()?.get())),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

pub(super) struct Envelope<'a> {
    pub(super) id: Option<&'a str>,
    pub(super) method: Option<&'a str>,
    pub(super) params: Option<&'a RawValue>,
    pub(super) outcome: Option<&'a Outcome>,
}

impl Envelope<'_> {
    pub(super) fn print(&self) -> String {
        let (name, payload) = match self.outcome {
            Some(Outcome::Result(result)) => ("result", Some(&**result)),
            Some(Outcome::Error(error)) => ("error", Some(&**error)),
            None => ("params", self.params),
        };
        let mut text = String::with_capacity(96 + payload.map_or(0, |raw| raw.get().len()));
        text.push_str(r#"{"jsonrpc":"2.0""#);
        if let Some(id) = self.id {
            text.push_str(r#","id":"#);
            text.push_str(id);
        }
        if let Some(method) = self.method {
            text.push_str(r#","method":"#);
            if method.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'_' | b'-')) {
                text.push('"');
                text.push_str(method);
                text.push('"');
            } else {
                text.push_str(&Value::from(method).to_string());
            }
        }
        if let Some(payload) = payload {
            text.push_str(r#",""#);
            text.push_str(name);
            text.push_str(r#"":"#);
            text.push_str(payload.get());
        }
        text.push('}');
        text
    }
}

#[derive(Default)]
struct Members<'a> {
    jsonrpc: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

impl Members<'_> {
    fn into_message(self) -> Result<Message, MessageError> {
        let is_jsonrpc = |raw: &RawValue| raw.get() == r#""2.0""# || text(raw).as_deref() == Some("2.0");
        if !self.jsonrpc.is_some_and(is_jsonrpc) {
            return Err(MessageError::Malformed("`jsonrpc` is not \"2.0\""));
        }
        let Some(method) = self.method else { return self.into_response() };
        if self.result.is_some() || self.error.is_some() {
            return Err(MessageError::Malformed("it has both a method and a result or error"));
        }
        let method = text(method).ok_or(MessageError::Malformed("`method` is not a string"))?.into_owned();
        let params = self.params.map(ToOwned::to_owned);
        match self.id {
            Some(id) => Ok(Message::Request(Request { id: read_id(id)?, method, params })),
            None if is_notification(&method) => Ok(Message::Notification(Notification { method, params })),
            // A request without an id would be executed, and could not be answered.
            None => Err(MessageError::Malformed(
                "it has no id, and its method does not start with `notifications/`",
            )),
        }
    }

    fn into_response(self) -> Result<Message, MessageError> {
        // Some servers write the unused member as null, as in JSON-RPC 1.0.
        let error = self.error.filter(|error| self.result.is_none() || error.get() != "null");
        let result = self.result.filter(|result| error.is_none() || result.get() != "null");
        let id = self.id.filter(|id| id.get() != "null").map(read_id).transpose()?;
        let outcome = match (result, error) {
            (Some(_), None) if id.is_none() => return Err(MessageError::Malformed("a result has no id")),
            (Some(result), None) => Outcome::Result(result.to_owned()),
            (None, Some(error)) => Outcome::Error(error.to_owned()),
            (Some(_), Some(_)) => return Err(MessageError::Malformed("it has both a result and an error")),
            (None, None) => return Err(MessageError::Malformed("it has no method, result or error")),
        };
        Ok(Message::Response(Response { id, outcome }))
    }
}

fn read_id(raw: &RawValue) -> Result<Id, MessageError> {
    Id::from_json(raw.get()).ok_or(MessageError::Malformed("`id` is neither a number nor a string"))
}

fn text(raw: &RawValue) -> Option<Cow<'_, str>> {
    #[derive(serde::Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    serde_json::from_str::<Text<'_>>(raw.get()).ok().map(|text| text.0)
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON-RPC object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Members::default();
        while let Some(name) = map.next_key::<Name>()? {
            let slot = match name {
                Name::Jsonrpc => &mut members.jsonrpc,
                Name::Id => &mut members.id,
                Name::Method => &mut members.method,
                Name::Params => &mut members.params,
                Name::Result => &mut members.result,
                Name::Error => &mut members.error,
                Name::Other => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            *slot = Some(map.next_value()?);
        }
        Ok(members)
    }
}

#[derive(serde::Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Name {
    Jsonrpc,
    Id,
    Method,
    Params,
    Result,
    Error,
    #[serde(other)]
    Other,
}
