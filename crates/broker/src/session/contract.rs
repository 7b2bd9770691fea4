//! The contract that the model must have read: the body rules, the rules of bodies that the operator has adopted, the
//! mind's part, and last the other bodies' own descriptions. `delivery` determines when the model has read it; an embody
//! agent has it in its prompt.

use crate::instructions::{MissingRules, ServerInstructions};

/// Separates the body rules from everything below them.
const SEPARATOR: &str = "\n\n---\n\n";
const EMPTY: &str =
    "No rules are set for this session. What others will see still needs the owner's consent.";

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

    /// Whether the rules of some body are missing.
    pub(crate) fn lacks_rules(&self) -> bool {
        !self.missing.is_empty()
    }

    /// Why the rules of this body are missing, if they are.
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

#[must_use]
pub fn contract_text(rules: &str, bodies: &ServerInstructions, mind: Option<&str>) -> String {
    Contract::new(rules, bodies, mind).text
}

fn joined(parts: &[&str], separator: &str) -> String {
    parts.iter().copied().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(separator)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instructions::{InForce, InstructionsMode};

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
}
