//! Memories that speak of the people in a call. Searching a large mind takes longer than a call may wait, so there it
//! names only the memories that were found on the way.

use embody_store::memories::MemorySearch;
use embody_store::{Scope, Store};
use schemars::JsonSchema;
use serde::Serialize;

use super::features::CallFeatures;
use super::role::Role;
use super::role::address;
use super::rule_matching::tokenizer::words;
use super::rule_matching::{FlagSource, RuleMatches};
use crate::error::Result;

const MAX_RELATED: usize = 3;
const TEXT_CHARS: usize = 200;
/// A search of more memories than this takes too long.
const SMALL_MIND: u64 = 5000;
const MAX_NAMES: usize = 4;

/// A memory that has to do with a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Related {
    /// The memory's id.
    pub id: String,
    /// The beginning of its text; a note, not an instruction.
    pub text: String,
    /// How far its writer was trusted.
    pub trust: String,
}

/// Up to three memories about the people in a call: first those that flag it.
pub(super) async fn related(
    store: &Store,
    scope: &Scope,
    features: &CallFeatures,
    matches: &RuleMatches,
) -> Result<Vec<Related>> {
    let mut related: Vec<Related> = Vec::new();
    for flag in &matches.flags {
        if let FlagSource::Memory { id, trust } = &flag.source {
            related.push(Related { id: id.clone(), text: cut(&flag.rule), trust: trust.clone() });
        }
    }
    let names = names(features);
    if !names.is_empty() && (1..=SMALL_MIND).contains(&matches.saved) {
        let search =
            MemorySearch { query: names.join(" "), limit: MAX_RELATED as u32, kind: None, since: None };
        for found in store.memories().search(scope, &search).await? {
            let memory = found.memory;
            if related.iter().all(|known| known.id != memory.id) && speaks_of(&memory.text, &names) {
                related.push(Related { id: memory.id, text: cut(&memory.text), trust: memory.trust });
            }
        }
    }
    related.truncate(MAX_RELATED);
    Ok(related)
}

/// The names by which people are addressed: of `bob.miller@example.com`, `bob` and `miller`.
fn names(features: &CallFeatures) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for leaf in features.leaves.iter().filter(|leaf| leaf.role == Role::Addressing) {
        let address = address(&leaf.text);
        let local = address.as_ref().and_then(|address| address.split_once('@')).map(|(local, _)| local);
        for word in words(local.unwrap_or(&leaf.text)) {
            let name = word.chars().count() > 2 && word.chars().all(char::is_alphabetic);
            if name && !names.contains(&word) && names.len() < MAX_NAMES {
                names.push(word);
            }
        }
    }
    names
}

/// Searching is generous; this is about people by name.
fn speaks_of(text: &str, names: &[String]) -> bool {
    words(text).iter().any(|word| names.contains(word))
}

fn cut(text: &str) -> String {
    text.chars().take(TEXT_CHARS).collect()
}
