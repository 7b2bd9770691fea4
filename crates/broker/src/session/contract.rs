//! The contract that the model must have read: the body's rules, then what the mind asks for. `delivery` says when it has;
//! one of our own agents is prompted with it.

/// Between the body's rules and everything below them.
const SEPARATOR: &str = "\n\n---\n\n";

/// A contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Contract {
    pub(crate) text: String,
    pub(crate) hash: String,
    rules: String,
    mind: String,
}

impl Contract {
    /// Rules first; either part may be missing.
    pub(crate) fn new(rules: &str, mind: Option<&str>) -> Self {
        let (rules, mind) = (rules.trim(), mind.unwrap_or_default().trim());
        let parts: Vec<&str> = [rules, mind].into_iter().filter(|part| !part.is_empty()).collect();
        let text = if parts.is_empty() {
            "No rules are set for this session. What others will see still needs the owner's consent."
                .to_owned()
        } else {
            parts.join(SEPARATOR)
        };
        let hash = blake3::hash(text.as_bytes()).to_hex().to_string();
        Self { text, hash, rules: rules.to_owned(), mind: mind.to_owned() }
    }

    /// Whether a model with this prompt knows it: the rules stand at the very start, where nothing is above them, and what
    /// the mind asks for is inside. An embedded mind speaks from what prompts are made of, in other words than theirs.
    pub(crate) fn is_in(&self, prompt: &str, is_mind_embedded: bool) -> bool {
        let Some(rest) = prompt.trim_start().strip_prefix(&*self.rules) else { return false };
        let are_rules_whole = self.rules.is_empty() || rest.is_empty() || rest.starts_with(['\n', '\r']);
        are_rules_whole && !prompt.trim().is_empty() && (is_mind_embedded || prompt.contains(&*self.mind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: N-12
    #[test]
    fn a_prompt_delivers_it_whole_or_not_at_all() {
        let contract = Contract::new("be kind\nask first\n", Some(" speak softly "));
        let is_in = |prompt: &str| (contract.is_in(prompt, true), contract.is_in(prompt, false));
        assert_eq!(is_in("be kind\nask first\n\n## Soul\nspeak softly\n"), (true, true));
        assert_eq!(is_in("be kind\nask first"), (true, false), "the mind's part is not there");
        assert_eq!(is_in("\nbe kind\nask first\r\n"), (true, false));
        for prompt in ["", "be kind", "be kind\nask first of all", "x\nbe kind\nask first\nspeak softly"] {
            assert_eq!(is_in(prompt), (false, false), "{prompt}");
        }
        let none = Contract::new("", None);
        assert!(none.is_in("You are an assistant.", false) && !none.is_in(" ", true));
        assert!(!Contract::new("", Some("speak softly")).is_in("You are an assistant.", false));
    }

    // spec: N-12
    #[test]
    fn rules_stand_first_and_it_is_never_empty() {
        assert_eq!(Contract::new("rules\n", Some("mind")).text, "rules\n\n---\n\nmind");
        assert_eq!(Contract::new("", Some("mind")).text, "mind");
        assert_eq!(Contract::new("rules", None).text, "rules");
        assert!(!Contract::new(" ", None).text.is_empty());
    }
}
