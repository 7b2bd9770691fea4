//! How unusual a call is: loads the sequence profile and the tool profile, collects a signal from each part, and combines
//! them. Learning updates the same profiles in one transaction.

mod arg_profile;
mod codec;
mod dedup;
mod score;
mod sequence;
#[cfg(test)]
mod tests;
mod tool_profile;

use std::collections::BTreeMap;

use embody_store::{Scope, Store, UsageProfile};

use self::dedup::SeenKeys;
use self::score::{COLD_CALLS, Signal, combine};
use self::sequence::SequenceProfile;
use self::tool_profile::ToolProfile;
use super::features::CallFeatures;
use crate::Caller;
use crate::error::Result;
use crate::zoned_now::ZonedNow;

/// Weaker signals get no reason.
const MIN_REPORTED_WEIGHT: f64 = 0.1;
const SEQUENCE: &str = "order";
const DEDUP: &str = "heard";

#[derive(Clone, Debug, PartialEq)]
pub(super) struct AnomalyScore {
    pub(super) prediction_error: f64,
    pub(super) reasons: Vec<String>,
}

/// Compares a call with what is usual. Writes nothing.
pub(super) async fn assess(
    store: &Store,
    caller: &Caller,
    features: &CallFeatures,
    now: &ZonedNow,
) -> Result<AnomalyScore> {
    let hasher = Hasher::new(&caller.scope);
    let subject = subject(hasher.tool(&features.tool));
    let habits = store.usage_profiles().list(&caller.scope, &[SEQUENCE.to_owned(), subject.clone()]).await?;
    let habits = habits.into_iter().map(|habit| (habit.subject, habit.data)).collect();
    let (sequence, tool) = profiles(&habits, &subject, now);
    Ok(compare(&sequence, &tool, features, caller, &hasher, now))
}

/// Counts a call that is over as usual, unless it was counted under this key before.
pub(super) async fn learn(
    store: &Store,
    caller: &Caller,
    features: &CallFeatures,
    key: &str,
    now: &ZonedNow,
) -> Result<()> {
    let hasher = Hasher::new(&caller.scope);
    let subject = subject(hasher.tool(&features.tool));
    let subjects = vec![DEDUP.to_owned(), SEQUENCE.to_owned(), subject.clone()];
    let key = hasher.key(key);
    let (scope, caller, features, now) =
        (caller.scope.clone(), caller.clone(), features.clone(), now.clone());
    let at = now.micros();
    let change = move |habits: BTreeMap<String, Vec<u8>>| {
        let mut seen = SeenKeys::read(habits.get(DEDUP).map(Vec::as_slice).unwrap_or_default());
        if !seen.insert(key) {
            return Vec::new();
        }
        let (mut sequence, mut tool) = profiles(&habits, &subject, &now);
        tool.learn(&features, &hasher);
        let gone = sequence.learn(&features, &caller, &hasher, &now);
        let gone = gone.map(|tool| UsageProfile { subject: self::subject(tool), data: Vec::new() });
        let kept = [
            UsageProfile { subject: DEDUP.to_owned(), data: seen.encode() },
            UsageProfile { subject: SEQUENCE.to_owned(), data: sequence.encode() },
            UsageProfile { subject, data: tool.encode() },
        ];
        gone.into_iter().chain(kept).collect()
    };
    Ok(store.usage_profiles().update(&scope, subjects, at, change).await?)
}

fn profiles(
    habits: &BTreeMap<String, Vec<u8>>,
    subject: &str,
    now: &ZonedNow,
) -> (SequenceProfile, ToolProfile) {
    let data = |subject: &str| habits.get(subject).map(Vec::as_slice).unwrap_or_default();
    let minutes = u32::try_from(now.micros() / 60_000_000).unwrap_or(0);
    (SequenceProfile::read(data(SEQUENCE), minutes), ToolProfile::read(data(subject), minutes))
}

fn compare(
    sequence: &SequenceProfile,
    tool: &ToolProfile,
    features: &CallFeatures,
    caller: &Caller,
    hasher: &Hasher,
    now: &ZonedNow,
) -> AnomalyScore {
    let parts = [
        sequence.signal(features, caller, hasher),
        sequence.hour(now),
        tool.values(features, hasher),
        tool.sizes(features, hasher),
        tool.outcome(features),
    ];
    let mut signals: Vec<Signal> = parts.into_iter().flatten().collect();
    let prediction_error = combine(&signals, sequence.calls);
    signals.sort_by(|one, other| other.weight.total_cmp(&one.weight));
    let worth = signals.into_iter().filter(|signal| signal.weight >= MIN_REPORTED_WEIGHT);
    let mut reasons: Vec<String> = worth.map(|signal| signal.reason).collect();
    if sequence.calls < COLD_CALLS {
        let seen = if sequence.calls == 1 { "call was seen" } else { "calls were seen" };
        reasons.push(format!("only {} {seen} so far: little is known of what is usual", sequence.calls));
    }
    AnomalyScore { prediction_error, reasons }
}

fn subject(tool: u64) -> String {
    format!("tool {tool:016x}")
}

/// Names and values as numbers. Those of two scopes differ, so that nobody can compare them.
#[derive(Clone)]
pub(super) struct Hasher {
    scope: blake3::Hasher,
}

impl Hasher {
    fn new(scope: &Scope) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("embody mind habits");
        for part in [scope.user(), scope.agent()] {
            hasher.update(part.as_bytes()).update(&[0]);
        }
        Self { scope: hasher }
    }

    fn tool(&self, name: &str) -> u64 {
        self.hash(b"tool", &[name])
    }

    fn key(&self, key: &str) -> u64 {
        self.hash(b"key", &[key])
    }

    fn pair(&self, one: u64, other: u64) -> u64 {
        self.hash(b"pair", &[&one.to_string(), &other.to_string()])
    }

    fn session(&self, caller: &Caller) -> u64 {
        self.hash(b"session", &[caller.session.as_deref().unwrap_or_default()])
    }

    fn path(&self, path: &str) -> u64 {
        self.hash(b"path", &[path])
    }

    fn list(&self, path: &str) -> u64 {
        self.hash(b"list", &[path])
    }

    /// Domains, hosts or folders of a path's values.
    fn parent(&self, path: &str, what: &str) -> u64 {
        self.hash(b"home", &[path, what])
    }

    fn value(&self, path: &str, text: &str) -> u64 {
        self.hash(b"value", &[path, &text.trim().to_lowercase()])
    }

    fn hash(&self, sort: &[u8], parts: &[&str]) -> u64 {
        let mut hasher = self.scope.clone();
        hasher.update(sort);
        for part in parts {
            hasher.update(&[0]).update(part.as_bytes());
        }
        let [a, b, c, d, e, f, g, h, ..] = *hasher.finalize().as_bytes();
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }
}
