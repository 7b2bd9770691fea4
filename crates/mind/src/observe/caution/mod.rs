//! The owner's rules: which standing instructions and memories speak against a call.

mod bans;
mod clock;
mod deed;
mod known;
mod lexicon;
mod matching;
mod objects;
mod parse;
mod patterns;
mod rule;
mod scan;
mod statements;
#[cfg(test)]
mod tests;
mod times;
mod when;
pub(super) mod words;

use embody_store::{MemoryRuleLimits, MemoryRules, Scope, Store};
use jiff::Timestamp;
use jiff::civil::DateTime;
use schemars::JsonSchema;
use serde::Serialize;

use self::matching::Subject;
use self::rule::Rule;
pub use self::scan::{CaughtUp, catch_up};
use super::call::Reading;
use crate::error::Result;
use crate::moment::Moment;

/// Memories whose rules are looked at, newest first: the owner's and others' each on their own, so that whoever writes much
/// does not push the owner's out; and those that nobody looked through yet, so that what was just saved counts at once.
const LIMITS: MemoryRuleLimits = MemoryRuleLimits { owners: 256, others: 256, fresh: 64 };
const MOST_FLAGS: usize = 8;
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

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cautioned {
    pub(super) flags: Vec<Flag>,
    /// How many memories there ever were.
    pub(super) saved: u64,
}

/// The rules that speak against a call.
pub(super) async fn memory_rules(
    store: &Store,
    scope: &Scope,
    reading: &Reading,
    now: &Moment,
) -> Result<Cautioned> {
    let deed = deed::deed(&reading.words);
    let subject = Subject::new(reading, deed, now.local().datetime());
    let mut cautioned = Cautioned::default();
    let instructions = store.instructions(scope).await?;
    let said = local(instructions.changed_at, now);
    let source = FlagSource::Instructions { version: instructions.version };
    flag(&mut cautioned.flags, &subject, &instructions.text, said, &source);
    let known = store.memory_rules(scope, LIMITS).await?;
    cautioned.saved = known.saved;
    for memory in &known.memories {
        let source = FlagSource::Memory { id: memory.id.clone(), trust: memory.trust.clone() };
        flag(&mut cautioned.flags, &subject, &memory.text, local(memory.occurred_at, now), &source);
    }
    let unread = unread(&known).filter(|_| !deed.reads && cautioned.flags.len() < MOST_FLAGS);
    cautioned.flags.extend(unread);
    Ok(cautioned)
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
fn flag(flags: &mut Vec<Flag>, subject: &Subject<'_>, text: &str, said: DateTime, source: &FlagSource) {
    for (sentence, rules) in known::ruled(text, said).iter() {
        if flags.len() >= MOST_FLAGS {
            return;
        }
        let counts = |rule: &&Rule| rule.is_sure() || matches!(source, FlagSource::Instructions { .. });
        let broken = rules.iter().filter(counts).find_map(|rule| subject.breaks(rule));
        let Some(reason) = broken else { continue };
        let rule: String = sentence.chars().take(QUOTE_CHARS).collect();
        if flags.iter().all(|flag| flag.rule != rule) {
            flags.push(Flag { rule, source: source.clone(), reason });
        }
    }
}

/// A time of the store on the owner's clock.
fn local(micros: i64, now: &Moment) -> DateTime {
    let at = Timestamp::from_microsecond(micros).unwrap_or(Timestamp::UNIX_EPOCH);
    at.to_zoned(now.zone().clone()).datetime()
}
