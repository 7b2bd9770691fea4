//! Times of day: `at 9`, `5pm`, `14:00`, `half past four`, `um 9 Uhr`, `à 9h`, `noon`, `this evening`.

use jiff::Zoned;
use jiff::civil::{Date, Time};

use super::TimeExpr;
use super::calendar::{Part, number, weekday};
use crate::reflect::sentences::{Word, lower, reads_at};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clock {
    hour: i8,
    minute: i8,
    /// Whether it can only be this half of the day.
    certain: bool,
}

impl Clock {
    /// On a day that was named: `at 3` is in the afternoon, `at 9` in the morning.
    pub(super) fn on_a_day(self, part: Option<Part>) -> Option<Time> {
        let late =
            !self.certain && self.hour < 12 && part.map_or((1..=6).contains(&self.hour), Part::is_late);
        self.time(if late { 12 } else { 0 })
    }

    /// On no day in particular: the next time that the clock shows this.
    pub(super) fn from(self, now: &Zoned, part: Option<Part>) -> Option<(Date, Time)> {
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

/// The expression that begins here, and how many words it has.
pub(super) fn read(words: &[Word<'_>], at: usize) -> Option<(TimeExpr, usize)> {
    part(words, at)
        .map(|(part, length)| (TimeExpr::Part(part), length))
        .or_else(|| spoken(words, at).map(|(clock, length)| (TimeExpr::Clock(clock), length)))
        .or_else(|| digits(words, at).map(|(clock, length)| (TimeExpr::Clock(clock), length)))
}

fn part(words: &[Word<'_>], at: usize) -> Option<(Part, usize)> {
    const PHRASES: [(&str, Part); 29] = [
        ("tonight", Part::Night),
        ("close of business", Part::Business),
        ("end of business", Part::Business),
        ("cob", Part::Business),
        ("de la manana", Part::Morning),
        ("por la manana", Part::Morning),
        ("por la tarde", Part::Afternoon),
        ("por la noche", Part::Evening),
        ("esta tarde", Part::Afternoon),
        ("esta noche", Part::Night),
        ("ce soir", Part::Evening),
        ("ce matin", Part::Morning),
        ("cet apres midi", Part::Afternoon),
        ("apres midi", Part::Afternoon),
        ("in the morning", Part::Morning),
        ("lunch", Part::Noon),
        ("lunchtime", Part::Noon),
        ("morning", Part::Morning),
        ("matin", Part::Morning),
        ("fruh", Part::Morning),
        ("afternoon", Part::Afternoon),
        ("nachmittag", Part::Afternoon),
        ("evening", Part::Evening),
        ("abend", Part::Evening),
        ("soir", Part::Evening),
        ("night", Part::Night),
        ("midnight", Part::Night),
        ("mitternacht", Part::Night),
        ("vormittag", Part::Morning),
    ];
    if reads_at(words, at, "first thing") {
        return Some((Part::Morning, 2));
    }
    if matches!(lower(words, at), "noon" | "midday" | "mittag" | "midi" | "mediodia") {
        return Some((Part::Noon, 1));
    }
    let (phrase, part) = PHRASES.iter().find(|(phrase, _)| reads_at(words, at, phrase))?;
    let length = phrase.split(' ').count();
    // `Have lunch` is a meal; `before lunch` is a time, `after lunch` the afternoon.
    let part = match (*part, at.checked_sub(1).map_or("", |place| lower(words, place))) {
        (Part::Noon, "after") => Part::Afternoon,
        (Part::Noon, "before" | "by" | "at" | "until" | "over") => Part::Noon,
        (Part::Noon, _) => return None,
        (part, _) => part,
    };
    Some((part, length))
}

/// `half past four`, `quarter to four`.
fn spoken(words: &[Word<'_>], at: usize) -> Option<(Clock, usize)> {
    let skip = usize::from(lower(words, at) == "a");
    let minute: i8 = match lower(words, at + skip) {
        "half" => 30,
        "quarter" => 15,
        word => i8::try_from(number(word).filter(|minutes| matches!(minutes, 5 | 10 | 20 | 25))?).ok()?,
    };
    let hour =
        i8::try_from(number(lower(words, at + skip + 2)).filter(|hour| (1..=12).contains(hour))?).ok()?;
    let (hour, minute) = match lower(words, at + skip + 1) {
        "past" | "after" => (hour, minute),
        "to" if minute != 30 => (if hour == 1 { 12 } else { hour - 1 }, 60 - minute),
        _ => return None,
    };
    let (hour, certain, more) = half_of_day(words, at + skip + 3, hour);
    Some((Clock { hour, minute, certain }, skip + 3 + more))
}

fn digits(words: &[Word<'_>], at: usize) -> Option<(Clock, usize)> {
    let word = lower(words, at);
    let leads = at > 0
        && matches!(
            lower(words, at - 1),
            "at" | "by" | "before" | "until" | "um" | "gegen" | "bis" | "las" | "around"
        );
    if let Some((hour, minute)) = word.split_once([':', '.', 'h']) {
        let minute = minute.strip_suffix("am").or_else(|| minute.strip_suffix("pm")).unwrap_or(minute);
        // Two numbers with a full stop are a clock only where one is expected: they may be a date or a price.
        if word.contains('.') && !leads {
            return None;
        }
        let hour: i8 = hour.parse().ok().filter(|hour| (0..=24).contains(hour))?;
        let minute: i8 = if minute.is_empty() { 0 } else { minute.parse().ok()? };
        if !(0..=59).contains(&minute) {
            return None;
        }
        if word.ends_with("am") || word.ends_with("pm") {
            return Some((Clock { hour: half(hour, word.ends_with("pm"))?, minute, certain: true }, 1));
        }
        let (hour, mut certain, more) = half_of_day(words, at + 1, hour);
        certain |= hour > 12 || word.starts_with('0') || word.contains('h') || hour == 0;
        // `9:30` in the morning is said as such; `4:30` mostly is not.
        return Some((Clock { hour, minute, certain: certain || hour >= 7 }, 1 + more));
    }
    if let Some(hour) = word.strip_suffix("am").or_else(|| word.strip_suffix("pm")) {
        let hour: i8 = hour.parse().ok()?;
        return Some((Clock { hour: half(hour, word.ends_with("pm"))?, minute: 0, certain: true }, 1));
    }
    let hour = i8::try_from(number(word).filter(|hour| (0..=24).contains(hour))?).ok()?;
    let is_digit = word.bytes().all(|byte| byte.is_ascii_digit());
    let (hour, certain, more) = half_of_day(words, at + 1, hour);
    if more > 0 {
        return is_digit.then_some((Clock { hour, minute: 0, certain }, 1 + more));
    }
    let spoken_hour = leads && (is_digit || lower(words, at - 1) == "at") && word != "a" && word != "an";
    (spoken_hour && ends_here(words, at + 1))
        .then_some((Clock { hour, minute: 0, certain: hour > 12 || hour == 0 }, 1))
}

/// What follows an hour: `am`, `pm`, `o'clock`, `Uhr`; the hour it makes, whether that is certain, how many words it has.
fn half_of_day(words: &[Word<'_>], at: usize, hour: i8) -> (i8, bool, usize) {
    match lower(words, at) {
        "am" if !words.get(at).is_some_and(|word| word.after_break) => {
            (half(hour, false).unwrap_or(hour), true, 1)
        }
        "pm" => (half(hour, true).unwrap_or(hour), true, 1),
        "o'clock" => (hour, false, 1),
        "uhr" | "heures" | "h" => (hour, true, 1),
        "horas" => (hour, true, 1),
        _ => (hour, false, 0),
    }
}

fn half(hour: i8, late: bool) -> Option<i8> {
    match (hour, late) {
        (12, false) => Some(0),
        (12, true) => Some(12),
        (1..=11, false) => Some(hour),
        (1..=11, true) => Some(hour + 12),
        _ => None,
    }
}

/// Whether a bare number can be an hour here: `by 5 tomorrow`, and not `by 5 people`.
fn ends_here(words: &[Word<'_>], at: usize) -> bool {
    let next = lower(words, at);
    next.is_empty()
        || words.get(at).is_some_and(|word| word.after_break)
        || weekday(next, true).is_some()
        || matches!(
            next,
            "to" | "on"
                | "in"
                | "and"
                | "this"
                | "sharp"
                | "tomorrow"
                | "tonight"
                | "today"
                | "de"
                | "del"
                | "manana"
                | "morgen"
                | "heute"
                | "for"
                | "or"
                | "so"
                | "about"
                | "with"
                | "that"
        )
}
