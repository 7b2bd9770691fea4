//! What the broker reports to the mind about calls, and what it deletes after a retention time.

use std::time::{Duration, Instant};

use embody_broker::Broker;
use embody_store::Scope;
use embody_store::receipts::NewReceipt;
use serde_json::Value;

use crate::stage::{Host, Reply, Server, body, result, setup};

const PACKET: &str =
    r#"{"content":[],"structuredContent":{"schema_version":1,"mind_contract":"Speak softly."}}"#;

fn desk() -> Server {
    Server::new("desk", r#"{"tools":{}}"#, |method, _| match method {
        "tools/list" => result(
            r#"{"tools":[{"name":"look","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}"#,
        ),
        "tools/call" => result(r#"{"content":[{"type":"text","text":"seen"}]}"#),
        _ => None,
    })
}

/// A mind with these responses to `bootstrap_session` and `observe`.
fn mind(packet: &'static str, observe: fn() -> Option<Reply>) -> Server {
    mind_that(packet, move |_| observe())
}

/// The same; the response depends on the parameters of `observe`.
fn mind_that(
    packet: &'static str,
    observe: impl Fn(&str) -> Option<Reply> + Send + Sync + 'static,
) -> Server {
    Server::new("mind", r#"{"tools":{}}"#, move |method, params| match method {
        "tools/list" => result(
            r#"{"tools":[{"name":"bootstrap_session","inputSchema":{"type":"object"}},{"name":"observe","inputSchema":{"type":"object"}}]}"#,
        ),
        "tools/call" if params.contains("bootstrap_session") => result(packet),
        "tools/call" if params.contains(r#""observe""#) => observe(params),
        _ => None,
    })
}

fn calm() -> Option<Reply> {
    result(r#"{"content":[],"structuredContent":{"prediction_error":0.1,"cautionary_flags":[]}}"#)
}

fn silence() -> Option<Reply> {
    Some(Reply::Silence)
}

const LOOK: &str = r#"{"name":"look","arguments":{"where":"here"}}"#;

// spec: N-06
#[tokio::test]
async fn a_read_is_observed_before_and_after() {
    let (mind, desk) = (mind(PACKET, calm), desk());
    let host = Host::with(&mind, &[(&desk, body())]).await;
    host.until("desk", "connected").await;
    host.result("tools/call", LOOK).await;
    // The start of the session, the observation before, and the one after.
    let calls = mind.saw("tools/call", 3).await;
    let observed: Vec<Value> = calls
        .iter()
        .map(|call| serde_json::from_str::<Value>(call).unwrap())
        .filter(|call| call["name"] == "observe")
        .map(|mut call| call["arguments"].take())
        .collect();
    assert_eq!(observed.len(), 2, "{observed:?}");
    assert_eq!((&observed[0]["tool_name"], &observed[0]["args"]["where"]), (&"look".into(), &"here".into()));
    assert!(observed[0].get("result").is_none() && observed[1].get("result").is_some(), "{observed:?}");
    assert_eq!(host.status().await["observations_dropped"], 0);
    host.end().await;
}

// spec: N-07
#[tokio::test]
async fn observations_before_reads_are_dropped_under_load_and_counted() {
    let (mind, desk) = (mind(PACKET, silence), desk());
    let host = Host::with(&mind, &[(&desk, body())]).await;
    host.until("desk", "connected").await;
    for _ in 0..100 {
        host.result("tools/call", LOOK).await;
    }
    assert!(host.status().await["observations_dropped"].as_u64().unwrap() > 0);
    host.end().await;
}

// spec: N-11
#[tokio::test]
async fn an_observation_that_hangs_is_shown_within_two_seconds() {
    shows_a_mind_that_hangs(&mind(PACKET, silence)).await;
}

// spec: N-11
#[tokio::test]
async fn an_observation_that_hangs_after_the_call_only_is_shown_too() {
    let observe = |params: &str| if params.contains(r#""result""#) { silence() } else { calm() };
    shows_a_mind_that_hangs(&mind_that(PACKET, observe)).await;
}

async fn shows_a_mind_that_hangs(mind: &Server) {
    let desk = desk();
    let host = Host::with(mind, &[(&desk, body())]).await;
    host.until("desk", "connected").await;
    host.result("tools/call", LOOK).await;
    let began = Instant::now();
    loop {
        let status = host.status().await;
        if status["degraded_modes"].as_array().unwrap().contains(&"observe_unavailable".into()) {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(2), "{status}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    host.end().await;
}

// spec: N-03
#[tokio::test]
async fn a_packet_that_is_not_an_object_is_an_error_result() {
    for packet in [
        r#"{"content":[],"structuredContent":[1]}"#,
        r#"{"content":[{"type":"text","text":"hello"}]}"#,
        r#"{"content":[{"type":"text","text":"7"}]}"#,
    ] {
        let mind = mind(packet, calm);
        let host = Host::with(&mind, &[]).await;
        host.until("mind", "connected").await;
        let result = host.result("tools/call", r#"{"name":"runtime_bootstrap","arguments":{}}"#).await;
        let result: Value = serde_json::from_str(&result).unwrap();
        assert_eq!(result["isError"], true, "{result}");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("Error: the mind's answer is ") && text.contains("be kind"), "{text}");
        host.end().await;
    }
}

#[tokio::test]
async fn old_receipts_are_deleted() {
    for (days, is_kept) in [(30, false), (36_500, true)] {
        let mut setup = setup(&Server::silent("mind"), &[]).await;
        setup.settings.edit(|settings| settings.times.receipts = Duration::from_secs(days * 24 * 3600));
        let (store, scope) = (setup.store.clone(), Scope::new("owner", "default").unwrap());
        // The clock of this broker is ahead of that of the store.
        let now = store.clock().await.unwrap();
        setup.clock = Box::new(move || now + 40 * 24 * 3600 * 1_000_000);
        let text = "Be kind.".to_owned();
        let hash = blake3::hash(text.as_bytes()).to_hex().to_string();
        let new = NewReceipt {
            layout: "full".to_owned(),
            hash,
            parts: vec![text],
            detail: "{}".to_owned(),
            ..NewReceipt::default()
        };
        store.receipts().insert(&scope, new).await.unwrap();
        let broker = Broker::start(setup);
        let deadline = Instant::now() + Duration::from_secs(30);
        let count = async || store.receipts().list_latest("owner", 10).await.unwrap().len();
        while !is_kept && count().await > 0 {
            assert!(Instant::now() < deadline, "the receipt is still there");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        broker.shutdown().await;
        assert_eq!(count().await, usize::from(is_kept));
    }
}
