//! Times of day and dates, as people write them. Reads tokens, and says how many it took.

use jiff::ToSpan;
use jiff::civil::{Date, DateTime, Weekday};

use super::lexicon::Tag;
use super::rule::DAY;
use super::tokenizer::Token;

/// A time of day, in minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClockTime {
    pub(super) minute: u16,
    pub(super) taken: usize,
    /// It can be nothing else: `22:00`, `10pm`, not `9`.
    pub(super) explicit: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ParsedDay {
    pub(super) date: Date,
    pub(super) taken: usize,
    pub(super) whole: bool,
}

pub(super) fn clock(tokens: &[Token]) -> Option<ClockTime> {
    let skipped =
        tokens.iter().take_while(|token| token.known.is(Tag::Det) || token.fold == "de").take(2).count();
    let rest = tokens.get(skipped..)?;
    let first = rest.first()?;
    let named = match first.fold.as_str() {
        "noon" | "mittag" | "midi" | "mediodia" => Some(DAY / 2),
        "midnight" | "mitternacht" | "minuit" | "medianoche" => Some(0),
        _ => None,
    };
    if let Some(minute) = named {
        return Some(ClockTime { minute, taken: skipped + 1, explicit: true });
    }
    let (mut minute, mut explicit) = digits(&first.fold).or_else(|| spelled(rest))?;
    let mut taken = skipped + 1;
    if let Some(next) = rest.get(1) {
        if next.known.is(Tag::Pm) {
            minute = afternoon(minute);
        }
        if next.known.any(&[Tag::Pm, Tag::Am, Tag::Unit]) {
            (taken, explicit) = (taken + 1, true);
        } else if !explicit && (next.known.month.is_some() || next.known.is_plain() && next.mark.is_none()) {
            // `after 3 attempts`, `before 3 December`
            return None;
        }
    }
    Some(ClockTime { minute, taken, explicit })
}

/// `six`, if nothing follows that could be counted.
fn spelled(tokens: &[Token]) -> Option<(u16, bool)> {
    let hour = tokens.first()?.known.number.filter(|hour| (1..=12).contains(hour))?;
    let alone = tokens.get(1).is_none_or(|next| {
        next.mark.is_some() || next.known.any(&[Tag::Am, Tag::Pm, Tag::Unit, Tag::Or]) || next.fold == "on"
    });
    Some((u16::try_from(hour).ok()? % 24 * 60, false)).filter(|_| alone)
}

/// `22`, `22:00`, `22.30`, `22h`, `22h30`, `10pm`; and whether it can be nothing but a time.
fn digits(text: &str) -> Option<(u16, bool)> {
    let (text, is_pm, marked) = match text {
        text if text.ends_with("pm") => (text.trim_end_matches("pm"), true, true),
        text if text.ends_with("am") => (text.trim_end_matches("am"), false, true),
        text if text.ends_with("uhr") => (text.trim_end_matches("uhr"), false, true),
        text => (text, false, false),
    };
    let (hour, minute, marked) = match text.split_once([':', '.', 'h']) {
        Some((hour, "")) => (hour, "0", true),
        Some((hour, minute)) if minute.len() == 2 => (hour, minute, true),
        Some(_) => return None,
        None => (text, "0", marked),
    };
    let (hour, minute): (u16, u16) = (hour.parse().ok()?, minute.parse().ok()?);
    if hour > 24 || minute > 59 {
        return None;
    }
    let at = (hour * 60 + minute) % DAY;
    Some((if is_pm { afternoon(at) } else { at }, marked))
}

pub(super) fn afternoon(minute: u16) -> u16 {
    if minute < DAY / 2 { minute + DAY / 2 } else { minute }
}

/// The day at the beginning of these tokens, seen from another.
pub(super) fn day(tokens: &[Token], today: Date) -> Option<ParsedDay> {
    let small = |token: &&Token| {
        token.known.any(&[Tag::Det, Tag::This, Tag::To]) || ["u", "am", "dem"].contains(&token.fold.as_str())
    };
    let skipped = tokens.iter().take_while(small).take(2).count();
    let rest = tokens.get(skipped..)?;
    let found = named(rest, today).or_else(|| written(rest, today))?;
    Some(ParsedDay { taken: found.taken + skipped, ..found })
}

/// `tomorrow`, `Friday`, `next week`, `the end of the month`.
fn named(tokens: &[Token], today: Date) -> Option<ParsedDay> {
    let first = tokens.first()?;
    let day = |date: Date, taken: usize, whole: bool| Some(ParsedDay { date, taken, whole });
    if first.known.is(Tag::Today) {
        return day(today, 1, true);
    }
    if first.known.is(Tag::Tomorrow) {
        return day(today.tomorrow().ok()?, 1, false);
    }
    if let Some(weekday) = first.known.day {
        return day(next_weekday(today, weekday)?, 1, false);
    }
    let second = tokens.get(1);
    if let Some(month) =
        first.known.month.filter(|_| second.is_none_or(|token| ordinal(&token.fold).is_none()))
    {
        return day(in_future(today, month, 1)?, 1, false);
    }
    if first.known.is(Tag::Next) {
        let second = second?.known;
        if let Some(weekday) = second.day {
            return day(next_weekday(today, weekday)?, 2, false);
        }
        if second.is(Tag::Week) {
            return day(next_weekday(today, 1)?, 2, false);
        }
        return if second.is(Tag::Month) {
            day(today.last_of_month().tomorrow().ok()?, 2, false)
        } else {
            None
        };
    }
    if !first.known.is(Tag::End) {
        return None;
    }
    let small = |token: &&Token| token.known.any(&[Tag::Det, Tag::From, Tag::About, Tag::This]);
    let skipped = tokens.iter().skip(1).take_while(small).count();
    let what = tokens.get(1 + skipped)?.known;
    let taken = 2 + skipped;
    match () {
        () if what.is(Tag::Week) => {
            let sunday = if today.weekday() == Weekday::Sunday { today } else { next_weekday(today, 7)? };
            day(sunday, taken, true)
        }
        () if what.is(Tag::Month) => day(today.last_of_month(), taken, true),
        () if what.is(Tag::Year) => day(today.last_of_year(), taken, true),
        () => {
            let month = what.month?;
            let first = in_future(today, month, 1)?;
            day(first.last_of_month(), taken, true)
        }
    }
}

/// `2026-12-03`, `3.12.`, `3 December 2026`, `December 3rd`, `3 de diciembre`.
fn written(tokens: &[Token], today: Date) -> Option<ParsedDay> {
    let first = tokens.first()?;
    let day = |date: Date, taken: usize| Some(ParsedDay { date, taken, whole: false });
    if let Ok(date) = first.fold.parse::<Date>() {
        return day(date, 1);
    }
    if let Some((number, rest)) = first.fold.split_once('.') {
        let (month, year) = rest.split_once('.').unwrap_or((rest, ""));
        let (number, month): (i8, i8) = (number.parse().ok()?, month.parse().ok()?);
        let year: Option<i16> =
            year.parse().ok().map(|year: i16| if year < 100 { 2000 + year } else { year });
        return day(
            year.map_or_else(|| in_future(today, month, number), |year| Date::new(year, month, number).ok())?,
            1,
        );
    }
    let year = |at: usize| {
        let comma = tokens.get(at).is_some_and(|token| token.mark == Some(','));
        let token = tokens.get(at + usize::from(comma));
        token.and_then(|token| token.fold.parse::<i16>().ok()).filter(|year| (1970..=9999).contains(year))
    };
    let dated = |month: i8, number: i8, written: Option<i16>, taken: usize| {
        let date = match written {
            Some(year) => Date::new(year, month, number).ok()?,
            None => in_future(today, month, number)?,
        };
        day(date, taken + usize::from(written.is_some()))
    };
    if let Some(number) = ordinal(&first.fold) {
        let joined =
            usize::from(tokens.get(1).is_some_and(|token| token.known.any(&[Tag::From, Tag::About])));
        let month = tokens.get(1 + joined)?.known.month?;
        return dated(month, number, year(2 + joined), 2 + joined);
    }
    let month = first.known.month?;
    let number = ordinal(&tokens.get(1)?.fold)?;
    dated(month, number, year(2), 2)
}

/// `3`, `3rd`, `1er`.
fn ordinal(text: &str) -> Option<i8> {
    let digits = text.trim_end_matches(|letter: char| letter.is_alphabetic());
    let suffix = text.get(digits.len()..).unwrap_or_default();
    let plain = ["", "st", "nd", "rd", "th", "er"].contains(&suffix);
    digits.parse().ok().filter(|day| plain && (1..=31).contains(day))
}

/// The next such weekday after a day; Monday is 1.
pub(super) fn next_weekday(day: Date, weekday: i8) -> Option<Date> {
    day.nth_weekday(1, Weekday::from_monday_one_offset(weekday).ok()?).ok()
}

/// That day of this year, or of the next if it is over.
fn in_future(today: Date, month: i8, number: i8) -> Option<Date> {
    let date = Date::new(today.year(), month, number).ok()?;
    if date >= today { Some(date) } else { date.checked_add(1.year()).ok() }
}

/// Midnight, when that day begins or when it is over.
pub(super) fn midnight(date: Date, is_over: bool) -> Option<DateTime> {
    let date = if is_over { date.tomorrow().ok()? } else { date };
    Some(date.at(0, 0, 0, 0))
}
