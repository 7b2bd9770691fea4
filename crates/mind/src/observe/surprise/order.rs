//! What is usual of all tools together: which there are, which follows which, and at what hours anything happens.

use jiff::civil::Weekday;

use super::Hasher;
use super::codec::{Pack, Unpack};
use super::paths::drop_lightest;
use super::weigh::{Doubt, QUIET_WEEKEND, UNUSUAL_HOUR, UNUSUAL_TOOL, confidence, decay};
use crate::caller::Caller;
use crate::moment::Moment;
use crate::observe::call::Reading;

const VERSION: u8 = 1;
/// Tools of one user and agent; the one used least makes room, and its profile goes with it.
pub(super) const MOST_TOOLS: usize = 128;
const MOST_PAIRS: usize = 512;
const MOST_SESSIONS: usize = 16;
/// After such a pause nothing follows anything.
const PAUSE_MIN: u32 = 60;
/// A tool that comes as often as this surprises nobody.
const COMMON: f64 = 0.05;
/// An hour with less than this share of all calls is not an active one.
const ACTIVE: f64 = 0.02;
/// Somebody who was never seen on a weekend in this time does not work on weekends.
const WEEKENDS_KNOWN_DAYS: u32 = 14;
/// Hours from the nearest active one at which it is as strange as it gets.
const FAR_HOURS: f64 = 4.0;

/// The profile of a user and agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Order {
    pub(super) calls: u32,
    at_min: u32,
    /// The first day and the last, since 1970, and on how many there was anything.
    first_day: u32,
    last_day: u32,
    days: u32,
    /// What happened in each hour, and on weekends.
    hours: Vec<f32>,
    weekend: f32,
    tools: Vec<(u64, f32)>,
    pairs: Vec<(u64, f32)>,
    sessions: Vec<Session>,
}

/// What came last in a session.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Session {
    hash: u64,
    tool: u64,
    at_min: u32,
}

impl Order {
    pub(super) fn read(data: &[u8], now_min: u32) -> Self {
        let mut order = Self::unpack(data).unwrap_or_default();
        let factor = decay(now_min.saturating_sub(order.at_min));
        for (_, weight) in order.tools.iter_mut().chain(&mut order.pairs) {
            *weight *= factor;
        }
        order.hours.resize(24, 0.0);
        order.hours.iter_mut().for_each(|weight| *weight *= factor);
        order.weekend *= factor;
        order.at_min = order.at_min.max(now_min);
        order
    }

    /// How unusual this tool is after the last one.
    pub(super) fn doubt(&self, reading: &Reading, caller: &Caller, hasher: &Hasher) -> Option<Doubt> {
        let tool = hasher.tool(&reading.tool);
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
            format!("`{}` seldom comes at this point", reading.tool)
        } else {
            format!("`{}` was never used in {} calls", reading.tool, self.calls)
        };
        // A known tool in an unusual place is half as strange as one that was never used.
        let known = if alone >= 1.0 { 0.5 } else { 1.0 };
        (rare > 0.0).then(|| Doubt::new(UNUSUAL_TOOL * known * trust * rare, reason))
    }

    /// How unusual this hour is.
    pub(super) fn hour(&self, now: &Moment) -> Option<Doubt> {
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
            Doubt::new(UNUSUAL_HOUR * trust * (far / FAR_HOURS).min(1.0), reason)
        });
        let known_for = self.last_day.saturating_sub(self.first_day);
        let free =
            is_weekend(now) && f64::from(self.weekend) < ACTIVE * all && known_for >= WEEKENDS_KNOWN_DAYS;
        let weekend = free.then(|| {
            Doubt::new(QUIET_WEEKEND * trust, format!("nothing was done on a weekend in {known_for} days"))
        });
        Doubt::heavier(quiet, weekend)
    }

    fn weight(&self, hour: i32) -> f64 {
        let hour = usize::try_from(hour.rem_euclid(24)).unwrap_or(0);
        self.hours.get(hour).map_or(0.0, |weight| f64::from(*weight))
    }

    /// One more call. A tool that had to make room is returned.
    pub(super) fn learn(
        &mut self,
        reading: &Reading,
        caller: &Caller,
        hasher: &Hasher,
        now: &Moment,
    ) -> Option<u64> {
        let tool = hasher.tool(&reading.tool);
        if let Some(last) = self.last(caller, hasher) {
            count(&mut self.pairs, hasher.pair(last, tool), MOST_PAIRS);
        }
        let gone = count(&mut self.tools, tool, MOST_TOOLS);
        self.follow(caller, hasher, tool);
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

    /// The tool that came last in this session, if that was lately.
    fn last(&self, caller: &Caller, hasher: &Hasher) -> Option<u64> {
        let hash = hasher.session(caller);
        let session = self.sessions.iter().find(|session| session.hash == hash)?;
        (self.at_min.saturating_sub(session.at_min) <= PAUSE_MIN).then_some(session.tool)
    }

    fn follow(&mut self, caller: &Caller, hasher: &Hasher, tool: u64) {
        let hash = hasher.session(caller);
        self.sessions.retain(|session| session.hash != hash);
        if self.sessions.len() >= MOST_SESSIONS {
            self.sessions.remove(0);
        }
        self.sessions.push(Session { hash, tool, at_min: self.at_min });
    }

    pub(super) fn pack(&self) -> Vec<u8> {
        let mut pack = Pack::default();
        pack.byte(VERSION);
        for number in [self.calls, self.at_min, self.first_day, self.last_day, self.days] {
            pack.int(number);
        }
        pack.list(&self.hours, |pack, weight| pack.real(*weight));
        pack.real(self.weekend);
        for list in [&self.tools, &self.pairs] {
            pack.list(list, |pack, (hash, weight)| {
                pack.long(*hash);
                pack.real(*weight);
            });
        }
        pack.list(&self.sessions, |pack, session| {
            pack.long(session.hash);
            pack.long(session.tool);
            pack.int(session.at_min);
        });
        pack.done()
    }

    fn unpack(data: &[u8]) -> Option<Self> {
        let mut unpack = Unpack::new(data);
        unpack.byte().filter(|version| *version == VERSION)?;
        let weighed = |unpack: &mut Unpack<'_>| Some((unpack.long()?, unpack.real()?));
        let order = Self {
            calls: unpack.int()?,
            at_min: unpack.int()?,
            first_day: unpack.int()?,
            last_day: unpack.int()?,
            days: unpack.int()?,
            hours: unpack.list(24, Unpack::real)?,
            weekend: unpack.real()?,
            tools: unpack.list(MOST_TOOLS, weighed)?,
            pairs: unpack.list(MOST_PAIRS, weighed)?,
            sessions: unpack.list(MOST_SESSIONS, |unpack| {
                Some(Session { hash: unpack.long()?, tool: unpack.long()?, at_min: unpack.int()? })
            })?,
        };
        unpack.is_done().then_some(order)
    }
}

fn is_weekend(now: &Moment) -> bool {
    matches!(now.local().weekday(), Weekday::Saturday | Weekday::Sunday)
}

/// Counts one, and says which had to make room.
fn count(list: &mut Vec<(u64, f32)>, hash: u64, most: usize) -> Option<u64> {
    if let Some((_, weight)) = list.iter_mut().find(|(known, _)| *known == hash) {
        *weight += 1.0;
        return None;
    }
    let gone = if list.len() >= most { drop_lightest(list, |(_, weight)| *weight) } else { None };
    list.push((hash, 1.0));
    gone.map(|(hash, _)| hash)
}
