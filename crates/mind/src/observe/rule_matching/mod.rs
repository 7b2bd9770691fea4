//! The owner's rules: which standing instructions and memories speak against a call.

mod clock;
mod lexicon;
mod matcher;
mod objects;
mod parse;
mod patterns;
mod prohibitions;
mod replay;
mod rule;
mod rule_cache;
#[cfg(test)]
mod tests;
mod times;
pub(super) mod tokenizer;
mod tool_action;

use embody_store::memory_rules::{MemoryRuleLimits, MemoryRules};
use embody_store::{Scope, Store};
use jiff::Timestamp;
use jiff::civil::DateTime;
use schemars::JsonSchema;
use serde::Serialize;

use self::matcher::PreparedCall;
pub use self::replay::{ReplayProgress, replay};
use self::rule::Rule;
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
    let action = tool_action::classify(&features.words);
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
        (0, true) => "more memories have rules than are looked at for a call".to_owned(),
        (behind, _) => format!("{behind} memories were not looked through for rules yet"),
    };
    let rule = "a rule that was not looked at may speak against it".to_owned();
    Some(Flag { rule, source: FlagSource::Unread, reason })
}

/// Adds the flags of one text; the same sentence flags once.
fn flag(flags: &mut Vec<Flag>, subject: &PreparedCall<'_>, text: &str, said: DateTime, source: &FlagSource) {
    for (sentence, rules) in rule_cache::rules_of(text, said).iter() {
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
