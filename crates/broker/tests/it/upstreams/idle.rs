//! Idle shutdown: servers that do not run while they are unused.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use embody_broker::policy::Glob;
use embody_broker::upstream::{
    Backoff, BodySpec, Health, IdleShutdown, RawTool, Role, Spec, Start, Upstream, UpstreamEvent,
};
use embody_wire::upstream::{CallEvent, EraCache, OutgoingCall, Route};
use embody_wire::{InitializeParams, Limits, Proxies};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;

use super::scripted::{Does, LONG, SOON, Scripted, names, still, until};

const BRIEF: Duration = Duration::from_millis(20);

fn spec(route: &Route, idle_shutdown: IdleShutdown) -> Arc<Spec> {
    Arc::new(Spec {
        name: "body".to_owned(),
        role: Role::Body(BodySpec { allow: vec![Glob::new("*")], ..BodySpec::default() }),
        route: route.clone(),
        tokens: None,
        proxies: Proxies::default(),
        limits: Limits::default(),
        call_timeout: SOON,
        idle_shutdown,
        tools: None,
        check: None,
        era: EraCache::default(),
    })
}

fn lazily(
    server: &Scripted,
    known: &[&str],
    idle_stop: Option<Duration>,
) -> (Arc<Upstream>, mpsc::Receiver<UpstreamEvent>) {
    let (sender, events) = mpsc::channel(64);
    let tool = |name: &&str| RawTool {
        name: (*name).to_owned(),
        definition: RawValue::from_string(json!({"name": name}).to_string()).unwrap(),
    };
    let known: Vec<RawTool> = known.iter().map(tool).collect();
    let spec = spec(&server.route, IdleShutdown { start: Start::Lazy, idle_stop });
    let upstream =
        Upstream::start_with_known_tools(still(), spec, InitializeParams::default(), sender, async move {
            Some(known).filter(|known| !known.is_empty())
        });
    (upstream, events)
}

fn eagerly(
    server: &Scripted,
    idle_stop: Duration,
    pace: Backoff,
) -> (Arc<Upstream>, mpsc::Receiver<UpstreamEvent>) {
    let (sender, events) = mpsc::channel(64);
    let spec = spec(&server.route, IdleShutdown { idle_stop: Some(idle_stop), ..IdleShutdown::default() });
    (Upstream::start_with_backoff(pace, spec, InitializeParams::default(), sender), events)
}

async fn call(upstream: &Upstream) {
    let hold = timeout(SOON, upstream.lease()).await.unwrap().unwrap();
    let mut running = hold.begin(OutgoingCall { method: "tools/call", params: None }).await.unwrap();
    let done = timeout(SOON, running.next()).await.unwrap();
    assert!(matches!(done, CallEvent::Done(_)), "{done:?}");
}

#[tokio::test]
async fn a_lazy_server_is_known_by_what_it_showed_and_connected_by_the_first_who_wants_it() {
    let server = Scripted::new(|message| message.plain(&["a", "new"]));
    let (upstream, mut events) = lazily(&server, &["a", "b"], None);
    timeout(SOON, upstream.wait_settled()).await.unwrap();
    let state = upstream.status();
    assert_eq!((state.health, state.tool_count, state.restarts), (Health::Idle, 2, 0));
    assert!(state.health.is_fine() && state.reason.is_none() && state.pid.is_none());
    assert_eq!((names(&upstream), server.connections()), (vec!["a".to_owned(), "b".to_owned()], 0));
    assert!(upstream.capabilities().is_none());
    call(&upstream).await;
    upstream.wait_listed().await;
    until(&mut events, || names(&upstream) == ["a", "new"]).await;
    assert_eq!((upstream.status().health, server.connections()), (Health::Connected, 1));
    assert!(upstream.ensure_listed(upstream.lease().await.unwrap()).is_ok());
    timeout(SOON, upstream.shutdown()).await.unwrap();
}

#[tokio::test]
async fn a_lazy_server_without_a_cached_listing_is_connected_at_once() {
    let server = Scripted::new(|message| message.plain(&["a"]));
    let (upstream, _hears) = lazily(&server, &[], None);
    timeout(SOON, upstream.wait_settled()).await.unwrap();
    assert_eq!((upstream.status().health, server.connections()), (Health::Connected, 1));
}

#[tokio::test]
async fn a_lease_requested_before_the_cache_is_read_is_served() {
    let server = Scripted::new(|message| message.plain(&["a"]));
    let (sender, _events) = mpsc::channel(64);
    let read = Arc::new(Notify::new());
    let known = {
        let read = Arc::clone(&read);
        async move {
            read.notified().await;
            Some(vec![RawTool::new("a", &json!({"name": "a"})).unwrap()])
        }
    };
    let spec = spec(&server.route, IdleShutdown { start: Start::Lazy, idle_stop: None });
    let upstream =
        Upstream::start_with_known_tools(still(), spec, InitializeParams::default(), sender, known);
    let early = tokio::spawn({
        let upstream = Arc::clone(&upstream);
        async move { upstream.lease().await.is_ok() }
    });
    while !early.is_finished() {
        read.notify_one();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(early.await.unwrap());
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn an_idle_server_is_stopped_and_started_again_on_demand() {
    let mut server = Scripted::new(|message| message.plain(&["a"]));
    let (upstream, mut events) = eagerly(&server, BRIEF, still());
    for round in 0..3_u32 {
        until(&mut events, || upstream.status().health == Health::Idle).await;
        assert_eq!(timeout(SOON, server.closed.recv()).await.unwrap(), Some(round as usize));
        let state = upstream.status();
        assert_eq!((state.restarts, state.idle_stops, state.reason), (0, round + 1, None));
        assert_eq!((names(&upstream), state.transport), (vec!["a".to_owned()], None), "its tools are known");
        call(&upstream).await;
    }
    assert_eq!((server.connections(), upstream.status().restarts), (4, 0));
}

#[tokio::test]
async fn one_that_is_held_or_asks_or_is_kept_is_not_stopped() {
    let server = Scripted::new(|message| match message.method {
        "tools/call" => Does::Write(vec![
            json!({"jsonrpc": "2.0", "id": message.id, "result": {}}),
            json!({"jsonrpc": "2.0", "id": "q", "method": "roots/list"}),
        ]),
        _ => message.plain(&["a"]),
    });
    let other = Scripted::new(|message| message.plain(&["a"]));
    let (upstream, mut events) = eagerly(&server, BRIEF, still());
    timeout(SOON, upstream.wait_settled()).await.unwrap();
    // This server shows that enough time has passed for an unused one.
    let passed = async || {
        let (clock, mut ticks) = eagerly(&other, 3 * BRIEF, still());
        until(&mut ticks, || clock.status().health == Health::Idle).await;
    };
    let hold = upstream.lease().await.unwrap();
    passed().await;
    assert_eq!((upstream.status().health, hold.closed().is_none()), (Health::Connected, true), "it is held");
    upstream.set_keep_alive(true);
    drop(hold);
    passed().await;
    assert_eq!(upstream.status().health, Health::Connected, "it is kept");
    call(&upstream).await;
    upstream.set_keep_alive(false);
    let place = loop {
        if let UpstreamEvent::Request { permit, .. } = timeout(SOON, events.recv()).await.unwrap().unwrap() {
            break permit;
        }
    };
    passed().await;
    assert_eq!(upstream.status().health, Health::Connected, "it waits for an answer");
    drop(place);
    until(&mut events, || upstream.status().health == Health::Idle).await;
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_server_with_a_waiting_lease_is_not_stopped() {
    let server = Scripted::new(|message| message.plain(&["a"]));
    let other = Scripted::new(|message| message.plain(&["a"]));
    let (upstream, mut events) = eagerly(&server, BRIEF, still());
    until(&mut events, || upstream.status().health == Health::Idle).await;
    let mut waiting = Box::pin(upstream.lease());
    assert!(std::future::poll_fn(|context| Poll::Ready(waiting.as_mut().poll(context).is_pending())).await);
    // Polls for less than the idle limit.
    until(&mut events, || upstream.status().health == Health::Connected).await;
    let (clock, mut ticks) = eagerly(&other, 3 * BRIEF, still());
    until(&mut ticks, || clock.status().health == Health::Idle).await;
    assert_eq!(upstream.status().health, Health::Connected);
    drop(timeout(SOON, waiting).await.unwrap().unwrap());
    until(&mut events, || upstream.status().health == Health::Idle).await;
    assert_eq!(server.connections(), 2);
}

/// Every call arrives exactly once, even while the server is being stopped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_race_with_the_stop_are_neither_lost_nor_sent_twice() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let server = Scripted::new(move |message| {
        if message.method == "tools/call" {
            counted.fetch_add(1, Ordering::SeqCst);
        }
        message.plain(&["a"])
    });
    let idle = Duration::from_millis(2);
    let (upstream, _hears) = eagerly(&server, idle, still());
    const CALLS: usize = 400;
    for number in 0..CALLS {
        call(&upstream).await;
        // Around the time of the shutdown, each time slightly earlier or later.
        tokio::time::sleep(Duration::from_micros(1_000 + 5 * number as u64)).await;
    }
    assert_eq!(calls.load(Ordering::SeqCst), CALLS);
    assert!(server.connections() > 1, "it was never stopped, so nothing was tried");
    assert_eq!(upstream.status().restarts, 0, "no connection was lost");
    timeout(SOON, upstream.shutdown()).await.unwrap();
}

#[tokio::test]
async fn one_that_does_not_come_back_is_unavailable_and_says_why() {
    let server =
        Scripted::new(|message| if message.connection == 0 { message.plain(&["a"]) } else { Does::Close });
    let (upstream, mut events) = eagerly(&server, BRIEF, Backoff { failures_max: 99, ..still() });
    until(&mut events, || upstream.status().health == Health::Idle).await;
    assert!(timeout(SOON, upstream.lease()).await.unwrap().is_err());
    let state = upstream.status();
    assert_eq!((state.health, state.reason.is_some()), (Health::Unavailable, true));
    assert_eq!(names(&upstream), ["a"]);
}

#[tokio::test]
async fn nothing_is_called_before_its_tools_were_compared() {
    let server = Scripted::new(|message| match message.method {
        "tools/list" => Does::Write(Vec::new()),
        _ => message.plain(&["a"]),
    });
    let (upstream, _hears) = lazily(&server, &["a"], Some(LONG));
    timeout(SOON, upstream.wait_settled()).await.unwrap();
    let hold = timeout(SOON, upstream.lease()).await.unwrap().unwrap();
    let away = upstream.ensure_listed(hold).unwrap_err();
    assert!(away.to_string().contains("not listed yet"), "{away}");
}
