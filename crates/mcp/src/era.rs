//! What a result must carry in the stateless era, and what a failure is called in each.

use embody_wire::message::Outcome;
use embody_wire::serve::{Era, code, failure, failure_with};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use crate::offer::{About, Ask, Failure};

const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// How long a host may believe a list, in milliseconds. Changes are announced besides.
const LIST_TTL_MS: u64 = 60_000;

/// The server's name as the protocol writes it.
pub(crate) fn implementation(about: &About) -> Value {
    json!({"name": about.name, "title": about.title, "version": about.version})
}

/// Whether hosts may keep the answer, and for how long.
pub(crate) fn ttl_ms(ask: &Ask) -> Option<u64> {
    match ask {
        Ask::Tools { .. } | Ask::Prompts { .. } | Ask::ResourceTemplates { .. } => Some(LIST_TTL_MS),
        // They change with every memory that is saved.
        Ask::Resources { .. } | Ask::Resource { .. } => Some(0),
        Ask::Tool(_) | Ask::Prompt { .. } | Ask::Completion { .. } | Ask::Task { .. } => None,
    }
}

/// Adds to a result what the stateless era wants.
pub(crate) fn dress(
    mut result: Map<String, Value>,
    about: &About,
    ttl_ms: Option<u64>,
) -> Map<String, Value> {
    let kind = result.entry("resultType").or_insert_with(|| "complete".into()).clone();
    if let (Some(ttl_ms), "complete") = (ttl_ms, kind.as_str().unwrap_or_default()) {
        result.entry("ttlMs").or_insert_with(|| ttl_ms.into());
        result.entry("cacheScope").or_insert_with(|| "private".into());
    }
    let meta = result.entry("_meta").or_insert_with(|| json!({}));
    if let Some(meta) = meta.as_object_mut() {
        meta.entry(SERVER_INFO).or_insert_with(|| implementation(about));
    }
    result
}

/// A result as an outcome.
pub(crate) fn success(result: Map<String, Value>) -> Outcome {
    Outcome::Result(raw(&Value::Object(result)))
}

/// A failure as an outcome.
pub(crate) fn failed(why: Failure, method: &str, era: Era) -> Outcome {
    match why {
        Failure::NoMethod => failure(code::METHOD_NOT_FOUND, format!("there is no method `{method}`")),
        Failure::Invalid(message) => failure(code::INVALID_PARAMS, message),
        Failure::NoResource(uri) => {
            let code = if era == Era::Stateless { code::INVALID_PARAMS } else { code::RESOURCE_NOT_FOUND };
            failure_with(code, format!("there is no resource `{uri}`"), Some(json!({"uri": uri})))
        }
        Failure::Needs(capability) => {
            let mut needed = Map::new();
            needed.insert(capability.to_owned(), json!({}));
            failure_with(
                code::MISSING_CAPABILITY,
                format!("this needs a host with the capability `{capability}`"),
                Some(json!({"requiredCapabilities": needed})),
            )
        }
        Failure::NeedsExtension(name) => failure_with(
            code::MISSING_CAPABILITY,
            format!("this needs a host with the extension `{name}`"),
            Some(json!({"requiredCapabilities": {"extensions": {name: {}}}})),
        ),
        Failure::Headers(message) => failure(code::HEADER_MISMATCH, message),
        Failure::Broken(message) => failure(code::INTERNAL_ERROR, message),
    }
}

/// A value as raw text. A [`Value`] can always be written.
pub(crate) fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
