//! How unusual a call is: loads the sequence profile and the tool profile, collects a signal from each part, and combines
//! them; every weight of the predictor is here. Learning updates the same profiles in one transaction, once for each
//! idempotency key.

mod profile;
mod sequence;

use std::collections::BTreeMap;

use embody_store::{Scope, Store, UsageProfile};

use self::profile::{Decoder, Encoder, ToolProfile};
use self::sequence::SequenceProfile;
use super::features::CallFeatures;
use crate::Caller;
use crate::error::Result;
use crate::zoned_now::ZonedNow;

/// Weaker signals are not reported.
const MIN_REPORTED_WEIGHT: f64 = 0.1;
const SEQUENCE: &str = "order";
const DEDUP: &str = "heard";

#[derive(Clone, Debug, PartialEq)]
pub(super) struct AnomalyScore {
    pub(super) prediction_error: f64,
    pub(super) reasons: Vec<String>,
}

/// Compares a call with the profiles. Writes nothing.
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

/// Updates the profiles with a finished call, unless this key was counted before.
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
        reasons
            .push(format!("only {} {seen} so far, which is too few to know what is usual", sequence.calls));
    }
    AnomalyScore { prediction_error, reasons }
}

fn subject(tool: u64) -> String {
    format!("tool {tool:016x}")
}

/// Hashes names and values with the scope, so that the hashes of two scopes cannot be compared.
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

const HALF_LIFE_MIN: f32 = 30.0 * 24.0 * 60.0;
/// A moving share looks back over about a hundred calls.
const MOVING: f32 = 0.99;
/// Each call lowers the largest amount, so that one outlier does not hide all others for ever.
const LOWERED: f32 = 0.995;
/// With fewer calls than this nothing is held for being unusual.
const COLD_CALLS: u32 = 20;
const COLD_LIMIT: f64 = 0.5;
const COLD_SCORE: f64 = 0.3;

/// The maximum weight of each signal.
const NEW_VALUE: f64 = 0.8;
const NEW_PARENT: f64 = 0.9;
const NEW_PATH: f64 = 0.5;
const RARE_VALUE: f64 = 0.2;
const KNOWN_PARENT: f64 = 0.7;
const UNUSUAL_TOOL: f64 = 0.65;
const UNUSUAL_HOUR: f64 = 0.7;
const QUIET_WEEKEND: f64 = 0.35;
const LARGE: f64 = 0.85;
const FAILED: f64 = 0.7;

/// The factor for a weight after this many minutes.
fn decay(minutes: u32) -> f32 {
    (-(minutes as f32) / HALF_LIFE_MIN).exp2()
}

/// The confidence in this many observations; `half` of them give one half.
fn confidence(observations: f64, half: f64) -> f64 {
    observations / (observations + half)
}

fn rarity(share: f64) -> f64 {
    1.0 - share.clamp(0.0, 1.0).sqrt()
}

#[derive(Clone, Debug, PartialEq)]
struct Signal {
    weight: f64,
    reason: String,
}

impl Signal {
    fn new(weight: f64, reason: String) -> Self {
        Self { weight: weight.clamp(0.0, 1.0), reason }
    }

    /// The heavier of two signals that often have the same cause and must not be counted twice.
    fn stronger(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(one), Some(other)) => Some(if other.weight > one.weight { other } else { one }),
            (one, other) => one.or(other),
        }
    }
}

/// Combines the signals into one score, given the number of calls so far.
fn combine(signals: &[Signal], calls: u32) -> f64 {
    let error = 1.0 - signals.iter().map(|signal| 1.0 - signal.weight).product::<f64>();
    if calls >= COLD_CALLS {
        return error;
    }
    let unknown = COLD_SCORE * (1.0 - f64::from(calls) / f64::from(COLD_CALLS));
    error.max(unknown).min(COLD_LIMIT)
}

/// A value for a sentence: at most eighty characters, on one line.
fn quote(text: &str) -> String {
    let flat: String =
        text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).take(81).collect();
    if flat.chars().count() <= 80 {
        return format!("`{flat}`");
    }
    format!("`{}…`", flat.chars().take(80).collect::<String>())
}

/// A repeated observation arrives soon after the first.
const MAX_KEYS: usize = 256;

#[derive(Debug, Default, PartialEq, Eq)]
struct SeenKeys(Vec<u64>);

impl SeenKeys {
    fn read(bytes: &[u8]) -> Self {
        Self(Decoder::new(bytes).list(MAX_KEYS, Decoder::long).unwrap_or_default())
    }

    fn encode(&self) -> Vec<u8> {
        let mut encoder = Encoder::default();
        encoder.list(&self.0, |encoder, key| encoder.long(*key));
        encoder.finish()
    }

    /// Whether the key was new.
    fn insert(&mut self, key: u64) -> bool {
        if self.0.contains(&key) {
            return false;
        }
        if self.0.len() >= MAX_KEYS {
            self.0.remove(0);
        }
        self.0.push(key);
        true
    }
}

#[cfg(test)]
mod tests;
