//! The parameters of `initialize`, as clients send and servers read them, and the protocol revisions that use it. In the
//! stateless era every request carries the same parameters.

use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use crate::error::Error;
use crate::message::members;

/// What a client says about itself: once per session, or with every request.
#[derive(Debug, Clone, Default)]
pub struct InitializeParams {
    pub capabilities: Option<Box<RawValue>>,
    /// The client's name and version.
    pub client_info: Option<Box<RawValue>>,
    /// The minimum log level that the client requests (stateless era).
    pub log_level: Option<String>,
}

impl InitializeParams {
    /// A client of this program, without capabilities.
    #[must_use]
    pub fn named(name: &str) -> Self {
        let client_info = to_raw_value(&json!({"name": name, "version": env!("CARGO_PKG_VERSION")}));
        Self { client_info: client_info.ok(), ..Self::default() }
    }

    /// Whether the client supports form elicitation. An `elicitation` capability without modes means forms.
    #[must_use]
    pub fn can_show_forms(&self) -> bool {
        let modes = self.capability("elicitation");
        modes.is_some_and(|modes| modes.contains_key("form") || !modes.contains_key("url"))
    }

    #[must_use]
    pub fn can(&self, capability: &str) -> bool {
        self.capability(capability).is_some()
    }

    /// Whether the client declared this extension of the protocol.
    #[must_use]
    pub fn has_extension(&self, name: &str) -> bool {
        let extensions = self.capability("extensions");
        extensions.is_some_and(|extensions| extensions.get(name).is_some_and(serde_json::Value::is_object))
    }

    fn capability(&self, name: &str) -> Option<serde_json::Map<String, serde_json::Value>> {
        let mut declared: serde_json::Map<String, serde_json::Value> =
            members(self.capabilities.as_deref()?)?;
        match declared.remove(name) {
            Some(serde_json::Value::Object(capability)) => Some(capability),
            _ => None,
        }
    }

    /// As JSON, with the newest version of the session era.
    pub(crate) fn to_json(&self) -> Result<Box<RawValue>, Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            protocol_version: &'a str,
            capabilities: &'a RawValue,
            client_info: &'a RawValue,
        }
        let unwritable = |_| Error::Protocol("the client's identity cannot be written");
        let nothing = RawValue::from_string("{}".to_owned()).map_err(unwritable)?;
        to_raw_value(&Params {
            protocol_version: Version::LATEST.as_str(),
            capabilities: self.capabilities.as_deref().unwrap_or(&nothing),
            client_info: self.client_info.as_deref().unwrap_or(&nothing),
        })
        .map_err(unwritable)
    }
}

/// A protocol revision that uses `initialize`. Ordered by age.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// 2024-11-05, the first.
    V2024_11_05,
    /// 2025-03-26: streamable HTTP, batches.
    V2025_03_26,
    /// 2025-06-18: no batches, the version header.
    V2025_06_18,
    /// 2025-11-25, the last of its era.
    V2025_11_25,
}

impl Version {
    pub const LATEST: Self = Self::V2025_11_25;

    pub const ALL: [Self; 4] = [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25];

    /// The revision as on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
        }
    }

    /// The revision with this name, if it is of the session era.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.as_str() == text)
    }
}

/// The version in an `initialize` result.
pub(crate) fn protocol_version(result: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct InitializeResult {
        protocol_version: String,
    }
    let result: InitializeResult = serde_json::from_str(result.get()).ok()?;
    Some(result.protocol_version)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::TASKS;

    #[test]
    fn an_extension_is_an_object_among_the_extensions() {
        let has = |capabilities: &str| {
            let capabilities = RawValue::from_string(capabilities.to_owned()).ok();
            InitializeParams { capabilities, ..InitializeParams::default() }.has_extension(TASKS)
        };
        assert!(has(r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#));
        for other in [
            "{}",
            "[]",
            r#"{"io.modelcontextprotocol/tasks":{}}"#,
            r#"{"extensions":{"io.modelcontextprotocol/tasks":true}}"#,
            r#"{"extensions":["io.modelcontextprotocol/tasks"]}"#,
        ] {
            assert!(!has(other), "{other}");
        }
    }
}
