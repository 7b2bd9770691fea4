//! The profile of one tool: its arguments by JSON path, their values and sizes, how often it fails. Also the codec of the
//! profiles: bytes that cannot be decoded count as an empty profile, which is learned again.

use super::Hasher;
use super::{
    FAILED, KNOWN_PARENT, LARGE, LOWERED, MOVING, NEW_PARENT, NEW_PATH, NEW_VALUE, RARE_VALUE, Signal,
    confidence, decay, quote, rarity,
};
use crate::observe::features::parent_of;
use crate::observe::features::{CallFeatures, Leaf, Outcome};

const VERSION: u8 = 1;
/// Paths of one tool; the least used is evicted.
pub(super) const MAX_PATHS: usize = 48;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ToolProfile {
    pub(super) calls: u32,
    /// Moving counts of calls that ended, and of failures.
    ended: f32,
    failed: f32,
    /// A moving count of calls with an argument that was never given before.
    fresh: f32,
    /// The most bytes that its arguments were, lowered a little by each call.
    bytes: f32,
    at_min: u32,
    paths: Vec<ArgProfile>,
}

impl ToolProfile {
    /// Decodes a profile and applies the decay since then; an invalid one becomes empty.
    pub(super) fn read(data: &[u8], now_min: u32) -> Self {
        let mut tool = Self::decode(data).unwrap_or_default();
        let factor = decay(now_min.saturating_sub(tool.at_min));
        tool.paths.iter_mut().for_each(|path| path.decay_values(factor));
        tool.at_min = tool.at_min.max(now_min);
        tool
    }

    pub(super) fn values(&self, features: &CallFeatures, hasher: &Hasher) -> Option<Signal> {
        features.leaves.iter().map(|leaf| self.value(leaf, hasher)).fold(None, Signal::stronger)
    }

    fn value(&self, leaf: &Leaf, hasher: &Hasher) -> Option<Signal> {
        let Some(path) = self.path(hasher.path(&leaf.path)) else { return self.new_path(&leaf.path) };
        let observed = |text| ObservedValue {
            path: &leaf.path,
            text,
            secret: leaf.secret,
            hash: hasher.value(&leaf.path, text),
        };
        let Some((what, place)) = parent_of(&leaf.text) else {
            return path.signal(observed(&leaf.text), None);
        };
        let parent = self.path(hasher.parent(&leaf.path, what));
        path.signal(observed(&leaf.text), parent.map(|parent| (parent, observed(&place), what)))
    }

    fn new_path(&self, path: &str) -> Option<Signal> {
        let share = (f64::from(self.fresh) + 0.5) / (f64::from(self.ended) + 1.0);
        let weight = NEW_PATH * confidence(f64::from(self.calls), 8.0) * rarity(share);
        Some(Signal::new(weight, format!("`{path}` was never given in {} calls", self.calls)))
    }

    /// The heaviest signal about sizes: of all arguments, of a list, of a number.
    pub(super) fn sizes(&self, features: &CallFeatures, hasher: &Hasher) -> Option<Signal> {
        let whole = large(features.bytes as f64, f64::from(self.bytes), self.calls).map(|weight| {
            let reason = format!(
                "the arguments have {} bytes; the most in {} calls was {}",
                features.bytes,
                self.calls,
                self.bytes.round()
            );
            Signal::new(weight, reason)
        });
        let lists = features.lists.iter().map(|(path, length)| {
            self.path(hasher.list(path))?.large(path, *length as f64, "has a length of")
        });
        // The digits of a secret are no amount.
        let numbers = features
            .leaves
            .iter()
            .filter(|leaf| !leaf.secret)
            .map(|leaf| self.path(hasher.path(&leaf.path))?.large(&leaf.path, leaf.number?.abs(), "is"));
        lists.chain(numbers).fold(whole, Signal::stronger)
    }

    pub(super) fn outcome(&self, features: &CallFeatures) -> Option<Signal> {
        if features.outcome != Some(Outcome::Failed) {
            return None;
        }
        let share = (f64::from(self.failed) + 0.5) / (f64::from(self.ended) + 1.0);
        let weight = FAILED * confidence(f64::from(self.calls), 2.0) * rarity(share);
        let reason = format!("it failed, as about {:.0} of 100 calls do", share * 100.0);
        Some(Signal::new(weight, reason))
    }

    /// Counts a finished call. The values of a failed call are not learned: repeated attempts must not make them usual.
    pub(super) fn learn(&mut self, features: &CallFeatures, hasher: &Hasher) {
        let failed = features.outcome == Some(Outcome::Failed);
        self.ended = self.ended * MOVING + 1.0;
        self.failed = self.failed * MOVING + if failed { 1.0 } else { 0.0 };
        if failed {
            return;
        }
        self.calls = self.calls.saturating_add(1);
        let new =
            self.calls > 1 && features.leaves.iter().any(|leaf| self.path(hasher.path(&leaf.path)).is_none());
        self.fresh = self.fresh * MOVING + if new { 1.0 } else { 0.0 };
        self.bytes = (self.bytes * LOWERED).max(features.bytes as f32);
        for (path, length) in &features.lists {
            self.learn_at(hasher.list(path), &[], *length as f64);
        }
        let mut learned: Vec<(u64, Vec<u64>, f64)> = Vec::new();
        for leaf in &features.leaves {
            let amount = leaf.number.map_or(0.0, f64::abs);
            merge_value(&mut learned, hasher.path(&leaf.path), hasher.value(&leaf.path, &leaf.text), amount);
            if let Some((what, place)) = parent_of(&leaf.text) {
                merge_value(
                    &mut learned,
                    hasher.parent(&leaf.path, what),
                    hasher.value(&leaf.path, &place),
                    0.0,
                );
            }
        }
        for (path, values, amount) in learned.into_iter().take(MAX_PATHS) {
            self.learn_at(path, &values, amount);
        }
    }

    fn learn_at(&mut self, hash: u64, values: &[u64], amount: f64) {
        if let Some(path) = self.paths.iter_mut().find(|path| path.hash == hash) {
            return path.learn(values, amount);
        }
        if self.paths.len() >= MAX_PATHS {
            drop_lightest(&mut self.paths, |path| path.seen);
        }
        let mut path = ArgProfile::new(hash);
        path.learn(values, amount);
        self.paths.push(path);
    }

    fn path(&self, hash: u64) -> Option<&ArgProfile> {
        self.paths.iter().find(|path| path.hash == hash)
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut encoder = Encoder::default();
        encoder.byte(VERSION);
        encoder.int(self.calls);
        encoder.real(self.ended);
        encoder.real(self.failed);
        encoder.real(self.fresh);
        encoder.real(self.bytes);
        encoder.int(self.at_min);
        encoder.list(&self.paths, |encoder, path| path.encode(encoder));
        encoder.finish()
    }

    fn decode(data: &[u8]) -> Option<Self> {
        let mut decoder = Decoder::new(data);
        decoder.byte().filter(|version| *version == VERSION)?;
        let tool = Self {
            calls: decoder.int()?,
            ended: decoder.real()?,
            failed: decoder.real()?,
            fresh: decoder.real()?,
            bytes: decoder.real()?,
            at_min: decoder.int()?,
            paths: decoder.list(MAX_PATHS, ArgProfile::decode)?,
        };
        decoder.is_done().then_some(tool)
    }
}

fn merge_value(learned: &mut Vec<(u64, Vec<u64>, f64)>, path: u64, value: u64, amount: f64) {
    match learned.iter_mut().find(|(known, ..)| *known == path) {
        Some((_, values, high)) => {
            if !values.contains(&value) {
                values.push(value);
            }
            *high = high.max(amount);
        }
        None => learned.push((path, vec![value], amount)),
    }
}

/// Values of one path; the lightest is evicted.
pub(super) const MAX_VALUES: usize = 32;
const FORGOTTEN: f32 = 0.1;
const HABIT: f32 = 3.0;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ArgProfile {
    pub(super) hash: u64,
    calls: u32,
    /// The same as moving counts, and those among them with a value that was new.
    pub(super) seen: f32,
    fresh: f32,
    /// The largest number, or the longest list, lowered a little by each call.
    high: f32,
    values: Vec<(u64, f32)>,
}

/// A value at a path: its own hash, and that of what it belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct ObservedValue<'a> {
    pub(super) path: &'a str,
    pub(super) text: &'a str,
    pub(super) secret: bool,
    pub(super) hash: u64,
}

impl ObservedValue<'_> {
    fn quoted(self) -> String {
        if self.secret { "this hidden value".to_owned() } else { quote(self.text) }
    }
}

impl ArgProfile {
    pub(super) fn new(hash: u64) -> Self {
        Self { hash, ..Self::default() }
    }

    /// A new or rare value. `parent` is the profile of the domains, hosts or folders of this argument, and this value's own.
    pub(super) fn signal(
        &self,
        observed: ObservedValue<'_>,
        parent: Option<(&Self, ObservedValue<'_>, &str)>,
    ) -> Option<Signal> {
        let (path, calls, trust) = (observed.path, self.calls, confidence(f64::from(self.calls), 4.0));
        let Some(weight) = self.weight(observed.hash) else {
            let weight = NEW_VALUE * trust * rarity(self.share_of_new());
            let reason = format!("`{path}` was never {} in {calls} calls", observed.quoted());
            return match parent {
                Some((parent, place, what)) if parent.weight(place.hash).is_none() && parent.calls > 0 => {
                    let trust = confidence(f64::from(parent.calls), 4.0);
                    let strange = NEW_PARENT * trust * rarity(parent.share_of_new());
                    let reason = format!("{reason}, and never of the {what} {}", place.quoted());
                    Some(Signal::new(weight.max(strange), reason))
                }
                Some(_) => Some(Signal::new(weight * KNOWN_PARENT, reason)),
                None => Some(Signal::new(weight, reason)),
            };
        };
        if weight >= HABIT {
            return None;
        }
        let rare = f64::from(1.0 - weight / HABIT) * rarity(self.share_of_new());
        let reason = format!("`{path}` was seldom {} in {calls} calls", observed.quoted());
        Some(Signal::new(RARE_VALUE * trust * rare, reason))
    }

    /// A number or a length far beyond the largest.
    pub(super) fn large(&self, path: &str, amount: f64, what: &str) -> Option<Signal> {
        large(amount, f64::from(self.high), self.calls).map(|weight| {
            Signal::new(
                weight,
                format!(
                    "`{path}` {what} {amount}; the most in {} calls was {}",
                    self.calls,
                    self.high.round()
                ),
            )
        })
    }

    pub(super) fn learn(&mut self, hashes: &[u64], amount: f64) {
        let new = hashes.iter().any(|hash| self.weight(*hash).is_none());
        self.calls = self.calls.saturating_add(1);
        self.seen = self.seen * MOVING + 1.0;
        self.fresh = self.fresh * MOVING + if new { 1.0 } else { 0.0 };
        self.high = (self.high * LOWERED).max(amount.clamp(0.0, f64::from(f32::MAX)) as f32);
        for hash in hashes.iter().take(MAX_VALUES) {
            match self.values.iter_mut().find(|(known, _)| known == hash) {
                Some((_, weight)) => *weight += 1.0,
                None => {
                    if self.values.len() >= MAX_VALUES {
                        drop_lightest(&mut self.values, |(_, weight)| *weight);
                    }
                    self.values.push((*hash, 1.0));
                }
            }
        }
    }

    pub(super) fn decay_values(&mut self, factor: f32) {
        self.values.iter_mut().for_each(|(_, weight)| *weight *= factor);
        self.values.retain(|(_, weight)| *weight >= FORGOTTEN);
    }

    fn weight(&self, hash: u64) -> Option<f32> {
        self.values.iter().find(|(known, _)| *known == hash).map(|(_, weight)| *weight)
    }

    fn share_of_new(&self) -> f64 {
        (f64::from(self.fresh) + 0.5) / (f64::from(self.seen) + 1.0)
    }

    pub(super) fn encode(&self, encoder: &mut Encoder) {
        encoder.long(self.hash);
        encoder.int(self.calls);
        encoder.real(self.seen);
        encoder.real(self.fresh);
        encoder.real(self.high);
        encoder.list(&self.values, |encoder, (hash, weight)| {
            encoder.long(*hash);
            encoder.real(*weight);
        });
    }

    pub(super) fn decode(decoder: &mut Decoder<'_>) -> Option<Self> {
        Some(Self {
            hash: decoder.long()?,
            calls: decoder.int()?,
            seen: decoder.real()?,
            fresh: decoder.real()?,
            high: decoder.real()?,
            values: decoder.list(MAX_VALUES, |decoder| Some((decoder.long()?, decoder.real()?)))?,
        })
    }
}

/// The weight of an amount beyond the largest: from twice (zero) to sixteen times (the maximum).
pub(super) fn large(amount: f64, high: f64, calls: u32) -> Option<f64> {
    let beyond = (amount.max(1.0) / (2.0 * high.max(1.0))).ln() / 8_f64.ln();
    (beyond > 0.0 && calls > 0).then(|| LARGE * confidence(f64::from(calls), 4.0) * beyond.min(1.0))
}

pub(super) fn drop_lightest<T>(items: &mut Vec<T>, weight: impl Fn(&T) -> f32) -> Option<T> {
    let lightest =
        items.iter().enumerate().min_by(|(_, one), (_, other)| weight(one).total_cmp(&weight(other)));
    let index = lightest.map(|(index, _)| index)?;
    Some(items.remove(index))
}

#[derive(Default)]
pub(super) struct Encoder(Vec<u8>);

impl Encoder {
    pub(super) fn byte(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(super) fn int(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }

    pub(super) fn long(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }

    pub(super) fn real(&mut self, value: f32) {
        self.0.extend(value.to_le_bytes());
    }

    pub(super) fn list<T>(&mut self, items: &[T], mut item: impl FnMut(&mut Self, &T)) {
        self.int(u32::try_from(items.len()).unwrap_or(0));
        items.iter().for_each(|one| item(self, one));
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.0
    }
}

pub(super) struct Decoder<'a>(&'a [u8]);

impl<'a> Decoder<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    pub(super) fn int(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    pub(super) fn long(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    /// A finite, non-negative weight.
    pub(super) fn real(&mut self) -> Option<f32> {
        self.take().map(f32::from_le_bytes).filter(|value| value.is_finite() && *value >= 0.0)
    }

    pub(super) fn list<T>(
        &mut self,
        most: usize,
        mut item: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let count =
            self.int().and_then(|count| usize::try_from(count).ok()).filter(|count| *count <= most)?;
        (0..count).map(|_| item(self)).collect()
    }

    pub(super) fn is_done(&self) -> bool {
        self.0.is_empty()
    }
}
