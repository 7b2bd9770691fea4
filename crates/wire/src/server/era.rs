//! Determines the protocol era of a request, and reads what it says about its host. Pure. A request with the modern `_meta`
//! is of the stateless era, wherever it arrives; every other request belongs to a session opened by `initialize`.
//! `server/discover` exists in the stateless era only, so its rules apply even when `_meta` is missing.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::errors::{code, failure, failure_with};
use crate::initialize::InitializeParams;
use crate::initialize::Version;
use crate::message::{Outcome, Request, may_contain, members};

pub const MODERN: &str = "2026-07-28";

/// The extension that lets a call continue as a task.
pub const TASKS: &str = "io.modelcontextprotocol/tasks";

const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// A session, opened by `initialize`; before that without a version.
    Session(Option<Version>),
    Stateless,
}

/// The metadata that a transport reads from a request.
#[derive(Debug)]
pub(crate) struct RequestMeta {
    /// The version named in the request itself.
    pub(crate) version: Option<String>,
    /// What `Mcp-Name` mirrors: `params.name`, `params.uri` or `params.taskId`.
    pub(crate) name: Option<String>,
    has_capabilities: bool,
    params: InitializeParams,
}

#[derive(Deserialize, Default)]
struct Params<'a> {
    #[serde(rename = "_meta", borrow, default)]
    meta: Option<&'a RawValue>,
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    uri: Option<&'a RawValue>,
    #[serde(rename = "taskId", borrow, default)]
    task: Option<&'a RawValue>,
    #[serde(borrow, default)]
    capabilities: Option<&'a RawValue>,
    #[serde(rename = "clientInfo", borrow, default)]
    client_info: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
struct Meta<'a> {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion", borrow, default)]
    version: Option<Cow<'a, str>>,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities", borrow, default)]
    capabilities: Option<&'a RawValue>,
    #[serde(rename = "io.modelcontextprotocol/clientInfo", borrow, default)]
    client_info: Option<&'a RawValue>,
    #[serde(rename = "io.modelcontextprotocol/logLevel", borrow, default)]
    log_level: Option<Cow<'a, str>>,
}

impl RequestMeta {
    /// Reads the metadata. Members of an unexpected type count as absent.
    pub(crate) fn read(request: &Request) -> Self {
        let params: Params<'_> = request.params.as_deref().and_then(members).unwrap_or_default();
        let object = |raw: &&RawValue| raw.get().starts_with('{');
        let meta: Meta<'_> = params.meta.and_then(members).unwrap_or_default();
        let is_initialize = request.method == "initialize" && meta.version.is_none();
        let (capabilities, client_info) = if is_initialize {
            (params.capabilities, params.client_info)
        } else {
            (meta.capabilities, meta.client_info)
        };
        let param_headers = match named_by(&request.method) {
            Some("uri") => params.uri,
            Some("taskId") => params.task,
            _ => params.name,
        };
        Self {
            version: meta.version.map(Cow::into_owned),
            name: param_headers.and_then(|raw| serde_json::from_str(raw.get()).ok()),
            has_capabilities: meta.capabilities.as_ref().is_some_and(object),
            params: InitializeParams {
                capabilities: capabilities.map(ToOwned::to_owned),
                client_info: client_info.map(ToOwned::to_owned),
                log_level: meta.log_level.map(Cow::into_owned),
            },
        }
    }

    /// A cheap pre-check for the stateless era: most requests fail it.
    pub(crate) fn may_be_stateless(request: &Request) -> bool {
        is_modern_only(&request.method)
            || request.params.as_deref().is_some_and(|params| may_contain(params, "protocolVersion"))
    }

    /// Whether the request is of the stateless era, judged by the request alone.
    pub(crate) fn is_stateless(&self, method: &str) -> bool {
        self.version.is_some() || is_modern_only(method)
    }

    pub(crate) fn into_params(self) -> InitializeParams {
        self.params
    }

    /// Returns an error response if a request of the stateless era is invalid.
    pub(crate) fn validate(&self) -> Option<Outcome> {
        let missing = |key: &str| {
            let message = format!("the request's `_meta` lacks `{key}`, which protocol {MODERN} requires");
            Some(failure(code::INVALID_PARAMS, message))
        };
        match &self.version {
            None => missing(META_VERSION),
            Some(version) if version != MODERN => Some(unsupported(version)),
            Some(_) if !self.has_capabilities => missing(META_CAPABILITIES),
            Some(_) => None,
        }
    }
}

/// The parameter that the header `Mcp-Name` mirrors for this method, if any.
pub(crate) fn named_by(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    }
}

/// Whether a method exists in the stateless era only.
fn is_modern_only(method: &str) -> bool {
    matches!(method, "server/discover" | "subscriptions/listen")
}

pub(crate) fn unsupported(requested: &str) -> Outcome {
    let shown: String = requested.chars().take(64).collect();
    let data = json!({"supported": supported(), "requested": shown});
    failure_with(code::UNSUPPORTED_VERSION, format!("unsupported protocol version `{shown}`"), Some(data))
}

/// Every supported version, newest first.
#[must_use]
pub fn supported() -> Vec<&'static str> {
    let sessions = Version::ALL.iter().rev().map(|version| version.as_str());
    std::iter::once(MODERN).chain(sessions).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &str, params: &str) -> Request {
        let params = RawValue::from_string(params.to_owned()).unwrap();
        Request { id: 1.into(), method: method.to_owned(), params: Some(params) }
    }

    #[test]
    fn a_request_with_modern_meta_is_stateless_and_others_are_not() {
        let modern = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"sampling":{}}},"name":"x"}"#;
        let facts = RequestMeta::read(&request("tools/call", modern));
        assert!(facts.is_stateless("tools/call") && facts.validate().is_none());
        assert_eq!(facts.name.as_deref(), Some("x"));
        let params = facts.into_params();
        assert!(params.can("sampling") && !params.can("roots") && !params.has_extension(TASKS));

        let legacy = RequestMeta::read(&request("tools/call", r#"{"_meta":{"progressToken":1},"name":"x"}"#));
        assert!(!legacy.is_stateless("tools/call"));
        assert!(RequestMeta::read(&request("server/discover", "{}")).validate().is_some());
    }

    #[test]
    fn what_initialize_says_is_kept() {
        let params =
            r#"{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"h"}}"#;
        let params = RequestMeta::read(&request("initialize", params)).into_params();
        assert!(params.can("elicitation"));
        assert_eq!(params.client_info.unwrap().get(), r#"{"name":"h"}"#);
    }

    #[test]
    fn a_task_is_mirrored_by_its_id() {
        let params = r#"{"taskId":"t","name":"n"}"#;
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            assert_eq!(RequestMeta::read(&request(method, params)).name.as_deref(), Some("t"), "{method}");
        }
        assert_eq!(RequestMeta::read(&request("tools/call", params)).name.as_deref(), Some("n"));
    }

    #[test]
    fn what_a_glance_rules_out_is_not_stateless() {
        let escaped = r#"{"_meta":{"io.modelcontextprotocol/protocol\u0056ersion":"2026-07-28"}}"#;
        for params in [escaped, r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#] {
            let request = request("tools/call", params);
            assert!(RequestMeta::read(&request).is_stateless("tools/call"), "{params}");
            assert!(RequestMeta::may_be_stateless(&request), "{params}");
        }
        assert!(RequestMeta::may_be_stateless(&request("server/discover", "{}")));
        assert!(!RequestMeta::may_be_stateless(&request("tools/call", r#"{"name":"x"}"#)));
    }

    #[test]
    fn nonsense_is_read_as_nothing() {
        for params in [
            "[]",
            "null",
            "7",
            r#"{"_meta":[]}"#,
            r#"{"_meta":["2026-07-28",{}]}"#,
            r#"[{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"x"]"#,
            r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":7}}"#,
        ] {
            let facts = RequestMeta::read(&request("tools/call", params));
            assert!(facts.version.is_none() && facts.name.is_none(), "{params}");
        }
    }
}
