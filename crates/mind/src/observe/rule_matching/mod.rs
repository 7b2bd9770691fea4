//! The owner's rules: which standing instructions and memories speak against a call. Memories are scanned once for rules;
//! parsed rules are cached by text.

mod matcher;
mod objects;
mod patterns;
mod prohibitions;
mod rule;
mod times;
mod words;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use embody_store::memory_rules::{MemoryRuleLimits, MemoryRuleScan, MemoryRules, UnscannedMemories};
use embody_store::{Scope, Store};
use jiff::Timestamp;
use jiff::civil::DateTime;
use schemars::JsonSchema;
use serde::Serialize;

use self::matcher::PreparedCall;
use self::rule::{Rule, parse_rules};
use self::words::rule_sentences;
use super::features::CallFeatures;
use crate::error::Result;
use crate::zoned_now::ZonedNow;

/// Memories whose rules are looked at, newest first: the owner's and others' each on their own, so that whoever writes much
/// does not push the owner's out; and those that nobody looked through yet, so that what was just saved counts at once.
const LIMITS: MemoryRuleLimits = MemoryRuleLimits { owners: 256, others: 256, fresh: 64 };
const MAX_FLAGS: usize = 8;
/// A rule is quoted up to here, in characters.
const QUOTE_CHARS: usize = 300;

/// A rule that speaks against a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Flag {
    /// The rule, in its own words.
    pub rule: String,
    /// Where it stands.
    pub source: FlagSource,
    /// Why it applies.
    pub reason: String,
}

/// Where a rule stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum FlagSource {
    /// In the standing instructions.
    Instructions {
        /// Their version.
        version: i64,
    },
    /// In a memory.
    Memory {
        /// Its id.
        id: String,
        /// How far its writer was trusted.
        trust: String,
    },
    /// In no text: there are rules that were not looked at.
    Unread,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RuleMatches {
    pub(super) flags: Vec<Flag>,
    pub(super) saved: u64,
}

pub(super) async fn match_rules(
    store: &Store,
    scope: &Scope,
    features: &CallFeatures,
    now: &ZonedNow,
) -> Result<RuleMatches> {
    let action = matcher::classify(&features.words);
    let subject = PreparedCall::new(features, action, now.local().datetime());
    let mut matches = RuleMatches::default();
    let instructions = store.instructions().get(scope).await?;
    let said = local(instructions.changed_at, now);
    let source = FlagSource::Instructions { version: instructions.version };
    flag(&mut matches.flags, &subject, &instructions.text, said, &source);
    let known = store.memory_rules().list(scope, LIMITS).await?;
    matches.saved = known.saved;
    for memory in &known.memories {
        let source = FlagSource::Memory { id: memory.id.clone(), trust: memory.trust.clone() };
        flag(&mut matches.flags, &subject, &memory.text, local(memory.occurred_at, now), &source);
    }
    let unread = unread(&known).filter(|_| !action.reads && matches.flags.len() < MAX_FLAGS);
    matches.flags.extend(unread);
    Ok(matches)
}

/// A rule that nobody looked at may speak against anything.
fn unread(known: &MemoryRules) -> Option<Flag> {
    let behind = known.unscanned.saturating_sub(u64::from(LIMITS.fresh));
    let reason = match (behind, known.more) {
        (0, false) => return None,
        (0, true) => "more memories contain rules than are compared with a call".to_owned(),
        (behind, _) => format!("{behind} memories were not scanned for rules yet"),
    };
    let rule = "a rule that was not compared may forbid the call".to_owned();
    Some(Flag { rule, source: FlagSource::Unread, reason })
}

/// Adds the flags of one text; the same sentence flags once.
fn flag(flags: &mut Vec<Flag>, subject: &PreparedCall<'_>, text: &str, said: DateTime, source: &FlagSource) {
    for (sentence, rules) in rules_of(text, said).iter() {
        if flags.len() >= MAX_FLAGS {
            return;
        }
        let counts = |rule: &&Rule| rule.is_sure() || matches!(source, FlagSource::Instructions { .. });
        let broken = rules.iter().filter(counts).find_map(|rule| subject.violation(rule));
        let Some(reason) = broken else { continue };
        let rule: String = sentence.chars().take(QUOTE_CHARS).collect();
        if flags.iter().all(|flag| flag.rule != rule) {
            flags.push(Flag { rule, source: source.clone(), reason });
        }
    }
}

/// A time of the store on the owner's clock.
fn local(micros: i64, now: &ZonedNow) -> DateTime {
    let at = Timestamp::from_microsecond(micros).unwrap_or(Timestamp::UNIX_EPOCH);
    at.to_zoned(now.zone().clone()).datetime()
}

const PAGE: u32 = 500;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayProgress {
    pub scanned: u64,
    pub restricting: u64,
    pub more: bool,
}

/// Scans memories that are new or were rewritten since the last scan; at most `limit`, rounded up to a page. Runs in the
/// background: at start, and after memories were saved.
pub async fn replay(store: &Store, scope: &Scope, limit: u64) -> Result<ReplayProgress> {
    let mut done = ReplayProgress::default();
    while done.scanned < limit {
        let UnscannedMemories { memories: page, up_to } =
            store.memory_rules().list_unscanned(scope, PAGE).await?;
        let mut scan = MemoryRuleScan { up_to, ..MemoryRuleScan::default() };
        for memory in &page {
            let judged = (memory.seq, memory.version);
            if is_restricting(&memory.text) { &mut scan.restricting } else { &mut scan.harmless }
                .push(judged);
        }
        if page.is_empty() {
            return Ok(done);
        }
        done.scanned += page.len() as u64;
        done.restricting += scan.restricting.len() as u64;
        store.memory_rules().record_scan(scope, scan).await?;
        // Other tasks of this thread have their turn between two pages.
        tokio::task::yield_now().await;
    }
    Ok(ReplayProgress { more: true, ..done })
}

/// Whether a text has a rule in it. When it was said changes dates only.
fn is_restricting(text: &str) -> bool {
    rule_sentences(text)
        .into_iter()
        .any(|sentence| parse_rules(sentence, DateTime::default()).iter().any(Rule::is_sure))
}

/// When the cache exceeds this, it is cleared.
const MAX_BYTES: usize = 4 * 1024 * 1024;
const ENTRY_OVERHEAD: usize = 512;

type CachedRules = Arc<[(String, Vec<Rule>)]>;

#[derive(Default)]
struct RuleCache {
    texts: HashMap<String, Vec<(DateTime, CachedRules)>>,
    bytes: usize,
}

static CACHE: LazyLock<Mutex<RuleCache>> = LazyLock::new(Mutex::default);

fn rules_of(text: &str, said: DateTime) -> CachedRules {
    let cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    let same = cache.texts.get(text).and_then(|cache| cache.iter().find(|(at, _)| *at == said));
    if let Some((_, rules)) = same {
        return Arc::clone(rules);
    }
    drop(cache);
    let read =
        rule_sentences(text).into_iter().map(|sentence| (sentence.to_owned(), parse_rules(sentence, said)));
    let rules: CachedRules = read.filter(|(_, rules)| !rules.is_empty()).collect();
    let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    cache.bytes += text.len() + ENTRY_OVERHEAD;
    if cache.bytes > MAX_BYTES {
        *cache = RuleCache { bytes: text.len() + ENTRY_OVERHEAD, ..RuleCache::default() };
    }
    cache.texts.entry(text.to_owned()).or_default().push((said, Arc::clone(&rules)));
    rules
}

#[cfg(test)]
mod tests;
