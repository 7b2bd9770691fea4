//! What stands at one JSON path: how often, which values, how many of them are new, how large they get.

use super::codec::{Pack, Unpack};
use super::weigh::{
    Doubt, KNOWN_HOME, LARGE, LOWERED, MOVING, NEW_HOME, NEW_VALUE, RARE_VALUE, confidence, quote, rarity,
};

/// Values of one path; the lightest makes room.
pub(super) const MOST_VALUES: usize = 32;
/// A value that weighs less was forgotten.
const FORGOTTEN: f32 = 0.1;
/// A value with this weight is a habit.
const HABIT: f32 = 3.0;

/// What is usual at a path.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Path {
    pub(super) hash: u64,
    /// Calls that had it, ever.
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
pub(super) struct Shown<'a> {
    pub(super) path: &'a str,
    pub(super) text: &'a str,
    /// It is not to be told.
    pub(super) secret: bool,
    pub(super) hash: u64,
}

impl Shown<'_> {
    fn quoted(self) -> String {
        if self.secret { "this hidden value".to_owned() } else { quote(self.text) }
    }
}

impl Path {
    pub(super) fn new(hash: u64) -> Self {
        Self { hash, ..Self::default() }
    }

    /// A new or rare value. `home` is what is usual of the places that values belong to, and this one's.
    pub(super) fn doubt(&self, shown: Shown<'_>, home: Option<(&Self, Shown<'_>, &str)>) -> Option<Doubt> {
        let (path, calls, trust) = (shown.path, self.calls, confidence(f64::from(self.calls), 4.0));
        let Some(weight) = self.weight(shown.hash) else {
            let weight = NEW_VALUE * trust * rarity(self.share_of_new());
            let reason = format!("`{path}` was never {} in {calls} calls", shown.quoted());
            return match home {
                Some((home, place, what)) if home.weight(place.hash).is_none() && home.calls > 0 => {
                    let trust = confidence(f64::from(home.calls), 4.0);
                    let strange = NEW_HOME * trust * rarity(home.share_of_new());
                    let reason = format!("{reason}, and never of the {what} {}", place.quoted());
                    Some(Doubt::new(weight.max(strange), reason))
                }
                Some(_) => Some(Doubt::new(weight * KNOWN_HOME, reason)),
                None => Some(Doubt::new(weight, reason)),
            };
        };
        if weight >= HABIT {
            return None;
        }
        let rare = f64::from(1.0 - weight / HABIT) * rarity(self.share_of_new());
        let reason = format!("`{path}` was seldom {} in {calls} calls", shown.quoted());
        Some(Doubt::new(RARE_VALUE * trust * rare, reason))
    }

    /// A number or a length far beyond the largest.
    pub(super) fn large(&self, path: &str, amount: f64, what: &str) -> Option<Doubt> {
        large(amount, f64::from(self.high), self.calls).map(|weight| {
            Doubt::new(
                weight,
                format!(
                    "`{path}` {what} {amount}; the most in {} calls was {}",
                    self.calls,
                    self.high.round()
                ),
            )
        })
    }

    /// One more call, with these values and this amount.
    pub(super) fn learn(&mut self, hashes: &[u64], amount: f64) {
        let new = hashes.iter().any(|hash| self.weight(*hash).is_none());
        self.calls = self.calls.saturating_add(1);
        self.seen = self.seen * MOVING + 1.0;
        self.fresh = self.fresh * MOVING + if new { 1.0 } else { 0.0 };
        self.high = (self.high * LOWERED).max(amount.clamp(0.0, f64::from(f32::MAX)) as f32);
        for hash in hashes.iter().take(MOST_VALUES) {
            match self.values.iter_mut().find(|(known, _)| known == hash) {
                Some((_, weight)) => *weight += 1.0,
                None => {
                    if self.values.len() >= MOST_VALUES {
                        drop_lightest(&mut self.values, |(_, weight)| *weight);
                    }
                    self.values.push((*hash, 1.0));
                }
            }
        }
    }

    /// Time passes.
    pub(super) fn fade(&mut self, factor: f32) {
        self.values.iter_mut().for_each(|(_, weight)| *weight *= factor);
        self.values.retain(|(_, weight)| *weight >= FORGOTTEN);
    }

    fn weight(&self, hash: u64) -> Option<f32> {
        self.values.iter().find(|(known, _)| *known == hash).map(|(_, weight)| *weight)
    }

    fn share_of_new(&self) -> f64 {
        (f64::from(self.fresh) + 0.5) / (f64::from(self.seen) + 1.0)
    }

    pub(super) fn pack(&self, pack: &mut Pack) {
        pack.long(self.hash);
        pack.int(self.calls);
        pack.real(self.seen);
        pack.real(self.fresh);
        pack.real(self.high);
        pack.list(&self.values, |pack, (hash, weight)| {
            pack.long(*hash);
            pack.real(*weight);
        });
    }

    pub(super) fn unpack(unpack: &mut Unpack<'_>) -> Option<Self> {
        Some(Self {
            hash: unpack.long()?,
            calls: unpack.int()?,
            seen: unpack.real()?,
            fresh: unpack.real()?,
            high: unpack.real()?,
            values: unpack.list(MOST_VALUES, |unpack| Some((unpack.long()?, unpack.real()?)))?,
        })
    }
}

/// How much it weighs that an amount is larger than ever: twice the largest is nothing, sixteen times is all.
pub(super) fn large(amount: f64, high: f64, calls: u32) -> Option<f64> {
    let beyond = (amount.max(1.0) / (2.0 * high.max(1.0))).ln() / 8_f64.ln();
    (beyond > 0.0 && calls > 0).then(|| LARGE * confidence(f64::from(calls), 4.0) * beyond.min(1.0))
}

/// Makes room.
pub(super) fn drop_lightest<T>(items: &mut Vec<T>, weight: impl Fn(&T) -> f32) -> Option<T> {
    let lightest =
        items.iter().enumerate().min_by(|(_, one), (_, other)| weight(one).total_cmp(&weight(other)));
    let index = lightest.map(|(index, _)| index)?;
    Some(items.remove(index))
}
