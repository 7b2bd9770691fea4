//! Servers behind us: a service of ours on a pipe, and processes that behave badly.

use std::time::Duration;

use embody_wire::message::{Outcome, Response};
use embody_wire::serve::Ending;
use embody_wire::upstream::{CallEvent, Calling, Child, ChildSpec, Pipe, Said};
use embody_wire::{Error, Limits};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::faces;

const SOON: Duration = Duration::from_secs(20);

fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).unwrap()
}

async fn next(running: &mut embody_wire::upstream::Running) -> CallEvent {
    tokio::time::timeout(SOON, running.next()).await.expect("nothing happened")
}

/// The odd service of the faces' tests, on a pipe.
async fn odd() -> (Pipe, mpsc::Receiver<Said>) {
    let (service, seen) = faces::odd();
    // What the service sees is nobody's concern here, but it must not fail to say it.
    std::mem::forget(seen);
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (switch, ending) = Ending::new();
    std::mem::forget(switch);
    let streams = tokio::io::split(theirs);
    tokio::spawn(embody_wire::serve::lines::serve(
        service,
        "owner".to_owned(),
        streams,
        Limits::default(),
        ending,
    ));
    let (said, hears) = mpsc::channel(16);
    let pipe = Pipe::new(tokio::io::split(ours), Limits::default(), said);
    let mut hello = pipe.begin(Calling { method: "initialize", params: None }).await.unwrap();
    assert!(matches!(next(&mut hello).await, CallEvent::Done(Outcome::Result(_))));
    (pipe, hears)
}

#[tokio::test]
async fn the_token_on_the_wire_is_the_connections() {
    let (pipe, _hears) = odd().await;
    let params = raw(&json!({"_meta": {"progressToken": "mine"}}));
    let mut calls = Vec::new();
    for _ in 0..4 {
        calls.push(pipe.begin(Calling { method: "echo", params: Some(&params) }).await.unwrap());
    }
    for mut call in calls {
        // What was echoed is what went out: the token is the connection's there.
        let CallEvent::Done(Outcome::Result(echo)) = next(&mut call).await else { panic!() };
        assert_eq!(echo.get(), format!(r#"{{"_meta":{{"progressToken":{}}}}}"#, call.number()));
    }
}

#[tokio::test]
async fn a_question_of_the_server_is_answered_through_us() {
    let (pipe, _hears) = odd().await;
    let mut call = pipe.begin(Calling { method: "ask", params: None }).await.unwrap();
    let CallEvent::Request(question) = next(&mut call).await else { panic!() };
    assert_eq!(question.method, "elicitation/create");
    pipe.answer(Response::success(question.id, raw(&json!({"action": "accept"})))).await.unwrap();
    let CallEvent::Done(Outcome::Result(answer)) = next(&mut call).await else { panic!() };
    assert_eq!(answer.get(), r#"{"answer":{"action":"accept"}}"#);
}

#[tokio::test]
async fn with_two_calls_running_a_question_belongs_to_the_connection() {
    let (pipe, mut hears) = odd().await;
    let waiting = pipe.begin(Calling { method: "wait", params: None }).await.unwrap();
    let mut asking = pipe.begin(Calling { method: "ask", params: None }).await.unwrap();
    let Some(Said::Request(question)) = tokio::time::timeout(SOON, hears.recv()).await.unwrap() else {
        panic!()
    };
    pipe.answer(Response::success(question.id, raw(&json!({})))).await.unwrap();
    assert!(matches!(next(&mut asking).await, CallEvent::Done(_)));
    pipe.cancel(waiting.number(), "the test is over").await.unwrap();
}

fn shell(script: &str) -> ChildSpec {
    ChildSpec {
        program: "/bin/sh".into(),
        arguments: vec!["-c".into(), script.into()],
        environment: vec![("PATH".into(), "/usr/bin:/bin".into()), ("ONLY".into(), "this".into())],
        folder: Some("/".into()),
    }
}

fn start(script: &str, limits: Limits) -> (Child, Pipe) {
    let (child, streams) = Child::start(&shell(script)).unwrap();
    let (said, _) = mpsc::channel(16);
    (child, Pipe::new(streams, limits, said))
}

#[tokio::test]
async fn garbage_and_overlong_lines_stop_nothing_but_what_they_answer() {
    let script = r#"
        echo 'hello, I am a server'; echo '{"jsonrpc":"2.0"}'; echo
        read line; printf '{"jsonrpc":"2.0","id":1,"result":"'; head -c 300000 /dev/zero | tr '\0' x; echo '"}'
        read line; echo '{"jsonrpc":"2.0","id":99,"result":"nobody asked"}'; echo '{"jsonrpc":"2.0","id":2,"result":[]}'
        cat >/dev/null"#;
    let (child, pipe) = start(script, Limits { message_max_bytes: 100_000, ..Limits::default() });
    let mut long = pipe.begin(Calling { method: "a", params: None }).await.unwrap();
    assert!(matches!(next(&mut long).await, CallEvent::Lost(Error::Protocol(_))));
    let mut fine = pipe.begin(Calling { method: "b", params: None }).await.unwrap();
    assert!(matches!(next(&mut fine).await, CallEvent::Done(Outcome::Result(_))));
    drop(pipe);
    child.end(SOON).await;
}

#[tokio::test]
async fn a_process_that_dies_is_told_to_every_call() {
    let (mut child, pipe) = start("read line; echo 'last words' >&2; exit 3", Limits::default());
    let mut first = pipe.begin(Calling { method: "a", params: None }).await.unwrap();
    assert!(matches!(next(&mut first).await, CallEvent::Lost(Error::Closed(_))));
    assert!(matches!(pipe.begin(Calling { method: "b", params: None }).await, Err(Error::Closed(_))));
    assert_eq!(child.ended().await, "exit status: 3");
    let said = async {
        while child.errors().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, said).await.expect("its last words are lost");
    assert_eq!(child.errors(), ["last words"]);
}

#[tokio::test]
async fn a_process_sees_only_its_own_environment_and_ends_with_what_it_started() {
    let script = r#"sleep 600 & env | sort | tr '\n' ' ' >&2; echo >&2; echo "child $!" >&2; trap '' TERM; while :; do sleep 1; done"#;
    let (child, pipe) = start(script, Limits::default());
    let lines = async {
        while child.errors().len() < 2 {
            tokio::task::yield_now().await;
        }
        child.errors()
    };
    let lines = tokio::time::timeout(SOON, lines).await.unwrap();
    let names: Vec<&str> = lines[0].split(' ').filter_map(|pair| Some(pair.split_once('=')?.0)).collect();
    assert_eq!(names, ["ONLY", "PATH", "PWD"], "{}", lines[0]);
    let grandchild = lines[1].strip_prefix("child ").unwrap().to_owned();
    drop(pipe);
    child.end(Duration::from_millis(50)).await;
    let stat = format!("/proc/{grandchild}/stat");
    let lives = || std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
    let gone = async {
        while lives() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(SOON, gone).await.expect("a grandchild lives on");
}
