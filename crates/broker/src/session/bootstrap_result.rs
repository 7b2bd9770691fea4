//! The result of `runtime_bootstrap`: the contract, how to use the mind, and what the mind reports about the session, as one
//! text in which each part appears once. The packet's data for programs is in `_meta`, without the texts.

use embody_wire::Outcome;
use serde_json::{Map, Value, json};

use super::contract::Contract;
use super::packet::MindPacket;
use crate::pipeline::respond::{MARK_KEY, PREFIX, how_embody_speaks, one_line, raw};

/// The key in `_meta`.
const META_KEY: &str = "embody/bootstrap";
/// The longest protocol of a mind and the longest of its facts, in characters.
const PROTOCOL_MAX: usize = 4_000;
const FACT_MAX: usize = 1_000;
/// Packet members that are already in the text or under `embody`, or do not apply behind a broker.
const NOT_REPEATED: [&str; 7] = [
    "mind_contract",
    "mind_contract_available",
    "degraded_mode",
    "cognition_protocol",
    "required_first_call",
    "available_mind_tools",
    "host_limitations",
];
/// Packet members that describe the session to the model.
const FACTS: [(&str, &str); 2] = [("context", "Context"), ("memory_catalog", "Memories")];

/// How to use the embedded mind behind the broker, in addition to its contract.
const PROTOCOL: &str = "\
- Pass the user's feedback, promises and wishes to reflect_user_message.
- update_instructions replaces the whole text: read it first (read_memory, kind `instructions`) and pass its version.";

pub(crate) struct Parts<'a> {
    pub(crate) code: &'a str,
    pub(crate) contract: &'a Contract,
    /// `None` if the mind returned none.
    pub(crate) packet: Option<&'a MindPacket>,
    pub(crate) is_mind_embedded: bool,
    pub(crate) degraded: &'a [String],
    /// Why the mind's packet cannot be used.
    pub(crate) error: Option<&'a str>,
    /// An embody agent recognizes the broker's result by this mark.
    pub(crate) mark: Option<&'a str>,
}

pub(crate) fn result(parts: &Parts<'_>) -> Outcome {
    let mut meta = Map::from_iter([(META_KEY.to_owned(), data(parts))]);
    meta.extend(parts.mark.map(|mark| (MARK_KEY.to_owned(), Value::from(mark))));
    Outcome::Result(raw(&json!({
        "content": [{"type": "text", "text": text(parts)}],
        "isError": parts.error.is_some(),
        "_meta": meta,
    })))
}

fn text(parts: &Parts<'_>) -> String {
    let Parts { code, contract, .. } = parts;
    let error = parts.error.map(|error| format!("Error: {}. ", one_line(error))).unwrap_or_default();
    let mut text = format!("{PREFIX}{code}] {error}{}\n\n{}", how_embody_speaks(code), contract.text);
    if let Some(packet) = parts.packet {
        let protocol = match parts.is_mind_embedded {
            true => Some(PROTOCOL.to_owned()),
            false => packet.members.get("cognition_protocol").and_then(Value::as_str).map(|protocol| {
                let protocol = cut(protocol, PROTOCOL_MAX);
                format!("(embody calls bootstrap_session and observe for you.)\n{protocol}")
            }),
        };
        if let Some(protocol) = protocol.filter(|protocol| !protocol.trim().is_empty()) {
            text += &format!("\n\n---\n\nHow to use the mind:\n{protocol}");
        }
        for (key, label) in FACTS {
            let fact = packet.members.get(key).filter(|fact| !fact.is_null()).map(Value::to_string);
            if let Some(fact) = fact {
                text += &format!("\n{label}: {}", cut(&fact, FACT_MAX));
            }
        }
    }
    for reason in parts.degraded {
        text += &format!("\nDegraded: {}", one_line(reason));
    }
    text
}

fn cut(text: &str, limit: usize) -> String {
    let total = text.chars().count();
    if total <= limit {
        return text.to_owned();
    }
    let beginning: String = text.chars().take(limit).collect();
    format!("{beginning}… [the first {limit} of {total} characters]")
}

fn data(parts: &Parts<'_>) -> Value {
    let mut members = parts.packet.map_or_else(Map::new, |packet| packet.members.clone());
    let is_in_text = |key: &str, value: &Value| {
        FACTS.iter().any(|(fact, _)| *fact == key) && value.to_string().chars().count() <= FACT_MAX
    };
    members.retain(|key, value| !NOT_REPEATED.contains(&key.as_str()) && !is_in_text(key, value));
    let own = json!({
        "bootstrapped": parts.packet.is_some(),
        "contract": parts.contract.hash,
        "degraded": parts.degraded,
    });
    members.insert("embody".to_owned(), own);
    Value::Object(members)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instructions::ServerInstructions;

    fn made(packet: Value, is_mind_embedded: bool) -> Value {
        let Value::Object(members) = packet else { panic!("not an object") };
        let (contract, packet) = (
            Contract::new("be honest", &ServerInstructions::default(), Some("speak softly")),
            MindPacket { members },
        );
        let parts = Parts {
            code: "4f2c91",
            contract: &contract,
            packet: Some(&packet),
            is_mind_embedded,
            degraded: &["observe_unavailable: slow".to_owned()],
            error: None,
            mark: None,
        };
        let Outcome::Result(result) = result(&parts) else { panic!("an error") };
        serde_json::from_str(result.get()).unwrap()
    }

    #[test]
    fn what_is_too_long_for_the_text_is_cut_with_a_mark_and_whole_in_the_data() {
        let result = made(json!({"context": {"x": "y".repeat(FACT_MAX)}}), false);
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("yyy… [the first 1000 of 1008 characters]"), "{text}");
        assert_eq!(result["_meta"][META_KEY]["context"]["x"].as_str().unwrap().len(), FACT_MAX);
    }

    // spec: N-03, N-12
    #[test]
    fn the_contract_is_there_once_and_what_others_add_is_kept() {
        let packet = json!({
            "schema_version": 1,
            "mind_contract": "speak softly",
            "cognition_protocol": "1. Call bootstrap_session first.",
            "context": {"user": "ann"},
            "new_member": [1],
        });
        let result = made(packet.clone(), false);
        let whole = result.to_string();
        for once in ["be honest", "speak softly", "bootstrap_session first"] {
            assert_eq!(whole.matches(once).count(), 1, "{once}: {whole}");
        }
        assert!(result.get("structuredContent").is_none(), "{whole}");
        assert_eq!(result["_meta"][META_KEY]["new_member"], json!([1]));
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("[embody 4f2c91] Session contract."), "{text}");
        assert!(text.contains("\nContext: {\"user\":\"ann\"}\nDegraded: observe_unavailable"), "{text}");
        let embedded = made(packet, true).to_string();
        assert!(!embedded.contains("bootstrap_session"), "one way in: {embedded}");
    }
}
