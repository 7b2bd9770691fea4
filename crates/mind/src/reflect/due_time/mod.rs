//! When something is due, from everyday words. Owns the meaning of `tomorrow`, `by Friday at 5` and `in two weeks`.
//!
//! A due time is the last moment that is still in time: a day ends at 23:59:59 in the owner's zone, a morning at noon, a
//! week on Sunday. `next Friday` is the Friday of the next calendar week, `on Friday` the coming one. A date that can be
//! read in two ways (`3/4`) is no date.

mod calendar;
mod clock;
mod day;
mod offset;

use jiff::civil::{Date, Time};
use jiff::{Timestamp, Zoned};

use self::calendar::Part;
use self::clock::Clock;
use super::lexicon::has;
use super::sentences::{Word, fold, lower, reads_at};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DueTime {
    pub(crate) due: Timestamp,
    /// Whether it was named as a limit: by, before, until.
    pub(crate) is_limit: bool,
    pub(crate) words: Vec<usize>,
}

/// The time that these words name, read at this moment. `after` is the place where the matter itself begins: of two
/// dates the one behind it counts.
pub(crate) fn find(words: &[Word<'_>], after: usize, now: &Zoned) -> Option<DueTime> {
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
    let is_limit = said.iter().any(|place| has("limits", lower(words, *place)));
    Some(DueTime { due, is_limit, words: said })
}

/// Whether the words speak of the past: yesterday, last week.
pub(crate) fn is_past(words: &[Word<'_>], now: &Zoned) -> bool {
    pieces(words, now).iter().any(|found| matches!(found.piece, TimeExpr::Past))
}

/// Whether a word is the name of a month or of a day of the week.
pub(super) fn names_day(word: &str) -> bool {
    let word = fold(word.trim_matches(|letter: char| !letter.is_alphanumeric()));
    calendar::month(&word).is_some() || calendar::weekday(&word, true).is_some()
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
fn pieces(words: &[Word<'_>], now: &Zoned) -> Vec<ExprMatch> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let read = offset::read(words, at, now)
            .or_else(|| day::read(words, at, now))
            .or_else(|| clock::read(words, at));
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
fn time_words(words: &[Word<'_>], found: &[ExprMatch]) -> Vec<usize> {
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
fn leads(words: &[Word<'_>], at: usize, piece: usize) -> bool {
    let word = lower(words, at);
    let is_near = at + 1 == piece
        || matches!(lower(words, at + 1), "the" | "this" | "next" | "about" | "around" | "end");
    match words.get(at).map_or("", |word| word.text) {
        "là" => false,
        "à" => at + 1 == piece,
        _ => {
            has("leading", word)
                && (is_near || !matches!(word, "in" | "on" | "for" | "about" | "the" | "this"))
        }
    }
}
