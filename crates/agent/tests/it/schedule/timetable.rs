//! Timetables: valid and invalid expressions, and clock changes.

use embody_agent::schedule::Timetable;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use proptest::prelude::*;
use proptest::sample::subsequence;

use super::reference::CronExpression;

fn at(text: &str) -> i64 {
    text.parse::<Timestamp>().unwrap().as_microsecond()
}

/// The next due times, as local times of the zone.
fn next(cron: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
    let table = Timetable::parse(cron, zone).unwrap();
    let zone = TimeZone::get(zone).unwrap();
    let mut times = Vec::new();
    let mut now = at(after);
    while let Some(due) = table.next_after(now).filter(|_| times.len() < count) {
        assert!(due > now);
        let shown = Timestamp::from_microsecond(due).unwrap().to_zoned(zone.clone());
        times.push(shown.strftime("%m-%d %H:%M %:z").to_string());
        now = due;
    }
    times
}

fn refused(cron: &str, zone: &str) -> String {
    Timetable::parse(cron, zone).unwrap_err().to_string()
}

#[test]
fn a_time_that_the_clocks_skip_is_due_when_they_skip_it() {
    let berlin = next("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z", 3);
    assert_eq!(berlin, ["03-28 02:30 +01:00", "03-29 03:00 +02:00", "03-30 02:30 +02:00"]);
    // Several of them are due together, once.
    let quarters = next("*/15 2 * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", 2);
    assert_eq!(quarters, ["03-29 03:00 +02:00", "03-30 02:00 +02:00"]);
    let howe = next("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", 2);
    assert_eq!(howe, ["10-04 02:30 +11:00", "10-05 02:15 +11:00"]);
    // The day that Samoa skipped.
    let apia = next("0 9 * * *", "Pacific/Apia", "2011-12-29T12:00:00Z", 3);
    assert_eq!(apia, ["12-29 09:00 -10:00", "12-31 00:00 +14:00", "12-31 09:00 +14:00"]);
}

#[test]
fn a_time_that_the_clocks_show_twice_is_due_once() {
    let berlin = next("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2);
    assert_eq!(berlin, ["10-25 02:30 +02:00", "10-26 02:30 +01:00"]);
    // Asked between the two occurrences.
    assert_eq!(next("30 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z", 1), ["10-26 02:30 +01:00"]);
    let howe = next("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T12:00:00Z", 2);
    assert_eq!(howe, ["04-05 01:45 +11:00", "04-06 01:45 +10:30"]);
}

#[test]
fn every_hour_is_every_hour() {
    let spring = next("30 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", 3);
    assert_eq!(spring, ["03-29 01:30 +01:00", "03-29 03:30 +02:00", "03-29 04:30 +02:00"]);
    let autumn = next("@hourly", "Europe/Berlin", "2026-10-24T23:30:00Z", 4);
    assert_eq!(
        autumn,
        ["10-25 02:00 +02:00", "10-25 02:00 +01:00", "10-25 03:00 +01:00", "10-25 04:00 +01:00"]
    );
}

#[test]
fn fields_mean_what_they_mean_elsewhere() {
    for (cron, expected) in [
        ("0 9 * * 1-5", ["01-01 09:00", "01-02 09:00", "01-05 09:00"]),
        ("0 9 * * MON-FRI", ["01-01 09:00", "01-02 09:00", "01-05 09:00"]),
        ("0 9 * * sat-sun", ["01-03 09:00", "01-04 09:00", "01-10 09:00"]),
        ("0 9 * * 7", ["01-04 09:00", "01-11 09:00", "01-18 09:00"]),
        ("0 9 * * 5/2", ["01-02 09:00", "01-04 09:00", "01-09 09:00"]),
        // Two day fields: one match is enough.
        ("0 9 13 * 5", ["01-02 09:00", "01-09 09:00", "01-13 09:00"]),
        // A star in one of them: both must match.
        ("0 9 */2 * 5", ["01-09 09:00", "01-23 09:00", "02-13 09:00"]),
        ("0 9 L * *", ["01-31 09:00", "02-28 09:00", "03-31 09:00"]),
        ("0 9 15,l feb *", ["02-15 09:00", "02-28 09:00", "02-15 09:00"]),
        ("5/20 23 31 12 *", ["12-31 23:05", "12-31 23:25", "12-31 23:45"]),
        ("10-30/10 0 1 Jan-Mar/2 *", ["01-01 00:10", "01-01 00:20", "01-01 00:30"]),
        (" 0  0\t1 1 * ", ["01-01 00:00", "01-01 00:00", "01-01 00:00"]),
        ("@daily", ["01-01 00:00", "01-02 00:00", "01-03 00:00"]),
        ("@midnight", ["01-01 00:00", "01-02 00:00", "01-03 00:00"]),
        ("@weekly", ["01-04 00:00", "01-11 00:00", "01-18 00:00"]),
        ("@monthly", ["01-01 00:00", "02-01 00:00", "03-01 00:00"]),
        ("@yearly", ["01-01 00:00", "01-01 00:00", "01-01 00:00"]),
        ("@annually", ["01-01 00:00", "01-01 00:00", "01-01 00:00"]),
    ] {
        let expected = expected.map(|time| format!("{time} +00:00"));
        assert_eq!(next(cron, "UTC", "2025-12-31T23:59:59.999999Z", 3), expected, "{cron}");
    }
}

#[test]
fn the_rarest_day_is_found_and_one_that_never_comes_is_refused() {
    let table = Timetable::parse("0 0 29 2 *", "UTC").unwrap();
    assert_eq!(table.next_after(at("2096-02-29T00:00:00Z")), Some(at("2104-02-29T00:00:00Z")));
    for never in ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "0 0 31 feb *"] {
        let words = refused(never, "UTC");
        assert!(words.contains(never) && words.contains("never occurs"), "{words}");
    }
}

#[test]
fn spans_and_moments() {
    let quarter = Timetable::parse("@every 15m", "UTC").unwrap();
    let start = at("2026-01-01T00:03:00Z");
    assert_eq!(quarter.next_after(start), Some(at("2026-01-01T00:18:00Z")));
    // After a long sleep it keeps its rhythm.
    assert_eq!(quarter.next_of(start, at("2026-01-05T00:17:59Z")), Some(at("2026-01-05T00:18:00Z")));
    assert_eq!(quarter.next_of(start, at("2026-01-05T00:18:00Z")), Some(at("2026-01-05T00:33:00Z")));
    assert_eq!(quarter.next_of(start, start - 1), Some(at("2026-01-01T00:18:00Z")));
    for (text, minutes) in [("@every 1h30m", 90), ("@every 3d", 3 * 24 * 60), ("@every  2h", 120)] {
        let table = Timetable::parse(text, "UTC").unwrap();
        assert_eq!(table.next_after(0), Some(minutes * 60_000_000), "{text}");
    }
    let once = Timetable::parse("@once 2026-05-01T09:00:00+02:00", "Europe/Berlin").unwrap();
    assert_eq!(once.next_after(start), Some(at("2026-05-01T07:00:00Z")));
    assert_eq!(once.next_after(at("2026-05-01T07:00:00Z")), None);
    assert_eq!(once.local(at("2026-05-01T07:00:00Z")), "Fri 2026-05-01 09:00:00 +02:00");
    assert_eq!(Timetable::parse("@daily", "europe/berlin").unwrap().zone_name(), "Europe/Berlin");
}

#[test]
fn what_is_wrong_is_named_with_what_is_allowed() {
    for (cron, words) in [
        ("61 * * * *", "invalid minute `61`; allowed: 0 to 59"),
        ("* 24 * * *", "invalid hour `24`; allowed: 0 to 23"),
        ("* * 0 * *", "invalid day of the month `0`; allowed: 1 to 31"),
        ("* * * 13 *", "invalid month `13`; allowed: 1 to 12, `jan` to `dec`"),
        ("* * * foo *", "invalid month `foo`"),
        ("* * * * 8", "invalid day of the week `8`"),
        ("*/0 * * * *", "invalid minute `*/0`"),
        ("*/60 * * * *", "invalid minute `*/60`"),
        ("1- * * * *", "invalid minute `1-`"),
        ("1,,2 * * * *", "invalid minute ``"),
        ("+5 * * * *", "invalid minute `+5`"),
        ("1/2/3 * * * *", "invalid minute `1/2/3`"),
        ("** * * * *", "invalid minute `**`"),
        ("99999999999999999999 * * * *", "invalid minute"),
        ("0 22-2 * * *", "the hour range `22-2` is reversed"),
        ("0 9 * * fri-mon", "the day of the week range `fri-mon` is reversed"),
        ("* * * *", "`* * * *` has 4 fields; a cron expression has five"),
        ("0 * * * * *", "has 6 fields"),
        ("", "has 0 fields"),
        ("@often", "unknown schedule `@often`; use @hourly"),
        ("@every", "unknown schedule `@every`"),
        ("@reboot", "unknown schedule"),
        ("@every 30s", "invalid duration `30s`"),
        ("@every 9999999999999999d", "invalid duration"),
        ("@every -5m", "invalid duration"),
        ("@every 367d", "invalid duration"),
        ("@once tomorrow", "invalid date or time `tomorrow`"),
        ("@once 2026-05-01", "invalid date or time `2026-05-01`"),
    ] {
        let said = refused(cron, "UTC");
        assert!(said.contains(words), "{cron}: {said}");
    }
    assert!(refused(&"1,".repeat(200), "UTC").contains("400 bytes; 256 are allowed"));
    assert!(refused("@daily", "Mars/Olympus").contains("unknown time zone `Mars/Olympus`"));
    assert!(refused("@daily", "").contains("unknown time zone ``"));
    assert!(refused("@daily", "../../etc/passwd").contains("unknown time zone"));
}

/// Zones, each with the day of a change: an hour, half an hour, two hours, at midnight, in Ramadan, and a whole day.
const BORDERS: [(&str, &str); 14] = [
    ("Europe/Berlin", "2026-03-29T00:00:00Z"),
    ("Europe/Berlin", "2026-10-25T00:00:00Z"),
    ("America/New_York", "2026-03-08T00:00:00Z"),
    ("America/New_York", "2026-11-01T00:00:00Z"),
    ("Australia/Lord_Howe", "2026-04-04T00:00:00Z"),
    ("Australia/Lord_Howe", "2026-10-03T00:00:00Z"),
    ("Pacific/Apia", "2011-12-30T00:00:00Z"),
    ("Antarctica/Troll", "2026-03-29T00:00:00Z"),
    ("Antarctica/Troll", "2026-10-25T00:00:00Z"),
    ("America/Sao_Paulo", "2018-11-04T00:00:00Z"),
    ("America/Sao_Paulo", "2019-02-17T00:00:00Z"),
    ("Africa/Casablanca", "2026-02-15T00:00:00Z"),
    ("Asia/Kathmandu", "2026-03-29T00:00:00Z"),
    ("UTC", "2026-12-31T00:00:00Z"),
];

fn wanted() -> impl Strategy<Value = CronExpression> {
    let hours = prop_oneof![
        4 => subsequence((0..24).collect::<Vec<i8>>(), 1..5),
        1 => subsequence((0..5).collect::<Vec<i8>>(), 1..5),
        1 => Just((0..24).collect::<Vec<i8>>()),
    ];
    let minutes = subsequence((0..60).collect::<Vec<i8>>(), 1..4);
    let days = prop::option::weighted(0.3, subsequence((1..32).collect::<Vec<i8>>(), 5..31));
    let weekdays = prop::option::weighted(0.3, subsequence((0..7).collect::<Vec<i8>>(), 1..7));
    let months = prop_oneof![
        4 => Just((1..13).collect::<Vec<i8>>()),
        1 => subsequence((1..13).collect::<Vec<i8>>(), 6..12),
    ];
    (minutes, hours, days, months, weekdays).prop_map(|(minutes, hours, days, months, weekdays)| {
        CronExpression { minutes, hours, days, months, weekdays }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn the_fast_way_finds_what_the_slow_way_finds(
        wanted in wanted(),
        border in 0..BORDERS.len(),
        minutes_before in 0..2880_i64,
    ) {
        let (name, middle) = BORDERS[border];
        let zone = TimeZone::get(name).unwrap();
        let middle: Timestamp = middle.parse().unwrap();
        let (from, to) = (middle - minutes_before.minutes(), middle + 72.hours());
        let slow = wanted.between(&zone, from, to);
        let table = Timetable::parse(&wanted.text(), name).unwrap();
        let mut fast = Vec::new();
        let mut now = from.as_microsecond();
        while let Some(due) = table.next_after(now).filter(|due| *due <= to.as_microsecond()) {
            fast.push(Timestamp::from_microsecond(due).unwrap());
            now = due;
        }
        prop_assert_eq!(fast, slow, "{} in {} from {}", wanted.text(), name, from);
    }
}
