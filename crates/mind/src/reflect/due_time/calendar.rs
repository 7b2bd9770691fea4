//! Days in four languages: parts of the day, and expressions such as `tomorrow`, `next Friday`, `3 December`, `on the 15th`, `2026-11-03`, `end of the month`.

use jiff::civil::Date;
use jiff::{ToSpan, Zoned};

use embody_text::calendar::month;
use embody_text::dates::{self, Unit, unit, weekday};
use embody_text::tokenize::Token;

use super::TimeExpr;
use crate::reflect::sentences::{has, lower, phrase, reads_at};

/// A part of a day, and until when it lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Morning,
    Noon,
    Afternoon,
    Business,
    Evening,
    Night,
}

impl Part {
    /// The hour at which it is over; `None` for the end of the day.
    pub(super) fn ends(self) -> Option<i8> {
        match self {
            Self::Morning | Self::Noon => Some(12),
            Self::Afternoon | Self::Business => Some(18),
            Self::Evening => Some(22),
            Self::Night => None,
        }
    }

    /// Whether `at 8` in it is in the second half of the day.
    pub(super) fn is_late(self) -> bool {
        matches!(self, Self::Afternoon | Self::Evening | Self::Night)
    }
}

/// The expression that begins here, and how many words it has.
pub(super) fn read_day(words: &[Token<'_>], at: usize, now: &Zoned) -> Option<(TimeExpr, usize)> {
    if is_past(words, at) {
        return Some((TimeExpr::Past, 1));
    }
    let (date, exact, length) = relative(words, at, now)
        .or_else(|| written(words, at, now))
        .or_else(|| on_weekday(words, at, now))
        .or_else(|| stretch(words, at, now))?;
    let date = if is_before(words, at) { date.yesterday().ok()? } else { date };
    Some((TimeExpr::Day { date, exact }, length))
}

fn is_past(words: &[Token<'_>], at: usize) -> bool {
    let word = lower(words, at);
    if matches!(word, "yesterday" | "gestern" | "vorgestern" | "hier" | "ayer" | "anteayer") {
        return true;
    }
    let is_time = |word: &str| weekday(word, true).is_some() || unit(word).is_some() || word == "night";
    (matches!(word, "last" | "letzte" | "letzten" | "letzter" | "letztes") && is_time(lower(words, at + 1)))
        || (is_time(word) && matches!(lower(words, at + 1), "dernier" | "derniere" | "pasado" | "pasada"))
}

/// `before Friday` ends the day before; `before noon` is no matter of days.
fn is_before(words: &[Token<'_>], at: usize) -> bool {
    let back = |steps: usize| at.checked_sub(steps).map_or("", |place| lower(words, place));
    let is = |word: &str| matches!(word, "before" | "vor" | "avant" | "antes");
    is(back(1))
        || (matches!(back(1), "the" | "le" | "la" | "dem" | "del" | "de" | "next") && is(back(2)))
        || (back(1) == "el" && back(2) == "de" && is(back(3)))
}

fn relative(words: &[Token<'_>], at: usize, now: &Zoned) -> Option<(Date, bool, usize)> {
    let groups = [("in two days", 2), ("today", 0), ("tomorrow", 1)];
    let (days, length) = groups.iter().find_map(|(group, days)| Some((*days, phrase(group, words, at)?)))?;
    // `Heute Morgen` and `la mañana` are mornings.
    let before = at.checked_sub(1).map_or("", |place| lower(words, place));
    let is_morning = match lower(words, at) {
        "morgen" => matches!(before, "heute" | "am" | "jeden" | "guten"),
        "manana" => matches!(before, "la" | "cada"),
        _ => false,
    };
    (!is_morning).then_some((dates::after(now.date(), days, Unit::Day)?, true, length))
}

/// `3 December`, `2026-12-03`, `am 3.12.`, `the 15th`, `in January`.
fn written(words: &[Token<'_>], at: usize, now: &Zoned) -> Option<(Date, bool, usize)> {
    let (word, today) = (lower(words, at), now.date());
    let before = at.checked_sub(1).map_or("", |place| lower(words, place));
    // Without a year it may as well be a price or a clock.
    let is_doubtful = word.matches('.').count() == 1;
    let is_date = !is_doubtful || matches!(before, "am" | "zum" | "bis" | "vom" | "le");
    if is_date && let Some((date, length)) = dates::written_date(|offset| lower(words, at + offset), today) {
        return Some((date, true, length));
    }
    if let Some((day, is_ordinal)) = dates::day_number(word) {
        let is_day = is_ordinal && matches!(before, "the" | "on" | "by");
        return is_day.then(|| Some((day_of_month(day, today)?, true, 1))).flatten();
    }
    // `In January` lasts until its end; without the preposition it may be a name or a verb.
    let month = month(word).filter(|_| matches!(before, "in" | "im" | "en" | "next"))?;
    let year = lower(words, at + 1).parse::<i16>().ok().filter(|year| (1990..=2200).contains(year));
    let first = coming_month(month, year, today)?;
    Some((first.last_of_month(), false, 1 + usize::from(year.is_some())))
}

/// The first day of this month when it comes next, the present month included.
fn coming_month(month: i8, year: Option<i16>, today: Date) -> Option<Date> {
    let year =
        year.unwrap_or(if month < today.month() { today.year().saturating_add(1) } else { today.year() });
    Date::new(year, month, 1).ok()
}

fn day_of_month(day: i8, today: Date) -> Option<Date> {
    let months = (0..=2).filter_map(|more: i32| today.first_of_month().checked_add(more.months()).ok());
    months.filter_map(|first| Date::new(first.year(), first.month(), day).ok()).find(|date| *date >= today)
}

fn on_weekday(words: &[Token<'_>], at: usize, now: &Zoned) -> Option<(Date, bool, usize)> {
    let back = |steps: usize| at.checked_sub(steps).map_or("", |place| lower(words, place));
    let prepositions = ["on", "by", "next", "this", "until", "till", "before", "am", "bis", "coming"];
    let day = weekday(lower(words, at), prepositions.contains(&back(1)))?;
    if has("EVERY", back(1)) {
        return None;
    }
    let follows = matches!(lower(words, at + 1), "prochain") || reads_at(words, at + 1, "que viene");
    let is_next = matches!(back(1), "next" | "nachsten" | "nachster" | "proximo") || follows;
    let today = now.date();
    let date = if is_next {
        let monday = today.checked_add(7.days()).ok()?;
        let monday = monday.checked_sub(i64::from(monday.weekday().to_monday_zero_offset()).days()).ok()?;
        monday.checked_add(i64::from(day.to_monday_zero_offset()).days()).ok()?
    } else {
        dates::next_weekday(today, day)?
    };
    Some((date, false, 1))
}

/// `next week`, `end of the month`, `this weekend`, `la semaine prochaine`.
fn stretch(words: &[Token<'_>], at: usize, now: &Zoned) -> Option<(Date, bool, usize)> {
    let today = now.date();
    let weekend = phrase("weekend", words, at);
    let length = weekend.unwrap_or(1);
    // `The coming weeks` have no end.
    let is_plural = matches!(
        lower(words, at),
        "weeks" | "months" | "years" | "wochen" | "monate" | "semaines" | "semanas" | "meses"
    );
    if is_plural {
        return None;
    }
    let unit = if weekend.is_some() { Unit::Week } else { unit(lower(words, at))? };
    let back: Vec<&str> =
        (1..=3).filter_map(|steps| at.checked_sub(steps)).map(|place| lower(words, place)).collect();
    let leads = |group: &str| back.iter().any(|word| has(group, word));
    if leads("REPEATED") {
        return None;
    }
    let tail_length = match lower(words, at + length) {
        "prochaine" | "prochain" | "proxima" => 1,
        _ if reads_at(words, at + length, "que viene") => 2,
        _ => 0,
    };
    let is_next = leads("NEXT") || tail_length > 0;
    let is_this = leads("THIS") || weekend.is_some();
    let more = match (is_next, is_this) {
        (true, _) => 1,
        (false, true) => 0,
        (false, false) => return None,
    };
    if matches!(unit, Unit::Day | Unit::Hour | Unit::Minute) {
        return None;
    }
    let date = dates::end_of(unit, dates::after(today, more, unit)?)?;
    Some((date, false, length + if is_next { tail_length } else { 0 }))
}
