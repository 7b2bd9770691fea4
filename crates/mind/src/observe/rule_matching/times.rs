//! The times in a sentence: times of day and dates as people write them, and what they mean together.

use embody_text::calendar;
use embody_text::dates::{self, Unit};
use embody_text::lexicon::Classes;
use embody_text::tokenize::Token;
use jiff::ToSpan;
use jiff::civil::{Date, DateTime, Weekday};

use super::rule::{DAY, TimeWindow};
use super::words::{Meaning, Tag, is_mark};

/// A night ends here when nobody says: `after 22:00` means until the morning.
const MORNING: u16 = 6 * 60;
const NIGHT: (u16, u16) = (22 * 60, MORNING);

#[derive(Clone, Debug, Default)]
pub(super) struct Times {
    pub(super) when: TimeWindow,
    pub(super) used: Vec<bool>,
}

/// Reads the times. `said` is when the sentence was said; `absent` means that somebody is away, whose last day counts.
pub(super) fn times(tokens: &[Token<'_>], said: DateTime, absent: bool) -> Times {
    let mut times = Times { when: TimeWindow::default(), used: vec![false; tokens.len()] };
    let mut at = 0;
    while let Some(rest) = tokens.get(at..).filter(|rest| !rest.is_empty()) {
        let taken = times.read(rest, said, absent);
        times.used.iter_mut().skip(at).take(taken).for_each(|used| *used = true);
        at += taken.max(1);
    }
    times
}

impl Times {
    /// Reads what begins here; how many tokens that is, or none.
    fn read(&mut self, tokens: &[Token<'_>], said: DateTime, absent: bool) -> usize {
        let Some((first, rest)) = tokens.split_first() else { return 0 };
        let known = first.classes;
        let found = match () {
            () if known.any(&[Tag::Between, Tag::From]) => self.range(rest, said.date()),
            () if known.is(Tag::After) => self.after(rest, said.date()),
            () if known.is(Tag::Before) => self.before(rest, said.date()),
            () if known.is(Tag::Until) => self.until(first, rest, said, absent),
            () if known.is(Tag::Outside) => self.work(rest, true),
            () => self.bare(first, rest, said.date()).map(|taken| taken - 1),
        };
        // `through` and `until` are words about time whatever follows.
        found.map_or(usize::from(known.is(Tag::Until)), |taken| taken + 1)
    }

    fn range(&mut self, tokens: &[Token<'_>], today: Date) -> Option<usize> {
        if let Some((from, to)) = tokens.first().and_then(|token| token.word.split_once('-')) {
            return self.joined(from, to);
        }
        let joins = |token: &Token<'_>| token.classes.any(&[Tag::Or, Tag::To, Tag::Until]);
        if let Some(from) = clock(tokens) {
            let rest = tokens.get(from.taken..)?;
            let to = rest.first().filter(|token| joins(token)).and_then(|_| clock(rest.get(1..)?))?;
            let pm = !to.explicit && !from.explicit && to.minute < from.minute && from.minute < DAY / 2;
            let end = if pm { afternoon(to.minute) } else { to.minute };
            self.when.hours = Some((from.minute, end));
            return Some(from.taken + 1 + to.taken);
        }
        let from = day(tokens, today)?;
        let rest = tokens.get(from.taken..)?;
        let to = rest.first().filter(|token| joins(token)).and_then(|_| day(rest.get(1..)?, from.date))?;
        (self.when.from, self.when.until) = (midnight(from.date, false), midnight(to.date, true));
        Some(from.taken + 1 + to.taken)
    }

    /// `22:00-07:00`
    fn joined(&mut self, from: &str, to: &str) -> Option<usize> {
        self.when.hours = Some((minute_of_day(dates::clock(from)?)?, minute_of_day(dates::clock(to)?)?));
        Some(1)
    }

    fn after(&mut self, tokens: &[Token<'_>], today: Date) -> Option<usize> {
        if tokens.first().is_some_and(|token| token.word == "hours") {
            return self.work_hours(true).map(|()| 1);
        }
        if let Some(taken) = self.work(tokens, true) {
            return Some(taken);
        }
        if let Some(time) = clock(tokens) {
            // Nobody who says `after 9` means the morning.
            let evening = !time.explicit && (5 * 60..DAY / 2).contains(&time.minute);
            let from = if evening { afternoon(time.minute) } else { time.minute };
            // `before 8 or after 20:00`
            let morning = self.when.hours.filter(|(from, _)| *from == 0).map_or(MORNING, |(_, to)| to);
            self.when.hours = Some((from, morning));
            return Some(time.taken);
        }
        let day = day(tokens, today)?;
        self.when.from = midnight(day.date, true);
        Some(day.taken)
    }

    fn before(&mut self, tokens: &[Token<'_>], today: Date) -> Option<usize> {
        if let Some(time) = clock(tokens) {
            let evening = self.when.hours.filter(|(_, to)| *to == MORNING).map_or(0, |(from, _)| from);
            self.when.hours = Some((evening, time.minute));
            return Some(time.taken);
        }
        let day = day(tokens, today)?;
        self.when.until = midnight(day.date, false);
        Some(day.taken)
    }

    fn until(
        &mut self,
        word: &Token<'_>,
        tokens: &[Token<'_>],
        said: DateTime,
        absent: bool,
    ) -> Option<usize> {
        if let Some(day) = day(tokens, said.date()) {
            // Only the English word leaves out the day itself, and not for somebody who is away.
            let whole = day.whole || absent || !["until", "till", "til"].contains(&word.word.as_str());
            self.when.until = midnight(day.date, whole);
            return Some(day.taken);
        }
        let time = clock(tokens)?;
        let (hour, minute) = (i8::try_from(time.minute / 60).ok()?, i8::try_from(time.minute % 60).ok()?);
        let end = said.date().at(hour, minute, 0, 0);
        self.when.until = if end > said { Some(end) } else { end.checked_add(1.day()).ok() };
        Some(time.taken)
    }

    fn work(&mut self, tokens: &[Token<'_>], outside: bool) -> Option<usize> {
        let skipped = tokens.iter().take_while(|token| token.classes.is(Tag::Det)).count();
        tokens.get(skipped).filter(|token| token.classes.is(Tag::WorkHours))?;
        self.work_hours(outside).map(|()| skipped + 1)
    }

    fn work_hours(&mut self, outside: bool) -> Option<()> {
        let TimeWindow { from, until, .. } = self.when;
        self.when = TimeWindow { from, until, ..TimeWindow::work(outside) };
        Some(())
    }

    fn bare(&mut self, first: &Token<'_>, rest: &[Token<'_>], today: Date) -> Option<usize> {
        let known = first.classes;
        if let Some((from, to)) = first.word.split_once('-') {
            return self.joined(from, to);
        }
        match () {
            () if known.is(Tag::WorkHours) => self.work_hours(false)?,
            () if known.is(Tag::Weekend) => self.when.days |= 0b110_0000,
            () if known.is(Tag::Workday) => self.when.days |= 0b001_1111,
            () if known.has(Classes::WEEKDAY) => self.when.days |= 1 << (calendar::weekday(&first.word)? - 1),
            () if known.is(Tag::Night) => self.when.hours = Some(NIGHT),
            () if known.is(Tag::Afternoon) => self.when.hours = Some((DAY / 2, 18 * 60)),
            () if known.is(Tag::Lunch) => self.when.hours = Some((DAY / 2, 14 * 60)),
            () if known.is(Tag::Evening) => self.when.hours = Some((18 * 60, MORNING)),
            () if ["morgens", "mornings"].contains(&first.word.as_str()) => {
                self.when.hours = Some((4 * 60, DAY / 2))
            }
            () if known.is(Tag::Today) => self.only(today)?,
            () if known.is(Tag::Tomorrow) => self.only(today.tomorrow().ok()?)?,
            () if known.is(Tag::This) && rest.first().is_some_and(is_stretch) => {
                let unit = dates::unit(&rest.first()?.word)?;
                self.when.until = midnight(dates::end_of(unit, today)?, true);
                return Some(2);
            }
            () if first.word == "for" || first.word == "fur" || first.word == "pendant" => {
                return self.lasting(rest, today);
            }
            () => {
                let is_digit =
                    |token: &Token<'_>| token.word.starts_with(|letter: char| letter.is_ascii_digit());
                let dated =
                    is_digit(first) || known.has(Classes::MONTH) && rest.first().is_some_and(is_digit);
                let few: Vec<Token<'_>> = std::iter::once(first).chain(rest).take(4).cloned().collect();
                let day = day(&few, today).filter(|_| dated)?;
                self.only(day.date)?;
                return Some(day.taken);
            }
        }
        Some(1)
    }

    /// `for two weeks`
    fn lasting(&mut self, rest: &[Token<'_>], today: Date) -> Option<usize> {
        let is_small = |token: &&Token<'_>| {
            token.classes.any(&[Tag::Det, Tag::Next]) && dates::number(&token.word).is_none()
        };
        let skipped = rest.iter().take_while(is_small).count();
        let amount = dates::Amount::read(words(rest.get(skipped..)?)).filter(|amount| amount.count > 0)?;
        if amount.minutes().is_some() {
            return None;
        }
        self.when.until = midnight(dates::after(today, amount.count, amount.unit)?, true);
        Some(1 + skipped + amount.length)
    }

    fn only(&mut self, date: Date) -> Option<()> {
        (self.when.from, self.when.until) = (midnight(date, false), midnight(date, true));
        Some(())
    }
}

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

pub(super) fn clock(tokens: &[Token<'_>]) -> Option<ClockTime> {
    let skipped =
        tokens.iter().take_while(|token| token.classes.is(Tag::Det) || token.word == "de").take(2).count();
    let rest = tokens.get(skipped..)?;
    let first = rest.first()?;
    let named = match first.word.as_str() {
        "noon" | "mittag" | "midi" | "mediodia" => Some(DAY / 2),
        "midnight" | "mitternacht" | "minuit" | "medianoche" => Some(0),
        _ => None,
    };
    if let Some(minute) = named {
        return Some(ClockTime { minute, taken: skipped + 1, explicit: true });
    }
    let (clock, length) = dates::clock_at(words(rest))?;
    let next = rest.get(length);
    if !clock.marked {
        let is_plain =
            |next: &Token<'_>| next.classes.has(Classes::MONTH) || next.classes.is_plain() && !is_mark(next);
        let may_follow = |next: &Token<'_>| is_mark(next) || next.classes.is(Tag::Or) || next.word == "on";
        let is_spelled = !first.word.starts_with(|letter: char| letter.is_ascii_digit());
        let is_alone = first.word.len() > 2 && next.is_none_or(may_follow);
        // `after 3 attempts`, `before 3 December`, `after six calls`
        if next.is_some_and(is_plain) || is_spelled && !is_alone {
            return None;
        }
    }
    Some(ClockTime { minute: minute_of_day(clock)?, taken: skipped + length, explicit: clock.marked })
}

fn minute_of_day(clock: dates::Clock) -> Option<u16> {
    let minute = u16::try_from(i16::from(clock.hour) * 60 + i16::from(clock.minute)).ok()?;
    Some(minute % DAY)
}

/// The words of tokens, by their place.
fn words<'t>(tokens: &'t [Token<'_>]) -> impl Fn(usize) -> &'t str {
    |at| tokens.get(at).map_or("", |token| token.word.as_str())
}

/// Whether a word is a stretch of days that has an end.
fn is_stretch(token: &Token<'_>) -> bool {
    matches!(dates::unit(&token.word), Some(Unit::Week | Unit::Month | Unit::Year))
}

pub(super) fn afternoon(minute: u16) -> u16 {
    if minute < DAY / 2 { minute + DAY / 2 } else { minute }
}

/// The day at the beginning of these tokens, seen from another.
pub(super) fn day(tokens: &[Token<'_>], today: Date) -> Option<ParsedDay> {
    let small = |token: &&Token<'_>| {
        token.classes.any(&[Tag::Det, Tag::This, Tag::To])
            || ["u", "am", "dem"].contains(&token.word.as_str())
    };
    let skipped = tokens.iter().take_while(small).take(2).count();
    let rest = tokens.get(skipped..)?;
    let found = named(rest, today).or_else(|| written(rest, today))?;
    Some(ParsedDay { taken: found.taken + skipped, ..found })
}

/// `tomorrow`, `Friday`, `next week`, `the end of the month`.
fn named(tokens: &[Token<'_>], today: Date) -> Option<ParsedDay> {
    let first = tokens.first()?;
    let day = |date: Date, taken: usize, whole: bool| Some(ParsedDay { date, taken, whole });
    if first.classes.is(Tag::Today) {
        return day(today, 1, true);
    }
    if first.classes.is(Tag::Tomorrow) {
        return day(today.tomorrow().ok()?, 1, false);
    }
    if let Some(weekday) = weekday(first) {
        return day(next_weekday(today, weekday)?, 1, false);
    }
    let second = tokens.get(1);
    if let Some(month) = calendar::month(&first.word)
        .filter(|_| second.is_none_or(|token| dates::day_number(&token.word).is_none()))
    {
        return day(dates::coming(1, month, None, today)?, 1, false);
    }
    if first.classes.is(Tag::Next) {
        let second = second?;
        if let Some(weekday) = weekday(second) {
            return day(next_weekday(today, weekday)?, 2, false);
        }
        if second.classes.is(Tag::Week) {
            return day(next_weekday(today, 1)?, 2, false);
        }
        return if second.classes.is(Tag::Month) {
            day(today.last_of_month().tomorrow().ok()?, 2, false)
        } else {
            None
        };
    }
    if !first.classes.is(Tag::End) {
        return None;
    }
    let small = |token: &&Token<'_>| token.classes.any(&[Tag::Det, Tag::From, Tag::About, Tag::This]);
    let skipped = tokens.iter().skip(1).take_while(small).count();
    let named = tokens.get(1 + skipped)?;
    let taken = 2 + skipped;
    if is_stretch(named) {
        return day(dates::end_of(dates::unit(&named.word)?, today)?, taken, true);
    }
    let first = dates::coming(1, calendar::month(&named.word)?, None, today)?;
    day(first.last_of_month(), taken, true)
}

/// `2026-12-03`, `3.12.`, `3 December 2026`, `December 3rd`, `3 de diciembre`.
fn written(tokens: &[Token<'_>], today: Date) -> Option<ParsedDay> {
    // `December 3rd, 2027`: a comma is a token here.
    let words = tokens.iter().enumerate().filter(|(_, token)| token.word != ",");
    let words: Vec<(usize, &str)> = words.take(6).map(|(at, token)| (at, token.word.as_str())).collect();
    let (date, length) = dates::written_date(|at| words.get(at).map_or("", |(_, word)| word), today)?;
    let (last, _) = words.get(length.checked_sub(1)?)?;
    Some(ParsedDay { date, taken: last + 1, whole: false })
}

/// The day of the week that a word names; Monday is 1.
fn weekday(token: &Token<'_>) -> Option<i8> {
    calendar::weekday(&token.word).filter(|_| token.classes.has(Classes::WEEKDAY))
}

/// The next such weekday after a day; Monday is 1.
pub(super) fn next_weekday(day: Date, weekday: i8) -> Option<Date> {
    dates::next_weekday(day, Weekday::from_monday_one_offset(weekday).ok()?)
}

/// Midnight, when that day begins or when it is over.
pub(super) fn midnight(date: Date, is_over: bool) -> Option<DateTime> {
    let date = if is_over { date.tomorrow().ok()? } else { date };
    Some(date.at(0, 0, 0, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::rule_matching::words::read;

    /// A Monday morning.
    fn monday() -> DateTime {
        jiff::civil::date(2026, 11, 16).at(10, 0, 0, 0)
    }

    fn described(text: &str) -> String {
        let times = times(&read(text).tokens, monday(), text.contains("leave"));
        let from = times.when.from.map(|from| format!(" from {from}")).unwrap_or_default();
        format!("{}{from}", times.when.describe())
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        for (text, expected) in [
            ("after 22:00", "from 22:00 to 06:00"),
            ("after 10pm", "from 22:00 to 06:00"),
            ("after 10 pm", "from 22:00 to 06:00"),
            ("after 9", "from 21:00 to 06:00"),
            ("nach 22 Uhr", "from 22:00 to 06:00"),
            ("après 22h30", "from 22:30 to 06:00"),
            ("después de las 22:00", "from 22:00 to 06:00"),
            ("before 9 on weekdays", "from 00:00 to 09:00 on Mon, Tue, Wed, Thu, Fri"),
            ("between 22:00 and 7:00", "from 22:00 to 07:00"),
            ("from 10pm to 7am", "from 22:00 to 07:00"),
            ("von 22 bis 7 Uhr", "from 22:00 to 07:00"),
            ("22:00-07:00", "from 22:00 to 07:00"),
            ("between 9 and 5", "from 09:00 to 17:00"),
            ("on weekends", "on Sat, Sun"),
            ("le week-end", "on Sat, Sun"),
            ("on Sundays", "on Sun"),
            ("at night", "from 22:00 to 06:00"),
            ("outside working hours", "outside of from 08:00 to 18:00 on Mon, Tue, Wed, Thu, Fri"),
            ("until Friday", "until 2026-11-20 00:00"),
            ("bis Freitag", "until 2026-11-21 00:00"),
            ("until 3 December", "until 2026-12-03 00:00"),
            ("on leave until 3 December", "until 2026-12-04 00:00"),
            ("until December 3rd, 2027", "until 2027-12-03 00:00"),
            ("bis zum 3.12.", "until 2026-12-04 00:00"),
            ("bis 3. Dezember", "until 2026-12-04 00:00"),
            ("jusqu'au 3 décembre", "until 2026-12-04 00:00"),
            ("hasta el 3 de diciembre", "until 2026-12-04 00:00"),
            ("until 2027-01-05", "until 2027-01-05 00:00"),
            ("until 3 March", "until 2027-03-03 00:00"),
            ("until tomorrow", "until 2026-11-17 00:00"),
            ("until 18:00", "until 2026-11-16 18:00"),
            ("until 9:00", "until 2026-11-17 09:00"),
            ("until next week", "until 2026-11-23 00:00"),
            ("until the end of the month", "until 2026-12-01 00:00"),
            ("until further notice", ""),
            ("until March", "until 2027-03-01 00:00"),
            ("before 8 or after 20:00", "from 20:00 to 08:00"),
            ("this week", "until 2026-11-23 00:00"),
            ("for the next two weeks", "until 2026-12-01 00:00"),
            ("today", "until 2026-11-17 00:00 from 2026-11-16T00:00:00"),
            ("before 3 December", "until 2026-12-03 00:00"),
            ("from 1 December to 5 December", "until 2026-12-06 00:00 from 2026-12-01T00:00:00"),
            ("after 3 attempts", ""),
            ("before you delete", ""),
        ] {
            assert_eq!(described(text), expected, "{text}");
        }
    }

    #[test]
    fn hours_over_midnight_belong_to_the_evening() {
        let when = times(&read("after 22:00 on weekdays").tokens, monday(), false).when;
        let at = |day: i8, hour: i8| jiff::civil::date(2026, 11, day).at(hour, 30, 0, 0);
        // The 20th is a Friday.
        assert!(when.applies(at(20, 23)) && when.applies(at(21, 1)));
        assert!(!when.applies(at(21, 23)) && !when.applies(at(16, 1)) && !when.applies(at(18, 12)));
    }
}
