//! The members of a result in the stateless era, and the error codes of both eras.

use embody_wire::message::Outcome;
use embody_wire::server::{Era, code, failure, failure_with};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use crate::handler::{ClientRequest, RequestError, ServerInfo};

const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// How long a host may cache a list, in milliseconds. Changes are also notified.
const LIST_TTL_MS: u64 = 60_000;

pub(crate) fn implementation(info: &ServerInfo) -> Value {
    json!({"name": info.name, "title": info.title, "version": info.version})
}

/// Whether hosts may cache the result, and for how long.
pub(crate) fn ttl_ms(request: &ClientRequest) -> Option<u64> {
    match request {
        ClientRequest::Tools { .. }
        | ClientRequest::Prompts { .. }
        | ClientRequest::ResourceTemplates { .. } => Some(LIST_TTL_MS),
        // They change with every memory that is saved.
        ClientRequest::Resources { .. } | ClientRequest::Resource { .. } => Some(0),
        ClientRequest::Tool(_)
        | ClientRequest::Prompt { .. }
        | ClientRequest::Completion { .. }
        | ClientRequest::Task { .. } => None,
    }
}

/// Adds the members of the stateless era to a result.
pub(crate) fn add_era_meta(
    mut result: Map<String, Value>,
    info: &ServerInfo,
    ttl_ms: Option<u64>,
) -> Map<String, Value> {
    let kind = result.entry("resultType").or_insert_with(|| "complete".into()).clone();
    if let (Some(ttl_ms), "complete") = (ttl_ms, kind.as_str().unwrap_or_default()) {
        result.entry("ttlMs").or_insert_with(|| ttl_ms.into());
        result.entry("cacheScope").or_insert_with(|| "private".into());
    }
    let meta = result.entry("_meta").or_insert_with(|| json!({}));
    if let Some(meta) = meta.as_object_mut() {
        meta.entry(SERVER_INFO).or_insert_with(|| implementation(info));
    }
    result
}

pub(crate) fn success(result: Map<String, Value>) -> Outcome {
    Outcome::Result(raw(&Value::Object(result)))
}

pub(crate) fn error_outcome(why: RequestError, method: &str, era: Era) -> Outcome {
    match why {
        RequestError::MethodNotFound => failure(code::METHOD_NOT_FOUND, format!("unknown method `{method}`")),
        RequestError::InvalidParams(message) => failure(code::INVALID_PARAMS, message),
        RequestError::ResourceNotFound(uri) => {
            let code = if era == Era::Stateless { code::INVALID_PARAMS } else { code::RESOURCE_NOT_FOUND };
            failure_with(code, format!("unknown resource `{uri}`"), Some(json!({"uri": uri})))
        }
        RequestError::MissingCapability(capability) => {
            let mut needed = Map::new();
            needed.insert(capability.to_owned(), json!({}));
            failure_with(
                code::MISSING_CAPABILITY,
                format!("this needs a host with the capability `{capability}`"),
                Some(json!({"requiredCapabilities": needed})),
            )
        }
        RequestError::MissingExtension(name) => failure_with(
            code::MISSING_CAPABILITY,
            format!("this needs a host with the extension `{name}`"),
            Some(json!({"requiredCapabilities": {"extensions": {name: {}}}})),
        ),
        RequestError::HeaderMismatch(message) => failure(code::HEADER_MISMATCH, message),
        RequestError::Internal(message) => failure(code::INTERNAL_ERROR, message),
    }
}

/// A value as raw text. A [`Value`] can always be serialized.
pub(crate) fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
