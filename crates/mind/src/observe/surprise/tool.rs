//! What is usual for one tool: its arguments by path, their size, how often it fails.

use super::Hasher;
use super::codec::{Pack, Unpack};
use super::paths::{Path, Shown, drop_lightest, large};
use super::weigh::{Doubt, FAILED, LOWERED, MOVING, NEW_PATH, confidence, decay, rarity};
use crate::observe::address::belongs_to;
use crate::observe::call::{Leaf, Outcome, Reading};

/// The shape of the bytes.
const VERSION: u8 = 1;
/// Paths of one tool; the one seen least makes room.
pub(super) const MOST_PATHS: usize = 48;

/// A tool's profile.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Tool {
    pub(super) calls: u32,
    /// Moving counts of calls that ended, and of failures.
    ended: f32,
    failed: f32,
    /// A moving count of calls with an argument that was never given before.
    fresh: f32,
    /// The most bytes that its arguments were, lowered a little by each call.
    bytes: f32,
    at_min: u32,
    paths: Vec<Path>,
}

impl Tool {
    /// As it was kept, faded by the time since. What cannot be read begins anew.
    pub(super) fn read(data: &[u8], now_min: u32) -> Self {
        let mut tool = Self::unpack(data).unwrap_or_default();
        let factor = decay(now_min.saturating_sub(tool.at_min));
        tool.paths.iter_mut().for_each(|path| path.fade(factor));
        tool.at_min = tool.at_min.max(now_min);
        tool
    }

    /// The heaviest doubt about the values.
    pub(super) fn values(&self, reading: &Reading, hasher: &Hasher) -> Option<Doubt> {
        reading.leaves.iter().map(|leaf| self.value(leaf, hasher)).fold(None, Doubt::heavier)
    }

    fn value(&self, leaf: &Leaf, hasher: &Hasher) -> Option<Doubt> {
        let Some(path) = self.path(hasher.path(&leaf.path)) else { return self.new_path(&leaf.path) };
        let shown = |text| Shown {
            path: &leaf.path,
            text,
            secret: leaf.secret,
            hash: hasher.value(&leaf.path, text),
        };
        let Some((what, place)) = belongs_to(&leaf.text) else { return path.doubt(shown(&leaf.text), None) };
        let home = self.path(hasher.home(&leaf.path, what));
        path.doubt(shown(&leaf.text), home.map(|home| (home, shown(&place), what)))
    }

    /// An argument that was never given.
    fn new_path(&self, path: &str) -> Option<Doubt> {
        let share = (f64::from(self.fresh) + 0.5) / (f64::from(self.ended) + 1.0);
        let weight = NEW_PATH * confidence(f64::from(self.calls), 8.0) * rarity(share);
        Some(Doubt::new(weight, format!("`{path}` was never given in {} calls", self.calls)))
    }

    /// The heaviest doubt about sizes: of all arguments, of a list, of a number.
    pub(super) fn sizes(&self, reading: &Reading, hasher: &Hasher) -> Option<Doubt> {
        let whole = large(reading.bytes as f64, f64::from(self.bytes), self.calls).map(|weight| {
            let reason = format!(
                "the arguments have {} bytes; the most in {} calls was {}",
                reading.bytes,
                self.calls,
                self.bytes.round()
            );
            Doubt::new(weight, reason)
        });
        let lists = reading.lists.iter().map(|(path, length)| {
            self.path(hasher.list(path))?.large(path, *length as f64, "has a length of")
        });
        // The digits of a secret are no amount.
        let numbers = reading
            .leaves
            .iter()
            .filter(|leaf| !leaf.secret)
            .map(|leaf| self.path(hasher.path(&leaf.path))?.large(&leaf.path, leaf.number?.abs(), "is"));
        lists.chain(numbers).fold(whole, Doubt::heavier)
    }

    /// A failure where success is usual.
    pub(super) fn outcome(&self, reading: &Reading) -> Option<Doubt> {
        if reading.outcome != Some(Outcome::Failed) {
            return None;
        }
        let share = (f64::from(self.failed) + 0.5) / (f64::from(self.ended) + 1.0);
        let weight = FAILED * confidence(f64::from(self.calls), 2.0) * rarity(share);
        let reason = format!("it failed, as about {:.0} of 100 calls do", share * 100.0);
        Some(Doubt::new(weight, reason))
    }

    /// One more call that is over. One that failed reached nobody, so nothing in it becomes usual: whoever tries often
    /// enough must not be believed in the end.
    pub(super) fn learn(&mut self, reading: &Reading, hasher: &Hasher) {
        let failed = reading.outcome == Some(Outcome::Failed);
        self.ended = self.ended * MOVING + 1.0;
        self.failed = self.failed * MOVING + if failed { 1.0 } else { 0.0 };
        if failed {
            return;
        }
        self.calls = self.calls.saturating_add(1);
        let new =
            self.calls > 1 && reading.leaves.iter().any(|leaf| self.path(hasher.path(&leaf.path)).is_none());
        self.fresh = self.fresh * MOVING + if new { 1.0 } else { 0.0 };
        self.bytes = (self.bytes * LOWERED).max(reading.bytes as f32);
        for (path, length) in &reading.lists {
            self.learn_at(hasher.list(path), &[], *length as f64);
        }
        let mut learned: Vec<(u64, Vec<u64>, f64)> = Vec::new();
        for leaf in &reading.leaves {
            let amount = leaf.number.map_or(0.0, f64::abs);
            gather(&mut learned, hasher.path(&leaf.path), hasher.value(&leaf.path, &leaf.text), amount);
            if let Some((what, place)) = belongs_to(&leaf.text) {
                gather(&mut learned, hasher.home(&leaf.path, what), hasher.value(&leaf.path, &place), 0.0);
            }
        }
        for (path, values, amount) in learned.into_iter().take(MOST_PATHS) {
            self.learn_at(path, &values, amount);
        }
    }

    fn learn_at(&mut self, hash: u64, values: &[u64], amount: f64) {
        if let Some(path) = self.paths.iter_mut().find(|path| path.hash == hash) {
            return path.learn(values, amount);
        }
        if self.paths.len() >= MOST_PATHS {
            drop_lightest(&mut self.paths, |path| path.seen);
        }
        let mut path = Path::new(hash);
        path.learn(values, amount);
        self.paths.push(path);
    }

    fn path(&self, hash: u64) -> Option<&Path> {
        self.paths.iter().find(|path| path.hash == hash)
    }

    pub(super) fn pack(&self) -> Vec<u8> {
        let mut pack = Pack::default();
        pack.byte(VERSION);
        pack.int(self.calls);
        pack.real(self.ended);
        pack.real(self.failed);
        pack.real(self.fresh);
        pack.real(self.bytes);
        pack.int(self.at_min);
        pack.list(&self.paths, |pack, path| path.pack(pack));
        pack.done()
    }

    fn unpack(data: &[u8]) -> Option<Self> {
        let mut unpack = Unpack::new(data);
        unpack.byte().filter(|version| *version == VERSION)?;
        let tool = Self {
            calls: unpack.int()?,
            ended: unpack.real()?,
            failed: unpack.real()?,
            fresh: unpack.real()?,
            bytes: unpack.real()?,
            at_min: unpack.int()?,
            paths: unpack.list(MOST_PATHS, Path::unpack)?,
        };
        unpack.is_done().then_some(tool)
    }
}

/// Several values at one path are one call of it.
fn gather(learned: &mut Vec<(u64, Vec<u64>, f64)>, path: u64, value: u64, amount: f64) {
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
