//! A bounded cache of parsed rules by text. It changes no result: parsing is pure.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use jiff::civil::DateTime;

use super::parse::parse_rules;
use super::rule::Rule;
use super::tokenizer::sentences;

/// When the cache exceeds this, it is cleared.
const MAX_BYTES: usize = 4 * 1024 * 1024;
const ENTRY_OVERHEAD: usize = 512;

pub(super) type CachedRules = Arc<[(String, Vec<Rule>)]>;

#[derive(Default)]
struct RuleCache {
    texts: HashMap<String, Vec<(DateTime, CachedRules)>>,
    bytes: usize,
}

static CACHE: LazyLock<Mutex<RuleCache>> = LazyLock::new(Mutex::default);

pub(super) fn rules_of(text: &str, said: DateTime) -> CachedRules {
    let cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    let same = cache.texts.get(text).and_then(|cache| cache.iter().find(|(at, _)| *at == said));
    if let Some((_, rules)) = same {
        return Arc::clone(rules);
    }
    drop(cache);
    let read = sentences(text).into_iter().map(|sentence| (sentence.to_owned(), parse_rules(sentence, said)));
    let rules: CachedRules = read.filter(|(_, rules)| !rules.is_empty()).collect();
    let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    cache.bytes += text.len() + ENTRY_OVERHEAD;
    if cache.bytes > MAX_BYTES {
        *cache = RuleCache { bytes: text.len() + ENTRY_OVERHEAD, ..RuleCache::default() };
    }
    cache.texts.entry(text.to_owned()).or_default().push((said, Arc::clone(&rules)));
    rules
}
