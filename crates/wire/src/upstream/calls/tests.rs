//! Tests for the routing of messages to calls, and for the limits.

use super::*;
use crate::message::Outcome;
use crate::upstream::call_channel::UNREAD;

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

fn note(method: &str, params: &str) -> Notification {
    Notification { method: method.to_owned(), params: Some(raw(params)) }
}

#[tokio::test]
async fn progress_comes_back_under_the_callers_token_and_before_the_answer() {
    let calls = Arc::new(Calls::default());
    let params = raw(r#"{"_meta":{"progressToken":"mine"}}"#);
    let mut entered = calls.enter("tools/call", Some(&params), 9).unwrap();
    assert_eq!(entered.request.params.unwrap().get(), r#"{"_meta":{"progressToken":1}}"#);
    assert!(
        calls
            .note(
                note("notifications/progress", r#"{"progressToken":1,"progress":5}"#),
                MessageSource::Shared
            )
            .is_none()
    );
    assert!(
        calls
            .note(
                note("notifications/progress", r#"{"progressToken":2,"progress":5}"#),
                MessageSource::Shared
            )
            .is_none()
    );
    calls.answer(Response::success(1.into(), raw("{}")), MessageSource::Shared);
    let CallEvent::Notification(progress) = entered.running.next().await else { panic!() };
    assert_eq!(progress.params.unwrap().get(), r#"{"progressToken":"mine","progress":5}"#);
    assert!(matches!(entered.running.next().await, CallEvent::Done(Outcome::Result(_))));
    assert!(matches!(entered.running.next().await, CallEvent::Lost(Error::NoAnswer)));
}

#[test]
fn a_question_belongs_to_the_only_call_or_to_none() {
    let calls = Arc::new(Calls::default());
    let ask = || Request { id: 1.into(), method: "roots/list".into(), params: None };
    assert!(calls.ask(ask(), MessageSource::Shared).is_some());
    let first = calls.enter("a", None, 9).unwrap();
    assert!(calls.ask(ask(), MessageSource::Apart).is_some(), "what comes there is no call's");
    assert!(calls.ask(ask(), MessageSource::Shared).is_none());
    calls.answered(Some(&1.into()));
    let second = calls.enter("b", None, 9).unwrap();
    assert!(calls.ask(ask(), MessageSource::Shared).is_some());
    // The first caller has left, but its call still runs: the server request may be about that call.
    drop(first);
    assert!(calls.ask(ask(), MessageSource::Shared).is_some());
    calls.answer(Response::success(1.into(), raw("{}")), MessageSource::Shared);
    assert!(calls.ask(ask(), MessageSource::Shared).is_none());
    drop(second);
    assert!(
        calls.ask(ask(), MessageSource::Shared).is_some(),
        "a question about a call that nobody waits for is for nobody"
    );
    calls.answer(Response::success(2.into(), raw("{}")), MessageSource::Shared);
    assert!(calls.note(note("notifications/message", "{}"), MessageSource::Shared).is_some());
}

#[tokio::test]
async fn a_call_that_waits_for_an_answer_is_not_the_one_that_asks() {
    let calls = Arc::new(Calls::default());
    let ask = |id: u64| Request { id: id.into(), method: "roots/list".into(), params: None };
    let mut first = calls.enter("a", None, 9).unwrap();
    assert!(calls.ask(ask(1), MessageSource::Shared).is_none());
    let mut second = calls.enter("b", None, 9).unwrap();
    assert!(calls.ask(ask(2), MessageSource::Shared).is_none());
    assert!(calls.ask(ask(3), MessageSource::Shared).is_some(), "both wait");
    calls.answered(Some(&2.into()));
    assert!(calls.ask(ask(4), MessageSource::Shared).is_none());
    calls.answered(Some(&4.into()));
    calls.answered(Some(&1.into()));
    assert!(calls.ask(ask(5), MessageSource::Shared).is_some(), "neither waits");
    for (entered, ids) in [(&mut first, vec![1_u64]), (&mut second, vec![2, 4])] {
        for id in ids {
            let CallEvent::Request(request) = entered.running.next().await else { panic!() };
            assert_eq!(request.id, id.into());
        }
    }
}

#[tokio::test]
async fn a_caller_that_does_not_read_still_gets_its_answer() {
    let calls = Arc::new(Calls::default());
    let params = raw(r#"{"_meta":{"progressToken":1}}"#);
    let mut entered = calls.enter("a", Some(&params), 9).unwrap();
    for number in 0..5000 {
        let params = format!(r#"{{"progressToken":1,"progress":{number}}}"#);
        calls.note(note("notifications/progress", &params), MessageSource::Shared);
    }
    let question = Request { id: 1.into(), method: "roots/list".into(), params: None };
    assert!(calls.ask(question, MessageSource::Shared).is_some(), "there is no place for it");
    calls.answer(Response::success(1.into(), raw("{}")), MessageSource::Shared);
    let mut heard = 0;
    while let CallEvent::Notification(_) = entered.running.next().await {
        heard += 1;
    }
    assert_eq!(heard, UNREAD);
}

#[tokio::test]
async fn what_a_caller_does_not_read_is_bounded_in_bytes() {
    let calls = Arc::new(Calls::default());
    let mut entered = calls.enter("a", None, 9).unwrap();
    let large = raw(&format!("\"{}\"", "x".repeat(1024 * 1024)));
    let log = || Notification { method: "notifications/message".into(), params: Some(large.clone()) };
    for _ in 0..50 {
        assert!(calls.note(log(), MessageSource::Shared).is_none());
    }
    let question = || Request { id: 1.into(), method: "x".into(), params: Some(large.clone()) };
    assert!(calls.ask(question(), MessageSource::Shared).is_some(), "there is no room for it");
    for _ in 0..3 {
        assert!(matches!(entered.running.next().await, CallEvent::Notification(_)));
    }
    assert!(calls.ask(question(), MessageSource::Shared).is_none(), "what was read has made room");
    for _ in 0..50 {
        calls.note(log(), MessageSource::Shared);
    }
    calls.answer(Response::success(1.into(), large.clone()), MessageSource::Shared);
    assert!(matches!(entered.running.next().await, CallEvent::Request(_)));
    for _ in 0..2 {
        assert!(matches!(entered.running.next().await, CallEvent::Notification(_)));
    }
    assert!(matches!(entered.running.next().await, CallEvent::Done(_)), "the answer finds room");
}

#[test]
fn calls_are_counted_and_a_closed_connection_takes_none() {
    let calls = Arc::new(Calls::default());
    let running = calls.enter("a", None, 1).unwrap();
    assert!(matches!(calls.enter("b", None, 1), Err(Error::Busy { most: 1 })));
    drop(running);
    assert!(
        matches!(calls.enter("b", None, 1), Err(Error::Busy { most: 1 })),
        "the server still works on it"
    );
    calls.cancel(1, "");
    let running = calls.enter("b", None, 1).unwrap();
    calls.cancel(2, "");
    assert!(calls.has(2), "its caller may still hear of it");
    drop(running);
    assert!(!calls.has(2), "there will be no answer");
    calls.close(Error::NoAnswer);
    assert!(matches!(calls.enter("c", None, 1), Err(Error::Closed(_))));
}

#[tokio::test]
async fn the_listen_request_has_no_caller_and_receives_no_other_messages() {
    let calls = Arc::new(Calls::default());
    let _listening = calls.enter(LISTEN, None, 9).unwrap();
    let ask = |id: u64| Request { id: id.into(), method: "roots/list".into(), params: None };
    let log = || note("notifications/message", "{}");
    assert!(
        calls.ask(ask(1), MessageSource::Shared).is_some()
            && calls.note(log(), MessageSource::Shared).is_some()
    );
    assert_eq!(calls.only(), None);
    let mut called = calls.enter("tools/call", None, 9).unwrap();
    assert_eq!((calls.waiting(), calls.only()), (1, Some(called.running.number())));
    assert!(
        calls.ask(ask(2), MessageSource::Shared).is_none()
            && calls.note(log(), MessageSource::Shared).is_none()
    );
    // The call already waits for an answer, but no other call can have sent the request.
    assert!(calls.ask(ask(3), MessageSource::Shared).is_none());
    for is_it in [
        |event: &CallEvent| matches!(event, CallEvent::Request(_)),
        |event: &CallEvent| matches!(event, CallEvent::Notification(_)),
    ] {
        assert!(is_it(&called.running.next().await));
    }
    let _second = calls.enter("tools/call", None, 9).unwrap();
    assert!(calls.note(log(), MessageSource::Shared).is_some(), "it may be about either");
}
