//! The mind's answer at the start of a session. Parses only what the broker needs and keeps all of it.

use embody_wire::Outcome;
use serde_json::{Map, Value, json};

/// The maximum number of reasons.
const REASONS: usize = 32;
const REASON_CHARS: usize = 500;

/// Why there is no packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PacketError {
    pub(crate) reason: String,
    /// Whether the mind returned something that is not an object.
    pub(crate) is_malformed: bool,
}

impl From<String> for PacketError {
    fn from(reason: String) -> Self {
        Self { reason, is_malformed: false }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MindPacket {
    pub(crate) members: Map<String, Value>,
}

/// Extracts the object from a tool result: structured content, or JSON in the text.
pub(crate) fn object(outcome: Outcome) -> Result<Map<String, Value>, String> {
    let result = match outcome {
        Outcome::Result(result) => result,
        Outcome::Error(error) => return Err(shown(&format!("the mind answers with an error: {error}"))),
    };
    let result: Value = serde_json::from_str(result.get())
        .map_err(|error| format!("the mind's answer cannot be read: {error}"))?;
    let text = || result.pointer("/content/0/text").and_then(Value::as_str).unwrap_or_default();
    if result.get("isError").and_then(Value::as_bool) == Some(true) {
        return Err(shown(&format!("the mind says: {}", text())));
    }
    let found = match result.get("structuredContent") {
        Some(value) => value.clone(),
        None => serde_json::from_str(text()).unwrap_or(Value::Null),
    };
    match found {
        Value::Object(members) => Ok(members),
        // A server that wraps its return value.
        Value::String(text) => match serde_json::from_str(&text) {
            Ok(Value::Object(members)) => Ok(members),
            _ => Err("the mind's answer is a string and not an object".to_owned()),
        },
        other => Err(format!("the mind's answer is {} and not an object", kind(&other))),
    }
}

/// Whether it is a result without `isError`.
fn is_success(outcome: &Outcome) -> bool {
    let Outcome::Result(result) = outcome else { return false };
    let result: Result<Value, _> = serde_json::from_str(result.get());
    result.map_or(true, |result| result.get("isError").and_then(Value::as_bool) != Some(true))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

impl MindPacket {
    /// Parses the result of `bootstrap_session`.
    pub(crate) fn read(outcome: Outcome) -> Result<Self, PacketError> {
        let is_malformed = is_success(&outcome);
        let mut members = object(outcome).map_err(|reason| PacketError { reason, is_malformed })?;
        // Some servers wrap their return value in `result`.
        if let (1, Some(Value::Object(inner))) = (members.len(), members.get("result")) {
            members = inner.clone();
        }
        Ok(Self { members })
    }

    /// Builds a packet for a mind without `bootstrap_session`.
    pub(crate) fn assemble(session: &str, prompt: Option<String>, context: Value, files: Value) -> Self {
        let is_there = prompt.is_some();
        let reasons: Vec<&str> = if is_there { Vec::new() } else { vec!["the mind gives no persona text"] };
        let packet = json!({
            "schema_version": 1,
            "required_first_call": "runtime_bootstrap",
            "session_id": session,
            "mind_contract": prompt.unwrap_or_default(),
            "mind_contract_available": is_there,
            "context": context,
            "memory_files": files,
            "degraded_mode": {"persona_available": is_there, "mind_contract_available": is_there, "reasons": reasons},
        });
        match packet {
            Value::Object(members) => Self { members },
            _ => Self { members: Map::new() },
        }
    }

    /// The mind's part of the contract, if any.
    pub(crate) fn contract(&self) -> Option<&str> {
        let text = self.members.get("mind_contract").and_then(Value::as_str).unwrap_or_default();
        (self.flag("mind_contract_available") != Some(false) && !text.trim().is_empty()).then_some(text)
    }

    pub(crate) fn reasons(&self) -> Vec<String> {
        let told =
            self.members.get("degraded_mode").and_then(|mode| mode.get("reasons")).and_then(Value::as_array);
        let mut reasons: Vec<String> =
            told.into_iter().flatten().filter_map(Value::as_str).take(REASONS).map(shown).collect();
        let is_away =
            [self.flag("persona_available"), self.flag("mind_contract_available")].contains(&Some(false));
        if reasons.is_empty() && (is_away || self.contract().is_none()) {
            reasons.push("the mind gives no contract".to_owned());
        }
        reasons
    }

    /// A flag in the packet or in its `degraded_mode`.
    fn flag(&self, name: &str) -> Option<bool> {
        let inner = self.members.get("degraded_mode").and_then(|mode| mode.get(name));
        self.members.get(name).or(inner).and_then(Value::as_bool)
    }
}

fn shown(text: &str) -> String {
    embody_text::without_control(text, REASON_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::respond::raw;

    fn read(result: &Value) -> Result<MindPacket, PacketError> {
        MindPacket::read(Outcome::Result(raw(result)))
    }

    // spec: N-03
    #[test]
    fn a_packet_may_come_as_data_or_as_text() {
        let packet = json!({"mind_contract": "be kind", "schema_version": 1, "x": [1]});
        let text = packet.to_string();
        for result in [
            json!({"content": [], "structuredContent": packet}),
            json!({"content": [{"type": "text", "text": text}]}),
            json!({"content": [], "structuredContent": {"result": packet}}),
            json!({"content": [], "structuredContent": text}),
        ] {
            let read = read(&result).unwrap();
            assert_eq!(read.contract(), Some("be kind"));
            assert_eq!(read.members["x"], json!([1]));
            assert!(read.reasons().is_empty());
        }
    }

    // spec: N-03
    #[test]
    fn what_is_no_object_is_a_clear_error() {
        for (content, word) in [
            (json!([1]), "a list"),
            (json!(7), "a number"),
            (json!("x"), "a string"),
            (json!(null), "nothing"),
        ] {
            let error = read(&json!({"content": [], "structuredContent": content})).unwrap_err();
            assert!(error.is_malformed && error.reason.contains(word), "{error:?}");
        }
        let failed =
            read(&json!({"content": [{"type": "text", "text": "gone"}], "isError": true})).unwrap_err();
        assert!(!failed.is_malformed && failed.reason.contains("gone"), "{failed:?}");
        let error = MindPacket::read(Outcome::Error(raw(&json!({"code": 1, "message": "no"})))).unwrap_err();
        assert!(!error.is_malformed && error.reason.contains("no"), "{error:?}");
    }

    // spec: N-03
    #[test]
    fn a_degraded_packet_gives_its_reasons() {
        let packet = |value: Value| read(&json!({"structuredContent": value})).unwrap();
        let old = packet(
            json!({"mind_contract": "x", "degraded_mode": {"persona_available": false, "reasons": ["no soul"]}}),
        );
        assert_eq!(old.reasons(), ["no soul"]);
        let new = packet(json!({"mind_contract": "", "mind_contract_available": false}));
        assert_eq!((new.contract(), new.reasons().len()), (None, 1));
        let inner =
            packet(json!({"mind_contract": "x", "degraded_mode": {"mind_contract_available": false}}));
        assert_eq!((inner.contract(), inner.reasons().len()), (None, 1));
    }
}
