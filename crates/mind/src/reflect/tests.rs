//! The labelled sentences, read on a Wednesday morning in Berlin, four days before the clocks change, and single cases.
//! `docs/text-rules.md` describes the tables and how to add a case.

#[path = "../../../text/corpus/mod.rs"]
mod corpus;

use std::collections::BTreeSet;

use embody_store::instructions::Instructions;
use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;

use corpus::{Case, Half, cases, check};

use super::feedback::FeedbackContext;
use super::sentences::read;
use super::*;
use crate::ZonedNow;
use crate::zoned_now::format_local;

fn zoned_now() -> ZonedNow {
    let zone = TimeZone::get("Europe/Berlin").unwrap();
    let at: DateTime = "2026-10-21T10:30:00".parse().unwrap();
    ZonedNow::new(at.to_zoned(zone.clone()).unwrap().timestamp(), zone)
}

/// `2026-10-22`, `2026-10-22 09:00` or `-`, as microseconds.
fn due(text: &str) -> Option<i64> {
    if text == "-" {
        return None;
    }
    let (date, time) = text.split_once(' ').unwrap_or((text, "23:59:59"));
    let date: jiff::civil::Date = date.parse().unwrap();
    let time: Time = if time.len() == 5 { format!("{time}:00") } else { time.into() }.parse().unwrap();
    Some(date.to_datetime(time).to_zoned(zoned_now().zone().clone()).unwrap().timestamp().as_microsecond())
}

fn read_alone(text: &str, speaker: Speaker, open: &[&str]) -> Findings {
    let open: Vec<Commitment> = open.iter().enumerate().map(|(number, text)| opened(number, text)).collect();
    let instructions = Instructions { text: String::new(), version: 0, changed_at: 0 };
    find_all(text, speaker, &open, &instructions, &zoned_now())
}

fn opened(number: usize, text: &str) -> Commitment {
    let said = NewCommitment {
        who: "user".into(),
        text: text.into(),
        words: String::new(),
        due_at: None,
        sentence: text.into(),
    };
    Commitment {
        id: number.to_string(),
        status: CommitmentStatus::Open,
        said,
        session: None,
        writer: "owner".into(),
        trust: "owner".into(),
        created_at: 0,
        changed_at: 0,
    }
}

const TALK: Speaker = Speaker::User(FeedbackContext::Conversation);

/// Whether the case's commitment, wish or closing is found as written; of an ordinary sentence, whether anything is.
fn is_found(case: &Case) -> bool {
    let parts: Vec<&str> = case.detail.split(" | ").collect();
    match (case.label, parts.as_slice()) {
        ("commitment", [who, when, text]) => {
            read_alone(&case.text, TALK, &[]).commitments.iter().any(|found| {
                found.who == *who
                    && found.due_at == due(when)
                    && found.text.to_lowercase().contains(&text.to_lowercase())
            })
        }
        ("feedback", [line]) => {
            let found = read_alone(&case.text, TALK, &[]).proposals;
            found.len() == 1 && found[0].line == *line
        }
        ("closing", [open, meant]) => settled(open, &case.text) == [*meant],
        ("still_open", [open]) => !settled(open, &case.text).is_empty(),
        ("ordinary", _) => {
            let found = read_alone(&case.text, TALK, &["water the plants", "call Bob", "pay the invoice"]);
            !(found.commitments.is_empty() && found.settled.is_empty() && found.proposals.is_empty())
        }
        _ => panic!("{}", case.id),
    }
}

/// Which of the open commitments a sentence closes.
fn settled<'a>(open: &'a str, sentence: &str) -> Vec<&'a str> {
    let open: Vec<&str> = open.split(';').collect();
    let found = read_alone(sentence, TALK, &open).settled;
    found.iter().map(|(id, _)| open[id.parse::<usize>().unwrap()]).collect()
}

fn check_half(half: Half) {
    check(
        "reflect",
        half,
        cases("reflect", half).into_iter().map(|case| {
            let found = is_found(&case);
            (case, found)
        }),
    );
}

// spec: N-08
#[test]
fn commitments_wishes_and_closings_are_found_and_ordinary_talk_binds_nobody() {
    check_half(Half::Tuning);
}

// spec: N-08
#[test]
fn the_locked_half_is_not_worse_than_recorded() {
    check_half(Half::Locked);
}

/// Only what takes the owner's place is held back of what people say every day.
#[test]
fn everyday_talk_is_not_held_back() {
    let said = cases("reflect", Half::Tuning).into_iter().map(|case| case.text);
    let quarantined: Vec<String> = said.filter(|text| crate::quarantine::gives_orders(text)).collect();
    assert_eq!(quarantined, ["Stop asking me for confirmation!"]);
}

#[test]
fn the_words_of_others_bind_nobody() {
    for kind in ["ambient", "time_passed", "mail", ""] {
        assert_eq!(Speaker::of(kind), None, "{kind}");
    }
    assert_eq!(Speaker::Agent.name(Party::Speaker), "agent");
}

#[test]
fn a_day_ends_by_the_clock_that_holds_then() {
    let found = read_alone("I'll send it on Monday", TALK, &[]).commitments;
    assert_eq!(format_local(&zoned_now(), found[0].due_at.unwrap()).unwrap(), "2026-10-26T23:59:59+01:00");
    let found = read_alone("I'll send it on Saturday", TALK, &[]).commitments;
    assert_eq!(format_local(&zoned_now(), found[0].due_at.unwrap()).unwrap(), "2026-10-24T23:59:59+02:00");
}

#[test]
fn a_time_ends_a_sentence() {
    let said = "I will send the report to Carol tomorrow at 9. And please always answer in bullet points.";
    let found = read_alone(said, TALK, &[]);
    let promised: Vec<_> = found.commitments.iter().map(|kept| (kept.text.as_str(), kept.due_at)).collect();
    assert_eq!(promised, [("send the report to Carol", due("2026-10-22 09:00"))]);
    assert_eq!(found.proposals.len(), 1, "{found:?}");
    assert!(found.proposals[0].line.to_lowercase().contains("answer in bullet points"), "{found:?}");
}

#[test]
fn a_closing_that_fits_two_closes_none() {
    let closing = resolution::find(&read("I called")[0]).remove(0);
    let matters: Vec<BTreeSet<String>> = ["call Bob", "call Ann"].map(keywords).into();
    assert_eq!(resolution::match_open(&closing, &matters), None);
    assert_eq!(resolution::match_open(&closing, &matters[..1]), Some(0));
}

proptest::proptest! {
    /// No text, however odd, makes the reader fail, and what it finds is bounded.
    #[test]
    fn any_text_can_be_read(text in "\\PC{0,200}") {
        let found = read_alone(&text, Speaker::User(FeedbackContext::Feedback), &["send it"]);
        proptest::prop_assert!(found.commitments.len() <= MAX_NOTED);
    }

    /// Whatever is promised within so many days is due within them.
    #[test]
    fn a_number_of_days_is_that_many(days in 1_i64..400) {
        let found = read_alone(&format!("I'll send it in {days} days"), TALK, &[]).commitments;
        let due = jiff::Timestamp::from_microsecond(found[0].due_at.unwrap()).unwrap().to_zoned(zoned_now().zone().clone());
        let today = zoned_now().local().date();
        proptest::prop_assert_eq!(i64::from(today.until(due.date()).unwrap().get_days()), days);
    }
}
