//! The words of the calendar in four languages: weekdays, months, numbers, units, parts of the day. Only words, no rules.

use jiff::civil::Weekday;

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
