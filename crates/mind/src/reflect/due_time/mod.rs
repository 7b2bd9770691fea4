//! When something is due, from everyday words. Owns the meaning of `tomorrow`, `by Friday at 5` and `in two weeks`.
//!
//! A due time is the last moment that is still in time: a day ends at 23:59:59 in the owner's zone, a morning at noon, a
//! week on Sunday. `next Friday` is the Friday of the next calendar week, `on Friday` the coming one. A date that can be
//! read in two ways (`3/4`) is no date.

mod calendar;

use jiff::civil::{Date, Time};
use jiff::{Timestamp, Zoned};

use embody_text::dates::{self, Amount, weekday};
use embody_text::tokenize::Token;

use self::calendar::Part;
use super::sentences::{has, is_after_break, lower, phrase, reads_at};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DueTime {
    pub(crate) due: Timestamp,
    /// Whether it was named as a limit: by, before, until.
    pub(crate) is_limit: bool,
    pub(crate) words: Vec<usize>,
}

/// The time that these words name, read at this moment. `after` is the place where the matter itself begins: of two
/// dates the one behind it counts.
pub(crate) fn find(words: &[Token<'_>], after: usize, now: &Zoned) -> Option<DueTime> {
    let found = pieces(words, now);
    if found.iter().any(|found| matches!(found.piece, TimeExpr::Past)) {
        return None;
    }
    let moment = first(&found, after, |piece| match piece {
        TimeExpr::Offset(minutes) => Some(*minutes),
        _ => None,
    });
    let due = match moment {
        Some(minutes) => now.timestamp().checked_add(jiff::SignedDuration::from_mins(minutes)).ok()?,
        None => resolve(&found, after, now)?,
    };
    let said = time_words(words, &found);
    let is_limit = said.iter().any(|place| has("LIMITS", lower(words, *place)));
    Some(DueTime { due, is_limit, words: said })
}

/// Whether the words speak of the past: yesterday, last week.
pub(crate) fn is_past(words: &[Token<'_>], now: &Zoned) -> bool {
    pieces(words, now).iter().any(|found| matches!(found.piece, TimeExpr::Past))
}

#[derive(Clone, Debug, PartialEq)]
enum TimeExpr {
    /// So many minutes from now.
    Offset(i64),
    /// A date; `exact` when it was written as one and not as a weekday.
    Day {
        date: Date,
        exact: bool,
    },
    Clock(Clock),
    Part(Part),
    Past,
}

#[derive(Clone, Debug, PartialEq)]
struct ExprMatch {
    piece: TimeExpr,
    start: usize,
    end: usize,
}

/// Every expression of time, from left to right; the longest reading of each place.
fn pieces(words: &[Token<'_>], now: &Zoned) -> Vec<ExprMatch> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let read = read_offset(words, at, now)
            .or_else(|| calendar::read_day(words, at, now))
            .or_else(|| read_clock(words, at));
        match read {
            Some((piece, length)) => {
                found.push(ExprMatch { piece, start: at, end: at + length.max(1) });
                at += length.max(1);
            }
            None => at += 1,
        }
    }
    found
}

fn first<T>(found: &[ExprMatch], after: usize, pick: impl Fn(&TimeExpr) -> Option<T>) -> Option<T> {
    let behind = found.iter().filter(|found| found.start >= after);
    let before = found.iter().filter(|found| found.start < after);
    behind.chain(before).find_map(|found| pick(&found.piece))
}

fn resolve(found: &[ExprMatch], after: usize, now: &Zoned) -> Option<Timestamp> {
    let exact = first(found, after, |piece| match piece {
        TimeExpr::Day { date, exact: true } => Some(*date),
        _ => None,
    });
    let named = first(found, after, |piece| match piece {
        TimeExpr::Day { date, .. } => Some(*date),
        _ => None,
    });
    let clock = first(found, after, |piece| match piece {
        TimeExpr::Clock(clock) => Some(*clock),
        _ => None,
    });
    let part = first(found, after, |piece| match piece {
        TimeExpr::Part(part) => Some(*part),
        _ => None,
    });
    let end_of_day = Time::constant(23, 59, 59, 0);
    let (date, time) = match (exact.or(named), clock, part) {
        // `Today at 9`, said at ten, is in the evening.
        (Some(date), Some(clock), part) => match clock.from(now, part) {
            Some((next, time)) if next == date => (date, time),
            _ => (date, clock.on_a_day(part)?),
        },
        (Some(date), None, Some(part)) => (date, part.ends().map_or(Some(end_of_day), whole_hour)?),
        (Some(date), None, None) => (date, end_of_day),
        (None, Some(clock), part) => clock.from(now, part)?,
        (None, None, Some(part)) => {
            let time = part.ends().map_or(Some(end_of_day), whole_hour)?;
            let today = now.date();
            (if time > now.time() { today } else { today.tomorrow().ok()? }, time)
        }
        (None, None, None) => return None,
    };
    // In the hour that a spring night skips, the later reading; of two equal hours in autumn, the first.
    Some(date.to_datetime(time).to_zoned(now.time_zone().clone()).ok()?.timestamp())
}

fn whole_hour(hour: i8) -> Option<Time> {
    Time::new(hour, 0, 0, 0).ok()
}

/// The words that say the time, with the little ones that lead to it.
fn time_words(words: &[Token<'_>], found: &[ExprMatch]) -> Vec<usize> {
    let mut all = Vec::new();
    for piece in found {
        let mut start = piece.start;
        while start > 0 && leads(words, start - 1, piece.start) && !all.contains(&(start - 1)) {
            start -= 1;
        }
        all.extend(start..piece.end);
    }
    // `at the latest`, `spätestens`, `or so`: they say how sure the time is.
    for at in 0..words.len() {
        if reads_at(words, at, "at the latest") {
            all.extend(at..at + 3);
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// Whether the word leads to the time at `piece`. `Dial in at nine` leads to nine with `at`, not with `in`; `là` is a place.
fn leads(words: &[Token<'_>], at: usize, piece: usize) -> bool {
    let word = lower(words, at);
    let is_near = at + 1 == piece
        || matches!(lower(words, at + 1), "the" | "this" | "next" | "about" | "around" | "end");
    match words.get(at).map_or("", |word| word.text) {
        "là" => false,
        "à" => at + 1 == piece,
        _ => {
            has("LEADING", word)
                && (is_near || !matches!(word, "in" | "on" | "for" | "about" | "the" | "this"))
        }
    }
}

fn read_offset(words: &[Token<'_>], at: usize, now: &Zoned) -> Option<(TimeExpr, usize)> {
    if reads_at(words, at, "within the hour") {
        return Some((TimeExpr::Offset(60), 3));
    }
    let leads = match lower(words, at) {
        "in" | "within" | "dans" | "en" => 1,
        "dentro" if lower(words, at + 1) == "de" => 2,
        _ => 0,
    };
    let first = Amount::read(words_from(words, at + leads))?;
    let mut end = at + leads + first.length;
    let mut minutes = first.minutes();
    // In two hours and a quarter: hours and minutes add up, longer stretches stand alone.
    while let Some(sum) = minutes
        && matches!(lower(words, end), "and" | "und" | "et" | "y")
    {
        let Some(next) = Amount::read(words_from(words, end + 1)) else { break };
        let Some(more) = next.minutes() else { break };
        minutes = Some(sum + more);
        end += 1 + next.length;
    }
    let from_now =
        ["from now", "from today", "ab heute", "ab jetzt"].iter().any(|tail| reads_at(words, end, tail));
    if from_now {
        end += 2;
    } else if matches!(lower(words, end), "ago" | "earlier") {
        return Some((TimeExpr::Past, end + 1 - at));
    } else if leads == 0 {
        return None;
    }
    let piece = match minutes {
        Some(minutes) => TimeExpr::Offset(minutes),
        None => TimeExpr::Day { date: dates::after(now.date(), first.count, first.unit)?, exact: true },
    };
    Some((piece, end - at))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Clock {
    hour: i8,
    minute: i8,
    /// Whether it can only be this half of the day.
    certain: bool,
}

impl Clock {
    /// On a day that was named: `at 3` is in the afternoon, `at 9` in the morning.
    fn on_a_day(self, part: Option<Part>) -> Option<Time> {
        let late =
            !self.certain && self.hour < 12 && part.map_or((1..=6).contains(&self.hour), Part::is_late);
        self.time(if late { 12 } else { 0 })
    }

    /// On no day in particular: the next time that the clock shows this.
    fn from(self, now: &Zoned, part: Option<Part>) -> Option<(Date, Time)> {
        let today = now.date();
        if part.is_some() {
            let time = self.on_a_day(part)?;
            return Some((if time > now.time() { today } else { today.tomorrow().ok()? }, time));
        }
        let usual = self.on_a_day(None)?;
        if usual > now.time() {
            return Some((today, usual));
        }
        if !self.certain && self.hour < 12 {
            let later = self.time(12)?;
            if later > now.time() {
                return Some((today, later));
            }
        }
        Some((today.tomorrow().ok()?, usual))
    }

    fn time(self, later: i8) -> Option<Time> {
        match self.hour {
            24 => Some(Time::constant(23, 59, 59, 0)),
            hour => Time::new(hour + later, self.minute, 0, 0).ok(),
        }
    }
}

fn read_clock(words: &[Token<'_>], at: usize) -> Option<(TimeExpr, usize)> {
    part(words, at)
        .map(|(part, length)| (TimeExpr::Part(part), length))
        .or_else(|| clock(words, at).map(|(clock, length)| (TimeExpr::Clock(clock), length)))
}

fn part(words: &[Token<'_>], at: usize) -> Option<(Part, usize)> {
    const PARTS: [(&str, Part); 7] = [
        ("part morning", Part::Morning),
        ("part noon", Part::Noon),
        ("part midday", Part::Noon),
        ("part afternoon", Part::Afternoon),
        ("part business", Part::Business),
        ("part evening", Part::Evening),
        ("part night", Part::Night),
    ];
    let (group, part, length) =
        PARTS.iter().find_map(|(group, part)| Some((*group, *part, phrase(group, words, at)?)))?;
    // `Have lunch` is a meal; `before lunch` is a time, `after lunch` the afternoon.
    let part = match (group, at.checked_sub(1).map_or("", |place| lower(words, place))) {
        ("part noon", "after") => Part::Afternoon,
        ("part noon", "before" | "by" | "at" | "until" | "over") => Part::Noon,
        ("part noon", _) => return None,
        _ => part,
    };
    Some((part, length))
}

fn clock(words: &[Token<'_>], at: usize) -> Option<(Clock, usize)> {
    // `At 9, am Montag`: what stands behind a comma is not a part of the time.
    let is_apart = |at: usize| words.get(at).is_some_and(is_after_break);
    let word = |offset: usize| {
        if (1..=offset).any(|offset| is_apart(at + offset)) { "" } else { lower(words, at + offset) }
    };
    let (read, length) = dates::clock_at(word)?;
    let (first, before) = (word(0), at.checked_sub(1).map_or("", |before| lower(words, before)));
    let leads =
        matches!(before, "at" | "by" | "before" | "until" | "um" | "gegen" | "bis" | "las" | "around");
    let is_digit = first.bytes().all(|byte| byte.is_ascii_digit());
    let is_written = first.starts_with(|letter: char| letter.is_ascii_digit()) && !is_digit;
    let is_time = match () {
        // Two numbers with a full stop are a clock only where one is expected: they may be a date or a price.
        () if is_written => !first.contains('.') || leads,
        // A number in letters is an hour only in `half past four`: `a h` and `one am` may be anything.
        () if read.marked => is_digit || length > 2,
        () => {
            leads && (is_digit || before == "at") && !matches!(first, "a" | "an") && ends_here(words, at + 1)
        }
    };
    // `9:30` in the morning is said as such; `4:30` mostly is not.
    let certain = read.certain || is_written && read.hour >= 7;
    is_time.then_some((Clock { hour: read.hour, minute: read.minute, certain }, length))
}

/// The words from one on, by their place.
fn words_from<'w>(words: &'w [Token<'_>], from: usize) -> impl Fn(usize) -> &'w str {
    move |offset| lower(words, from + offset)
}

/// Whether a bare number can be an hour here: `by 5 tomorrow`, and not `by 5 people`.
fn ends_here(words: &[Token<'_>], at: usize) -> bool {
    let next = lower(words, at);
    next.is_empty()
        || words.get(at).is_some_and(is_after_break)
        || weekday(next, true).is_some()
        || has("AFTER_CLOCK", next)
}
