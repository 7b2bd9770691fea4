//! Supervised connections to servers in this process and to misbehaving processes.

mod idle;
mod processes;
mod scripted;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use embody_broker::upstream::{Backoff, Health, UpstreamEvent};
use embody_wire::upstream::{CallEvent, InProcessServer, OutgoingCall, Route, ServerMessage};
use embody_wire::{Limits, Response};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::timeout;

use self::scripted::{Does, LONG, SOON, Scripted, hello, listing, names, note, start, still, until};

async fn next_message(events: &mut mpsc::Receiver<UpstreamEvent>) -> ServerMessage {
    let message = async {
        loop {
            match events.recv().await.expect("the upstream is gone") {
                UpstreamEvent::Notification { upstream, notification } => {
                    assert_eq!(&*upstream, "body");
                    return ServerMessage::Notification(notification);
                }
                UpstreamEvent::Request { upstream, request, .. } => {
                    assert_eq!(&*upstream, "body");
                    return ServerMessage::Request(request);
                }
                UpstreamEvent::Changed { .. } => {}
            }
        }
    };
    timeout(SOON, message).await.expect("nothing was said")
}

// spec: N-13
#[tokio::test]
async fn a_server_is_connected_and_its_tools_are_listed() {
    let server = Scripted::new(|message| match (message.method, message.params["cursor"].as_str()) {
        ("tools/list", None) => {
            message.result(json!({"tools": [{"name": "a", "x": 1}], "nextCursor": "more"}))
        }
        ("tools/list", Some("more")) => message.result(listing(&["b"])),
        _ => message.plain(&[]),
    });
    let (upstream, _hears) = server.start(still());
    timeout(SOON, upstream.wait_settled()).await.unwrap();
    let state = upstream.status();
    assert_eq!((state.health, state.reason), (Health::Connected, None));
    assert_eq!((state.transport, state.version), (Some("embedded"), Some("2025-06-18")));
    assert_eq!((state.restarts, state.tool_count), (0, 2));
    assert_eq!(names(&upstream), ["a", "b"]);
    assert_eq!(upstream.tools()[0].definition.get(), r#"{"name":"a","x":1}"#);
    assert!(upstream.capabilities().unwrap().contains_key("tools"));
    assert!(upstream.lease().await.is_ok());
}

// spec: N-13
#[tokio::test]
async fn tools_that_change_are_listed_again_and_other_words_are_passed_on() {
    let listings = AtomicUsize::new(0);
    let server = Scripted::new(move |message| match message.method {
        "tools/list" if listings.fetch_add(1, Ordering::SeqCst) > 0 => message.result(listing(&["a", "b"])),
        "tools/call" => Does::Write(vec![
            note("notifications/tools/list_changed"),
            note("notifications/resources/list_changed"),
            json!({"jsonrpc": "2.0", "id": message.id, "result": {}}),
        ]),
        _ => message.plain(&["a"]),
    });
    let (upstream, mut events) = server.start(still());
    timeout(SOON, upstream.wait_settled()).await.unwrap();
    assert_eq!(names(&upstream), ["a"]);
    let link = upstream.lease().await.unwrap();
    let mut running = link.begin(OutgoingCall { method: "tools/call", params: None }).await.unwrap();
    assert!(matches!(running.next().await, CallEvent::Done(_)));
    let ServerMessage::Notification(message) = next_message(&mut events).await else { panic!() };
    assert_eq!(message.method, "notifications/resources/list_changed", "the other one is not passed on");
    until(&mut events, || names(&upstream) == ["a", "b"]).await;
}

// spec: N-13
#[tokio::test]
async fn a_lease_of_an_unavailable_server_connects_at_once() {
    let server =
        Scripted::new(|message| if message.connection < 2 { Does::Close } else { message.plain(&["a"]) });
    let (upstream, mut events) = server.start(still());
    timeout(SOON, upstream.wait_settled()).await.unwrap();
    assert_eq!((upstream.status().health, server.connections()), (Health::Unavailable, 1));
    assert!(timeout(SOON, upstream.lease()).await.unwrap().is_err(), "the second attempt fails too");
    assert!(timeout(SOON, upstream.lease()).await.unwrap().is_ok());
    assert_eq!(server.connections(), 3);
    until(&mut events, || names(&upstream) == ["a"]).await;
    assert_eq!(upstream.status().health, Health::Connected);
}

// spec: N-13
#[tokio::test]
async fn attempts_are_made_again_and_again_without_anybody_asking() {
    let server =
        Scripted::new(|message| if message.connection < 6 { Does::Close } else { message.plain(&["a"]) });
    let fast = Duration::from_millis(1);
    let (upstream, mut events) = server.start(Backoff { retry_first: fast, retry_max: fast, ..still() });
    until(&mut events, || upstream.status().health == Health::Connected).await;
    assert_eq!((server.connections(), upstream.status().restarts), (7, 0));
}

#[tokio::test]
async fn a_server_that_always_fails_is_not_connected_on_every_lease() {
    let server = Scripted::new(|_| Does::Close);
    let (upstream, _hears) = server.start(Backoff { failures_max: 3, cooldown: LONG, ..still() });
    timeout(SOON, upstream.wait_settled()).await.unwrap();
    for _ in 0..20 {
        assert!(timeout(SOON, upstream.lease()).await.unwrap().is_err());
    }
    assert_eq!(server.connections(), 3);
}

#[tokio::test]
async fn a_connection_that_is_lost_is_opened_again_and_the_tools_stay_meanwhile() {
    let server = Scripted::new(|message| match message.method {
        "tools/call" => Does::Close,
        _ => message.plain(&["a"]),
    });
    let (upstream, mut events) = server.start(still());
    timeout(SOON, upstream.wait_settled()).await.unwrap();
    let link = upstream.lease().await.unwrap();
    let mut running = link.begin(OutgoingCall { method: "tools/call", params: None }).await.unwrap();
    assert!(matches!(running.next().await, CallEvent::Lost(_)));
    until(&mut events, || upstream.status().health == Health::Unavailable).await;
    assert_eq!(names(&upstream), ["a"]);
    assert!(upstream.status().reason.is_some());
    timeout(SOON, upstream.lease()).await.unwrap().unwrap();
    assert_eq!((upstream.status().restarts, server.connections()), (1, 2));
}

#[tokio::test]
async fn a_server_that_no_longer_answers_is_connected_again() {
    let server = Scripted::new(|message| match message.method {
        "ping" if message.connection == 0 => Does::Write(Vec::new()),
        _ => message.plain(&["a"]),
    });
    let soon = Duration::from_millis(5);
    let pace = Backoff { ping_interval: soon, ping_timeout: soon, retry_first: soon, ..still() };
    let (upstream, mut events) = server.start(pace);
    until(&mut events, || upstream.status().restarts >= 1 && upstream.status().health == Health::Connected)
        .await;
}

#[tokio::test]
async fn a_server_that_refuses_to_say_that_it_lives_does_live() {
    let pings = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&pings);
    let (many, mut enough) = mpsc::unbounded_channel();
    let server = Scripted::new(move |message| match message.method {
        "ping" => {
            if counted.fetch_add(1, Ordering::SeqCst) == 9 {
                let _ = many.send(());
            }
            let error = json!({"code": -32601, "message": "what?"});
            Does::Write(vec![json!({"jsonrpc": "2.0", "id": message.id, "error": error})])
        }
        _ => message.plain(&["a"]),
    });
    let (upstream, _hears) = server.start(Backoff { ping_interval: Duration::from_millis(1), ..still() });
    timeout(SOON, enough.recv()).await.unwrap();
    assert_eq!((server.connections(), upstream.status().health), (1, Health::Connected));
    assert!(upstream.status().checked_ms.is_some());
}

// spec: N-06
#[tokio::test]
async fn a_broker_among_its_own_upstreams_is_refused_for_good() {
    let mut server = Scripted::new(|message| match message.method {
        "initialize" => message.result(hello("embody-broker")),
        _ => message.plain(&["runtime_status"]),
    });
    let fast = Duration::from_millis(1);
    let (upstream, _hears) = server.start(Backoff { retry_first: fast, retry_max: fast, ..still() });
    timeout(SOON, upstream.wait_settled()).await.unwrap();
    assert_eq!(timeout(SOON, server.closed.recv()).await.unwrap(), Some(0));
    let away = timeout(SOON, upstream.lease()).await.unwrap().unwrap_err();
    assert!(away.to_string().contains("calls would loop"), "{away}");
    let state = upstream.status();
    assert_eq!((state.health, state.tool_count, server.connections()), (Health::Unavailable, 0, 1));
}

// spec: N-06
#[tokio::test]
async fn a_server_is_told_that_its_client_is_a_broker() {
    let (sender, mut names_seen) = mpsc::unbounded_channel();
    let server = Scripted::new(move |message| {
        if message.method == "initialize" {
            sender.send(message.params["clientInfo"]["name"].clone()).unwrap();
        }
        message.plain(&[])
    });
    let (_upstream, _hears) = server.start(still());
    assert_eq!(timeout(SOON, names_seen.recv()).await.unwrap().unwrap(), "embody-broker");
}

#[tokio::test]
async fn a_request_during_listing_goes_to_the_listener() {
    let server = Scripted::new(|message| match message.method {
        "tools/list" => Does::Write(vec![json!({"jsonrpc": "2.0", "id": "q", "method": "roots/list"})]),
        "answer" => Does::Write(vec![json!({"jsonrpc": "2.0", "id": 2, "result": listing(&["rooted"])})]),
        _ => message.plain(&[]),
    });
    let (upstream, mut events) = server.start(still());
    let ServerMessage::Request(question) = next_message(&mut events).await else { panic!() };
    assert_eq!(question.method, "roots/list");
    let roots = RawValue::from_string(r#"{"roots":[]}"#.to_owned()).unwrap();
    upstream.lease().await.unwrap().answer(Response::success(question.id, roots)).await.unwrap();
    until(&mut events, || names(&upstream) == ["rooted"]).await;
}

#[tokio::test]
async fn a_list_that_cannot_be_read_leaves_the_server_connected_and_says_so() {
    for answer in
        [json!({"error": {"code": -32000, "message": "not today"}}), json!({"result": {"tools": 7}})]
    {
        let server = Scripted::new(move |message| match message.method {
            "tools/list" => {
                let mut answer = answer.clone();
                (answer["jsonrpc"], answer["id"]) = (json!("2.0"), message.id.clone());
                Does::Write(vec![answer])
            }
            _ => message.plain(&[]),
        });
        let (upstream, _hears) = server.start(still());
        timeout(SOON, upstream.wait_settled()).await.unwrap();
        let state = upstream.status();
        assert_eq!(state.health, Health::Connected);
        assert!(state.reason.unwrap().contains("tools cannot be listed"));
    }
}

#[tokio::test]
async fn a_server_without_tools_is_not_asked_for_them() {
    let server = Scripted::new(|message| {
        match message.method {
        "initialize" => message.result(json!({"protocolVersion": "2025-11-25", "capabilities": {"prompts": {}}, "serverInfo": {"name": "x", "version": "1"}})),
        "tools/list" => Does::Close,
        _ => message.plain(&[]),
    }
    });
    let (upstream, _hears) = server.start(still());
    timeout(SOON, upstream.wait_settled()).await.unwrap();
    assert_eq!((upstream.status().health, upstream.status().reason), (Health::Connected, None));
}

#[tokio::test]
async fn unread_notifications_do_not_delay_a_response() {
    let server = Scripted::new(|message| match message.method {
        "tools/call" => {
            let mut words = vec![note("notifications/resources/updated"); 2000];
            words.push(json!({"jsonrpc": "2.0", "id": message.id, "result": {}}));
            Does::Write(words)
        }
        _ => message.plain(&["a"]),
    });
    let (upstream, _hears) = server.start(still());
    timeout(SOON, upstream.wait_settled()).await.unwrap();
    let link = upstream.lease().await.unwrap();
    for _ in 0..3 {
        let mut running = link.begin(OutgoingCall { method: "tools/call", params: None }).await.unwrap();
        assert!(matches!(timeout(SOON, running.next()).await.unwrap(), CallEvent::Done(_)));
    }
    assert_eq!(upstream.status().health, Health::Connected);
}

#[tokio::test]
async fn a_supervisor_that_has_failed_holds_up_no_end() {
    let route = Route::InProcess(InProcessServer::on_streams(|| -> (tokio::io::Empty, tokio::io::Sink) {
        panic!("no pipe")
    }));
    let (upstream, _hears) = start(route, Limits::default(), still());
    for _ in 0..2 {
        timeout(SOON, upstream.shutdown()).await.unwrap();
    }
    timeout(SOON, upstream.wait_settled()).await.unwrap();
}

#[tokio::test]
async fn nothing_is_left_when_it_is_ended_or_forgotten() {
    let mut server = Scripted::new(|message| message.plain(&["a"]));
    let (upstream, _hears) = server.start(still());
    timeout(SOON, upstream.wait_settled()).await.unwrap();
    timeout(SOON, upstream.shutdown()).await.unwrap();
    assert_eq!(timeout(SOON, server.closed.recv()).await.unwrap(), Some(0));
    assert!(timeout(SOON, upstream.lease()).await.unwrap().is_err());
    assert_eq!(upstream.status().health, Health::Unavailable);
    timeout(SOON, upstream.shutdown()).await.expect("a second end is none");
    let (forgotten, _hears) = server.start(still());
    timeout(SOON, forgotten.wait_settled()).await.unwrap();
    drop(forgotten);
    assert_eq!(timeout(SOON, server.closed.recv()).await.unwrap(), Some(1));
}

#[tokio::test]
async fn a_server_that_says_nothing_fails_in_time_and_can_be_ended() {
    let server = Scripted::new(|_| Does::Write(Vec::new()));
    let limits = Limits { attempt_timeout: Duration::from_millis(50), ..Limits::default() };
    let (upstream, _hears) = start(server.route.clone(), limits, still());
    timeout(SOON, upstream.wait_settled()).await.unwrap();
    assert!(upstream.status().reason.unwrap().contains("took longer than 50 ms"));
    timeout(SOON, upstream.shutdown()).await.unwrap();
}
