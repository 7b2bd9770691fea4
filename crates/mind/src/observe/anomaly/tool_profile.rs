//! What is usual for one tool: its arguments by path, their size, how often it fails.

use super::Hasher;
use super::arg_profile::{ArgProfile, ObservedValue, drop_lightest, large};
use super::codec::{Decoder, Encoder};
use super::score::{FAILED, LOWERED, MOVING, NEW_PATH, Signal, confidence, decay, rarity};
use crate::observe::features::{CallFeatures, Leaf, Outcome};
use crate::observe::role::parent_of;

const VERSION: u8 = 1;
/// Paths of one tool; the one seen least makes room.
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
    /// As it was kept, faded by the time since. What cannot be read begins anew.
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

    /// The heaviest doubt about sizes: of all arguments, of a list, of a number.
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

    /// One more call that is over. One that failed reached nobody, so nothing in it becomes usual: whoever tries often
    /// enough must not be believed in the end.
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

/// Several values at one path are one call of it.
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
