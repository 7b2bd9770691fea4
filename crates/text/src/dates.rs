//! Dates and times as people write them, in four languages: numbers, units, times of day, days and dates. Takes folded words
//! and gives values; what `until Friday` means is up to the consumer. Has no clock: the day it is seen from is an argument.

use jiff::ToSpan;
use jiff::civil::{Date, Weekday};

use crate::calendar;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
}

#[must_use]
pub fn unit(word: &str) -> Option<Unit> {
    const UNITS: [(&str, Unit); 6] = [
        ("minute minutes min mins minuten minuto minutos", Unit::Minute),
        ("hour hours hr hrs stunde stunden heure heures hora horas", Unit::Hour),
        ("day days tag tage tagen jour jours dia dias", Unit::Day),
        ("week weeks woche wochen semaine semaines semana semanas", Unit::Week),
        ("month months monat monats monate monaten mois mes meses", Unit::Month),
        ("year years jahr jahres jahre jahren an ans annee ano anos", Unit::Year),
    ];
    UNITS.iter().find(|(names, _)| names.split(' ').any(|name| name == word)).map(|(_, unit)| *unit)
}

/// The number that a word stands for, up to 999: `3`, `three`, `a couple`.
#[must_use]
pub fn number(word: &str) -> Option<i64> {
    const NUMBERS: [(&str, i64); 16] = [
        ("a an one ein eine einem einer eins un une una uno", 1),
        ("two zwei deux dos couple", 2),
        ("three drei trois tres few", 3),
        ("four vier quatre cuatro", 4),
        ("five funf cinq cinco", 5),
        ("six sechs seis", 6),
        ("seven sieben sept siete", 7),
        ("eight acht huit ocho", 8),
        ("nine neun neuf nueve", 9),
        ("ten zehn dix diez", 10),
        ("eleven elf onze once", 11),
        ("twelve zwolf douze doce", 12),
        ("fourteen vierzehn quatorze catorce", 14),
        ("fifteen quinze quince", 15),
        ("twenty zwanzig vingt veinte", 20),
        ("thirty dreissig trente treinta", 30),
    ];
    if let Ok(number) = word.parse::<i64>() {
        return (0..=999).contains(&number).then_some(number);
    }
    NUMBERS.iter().find(|(names, _)| names.split(' ').any(|name| name == word)).map(|(_, number)| *number)
}

/// A day of the month: `3`, `3rd`, `1er`; and whether it says so by its ending.
#[must_use]
pub fn day_number(word: &str) -> Option<(i8, bool)> {
    let digits = word.trim_end_matches(char::is_alphabetic);
    let ending = word.get(digits.len()..).unwrap_or_default();
    let day: i8 = digits.parse().ok()?;
    let is_day = matches!(ending, "" | "st" | "nd" | "rd" | "th" | "er") && (1..=31).contains(&day);
    is_day.then_some((day, !ending.is_empty()))
}

/// A time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    pub hour: i8,
    pub minute: i8,
    /// It can be nothing but a time: not a bare number.
    pub marked: bool,
    /// It can only be this half of the day: `22:00`, `9 pm`, `9 Uhr`, but not `9:30` or `9 o'clock`.
    pub certain: bool,
}

/// A time of day in one word: `22`, `22:00`, `22.30`, `22h`, `22h30`, `10pm`, `22uhr`.
#[must_use]
pub fn clock(word: &str) -> Option<Clock> {
    let endings = [("am", Some(false)), ("pm", Some(true)), ("uhr", None)];
    let ending = endings.iter().find_map(|(ending, late)| Some((word.strip_suffix(ending)?, *late)));
    let (digits, late) = ending.unwrap_or((word, None));
    let (hour, minute, marked) = match digits.split_once([':', '.', 'h']) {
        Some((hour, "")) => (hour, "0", true),
        Some((hour, minute)) if minute.len() == 2 => (hour, minute, true),
        Some(_) => return None,
        None => (digits, "0", ending.is_some()),
    };
    let (hour, minute): (i8, i8) = (hour.parse().ok()?, minute.parse().ok()?);
    if !(0..=24).contains(&hour) || !(0..=59).contains(&minute) {
        return None;
    }
    let has_unit = late.is_some() || word.contains('h') || marked && word.starts_with('0');
    let hour = match late {
        Some(late) => half_of_day(hour, late)?,
        None => hour,
    };
    Some(Clock { hour, minute, marked, certain: has_unit || hour == 0 || hour > 12 })
}

/// A time of day at the start of `word`, and how many words it has: `22:00`, `10 pm`, `nine o'clock`, `half past four`.
pub fn clock_at<'w>(word: impl Fn(usize) -> &'w str) -> Option<(Clock, usize)> {
    if let Some((clock, length)) = spoken(&word) {
        let (clock, more) = with_unit(clock, word(length));
        return Some((clock, length + more));
    }
    let hour = || Some(i8::try_from(number(word(0))?).ok()?).filter(|hour| (0..=24).contains(hour));
    let bare = |hour| Clock { hour, minute: 0, marked: false, certain: hour == 0 || hour > 12 };
    let (clock, more) = with_unit(clock(word(0)).or_else(|| hour().map(bare))?, word(1));
    Some((clock, 1 + more))
}

/// The time with the word that follows it: the half of the day, or a unit.
fn with_unit(clock: Clock, next: &str) -> (Clock, usize) {
    let half = |late| half_of_day(clock.hour, late).unwrap_or(clock.hour);
    match next {
        "am" | "a.m" => (Clock { hour: half(false), marked: true, certain: true, ..clock }, 1),
        "pm" | "p.m" => (Clock { hour: half(true), marked: true, certain: true, ..clock }, 1),
        "o'clock" | "oclock" => (Clock { marked: true, ..clock }, 1),
        "uhr" | "heures" | "h" | "horas" => (Clock { marked: true, certain: true, ..clock }, 1),
        _ => (clock, 0),
    }
}

/// `half past four`, `a quarter to four`.
fn spoken<'w>(word: &impl Fn(usize) -> &'w str) -> Option<(Clock, usize)> {
    let skip = usize::from(word(0) == "a");
    let minute: i8 = match word(skip) {
        "half" => 30,
        "quarter" => 15,
        word => i8::try_from(number(word).filter(|minutes| matches!(minutes, 5 | 10 | 20 | 25))?).ok()?,
    };
    let hour = i8::try_from(number(word(skip + 2)).filter(|hour| (1..=12).contains(hour))?).ok()?;
    let (hour, minute) = match word(skip + 1) {
        "past" | "after" => (hour, minute),
        "to" if minute != 30 => (if hour == 1 { 12 } else { hour - 1 }, 60 - minute),
        _ => return None,
    };
    Some((Clock { hour, minute, marked: true, certain: false }, skip + 3))
}

/// The hour with `am` or `pm`.
#[must_use]
pub fn half_of_day(hour: i8, late: bool) -> Option<i8> {
    match (hour, late) {
        (12, false) => Some(0),
        (12, true) => Some(12),
        (1..=11, false) => Some(hour),
        (1..=11, true) => Some(hour + 12),
        _ => None,
    }
}

/// A date as it is written at the start of `words`, and how many of them it has: `2026-12-03`, `3.12.2026`, `3 December`,
/// `December 3rd, 2027`, `3 de diciembre de 2027`. `3.12` without a year may be a price: the caller decides.
pub fn written_date<'w>(word: impl Fn(usize) -> &'w str, today: Date) -> Option<(Date, usize)> {
    let first = word(0);
    if let Ok(date) = first.get(..10).unwrap_or_default().parse::<Date>() {
        return Some((date, 1));
    }
    if let Some((day, rest)) = first.split_once('.') {
        let (month, year) = rest.split_once('.').unwrap_or((rest, ""));
        let year = if year.is_empty() { None } else { Some(year.parse::<i16>().ok()?) };
        let year = year.map(|year| if year < 100 { 2000 + year } else { year });
        return Some((coming(day.parse().ok()?, month.parse().ok()?, year, today)?, 1));
    }
    let year_at = |at: usize| word(at).parse::<i16>().ok().filter(|year| (1970..=9999).contains(year));
    if let Some((day, _)) = day_number(first) {
        let joined = usize::from(matches!(word(1), "of" | "de" | "th"));
        let month = calendar::month(word(1 + joined))?;
        let of = usize::from(matches!(word(2 + joined), "de" | "del" | "of"));
        let year = year_at(2 + joined + of);
        let length = 2 + joined + if year.is_some() { 1 + of } else { 0 };
        return Some((coming(day, month, year, today)?, length));
    }
    let month = calendar::month(first)?;
    let (day, _) = day_number(word(1))?;
    let year = year_at(2);
    Some((coming(day, month, year, today)?, 2 + usize::from(year.is_some())))
}

/// That day of that year; without a year, the next one, today included.
#[must_use]
pub fn coming(day: i8, month: i8, year: Option<i16>, today: Date) -> Option<Date> {
    if let Some(year) = year {
        return Date::new(year, month, day).ok();
    }
    // Eight years hold a 29 February.
    let years = (0..=8).map(|more| today.year().saturating_add(more));
    years.filter_map(|year| Date::new(year, month, day).ok()).find(|date| *date >= today)
}

/// The weekday of this name. Short forms have other meanings too (`sun`, `sat`), and `mondays` is no single day.
#[must_use]
pub fn weekday(word: &str, is_short_allowed: bool) -> Option<Weekday> {
    let is_habit =
        ["days", "tags", "wochs", "dis", "ados", "gos", "ches"].iter().any(|end| word.ends_with(end));
    let day = calendar::weekday(word).filter(|_| !is_habit && (is_short_allowed || word.len() > 4))?;
    Weekday::from_monday_one_offset(day).ok()
}

/// The next such weekday after a day.
#[must_use]
pub fn next_weekday(day: Date, weekday: Weekday) -> Option<Date> {
    day.nth_weekday(1, weekday).ok()
}

/// The last day of the week, month or year of a day.
#[must_use]
pub fn end_of(unit: Unit, date: Date) -> Option<Date> {
    Some(match unit {
        Unit::Week => {
            let days = 6 - i64::from(date.weekday().to_monday_zero_offset());
            date.checked_add(days.days()).ok()?
        }
        Unit::Month => date.last_of_month(),
        Unit::Year => date.last_of_year(),
        Unit::Day | Unit::Hour | Unit::Minute => date,
    })
}

/// A length of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amount {
    pub count: i64,
    pub unit: Unit,
    /// And half of one more.
    pub half: bool,
    /// How many words it has.
    pub length: usize,
}

impl Amount {
    /// `two weeks`, `a couple of days`, `half an hour`, `the next 3 days`, at the start of `word`.
    pub fn read<'w>(word: impl Fn(usize) -> &'w str) -> Option<Self> {
        let half = |unit, length| Some(Self { count: 0, unit, half: true, length });
        match (word(0), word(1), word(2)) {
            ("half", "an" | "a", name) | ("une", "demi", name) => return half(unit(name)?, 3),
            ("media", "hora", _) | ("halben", "stunde", _) => return half(Unit::Hour, 2),
            _ => {}
        }
        let mut at = 0;
        if matches!(word(0), "the" | "next") || word(0) == "a" && number(word(1)).is_some() {
            at += 1;
        }
        at += usize::from(word(at) == "next");
        let count = number(word(at))?;
        at += 1 + usize::from(word(at + 1) == "of");
        let (count, unit) =
            if word(at) == "fortnight" { (2 * count, Unit::Week) } else { (count, unit(word(at))?) };
        Some(Self { count, unit, half: false, length: at + 1 })
    }

    /// As minutes, if it is counted in hours or minutes.
    #[must_use]
    pub fn minutes(&self) -> Option<i64> {
        let each = match self.unit {
            Unit::Minute => 1,
            Unit::Hour => 60,
            _ => return None,
        };
        Some(self.count * each + if self.half { each / 2 } else { 0 })
    }
}

#[must_use]
pub fn after(date: Date, count: i64, unit: Unit) -> Option<Date> {
    let span = match unit {
        Unit::Week => count.weeks(),
        Unit::Month => count.months(),
        Unit::Year => count.years(),
        Unit::Day | Unit::Hour | Unit::Minute => count.days(),
    };
    date.checked_add(span).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(String, usize)> {
        let words: Vec<&str> = text.split(' ').collect();
        let word = |at: usize| words.get(at).copied().unwrap_or_default();
        written_date(word, jiff::civil::date(2026, 11, 16)).map(|(date, length)| (date.to_string(), length))
    }

    #[test]
    fn dates_are_read_as_people_write_them() {
        for (text, date, length) in [
            ("2026-12-03 x", "2026-12-03", 1),
            ("3.12.2027", "2027-12-03", 1),
            ("3.12.27", "2027-12-03", 1),
            ("3.12", "2026-12-03", 1),
            ("3 december", "2026-12-03", 2),
            ("3rd of march", "2027-03-03", 3),
            ("december 3rd 2027", "2027-12-03", 3),
            ("3 de diciembre de 2027", "2027-12-03", 5),
            ("29 februar", "2028-02-29", 2),
        ] {
            assert_eq!(read(text), Some((date.to_owned(), length)), "{text}");
        }
        for text in ["3 attempts", "may i", "33 december", "1.5.x.2", "31 februar", ""] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn lengths_of_time_are_read_as_people_write_them() {
        for (text, count, unit, half, length) in [
            ("two weeks", 2, Unit::Week, false, 2),
            ("the next 3 days", 3, Unit::Day, false, 4),
            ("a couple of hours", 2, Unit::Hour, false, 4),
            ("half an hour", 0, Unit::Hour, true, 3),
            ("a fortnight", 2, Unit::Week, false, 2),
        ] {
            let words: Vec<&str> = text.split(' ').collect();
            let read = Amount::read(|at| words.get(at).copied().unwrap_or_default());
            assert_eq!(read, Some(Amount { count, unit, half, length }), "{text}");
        }
    }

    #[test]
    fn times_of_day_are_read_as_people_write_them() {
        for (text, hour, minute, marked) in [
            ("22", 22, 0, false),
            ("22:00", 22, 0, true),
            ("22h30", 22, 30, true),
            ("22h", 22, 0, true),
            ("10pm", 22, 0, true),
            ("12am", 0, 0, true),
            ("7.45", 7, 45, true),
            ("9uhr", 9, 0, true),
        ] {
            let read = clock(text).unwrap();
            assert_eq!((read.hour, read.minute, read.marked), (hour, minute, marked), "{text}");
        }
        for text in ["25", "9:5", "9:77", "13pm", "x", ""] {
            assert_eq!(clock(text), None, "{text}");
        }
        for (text, hour, minute, marked, certain, length) in [
            ("9 people", 9, 0, false, false, 1),
            ("nine o'clock", 9, 0, true, false, 2),
            ("10 pm", 22, 0, true, true, 2),
            ("12 am", 0, 0, true, true, 2),
            ("9 uhr", 9, 0, true, true, 2),
            ("9:30", 9, 30, true, false, 1),
            ("a quarter to one pm", 12, 45, true, true, 5),
        ] {
            let words: Vec<&str> = text.split(' ').collect();
            let read = clock_at(|at| words.get(at).copied().unwrap_or_default());
            assert_eq!(read, Some((Clock { hour, minute, marked, certain }, length)), "{text}");
        }
        assert_eq!((weekday("sat", false), weekday("mondays", true), number("once")), (None, None, Some(11)));
    }
}
