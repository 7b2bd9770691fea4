//! Tests for the turns of a page: leaving, reconnecting, cancelling, limits.

use std::future::ready;

use tokio::sync::oneshot;

use super::*;
use crate::turn::TurnResult;

/// A turn that sends one event and ends when the sender fires.
fn waiting(turns: &Turns, [id, user, thread]: [&str; 3]) -> Result<(Arc<Turn>, oneshot::Sender<End>), Busy> {
    let (sender, receiver) = oneshot::channel();
    let work = |events: EventSender| async move {
        events.send(TurnEvent::Text("hm".into()));
        receiver.await.unwrap_or(End::Cancelled)
    };
    let turn = turns.begin(id.to_owned(), (user, thread), work, ready)?;
    Ok((turn, sender))
}

fn done(reply: &str) -> End {
    End::Done(TurnResult { reply: Some(reply.into()), ..TurnResult::default() })
}

async fn names(mut reader: Reader) -> Vec<&'static str> {
    let mut names = Vec::new();
    while let Some(event) = reader.next().await {
        names.push(event.name);
    }
    names
}

#[tokio::test]
async fn a_turn_goes_on_when_nobody_listens() {
    let turns = Turns::default();
    let (turn, tell) = waiting(&turns, ["1", "ann", "a"]).unwrap();
    let mut page = turn.read(0);
    assert_eq!(page.next().await.unwrap().name, "turn");
    drop((page, turn));
    tell.send(done("hello")).unwrap();
    turns.0.wait_idle().await;
    let back = turns.find("ann", "1").unwrap();
    assert_eq!(names(back.read(0)).await, ["turn", "text", "done"]);
    assert_eq!(names(back.read(1)).await, ["text", "done"]);
    assert_eq!(turns.counters(), Counters { done: 1, ..Counters::default() });
}

#[tokio::test]
async fn others_neither_see_nor_break_off_a_turn() {
    let turns = Turns::default();
    let (_turn, _tell) = waiting(&turns, ["1", "ann", "a"]).unwrap();
    assert!(turns.find("bob", "1").is_none() && turns.running_in("bob", "a").is_none());
    assert!(!turns.cancel("bob", "1"));
    assert_eq!(turns.running_in("ann", "a").unwrap().id(), "1");
}

#[tokio::test]
async fn breaking_off_drops_the_work_and_says_so() {
    let turns = Turns::default();
    let (turn, mut tell) = waiting(&turns, ["1", "ann", "a"]).unwrap();
    assert!(turns.cancel("ann", "1"));
    tell.closed().await;
    assert_eq!(names(turn.read(0)).await.last(), Some(&"cancelled"));
    assert!(!turns.cancel("ann", "1"), "it is over");
    assert_eq!(turns.counters().cancelled, 1);
}

#[tokio::test]
async fn whoever_closes_a_turn_has_the_last_word() {
    let turns = Turns::default();
    let close = |end: End| async move {
        tokio::task::yield_now().await;
        assert_eq!(end, End::Cancelled);
        done("as far as it came")
    };
    let turn = turns.begin("1".to_owned(), ("ann", "a"), |_| std::future::pending(), close).unwrap();
    assert!(turns.cancel("ann", "1"));
    assert_eq!(names(turn.read(0)).await, ["turn", "done"]);
}

#[tokio::test]
async fn one_turn_at_a_time_in_a_thread_and_not_too_many() {
    let turns = Turns::new(TurnLimits { running: 3, running_of_user: 2, kept: 1 });
    let first = waiting(&turns, ["1", "ann", "a"]).unwrap();
    assert_eq!(waiting(&turns, ["2", "ann", "a"]).unwrap_err(), Busy::Thread { turn: "1".into() });
    let _second = waiting(&turns, ["2", "ann", "b"]).unwrap();
    assert_eq!(waiting(&turns, ["3", "ann", "c"]).unwrap_err(), Busy::User { most: 2 });
    let _third = waiting(&turns, ["3", "bob", "a"]).unwrap();
    assert_eq!(waiting(&turns, ["4", "bob", "b"]).unwrap_err(), Busy::All);
    assert_eq!(turns.check_capacity("ann"), Err(Busy::User { most: 2 }));
    assert_eq!(turns.check_capacity("bob"), Err(Busy::All));
    let mut page = first.0.read(0);
    first.1.send(done("x")).unwrap();
    while page.next().await.is_some() {}
    waiting(&turns, ["5", "ann", "a"]).expect("whoever heard of the end may begin the next");
}

#[tokio::test]
async fn the_oldest_of_those_that_are_over_are_forgotten() {
    let turns = Turns::new(TurnLimits { kept: 2, ..TurnLimits::default() });
    for id in ["1", "2", "3"] {
        turns.begin(id.to_owned(), ("ann", "a"), |_| async { done("x") }, ready).unwrap();
        turns.0.wait_idle().await;
    }
    assert!(turns.find("ann", "1").is_none());
    assert!(turns.find("ann", "2").is_some() && turns.find("ann", "3").is_some());
}

#[tokio::test]
async fn a_turn_that_panics_ends_in_words() {
    let turns = Turns::default();
    let turn = turns.begin("1".to_owned(), ("ann", "a"), |_| async { panic!("no") }, ready).unwrap();
    assert_eq!(names(turn.read(0)).await, ["turn", "failed"]);
    assert!(turns.running_in("ann", "a").is_none());
}

#[tokio::test(start_paused = true)]
async fn the_end_waits_a_while_and_then_breaks_off() {
    let turns = Turns::default();
    let (slow, _never) = waiting(&turns, ["1", "ann", "a"]).unwrap();
    let work = |_| async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        done("x")
    };
    let quick = turns.begin("2".to_owned(), ("ann", "b"), work, ready).unwrap();
    turns.shutdown(Duration::from_secs(5)).await;
    assert_eq!(names(slow.read(0)).await.last(), Some(&"cancelled"));
    assert_eq!(names(quick.read(0)).await.last(), Some(&"done"));
    assert_eq!(waiting(&turns, ["3", "ann", "c"]).unwrap_err(), Busy::Ending);
}
