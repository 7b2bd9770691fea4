//! JSON-RPC error objects of the server side, and their codes.

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::message::Outcome;

/// The codes of JSON-RPC, and those that MCP adds.
pub mod code {
    pub const PARSE_ERROR: i64 = -32700;
    /// Valid JSON, but not a request that can be served.
    pub const INVALID_REQUEST: i64 = -32600;
    pub const METHOD_NOT_FOUND: i64 = -32601;
    pub const INVALID_PARAMS: i64 = -32602;
    pub const INTERNAL_ERROR: i64 = -32603;
    /// Session era only.
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
    pub const HEADER_MISMATCH: i64 = -32020;
    /// The host did not declare a capability that the request needs.
    pub const MISSING_CAPABILITY: i64 = -32021;
    pub const UNSUPPORTED_VERSION: i64 = -32022;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthError {
    /// A missing or unknown token: 401.
    Unknown(String),
    /// A token with insufficient scope: 403.
    Forbidden(String),
    /// The token cannot be checked now: 503.
    Unavailable(String),
}

#[must_use]
pub fn failure(code: i64, message: impl AsRef<str>) -> Outcome {
    failure_with(code, message, None)
}

#[must_use]
pub fn failure_with(code: i64, message: impl AsRef<str>, data: Option<Value>) -> Outcome {
    let mut object = json!({"code": code, "message": message.as_ref()});
    if let (Some(data), Some(members)) = (data, object.as_object_mut()) {
        members.insert("data".to_owned(), data);
    }
    Outcome::Error(raw(&object))
}

/// A value as raw JSON. A [`Value`] can always be serialized.
pub(crate) fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
