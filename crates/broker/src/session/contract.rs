//! The contract that the model must have read: the body rules, the rules of bodies that the operator has adopted, the
//! mind's part, and last the other bodies' own descriptions. `delivery` determines when the model has read it; an embody
//! agent has it in its prompt.
//!
//! The result of `runtime_bootstrap` delivers it: the contract, how to use the mind, and what the mind reports about the session,
//! as one text in which each part appears once. The packet's data for programs is in `_meta`, without the texts.

use embody_wire::Outcome;
use serde_json::{Map, Value, json};

use super::bootstrap::MindPacket;
use crate::pipeline::respond::{MARK_KEY, PREFIX, how_embody_speaks, one_line, raw};
use crate::session::instructions::{MissingRules, ServerInstructions};

/// Separates the body rules from everything below them.
const SEPARATOR: &str = "\n\n---\n\n";
const EMPTY: &str =
    "No rules are set for this session. Calls that other people will see still need the owner's approval.";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Contract {
    pub(crate) text: String,
    /// The hash of the binding parts. A description that a body sends later does not change it.
    pub(crate) hash: String,
    rules: String,
    mind: String,
    body_rules: String,
    missing: Vec<MissingRules>,
}

impl Contract {
    /// Rules first, descriptions of bodies last; each part may be missing.
    pub(crate) fn new(rules: &str, bodies: &ServerInstructions, mind: Option<&str>) -> Self {
        let (rules, mind) = (rules.trim(), mind.unwrap_or_default().trim());
        let (body_rules, descriptions) = (bodies.rules_text(), bodies.descriptions_text());
        let all_rules = joined(&[rules, &body_rules], "\n\n");
        let orders = joined(&[&all_rules, mind], SEPARATOR);
        let orders = if orders.is_empty() { EMPTY } else { &orders };
        let text = joined(&[orders, &descriptions], SEPARATOR);
        let hash = blake3::hash(orders.as_bytes()).to_hex().to_string();
        let (rules, mind, missing) = (rules.to_owned(), mind.to_owned(), bodies.missing().to_vec());
        Self { text, hash, rules, mind, body_rules, missing }
    }

    pub(crate) fn lacks_rules(&self) -> bool {
        !self.missing.is_empty()
    }

    pub(crate) fn lacks_rules_of(&self, body: &str) -> Option<&str> {
        self.missing.iter().find(|missing| missing.body == body).map(|missing| missing.reason.as_str())
    }

    /// Whether this prompt contains the contract: the rules at the very start, with nothing above them, and the mind's part
    /// anywhere. An embedded mind uses the same sources as the prompt, in different words, so its part is not searched for.
    pub(crate) fn is_in(&self, prompt: &str, is_mind_embedded: bool) -> bool {
        let Some(rest) = prompt.trim_start().strip_prefix(&*self.rules) else { return false };
        let are_rules_whole = self.rules.is_empty() || rest.is_empty() || rest.starts_with(['\n', '\r']);
        let are_rules_whole = are_rules_whole && rest.trim_start().starts_with(&*self.body_rules);
        are_rules_whole && !prompt.trim().is_empty() && (is_mind_embedded || prompt.contains(&*self.mind))
    }
}

pub fn contract_text(rules: &str, bodies: &ServerInstructions, mind: Option<&str>) -> String {
    Contract::new(rules, bodies, mind).text
}

fn joined(parts: &[&str], separator: &str) -> String {
    parts.iter().copied().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(separator)
}

const META_KEY: &str = "embody/bootstrap";
/// The longest protocol of a mind and the longest of its facts, in characters.
const PROTOCOL_CHARS: usize = 4_000;
const FACT_CHARS: usize = 1_000;
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

pub(crate) struct BootstrapResult<'a> {
    pub(crate) code: &'a str,
    pub(crate) contract: &'a Contract,
    /// `None` if the mind returned none.
    pub(crate) packet: Option<&'a MindPacket>,
    pub(crate) is_mind_embedded: bool,
    pub(crate) degraded: &'a [String],
    pub(crate) error: Option<&'a str>,
    /// An embody agent recognizes the broker's result by this mark.
    pub(crate) mark: Option<&'a str>,
}

pub(crate) fn bootstrap_result(parts: &BootstrapResult<'_>) -> Outcome {
    let mut meta = Map::from_iter([(META_KEY.to_owned(), data(parts))]);
    meta.extend(parts.mark.map(|mark| (MARK_KEY.to_owned(), Value::from(mark))));
    Outcome::Result(raw(&json!({
        "content": [{"type": "text", "text": text(parts)}],
        "isError": parts.error.is_some(),
        "_meta": meta,
    })))
}

fn text(parts: &BootstrapResult<'_>) -> String {
    let BootstrapResult { code, contract, .. } = parts;
    let error = parts.error.map(|error| format!("Error: {}. ", one_line(error))).unwrap_or_default();
    let mut text = format!("{PREFIX}{code}] {error}{}\n\n{}", how_embody_speaks(code), contract.text);
    if let Some(packet) = parts.packet {
        let protocol = match parts.is_mind_embedded {
            true => Some(PROTOCOL.to_owned()),
            false => packet.members.get("cognition_protocol").and_then(Value::as_str).map(|protocol| {
                let protocol = cut(protocol, PROTOCOL_CHARS);
                format!("(embody calls bootstrap_session and observe for you.)\n{protocol}")
            }),
        };
        if let Some(protocol) = protocol.filter(|protocol| !protocol.trim().is_empty()) {
            text += &format!("\n\n---\n\nHow to use the mind:\n{protocol}");
        }
        for (key, label) in FACTS {
            let fact = packet.members.get(key).filter(|fact| !fact.is_null()).map(Value::to_string);
            if let Some(fact) = fact {
                text += &format!("\n{label}: {}", cut(&fact, FACT_CHARS));
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

fn data(parts: &BootstrapResult<'_>) -> Value {
    let mut members = parts.packet.map_or_else(Map::new, |packet| packet.members.clone());
    let is_in_text = |key: &str, value: &Value| {
        FACTS.iter().any(|(fact, _)| *fact == key) && value.to_string().chars().count() <= FACT_CHARS
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
    use crate::session::instructions::{InForce, InstructionsMode, ServerInstructions};

    fn contract(rules: &str, mind: Option<&str>) -> Contract {
        Contract::new(rules, &ServerInstructions::default(), mind)
    }

    // spec: N-12
    #[test]
    fn a_description_that_comes_later_makes_no_other_contract() {
        let mut bodies = ServerInstructions::default();
        bodies.add("files", InstructionsMode::Data, InForce::of_text("Paths are relative.".into()));
        let described = Contract::new("be kind", &bodies, None);
        assert!(described.text.contains("Paths are relative."), "{}", described.text);
        assert_eq!(described.hash, contract("be kind", None).hash);
        let mut bodies = ServerInstructions::default();
        bodies.add("files", InstructionsMode::Rules, InForce::of_text("Never delete.".into()));
        assert_ne!(Contract::new("be kind", &bodies, None).hash, contract("be kind", None).hash);
    }

    // spec: N-12
    #[test]
    fn a_prompt_delivers_it_whole_or_not_at_all() {
        let made = contract("be kind\nask first\n", Some(" speak softly "));
        let is_in = |prompt: &str| (made.is_in(prompt, true), made.is_in(prompt, false));
        assert_eq!(is_in("be kind\nask first\n\n## Soul\nspeak softly\n"), (true, true));
        assert_eq!(is_in("be kind\nask first"), (true, false), "the mind's part is not there");
        assert_eq!(is_in("\nbe kind\nask first\r\n"), (true, false));
        for prompt in ["", "be kind", "be kind\nask first of all", "x\nbe kind\nask first\nspeak softly"] {
            assert_eq!(is_in(prompt), (false, false), "{prompt}");
        }
        let none = contract("", None);
        assert!(none.is_in("You are an assistant.", false) && !none.is_in(" ", true));
        assert!(!contract("", Some("speak softly")).is_in("You are an assistant.", false));
    }

    // spec: N-12
    #[test]
    fn rules_stand_first_and_it_is_never_empty() {
        assert_eq!(contract("rules\n", Some("mind")).text, "rules\n\n---\n\nmind");
        assert_eq!(contract("", Some("mind")).text, "mind");
        assert_eq!(contract("rules", None).text, "rules");
        assert!(!contract(" ", None).text.is_empty());
    }

    fn made(packet: Value, is_mind_embedded: bool) -> Value {
        let Value::Object(members) = packet else { panic!("not an object") };
        let (contract, packet) = (
            Contract::new("be honest", &ServerInstructions::default(), Some("speak softly")),
            MindPacket { members },
        );
        let parts = BootstrapResult {
            code: "4f2c91",
            contract: &contract,
            packet: Some(&packet),
            is_mind_embedded,
            degraded: &["observe_unavailable: slow".to_owned()],
            error: None,
            mark: None,
        };
        let Outcome::Result(result) = bootstrap_result(&parts) else { panic!("an error") };
        serde_json::from_str(result.get()).unwrap()
    }

    #[test]
    fn what_is_too_long_for_the_text_is_cut_with_a_mark_and_whole_in_the_data() {
        let result = made(json!({"context": {"x": "y".repeat(FACT_CHARS)}}), false);
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("yyy… [the first 1000 of 1008 characters]"), "{text}");
        assert_eq!(result["_meta"][META_KEY]["context"]["x"].as_str().unwrap().len(), FACT_CHARS);
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
