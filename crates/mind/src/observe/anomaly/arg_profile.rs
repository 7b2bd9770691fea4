//! What stands at one JSON path: how often, which values, how many of them are new, how large they get.

use super::codec::{Decoder, Encoder};
use super::score::{
    KNOWN_PARENT, LARGE, LOWERED, MOVING, NEW_PARENT, NEW_VALUE, RARE_VALUE, Signal, confidence, quote,
    rarity,
};

/// Values of one path; the lightest makes room.
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

/// How much it weighs that an amount is larger than ever: twice the largest is nothing, sixteen times is all.
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
