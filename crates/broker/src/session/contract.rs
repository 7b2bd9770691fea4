//! The contract that the model must have seen: the body's rules, then what the mind asks for. Delivered means that the
//! whole of it was written to the host, and that a call was read later; or, for one of our own agents, that its model is
//! prompted with it.

use std::sync::{Mutex, PoisonError};

use embody_store::ContractState;

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

/// Which contract was written to the host, and when.
#[derive(Debug, Default)]
pub(crate) struct Delivery {
    written: Mutex<Option<Written>>,
}

#[derive(Debug)]
struct Written {
    hash: String,
    /// The last request that had been read by then.
    after: u64,
}

impl Delivery {
    /// The whole contract was written, after so many requests had been read.
    pub(crate) fn written(&self, hash: &str, after: u64) {
        let mut written = self.lock();
        if written.as_ref().is_none_or(|known| known.hash != hash) {
            *written = Some(Written { hash: hash.to_owned(), after });
        }
    }

    /// What the store knows of it: another process has written it, or this one before it was started again.
    pub(crate) fn learn(&self, known: &ContractState) {
        if let ContractState::Written { hash, .. } | ContractState::Delivered { hash, .. } = known {
            self.written(hash, 0);
        }
    }

    /// Whether this contract had been written when this request was read.
    pub(crate) fn is_before(&self, hash: &str, request: u64) -> bool {
        self.lock().as_ref().is_some_and(|known| known.hash == hash && request > known.after)
    }

    /// Whether any contract was written.
    pub(crate) fn has_happened(&self) -> bool {
        self.lock().is_some()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Written>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: N-12
    #[test]
    fn only_what_is_read_after_the_writing_counts() {
        let delivery = Delivery::default();
        assert!(!delivery.is_before("a", 9));
        delivery.written("a", 3);
        assert!(!delivery.is_before("a", 3), "it was read before the contract was written");
        assert!(delivery.is_before("a", 4));
        assert!(!delivery.is_before("b", 4), "another contract");
        delivery.written("a", 10);
        assert!(delivery.is_before("a", 4), "the first writing counts");
        delivery.written("b", 12);
        assert!(!delivery.is_before("b", 12) && delivery.is_before("b", 13));
    }

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
