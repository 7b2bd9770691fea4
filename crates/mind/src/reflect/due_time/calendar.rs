//! Days in four languages: the words for weekdays, months, numbers, units and parts of the day, and expressions such as
//! `tomorrow`, `next Friday`, `3 December`, `on the 15th`, `2026-11-03`, `end of the month`.

use jiff::civil::{Date, Weekday};
use jiff::{ToSpan, Zoned};

use super::TimeExpr;
use crate::reflect::sentences::{Word, lower, reads_at};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
}

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

/// The weekday of this name. Short forms are words of other meanings too, so they count after a preposition only.
pub(super) fn weekday(word: &str, after_preposition: bool) -> Option<Weekday> {
    let full = match word {
        "monday" | "montag" | "lundi" | "lunes" => Weekday::Monday,
        "tuesday" | "dienstag" | "mardi" | "martes" => Weekday::Tuesday,
        "wednesday" | "mittwoch" | "mercredi" | "miercoles" => Weekday::Wednesday,
        "thursday" | "donnerstag" | "jeudi" | "jueves" => Weekday::Thursday,
        "friday" | "freitag" | "vendredi" | "viernes" => Weekday::Friday,
        "saturday" | "samstag" | "sonnabend" | "samedi" | "sabado" => Weekday::Saturday,
        "sunday" | "sonntag" | "dimanche" | "domingo" => Weekday::Sunday,
        _ if !after_preposition => return None,
        "mon" => Weekday::Monday,
        "tue" | "tues" => Weekday::Tuesday,
        "wed" => Weekday::Wednesday,
        "thu" | "thur" | "thurs" => Weekday::Thursday,
        "fri" => Weekday::Friday,
        "sat" => Weekday::Saturday,
        "sun" => Weekday::Sunday,
        _ => return None,
    };
    Some(full)
}

pub(super) fn month(word: &str) -> Option<i8> {
    Some(match word {
        "january" | "jan" | "januar" | "janvier" | "enero" => 1,
        "february" | "feb" | "februar" | "fevrier" | "febrero" => 2,
        "march" | "mar" | "marz" | "mars" | "marzo" => 3,
        "april" | "apr" | "avril" | "abril" => 4,
        "may" | "mai" | "mayo" => 5,
        "june" | "jun" | "juni" | "juin" | "junio" => 6,
        "july" | "jul" | "juli" | "juillet" | "julio" => 7,
        "august" | "aug" | "aout" | "agosto" => 8,
        "september" | "sep" | "sept" | "septembre" | "septiembre" => 9,
        "october" | "oct" | "oktober" | "okt" | "octobre" | "octubre" => 10,
        "november" | "nov" | "novembre" | "noviembre" => 11,
        "december" | "dec" | "dezember" | "dez" | "decembre" | "diciembre" => 12,
        _ => return None,
    })
}

pub(super) fn unit(word: &str) -> Option<Unit> {
    Some(match word {
        "minute" | "minutes" | "min" | "mins" | "minuten" | "minuto" | "minutos" => Unit::Minute,
        "hour" | "hours" | "hr" | "hrs" | "stunde" | "stunden" | "heure" | "heures" | "hora" | "horas" => {
            Unit::Hour
        }
        "day" | "days" | "tag" | "tage" | "tagen" | "jour" | "jours" | "dia" | "dias" => Unit::Day,
        "week" | "weeks" | "woche" | "wochen" | "semaine" | "semaines" | "semana" | "semanas" => Unit::Week,
        "month" | "months" | "monat" | "monats" | "monate" | "monaten" | "mois" | "mes" | "meses" => {
            Unit::Month
        }
        "year" | "years" | "jahr" | "jahres" | "jahre" | "jahren" | "an" | "ans" | "annee" | "ano"
        | "anos" => Unit::Year,
        _ => return None,
    })
}

pub(super) fn number(word: &str) -> Option<i64> {
    if let Ok(number) = word.parse::<i64>() {
        return (0..=999).contains(&number).then_some(number);
    }
    Some(match word {
        "a" | "an" | "one" | "ein" | "eine" | "einem" | "einer" | "eins" | "un" | "une" | "una" | "uno" => 1,
        "two" | "zwei" | "deux" | "dos" | "couple" => 2,
        "three" | "drei" | "trois" | "tres" | "few" => 3,
        "four" | "vier" | "quatre" | "cuatro" => 4,
        "five" | "funf" | "cinq" | "cinco" => 5,
        "six" | "sechs" | "seis" => 6,
        "seven" | "sieben" | "sept" | "siete" => 7,
        "eight" | "acht" | "huit" | "ocho" => 8,
        "nine" | "neun" | "neuf" | "nueve" => 9,
        "ten" | "zehn" | "dix" | "diez" => 10,
        "eleven" | "elf" | "onze" | "once" => 11,
        "twelve" | "zwolf" | "douze" | "doce" => 12,
        "fourteen" | "vierzehn" | "quatorze" | "catorce" => 14,
        "fifteen" | "quinze" | "quince" => 15,
        "twenty" | "zwanzig" | "vingt" | "veinte" => 20,
        "thirty" | "dreissig" | "trente" | "treinta" => 30,
        _ => return None,
    })
}

/// A day of the month: `3`, `3rd`, `1er`; and whether it says so by its ending.
pub(super) fn day_number(word: &str) -> Option<(i8, bool)> {
    let digits = word.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let ending = word.get(digits.len()..).unwrap_or_default();
    if !matches!(ending, "" | "st" | "nd" | "rd" | "th" | "er") {
        return None;
    }
    let day: i8 = digits.parse().ok()?;
    (1..=31).contains(&day).then_some((day, !ending.is_empty()))
}

/// The expression that begins here, and how many words it has.
pub(super) fn read_day(words: &[Word<'_>], at: usize, now: &Zoned) -> Option<(TimeExpr, usize)> {
    if is_past(words, at) {
        return Some((TimeExpr::Past, 1));
    }
    let (date, exact, length) = relative(words, at, now)
        .or_else(|| iso(words, at, now.date()))
        .or_else(|| written(words, at, now))
        .or_else(|| on_weekday(words, at, now))
        .or_else(|| stretch(words, at, now))?;
    let date = if is_before(words, at) { date.yesterday().ok()? } else { date };
    Some((TimeExpr::Day { date, exact }, length))
}

fn is_past(words: &[Word<'_>], at: usize) -> bool {
    let word = lower(words, at);
    if matches!(word, "yesterday" | "gestern" | "vorgestern" | "hier" | "ayer" | "anteayer") {
        return true;
    }
    let is_time = |word: &str| weekday(word, true).is_some() || unit(word).is_some() || word == "night";
    (matches!(word, "last" | "letzte" | "letzten" | "letzter" | "letztes") && is_time(lower(words, at + 1)))
        || (is_time(word) && matches!(lower(words, at + 1), "dernier" | "derniere" | "pasado" | "pasada"))
}

/// `before Friday` ends the day before; `before noon` is no matter of days.
fn is_before(words: &[Word<'_>], at: usize) -> bool {
    let back = |steps: usize| at.checked_sub(steps).map_or("", |place| lower(words, place));
    let is = |word: &str| matches!(word, "before" | "vor" | "avant" | "antes");
    is(back(1))
        || (matches!(back(1), "the" | "le" | "la" | "dem" | "del" | "de" | "next") && is(back(2)))
        || (back(1) == "el" && back(2) == "de" && is(back(3)))
}

fn relative(words: &[Word<'_>], at: usize, now: &Zoned) -> Option<(Date, bool, usize)> {
    const PHRASES: [(&str, i32); 18] = [
        ("the day after tomorrow", 2),
        ("day after tomorrow", 2),
        ("apres demain", 2),
        ("pasado manana", 2),
        ("ubermorgen", 2),
        ("end of the day", 0),
        ("end of day", 0),
        ("eod", 0),
        ("later today", 0),
        ("today", 0),
        ("heute", 0),
        ("aujourd'hui", 0),
        ("hoy", 0),
        ("tomorrow", 1),
        ("tmrw", 1),
        ("morgen", 1),
        ("demain", 1),
        ("manana", 1),
    ];
    let (phrase, days) = PHRASES.iter().find(|(phrase, _)| reads_at(words, at, phrase))?;
    // `Heute Morgen` and `la mañana` are mornings, `le lendemain` is not now.
    let before = at.checked_sub(1).map_or("", |place| lower(words, place));
    if matches!((*phrase, before), ("morgen", "heute" | "am" | "jeden" | "guten") | ("manana", "la" | "cada"))
    {
        return None;
    }
    let date = now.date().checked_add(days.days()).ok()?;
    Some((date, true, phrase.split(' ').count()))
}

fn iso(words: &[Word<'_>], at: usize, today: Date) -> Option<(Date, bool, usize)> {
    let word = lower(words, at);
    if let Ok(date) = word.get(..10).unwrap_or_default().parse::<Date>() {
        return Some((date, true, 1));
    }
    let mut parts = word.split('.');
    let day: i8 = parts.next()?.parse().ok()?;
    let month: i8 = parts.next()?.parse().ok()?;
    let Some(year) = parts.next() else {
        // Without a year it may as well be a price or a clock.
        let before = at.checked_sub(1).map_or("", |place| lower(words, place));
        let is_date = matches!(before, "am" | "zum" | "bis" | "vom" | "le");
        return is_date.then(|| coming(day, month, None, today)).flatten().map(|date| (date, true, 1));
    };
    let year: i16 = year.parse().ok()?;
    let year = if year < 100 { 2000 + year } else { year };
    Some((Date::new(year, month, day).ok()?, true, 1))
}

/// `3 December`, `December 3rd`, `3 de diciembre 2027`, `the 15th`.
fn written(words: &[Word<'_>], at: usize, now: &Zoned) -> Option<(Date, bool, usize)> {
    let year_at =
        |at: usize| lower(words, at).parse::<i16>().ok().filter(|year| (1990..=2200).contains(year));
    if let Some((day, is_ordinal)) = day_number(lower(words, at)) {
        let joined = usize::from(matches!(lower(words, at + 1), "of" | "de" | "th"));
        if let Some(month) = month(lower(words, at + 1 + joined)) {
            let of = usize::from(matches!(lower(words, at + 2 + joined), "de" | "del"));
            let year = year_at(at + 2 + joined + of);
            let length = 2 + joined + if year.is_some() { 1 + of } else { 0 };
            return Some((coming(day, month, year, now.date())?, true, length));
        }
        let before = at.checked_sub(1).map_or("", |place| lower(words, place));
        if is_ordinal && matches!(before, "the" | "on" | "by") {
            return Some((day_of_month(day, now.date())?, true, 1));
        }
        return None;
    }
    let month = month(lower(words, at))?;
    let Some((day, _)) = day_number(lower(words, at + 1)) else {
        // `In January` lasts until its end; without the preposition it may be a name or a verb.
        let before = at.checked_sub(1).map_or("", |place| lower(words, place));
        let first = coming_month(month, year_at(at + 1), now.date())?;
        let is_month = matches!(before, "in" | "im" | "en" | "next");
        return is_month.then(|| (first.last_of_month(), false, 1 + usize::from(year_at(at + 1).is_some())));
    };
    let year = year_at(at + 2);
    Some((coming(day, month, year, now.date())?, true, 2 + usize::from(year.is_some())))
}

fn coming(day: i8, month: i8, year: Option<i16>, today: Date) -> Option<Date> {
    if let Some(year) = year {
        return Date::new(year, month, day).ok();
    }
    let in_year = |year: i16| Date::new(year, month, day).ok();
    in_year(today.year())
        .filter(|date| *date >= today)
        // Eight years hold a 29 February.
        .or_else(|| (1..=8).find_map(|more| in_year(today.year().saturating_add(more))))
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

fn on_weekday(words: &[Word<'_>], at: usize, now: &Zoned) -> Option<(Date, bool, usize)> {
    let back = |steps: usize| at.checked_sub(steps).map_or("", |place| lower(words, place));
    let prepositions = ["on", "by", "next", "this", "until", "till", "before", "am", "bis", "coming"];
    let day = weekday(lower(words, at), prepositions.contains(&back(1)))?;
    if matches!(back(1), "every" | "each" | "jeden" | "chaque" | "cada" | "most" | "los" | "les") {
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
        today.nth_weekday(1, day).ok()?
    };
    Some((date, false, 1))
}

/// `next week`, `end of the month`, `this weekend`, `la semaine prochaine`.
fn stretch(words: &[Word<'_>], at: usize, now: &Zoned) -> Option<(Date, bool, usize)> {
    let today = now.date();
    let sunday =
        |date: Date| date.checked_add(i64::from(6 - date.weekday().to_monday_zero_offset()).days()).ok();
    let is_weekend = matches!(lower(words, at), "weekend" | "wochenende")
        || reads_at(words, at, "week end")
        || reads_at(words, at, "fin de semana");
    let length = if is_weekend && lower(words, at) == "week" { 2 } else { 1 };
    let length = if is_weekend && lower(words, at) == "fin" { 3 } else { length };
    // `The coming weeks` have no end.
    let is_plural = matches!(
        lower(words, at),
        "weeks" | "months" | "years" | "wochen" | "monate" | "semaines" | "semanas" | "meses"
    );
    if is_plural {
        return None;
    }
    let unit = if is_weekend { Unit::Week } else { unit(lower(words, at))? };
    let back: Vec<&str> =
        (1..=3).filter_map(|steps| at.checked_sub(steps)).map(|place| lower(words, place)).collect();
    let has = |options: &[&str]| back.iter().any(|word| options.contains(word));
    if has(&["last", "letzte", "letzten", "every", "per", "each", "two", "few"]) {
        return None;
    }
    let tail = lower(words, at + length);
    let is_next = has(&[
        "next", "nachste", "nachsten", "nachstes", "nachster", "kommende", "proxima", "proximo", "coming",
    ]) || matches!(tail, "prochaine" | "prochain" | "proxima")
        || reads_at(words, at + length, "que viene");
    let is_this = has(&[
        "this", "end", "diese", "dieser", "diesen", "dieses", "ende", "cette", "ce", "fin", "final",
        "finales", "esta", "este", "am",
    ]) || is_weekend;
    let tail_length = match tail {
        "prochaine" | "prochain" | "proxima" => 1,
        "que" => 2,
        _ => 0,
    };
    let more = match (is_next, is_this) {
        (true, _) => 1,
        (false, true) => 0,
        (false, false) => return None,
    };
    let date = match unit {
        Unit::Week => sunday(today.checked_add(i64::from(more * 7).days()).ok()?)?,
        Unit::Month => today.first_of_month().checked_add(i64::from(more).months()).ok()?.last_of_month(),
        Unit::Year => today.checked_add(i64::from(more).years()).ok()?.last_of_year(),
        Unit::Day | Unit::Hour | Unit::Minute => return None,
    };
    Some((date, false, length + if is_next { tail_length } else { 0 }))
}
