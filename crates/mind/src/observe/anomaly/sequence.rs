//! The profile of all tools together: which are used, which follows which, and at what hours.

use jiff::civil::Weekday;

use super::Hasher;
use super::profile::drop_lightest;
use super::profile::{Decoder, Encoder};
use super::{QUIET_WEEKEND, Signal, UNUSUAL_HOUR, UNUSUAL_TOOL, confidence, decay};
use crate::Caller;
use crate::observe::features::CallFeatures;
use crate::zoned_now::ZonedNow;

const VERSION: u8 = 1;
pub(super) const MAX_TOOLS: usize = 128;
const MAX_PAIRS: usize = 512;
const MAX_SESSIONS: usize = 16;
const PAUSE_MIN: u32 = 60;
/// A tool with at least this share of the calls is common.
const COMMON: f64 = 0.05;
/// An hour with less than this share of all calls is not an active one.
const ACTIVE: f64 = 0.02;
/// Without a weekend call in this time, weekends count as free.
const WEEKENDS_KNOWN_DAYS: u32 = 14;
/// The distance to the nearest active hour with the maximum weight.
const FAR_HOURS: f64 = 4.0;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SequenceProfile {
    pub(super) calls: u32,
    at_min: u32,
    /// The first day and the last, since 1970, and on how many there was anything.
    first_day: u32,
    last_day: u32,
    days: u32,
    hours: Vec<f32>,
    weekend: f32,
    tools: Vec<(u64, f32)>,
    pairs: Vec<(u64, f32)>,
    sessions: Vec<Session>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Session {
    hash: u64,
    tool: u64,
    at_min: u32,
}

impl SequenceProfile {
    pub(super) fn read(data: &[u8], now_min: u32) -> Self {
        let mut sequence = Self::decode(data).unwrap_or_default();
        let factor = decay(now_min.saturating_sub(sequence.at_min));
        for (_, weight) in sequence.tools.iter_mut().chain(&mut sequence.pairs) {
            *weight *= factor;
        }
        sequence.hours.resize(24, 0.0);
        sequence.hours.iter_mut().for_each(|weight| *weight *= factor);
        sequence.weekend *= factor;
        sequence.at_min = sequence.at_min.max(now_min);
        sequence
    }

    pub(super) fn signal(&self, features: &CallFeatures, caller: &Caller, hasher: &Hasher) -> Option<Signal> {
        let tool = hasher.tool(&features.tool);
        let weight = |list: &[(u64, f32)], hash: u64| {
            list.iter().find(|(known, _)| *known == hash).map_or(0.0, |(_, weight)| f64::from(*weight))
        };
        let all: f64 = self.tools.iter().map(|(_, weight)| f64::from(*weight)).sum();
        let (alone, kinds) = (weight(&self.tools, tool), self.tools.len() as f64);
        let mut share = (alone + 0.5) / (all + 0.5 * (kinds + 1.0));
        let last = self.last(caller, hasher);
        if let Some(last) = last {
            let before = weight(&self.tools, last);
            let after = weight(&self.pairs, hasher.pair(last, tool));
            // What followed so far, filled up with what comes anyway as if that had been seen four times.
            share = (after + 4.0 * share) / (before.max(after) + 4.0);
        }
        let trust = confidence(f64::from(self.calls), 30.0);
        let rare = (1.0 - (share / COMMON).sqrt()).max(0.0);
        let reason = if alone > 0.0 {
            format!("`{}` seldom comes at this point", features.tool)
        } else {
            format!("`{}` was never used in {} calls", features.tool, self.calls)
        };
        // A known tool in an unusual place is half as strange as one that was never used.
        let known = if alone >= 1.0 { 0.5 } else { 1.0 };
        (rare > 0.0).then(|| Signal::new(UNUSUAL_TOOL * known * trust * rare, reason))
    }

    pub(super) fn hour(&self, now: &ZonedNow) -> Option<Signal> {
        let local = now.local();
        let trust = confidence(f64::from(self.days), 1.0) * confidence(f64::from(self.calls), 20.0);
        let all: f64 = self.hours.iter().map(|weight| f64::from(*weight)).sum();
        let is_active = |hour: i32| self.weight(hour) > ACTIVE * all;
        let hour = i32::from(local.hour());
        let far = (0..=12).find(|far| is_active(hour + far) || is_active(hour - far));
        let far = far.map_or(FAR_HOURS, f64::from);
        let quiet = (far > 1.0).then(|| {
            let near = [hour - 1, hour, hour + 1].iter().any(|hour| self.weight(*hour) > 0.0);
            let what = if near { "hardly anything was" } else { "nothing was ever" };
            let reason = format!("{what} done around {hour:02}:00 in {} calls", self.calls);
            Signal::new(UNUSUAL_HOUR * trust * (far / FAR_HOURS).min(1.0), reason)
        });
        let known_for = self.last_day.saturating_sub(self.first_day);
        let free =
            is_weekend(now) && f64::from(self.weekend) < ACTIVE * all && known_for >= WEEKENDS_KNOWN_DAYS;
        let weekend = free.then(|| {
            Signal::new(QUIET_WEEKEND * trust, format!("nothing was done on a weekend in {known_for} days"))
        });
        Signal::stronger(quiet, weekend)
    }

    fn weight(&self, hour: i32) -> f64 {
        let hour = usize::try_from(hour.rem_euclid(24)).unwrap_or(0);
        self.hours.get(hour).map_or(0.0, |weight| f64::from(*weight))
    }

    /// Counts a call; returns the tool that was evicted, if any.
    pub(super) fn learn(
        &mut self,
        features: &CallFeatures,
        caller: &Caller,
        hasher: &Hasher,
        now: &ZonedNow,
    ) -> Option<u64> {
        let tool = hasher.tool(&features.tool);
        if let Some(last) = self.last(caller, hasher) {
            count(&mut self.pairs, hasher.pair(last, tool), MAX_PAIRS);
        }
        let gone = count(&mut self.tools, tool, MAX_TOOLS);
        self.set_last_tool(caller, hasher, tool);
        let day = self.at_min / (24 * 60);
        if self.calls == 0 || day != self.last_day {
            self.days = self.days.saturating_add(1);
        }
        if self.calls == 0 {
            self.first_day = day;
        }
        self.last_day = day;
        self.calls = self.calls.saturating_add(1);
        let hour = usize::try_from(now.local().hour()).unwrap_or(0);
        if let Some(weight) = self.hours.get_mut(hour) {
            *weight += 1.0;
        }
        self.weekend += if is_weekend(now) { 1.0 } else { 0.0 };
        gone
    }

    /// The last tool of this session, if it was recent.
    fn last(&self, caller: &Caller, hasher: &Hasher) -> Option<u64> {
        let hash = hasher.session(caller);
        let session = self.sessions.iter().find(|session| session.hash == hash)?;
        (self.at_min.saturating_sub(session.at_min) <= PAUSE_MIN).then_some(session.tool)
    }

    fn set_last_tool(&mut self, caller: &Caller, hasher: &Hasher, tool: u64) {
        let hash = hasher.session(caller);
        self.sessions.retain(|session| session.hash != hash);
        if self.sessions.len() >= MAX_SESSIONS {
            self.sessions.remove(0);
        }
        self.sessions.push(Session { hash, tool, at_min: self.at_min });
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut encoder = Encoder::default();
        encoder.byte(VERSION);
        for number in [self.calls, self.at_min, self.first_day, self.last_day, self.days] {
            encoder.int(number);
        }
        encoder.list(&self.hours, |encoder, weight| encoder.real(*weight));
        encoder.real(self.weekend);
        for list in [&self.tools, &self.pairs] {
            encoder.list(list, |encoder, (hash, weight)| {
                encoder.long(*hash);
                encoder.real(*weight);
            });
        }
        encoder.list(&self.sessions, |encoder, session| {
            encoder.long(session.hash);
            encoder.long(session.tool);
            encoder.int(session.at_min);
        });
        encoder.finish()
    }

    fn decode(data: &[u8]) -> Option<Self> {
        let mut decoder = Decoder::new(data);
        decoder.byte().filter(|version| *version == VERSION)?;
        let weighed = |decoder: &mut Decoder<'_>| Some((decoder.long()?, decoder.real()?));
        let sequence = Self {
            calls: decoder.int()?,
            at_min: decoder.int()?,
            first_day: decoder.int()?,
            last_day: decoder.int()?,
            days: decoder.int()?,
            hours: decoder.list(24, Decoder::real)?,
            weekend: decoder.real()?,
            tools: decoder.list(MAX_TOOLS, weighed)?,
            pairs: decoder.list(MAX_PAIRS, weighed)?,
            sessions: decoder.list(MAX_SESSIONS, |decoder| {
                Some(Session { hash: decoder.long()?, tool: decoder.long()?, at_min: decoder.int()? })
            })?,
        };
        decoder.is_done().then_some(sequence)
    }
}

fn is_weekend(now: &ZonedNow) -> bool {
    matches!(now.local().weekday(), Weekday::Saturday | Weekday::Sunday)
}

/// Counts one; returns the evicted entry.
fn count(list: &mut Vec<(u64, f32)>, hash: u64, most: usize) -> Option<u64> {
    if let Some((_, weight)) = list.iter_mut().find(|(known, _)| *known == hash) {
        *weight += 1.0;
        return None;
    }
    let gone = if list.len() >= most { drop_lightest(list, |(_, weight)| *weight) } else { None };
    list.push((hash, 1.0));
    gone.map(|(hash, _)| hash)
}
