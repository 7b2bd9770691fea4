//! Degraded states: shown in `runtime_status`, in the broker's own results, and as one `_meta` key in forwarded results.

use std::fmt;

use embody_wire::splice;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

pub(crate) const META_KEY: &str = "embody/degraded";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Degraded {
    /// Reads continue; writes follow the policy.
    MindUnavailable { reason: String },
    /// Its tools cannot be called.
    BodyUnavailable { body: String, reason: String },
    /// The mind was not asked for its contract yet, or did not return it.
    BootstrapMissing { reason: String },
    /// Calls continue, but the mind does not observe them.
    ObserveUnavailable { reason: String },
    /// The tool's definition differs from its pin; reads still work.
    DefinitionChanged { tool: String },
    /// The model has not received the contract; tool descriptions and next steps contain the protocol.
    HostPromptMissing,
}

impl Degraded {
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::MindUnavailable { .. } => "mind_unavailable",
            Self::BodyUnavailable { .. } => "body_unavailable",
            Self::BootstrapMissing { .. } => "bootstrap_missing",
            Self::ObserveUnavailable { .. } => "observe_unavailable",
            Self::DefinitionChanged { .. } => "definition_changed",
            Self::HostPromptMissing => "host_prompt_missing",
        }
    }

    /// For a model, without text of a server or a mind, which would be part of a trusted result.
    pub(crate) fn for_model(&self) -> String {
        let name = self.name();
        match self {
            Self::MindUnavailable { .. } => format!("{name}: the mind does not answer"),
            Self::BodyUnavailable { body, .. } => format!("{name}: `{body}`"),
            Self::BootstrapMissing { .. } => format!("{name}: the mind has not returned its contract"),
            Self::ObserveUnavailable { .. } => format!("{name}: the mind does not record calls"),
            Self::DefinitionChanged { .. } | Self::HostPromptMissing => self.to_string(),
        }
    }

    /// Whether forwarded results mention it. A missing contract does not degrade a body's result.
    const fn is_in_results(&self) -> bool {
        !matches!(self, Self::HostPromptMissing)
    }
}

impl fmt::Display for Degraded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name();
        match self {
            Self::MindUnavailable { reason }
            | Self::BootstrapMissing { reason }
            | Self::ObserveUnavailable { reason } => write!(f, "{name}: {reason}"),
            Self::BodyUnavailable { body, reason } => write!(f, "{name}: `{body}`: {reason}"),
            Self::DefinitionChanged { tool } => {
                write!(
                    f,
                    "{name}: the definition of `{tool}` changed since it was accepted; the operator must review it"
                )
            }
            Self::HostPromptMissing => {
                write!(f, "{name}: the contract has not been delivered to this conversation yet")
            }
        }
    }
}

#[derive(Deserialize)]
struct WithMeta<'a> {
    #[serde(rename = "_meta", borrow, default, deserialize_with = "present")]
    meta: Option<&'a RawValue>,
}

fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// Adds the key to the result's `_meta`; no other byte changes. Returns a result without a valid `_meta` unchanged.
pub(crate) fn add_to_result(result: Box<RawValue>, degraded: &[Degraded]) -> Box<RawValue> {
    let names: Vec<String> =
        degraded.iter().filter(|one| one.is_in_results()).map(Degraded::for_model).collect();
    if names.is_empty() {
        return result;
    }
    with_meta(&result, META_KEY, &Value::from(names)).unwrap_or(result)
}

/// Adds this member to an object's `_meta`; no other byte changes. `None` if it has no valid place.
pub(crate) fn with_meta(object: &RawValue, key: &str, value: &Value) -> Option<Box<RawValue>> {
    let text = object.get();
    let found: WithMeta<'_> = serde_json::from_str(text).ok()?;
    let entry = format!("{}:{value}", Value::from(key));
    let (object, entry) = match found.meta {
        Some(meta) => (meta.get(), entry),
        None => (text, format!("\"_meta\":{{{entry}}}")),
    };
    let inside = object.strip_prefix('{')?;
    let start = splice::offset(text, inside)?;
    let comma = if inside.trim_start().starts_with('}') { "" } else { "," };
    let (before, after) = (text.get(..start)?, text.get(start..)?);
    RawValue::from_string(format!("{before}{entry}{comma}{after}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_degraded(text: &str) -> String {
        let degraded = [Degraded::MindUnavailable { reason: "away".to_owned() }, Degraded::HostPromptMissing];
        add_to_result(RawValue::from_string(text.to_owned()).unwrap(), &degraded).get().to_owned()
    }

    // spec: N-11
    #[test]
    fn one_key_is_added_and_nothing_else_changes() {
        let key = r#""embody/degraded":["mind_unavailable: the mind does not answer"]"#;
        assert_eq!(with_degraded(r#"{"content":[ ]}"#), format!(r#"{{"_meta":{{{key}}},"content":[ ]}}"#));
        assert_eq!(with_degraded("{}"), format!(r#"{{"_meta":{{{key}}}}}"#));
        assert_eq!(
            with_degraded(r#"{ "a":1.0,"_meta" : {"x":{"_meta":1}}, "z":null}"#),
            format!(r#"{{ "a":1.0,"_meta" : {{{key},"x":{{"_meta":1}}}}, "z":null}}"#)
        );
        assert_eq!(with_degraded(r#"{"_meta":{}}"#), format!(r#"{{"_meta":{{{key}}}}}"#));
        // These have no valid place for it.
        for text in ["[]", "null", r#"{"_meta":null}"#, r#"{"_meta":[1]}"#] {
            assert_eq!(with_degraded(text), text);
        }
    }

    #[test]
    fn a_result_stays_as_it_is_while_nothing_is_wrong() {
        let raw = RawValue::from_string(r#"{"content":[]}"#.to_owned()).unwrap();
        assert_eq!(add_to_result(raw.clone(), &[]).get(), raw.get());
        assert_eq!(add_to_result(raw.clone(), &[Degraded::HostPromptMissing]).get(), raw.get());
    }
}
