//! Servers that run as child processes, most of them misbehaving.

use std::time::Duration;

use embody_wire::upstream::{ChildSpec, ConnectOptions, Link, Route, ServerMessage};
use embody_wire::{Error, Limits};
use tokio::sync::mpsc;

use super::{begin, lost, open, opening, result, soon};

/// Answers `initialize`, then runs the script.
fn polite(script: &str) -> ConnectOptions {
    let initialize_result =
        r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}"#;
    shell(&format!("read line; echo '{initialize_result}'; read line\n{script}"))
}

fn shell(script: &str) -> ConnectOptions {
    opening(Route::Child(ChildSpec {
        program: "/bin/sh".into(),
        arguments: vec!["-c".into(), script.into()],
        environment: vec![("PATH".into(), "/usr/bin:/bin".into()), ("ONLY".into(), "this".into())],
        folder: Some("/".into()),
        secrets: Vec::new(),
        reaper: None,
        stderr: None,
    }))
}

async fn opened(opening: &ConnectOptions) -> (Link, mpsc::Receiver<ServerMessage>) {
    open(opening).await.unwrap()
}

fn lives(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

async fn until_gone(pid: &str) {
    while lives(pid) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn garbage_and_overlong_lines_stop_nothing_but_what_they_answer() {
    let mut opening = polite(
        r#"
        echo 'hello, I am a server'; echo '{"jsonrpc":"2.0"}'; echo; printf '\377\376\n'
        echo '{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"I do not like that"}}'
        read line; printf '{"jsonrpc":"2.0","id":2,"result":"'; head -c 300000 /dev/zero | tr '\0' x; echo '"}'
        read line; echo '{"jsonrpc":"2.0","id":99,"result":"nobody asked"}'; echo '{"jsonrpc":"2.0","id":3,"result":[]}'
        echo '{"jsonrpc":"2.0","id":3,"result":["again"]}'
        read line; echo '{"jsonrpc":"2.0","id":4,"result":{}}'
        cat >/dev/null"#,
    );
    opening.limits.message_max_bytes = 100_000;
    let (link, _hears) = opened(&opening).await;
    let mut long = begin(&link, "a").await;
    assert!(matches!(lost(&mut long).await, Error::Protocol(_)));
    let mut fine = begin(&link, "b").await;
    assert_eq!(result(&mut fine).await, "[]");
    assert!(matches!(lost(&mut fine).await, Error::NoAnswer), "an answer comes once");
    assert_eq!(result(&mut begin(&link, "c").await).await, "{}");
    link.close().await;
}

#[tokio::test]
async fn an_overlong_answer_ends_its_call_wherever_its_id_is() {
    let mut opening = polite(
        r#"
        long() { head -c 300000 /dev/zero | tr '\0' x; }
        read line; read line; printf '{"result":{"a":"'; long; echo '"},"jsonrpc":"2.0","id":3}'
        printf '{"method":"notifications/message","params":{"data":"'; long; echo '"},"jsonrpc":"2.0"}'
        printf '{"result":"'; long; printf '","id":2,"x":"'; long; echo '"}'
        read line; echo '{"jsonrpc":"2.0","id":4,"result":{}}'
        cat >/dev/null"#,
    );
    opening.limits.message_max_bytes = 100_000;
    let (link, _hears) = opened(&opening).await;
    let (mut first, mut second) = (begin(&link, "a").await, begin(&link, "b").await);
    assert!(matches!(lost(&mut second).await, Error::Protocol(_)), "its id comes last");
    // The lines in between are not responses.
    assert!(matches!(lost(&mut first).await, Error::Protocol(_)), "it can only be this one's");
    assert_eq!(result(&mut begin(&link, "c").await).await, "{}");
    link.close().await;
}

#[tokio::test]
async fn a_call_that_is_dropped_is_cancelled_and_makes_room() {
    let mut opening = polite(
        r#"
        read line; read line
        case "$line" in *notifications/cancelled*'"requestId":2'*) ;; *) exit 1 ;; esac
        read line; echo '{"jsonrpc":"2.0","id":3,"result":{}}'
        read line; read line
        case "$line" in *'"requestId":4'*'why not'* | *'why not'*'"requestId":4'*) ;; *) exit 1 ;; esac
        read line; echo '{"jsonrpc":"2.0","id":5,"result":[]}'
        cat >/dev/null"#,
    );
    opening.limits.calls_max = 1;
    let (link, _hears) = opened(&opening).await;
    let dropped = begin(&link, "a").await;
    let number = dropped.number();
    drop(dropped);
    link.cancel(number, "it is told once").await.unwrap();
    assert_eq!(result(&mut begin(&link, "b").await).await, "{}");
    let left = begin(&link, "c").await;
    link.cancel(left.number(), "why not").await.unwrap();
    drop(left);
    assert_eq!(result(&mut begin(&link, "d").await).await, "[]");
    link.close().await;
}

#[tokio::test]
async fn a_line_of_a_hundred_megabytes_is_skipped_and_not_kept() {
    let (link, _hears) = opened(&polite(
        r#"
        read line; printf '{"jsonrpc":"2.0","id":2,"result":"'; head -c 100000000 /dev/zero | tr '\0' x; echo '"}'
        read line; echo '{"jsonrpc":"2.0","id":3,"result":{}}'
        cat >/dev/null"#,
    ))
    .await;
    assert!(matches!(lost(&mut begin(&link, "a").await).await, Error::Protocol(_)));
    assert_eq!(result(&mut begin(&link, "b").await).await, "{}");
    link.close().await;
}

#[tokio::test]
async fn a_process_that_dies_is_told_to_every_call_with_its_last_words() {
    let (link, _hears) = opened(&polite("read line; echo 'last words' >&2; exit 3")).await;
    assert!(link.pid().is_some());
    let mut first = begin(&link, "a").await;
    let error = lost(&mut first).await;
    let Error::Closed(cause) = &error else { panic!("{error:?}") };
    assert_eq!(cause.to_string(), "the server's process ended: exit status: 3, saying `last words`");
    assert_eq!(soon(link.until_closed()).await.to_string(), cause.to_string());
    let later = link.begin(embody_wire::upstream::OutgoingCall { method: "b", params: None }).await;
    assert!(matches!(later, Err(Error::Closed(_))));
    assert_eq!((link.stderr(), link.pid()), (vec!["last words".to_owned()], None));
}

#[tokio::test]
async fn a_process_that_leaves_its_pipe_to_another_is_over_all_the_same() {
    let (link, _hears) = opened(&polite("setsid sleep 600 & echo $! >&2; exit 0")).await;
    assert!(soon(link.until_closed()).await.to_string().contains("exit status: 0"));
    // It has left the process group: a process that does so on purpose is not killed.
    let pid = link.stderr()[0].parse().unwrap();
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(pid).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
}

#[tokio::test]
async fn a_process_that_closes_one_end_only_is_over() {
    // It no longer reads, so messages cannot be delivered.
    let (link, _hears) = opened(&polite("exec 0<&-; sleep 600")).await;
    let over = async {
        while link.closed().is_none() {
            let _ = link.notify("notifications/x", None).await;
            tokio::task::yield_now().await;
        }
    };
    soon(over).await;
    link.close().await;
    // It no longer writes, so no response arrives.
    let mut opening = polite("exec 1>&-; sleep 600");
    opening.limits.courtesy_timeout = Duration::from_millis(50);
    let (link, _hears) = opened(&opening).await;
    let pid = link.pid().unwrap().to_string();
    assert_eq!(soon(link.until_closed()).await.to_string(), "the stream ended without a response");
    link.close().await;
    assert!(!lives(&pid));
}

#[tokio::test]
async fn a_process_that_never_greets_is_ended_at_the_time_limit() {
    let script = "echo $$ >&2; sleep 600";
    let mut opening = shell(script);
    opening.limits.attempt_timeout = Duration::from_millis(50);
    let error = open(&opening).await.unwrap_err();
    assert_eq!(error.to_string(), "opening the session took longer than 50 ms");
    let error = open(&shell("echo 'no such module' >&2; exit 1")).await.unwrap_err();
    let Error::Closed(cause) = &error else { panic!("{error:?}") };
    assert_eq!(cause.to_string(), "the server's process ended: exit status: 1, saying `no such module`");
}

#[tokio::test]
async fn a_flood_of_notices_stops_no_answer_and_no_change_is_lost() {
    let (link, mut hears) = opened(&polite(
        r#"
        i=0; while [ $i -lt 3000 ]; do echo '{"jsonrpc":"2.0","method":"notifications/noise","params":{"i":'$i'}}'; i=$((i+1)); done
        echo '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
        echo '{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a"}}'
        echo '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
        read line; echo '{"jsonrpc":"2.0","id":2,"result":{}}'
        cat >/dev/null"#,
    ))
    .await;
    assert_eq!(result(&mut begin(&link, "a").await).await, "{}");
    let mut received = Vec::new();
    while received.last().is_none_or(|method| method != "notifications/resources/updated") {
        let Some(ServerMessage::Notification(notification)) = soon(hears.recv()).await else { panic!() };
        received.push(notification.method);
    }
    let changes = received.iter().filter(|method| method.ends_with("list_changed")).count();
    assert_eq!((received.len(), changes), (18, 1), "the queue, and each change once");
    link.close().await;
}

#[tokio::test]
async fn a_process_sees_only_its_own_environment_and_ends_with_what_it_started() {
    let script = r#"sleep 600 & env | sort | tr '\n' ' ' >&2; echo >&2; echo "child $!" >&2; trap '' TERM; while :; do sleep 1; done"#;
    let mut opening = polite(script);
    opening.limits = Limits { courtesy_timeout: Duration::from_millis(50), ..Limits::default() };
    let (link, _hears) = opened(&opening).await;
    let lines = async {
        while link.stderr().len() < 2 {
            tokio::task::yield_now().await;
        }
        link.stderr()
    };
    let lines = soon(lines).await;
    let names: Vec<&str> = lines[0].split(' ').filter_map(|pair| Some(pair.split_once('=')?.0)).collect();
    assert_eq!(names, ["ONLY", "PATH", "PWD"], "{}", lines[0]);
    let grandchild = lines[1].strip_prefix("child ").unwrap().to_owned();
    let pid = link.pid().unwrap().to_string();
    link.close().await;
    assert!(!lives(&pid));
    soon(until_gone(&grandchild)).await;
}

#[tokio::test]
async fn a_link_that_is_dropped_leaves_no_process() {
    let (link, _hears) = opened(&polite("sleep 600")).await;
    let pid = link.pid().unwrap().to_string();
    drop(link);
    soon(until_gone(&pid)).await;
}
