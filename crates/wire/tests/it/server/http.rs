//! Streamable HTTP, both eras.

use reqwest::{Client, Response, StatusCode};

use super::*;

const ACCEPT: &str = "application/json, text/event-stream";

struct PostOptions<'a> {
    token: Option<&'a str>,
    session: Option<&'a str>,
    headers: &'a [(&'a str, &'a str)],
}

const OWNER: PostOptions<'static> = PostOptions { token: Some("ann"), session: None, headers: &[] };

impl Served {
    async fn post(&self, wanted: PostOptions<'_>, body: &Value) -> Response {
        let mut request = Client::new().post(format!("{}/mcp", self.url)).header("accept", ACCEPT);
        request = request.header("content-type", "application/json").body(body.to_string());
        if let Some(token) = wanted.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        if let Some(session) = wanted.session {
            request = request.header("mcp-session-id", session);
        }
        for (name, value) in wanted.headers {
            request = request.header(*name, *value);
        }
        tokio::time::timeout(SOON, request.send()).await.expect("silence").unwrap()
    }

    async fn modern(&self, id: u64, method: &str) -> Response {
        let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)];
        self.post(PostOptions { headers: &headers, ..OWNER }, &modern(id, method)).await
    }

    async fn initialize(&self) -> String {
        let response = self.post(OWNER, &request(1, "initialize")).await;
        assert_eq!(response.status(), StatusCode::OK);
        response.headers()["mcp-session-id"].to_str().unwrap().to_owned()
    }

    async fn get(&self, session: &str, last: Option<&str>) -> Response {
        let mut request =
            Client::new().get(format!("{}/mcp", self.url)).header("accept", "text/event-stream");
        request = request.header("authorization", "Bearer ann").header("mcp-session-id", session);
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        tokio::time::timeout(SOON, request.send()).await.expect("silence").unwrap()
    }
}

async fn body(response: Response) -> Value {
    let text = tokio::time::timeout(SOON, response.text()).await.expect("silence").unwrap();
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"))
}

/// The events of a stream that ends.
async fn events(response: Response) -> Vec<(String, String)> {
    let text = tokio::time::timeout(SOON, response.text()).await.expect("silence").unwrap();
    let field = |event: &str, name: &str| {
        let prefix = format!("{name}: ");
        event.lines().find_map(|line| line.strip_prefix(&prefix)).unwrap_or_default().to_owned()
    };
    text.split("\n\n")
        .filter(|event| !event.is_empty())
        .map(|event| (field(event, "id"), field(event, "data")))
        .collect()
}

#[tokio::test]
async fn a_session_lives_from_initialize_to_delete() {
    let mut served = served(Limits::default()).await;
    let session = served.initialize().await;
    let inside = || PostOptions { session: Some(&session), ..OWNER };
    let answer = served.post(inside(), &request(2, "whoami")).await;
    assert_eq!(body(answer).await["result"], json!({"principal": "ann", "session": true}));
    let notified = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(served.post(inside(), &notified).await.status(), StatusCode::ACCEPTED);
    assert_eq!(next(&mut served.seen).await, "notifications/initialized from ann");
    let deleted = Client::new()
        .delete(format!("{}/mcp", served.url))
        .header("authorization", "Bearer ann")
        .header("mcp-session-id", &session)
        .send()
        .await
        .unwrap();
    assert_eq!(deleted.status(), StatusCode::NO_CONTENT);
    assert_eq!(next(&mut served.seen).await, "ann is gone");
    assert_eq!(served.post(inside(), &request(3, "whoami")).await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_session_is_its_owners_alone() {
    let served = served(Limits::default()).await;
    let session = served.initialize().await;
    let other = PostOptions { token: Some("bob"), session: Some(&session), headers: &[] };
    let answer = served.post(other, &request(2, "whoami")).await;
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
    assert_eq!(body(answer).await["id"], 2);
    for method in [reqwest::Method::GET, reqwest::Method::DELETE] {
        let other = Client::new().request(method.clone(), format!("{}/mcp", served.url));
        let other = other.header("authorization", "Bearer bob").header("mcp-session-id", &session);
        let answer = other.header("accept", "text/event-stream").send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{method}");
    }
    let inside = PostOptions { session: Some(&session), ..OWNER };
    assert_eq!(served.post(inside, &request(2, "whoami")).await.status(), StatusCode::OK);
    assert_eq!(served.post(OWNER, &request(3, "whoami")).await.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_request_without_a_token_is_rejected() {
    let served = served(Limits::default()).await;
    let nobody = PostOptions { token: None, session: None, headers: &[] };
    let answer = served.post(nobody, &request(1, "initialize")).await;
    assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
    let challenge = answer.headers()["www-authenticate"].to_str().unwrap();
    let metadata = challenge.split('"').nth(1).unwrap();
    let metadata_body = body(Client::new().get(metadata).send().await.unwrap()).await;
    assert_eq!(metadata_body["resource"], format!("{}/mcp", served.url));
    let narrow = PostOptions { token: Some("narrow"), session: None, headers: &[] };
    let answer = served.post(narrow, &request(1, "initialize")).await;
    assert_eq!(answer.status(), StatusCode::FORBIDDEN);
    assert!(answer.headers()["www-authenticate"].to_str().unwrap().contains("insufficient_scope"));
}

#[tokio::test]
async fn a_foreign_name_or_page_is_turned_away_before_its_token_is_looked_at() {
    let served = served(Limits::default()).await;
    for header in [("host", "evil.example.com"), ("origin", "http://evil.example.com")] {
        let wanted = PostOptions { token: None, session: None, headers: &[header] };
        let answer = served.post(wanted, &request(1, "initialize")).await;
        assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{header:?}");
    }
}

#[tokio::test]
async fn progress_streams_in_order_and_a_broken_stream_is_taken_up() {
    let served = served(Limits::default()).await;
    let session = served.initialize().await;
    let inside = PostOptions { session: Some(&session), ..OWNER };
    let stream = served.post(inside, &request(2, "count")).await;
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    let events_seen = events(stream).await;
    // The first event has an id and no data.
    assert_eq!(events_seen[0].1, "");
    let data: Vec<Value> =
        events_seen[1..].iter().map(|(_, data)| serde_json::from_str(data).unwrap()).collect();
    assert_eq!(data.len(), 1001);
    assert!(data[..1000].iter().zip(0..).all(|(event, number)| event["params"]["progress"] == number));
    assert_eq!(data[1000]["result"]["counted"], 1000);
    let again = events(served.get(&session, Some(&events_seen[990].0)).await).await;
    assert_eq!(again, events_seen[991..]);
    for nowhere in ["7", "9-1", "1-x", "1-18446744073709551615", "18446744073709551615-0"] {
        let answer = served.get(&session, Some(nowhere)).await;
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{nowhere}");
    }
}

#[tokio::test]
async fn a_released_stream_ends_and_the_answer_waits() {
    let served = served(Limits::default()).await;
    let session = served.initialize().await;
    let inside = PostOptions { session: Some(&session), ..OWNER };
    let first = events(served.post(inside, &request(2, "release")).await).await;
    assert_eq!(first.len(), 1, "{first:?}");
    let rest = events(served.get(&session, Some(&first[0].0)).await).await;
    let answer: Value = serde_json::from_str(&rest[0].1).unwrap();
    assert_eq!(answer["result"]["released"], true);
}

#[tokio::test]
async fn a_stream_that_cannot_be_taken_up_is_not_released() {
    let served = served(Limits::default()).await;
    assert_eq!(body(served.modern(1, "release").await).await["result"]["released"], true);
    // Older hosts receive no event id to resume from.
    let old = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}});
    let await_result = served.post(OWNER, &old).await;
    let session = await_result.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let inside = PostOptions { session: Some(&session), ..OWNER };
    assert_eq!(body(served.post(inside, &request(2, "release")).await).await["result"]["released"], true);
}

#[tokio::test]
async fn a_host_that_hangs_up_in_the_stateless_era_has_cancelled() {
    let mut served = served(Limits::default()).await;
    let url = format!("{}/mcp", served.url);
    let hanging = tokio::spawn(async move {
        let request = Client::new().post(url).header("accept", ACCEPT).header("authorization", "Bearer ann");
        let request = request.header("mcp-protocol-version", "2026-07-28").header("mcp-method", "wait");
        request.header("content-type", "application/json").body(modern(1, "wait").to_string()).send().await
    });
    assert_eq!(next(&mut served.seen).await, "waiting");
    hanging.abort();
    assert_eq!(next(&mut served.seen).await, "unwanted, cancelled: true");
}

#[tokio::test]
async fn the_stateless_era_says_what_is_wrong() {
    let served = served(Limits::default()).await;
    assert_eq!(body(served.modern(1, "whoami").await).await["result"]["session"], false);
    assert_eq!(served.modern(2, "nothing").await.status(), StatusCode::NOT_FOUND);
    let headers: [(&[(&str, &str)], i64); 4] = [
        (&[("mcp-method", "whoami")], code::HEADER_MISMATCH),
        (&[("mcp-protocol-version", "2026-07-28")], code::HEADER_MISMATCH),
        (&[("mcp-protocol-version", "2026-07-28"), ("mcp-method", "WHOAMI")], code::HEADER_MISMATCH),
        (&[("mcp-protocol-version", "2025-11-25"), ("mcp-method", "whoami")], code::HEADER_MISMATCH),
    ];
    for (headers, expected) in headers {
        let answer = served.post(PostOptions { headers, ..OWNER }, &modern(3, "whoami")).await;
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{headers:?}");
        let answer = body(answer).await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(3), &json!(expected)), "{headers:?}");
    }
}

#[tokio::test]
async fn what_is_too_large_or_no_json_is_refused() {
    let served = served(Limits { message_max_bytes: 1000, ..Limits::default() }).await;
    let large = json!({"jsonrpc": "2.0", "id": 1, "method": "echo", "params": {"x": "y".repeat(5000)}});
    assert_eq!(served.post(OWNER, &large).await.status(), StatusCode::PAYLOAD_TOO_LARGE);
    let answer = served.post(OWNER, &json!(7)).await;
    assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
    let typed = Client::new().post(format!("{}/mcp", served.url)).header("authorization", "Bearer ann");
    let answer = typed.header("content-type", "text/plain").body("{}").send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
}

#[tokio::test]
async fn an_unused_session_is_closed() {
    let limits = Limits { session_idle_timeout: Duration::from_millis(1), ..Limits::default() };
    let mut served = served(limits).await;
    let session = served.initialize().await;
    assert_eq!(next(&mut served.seen).await, "ann is gone");
    let inside = PostOptions { session: Some(&session), ..OWNER };
    assert_eq!(served.post(inside, &request(2, "whoami")).await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_session_whose_host_left_in_the_middle_of_a_call_is_closed() {
    let limits = Limits { session_idle_timeout: Duration::from_secs(2), ..Limits::default() };
    let mut served = served(limits).await;
    let session = served.initialize().await;
    let url = format!("{}/mcp", served.url);
    let hanging = tokio::spawn(async move {
        let request = Client::new().post(url).header("accept", ACCEPT).header("authorization", "Bearer ann");
        let request = request.header("mcp-session-id", session).header("content-type", "application/json");
        request.body(super::request(2, "wait").to_string()).send().await
    });
    assert_eq!(next(&mut served.seen).await, "waiting");
    hanging.abort();
    let mut both = [next(&mut served.seen).await, next(&mut served.seen).await];
    both.sort();
    assert_eq!(both, ["ann is gone", "unwanted, cancelled: true"]);
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let served = served(Limits { body_timeout: Duration::from_millis(50), ..Limits::default() }).await;
    let address = served.url.strip_prefix("http://").unwrap();
    let mut socket = tokio::net::TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer ann\r\n\
         content-type: application/json\r\ncontent-length: 100\r\n\r\n{{"
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut answer = vec![0; 12];
    tokio::time::timeout(SOON, socket.read_exact(&mut answer)).await.expect("silence").unwrap();
    assert_eq!(answer, b"HTTP/1.1 408");
}

#[tokio::test]
async fn an_unknown_version_is_refused_in_a_session_too() {
    let served = served(Limits::default()).await;
    let session = served.initialize().await;
    let headers = [("mcp-protocol-version", "1999-01-01")];
    let wanted = || PostOptions { session: Some(&session), headers: &headers, ..OWNER };
    let on_notification = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let answer = served.post(wanted(), &on_notification).await;
    assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
    assert_eq!(body(answer).await["error"]["code"], code::UNSUPPORTED_VERSION);
    assert_eq!(served.post(wanted(), &request(2, "whoami")).await.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn sessions_are_counted() {
    let served = served(Limits { sessions_max: 1, ..Limits::default() }).await;
    served.initialize().await;
    let answer = served.post(OWNER, &request(1, "initialize")).await;
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn when_the_server_ends_streams_end_and_calls_finish() {
    let mut served = served(Limits::default()).await;
    let session = served.initialize().await;
    let listening = served.get(&session, None).await;
    let url = format!("{}/mcp", served.url);
    let calling = tokio::spawn(async move {
        let request = Client::new().post(url).header("accept", ACCEPT).header("authorization", "Bearer ann");
        let request = request.header("mcp-protocol-version", "2026-07-28").header("mcp-method", "wait");
        request.header("content-type", "application/json").body(modern(1, "wait").to_string()).send().await
    });
    assert_eq!(next(&mut served.seen).await, "waiting");
    served.switch.cancel();
    assert_eq!(body(calling.await.unwrap().unwrap()).await["result"]["waited"], true);
    assert!(events(listening).await.is_empty());
    tokio::time::timeout(SOON, served.done).await.expect("it never ended").unwrap().unwrap();
}

#[tokio::test]
async fn a_batch_is_answered_on_one_stream() {
    let served = served(Limits::default()).await;
    let session = served.initialize().await;
    let inside = PostOptions { session: Some(&session), ..OWNER };
    let batch = json!([request(2, "whoami"), request(3, "refuse")]);
    let answers = events(served.post(inside, &batch).await).await;
    let mut ids: Vec<i64> = answers
        .iter()
        .filter(|(_, data)| !data.is_empty())
        .map(|(_, data)| serde_json::from_str::<Value>(data).unwrap()["id"].as_i64().unwrap())
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, [2, 3]);
}

#[tokio::test]
async fn an_answer_is_known_to_be_written_as_a_body_and_on_a_stream() {
    let mut served = served(Limits::default()).await;
    let session = served.initialize().await;
    let wanted = || PostOptions { session: Some(&session), ..OWNER };
    let mut call = request(2, "written");
    assert_eq!(body(served.post(wanted(), &call).await).await["id"], 2);
    assert_eq!(next(&mut served.seen).await, "written");
    call["params"] = json!({});
    assert!(events(served.post(wanted(), &call).await).await.len() >= 2, "a notice and the answer");
    assert_eq!(next(&mut served.seen).await, "written");
}

const REVOKED: PostOptions<'static> = PostOptions { token: Some("revoked"), ..OWNER };

#[tokio::test]
async fn a_revoked_token_ends_its_session_and_the_calls_in_it() {
    let mut served = served(Limits::default()).await;
    let response = served.post(REVOKED, &request(1, "initialize")).await;
    let session = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let inside = || PostOptions { session: Some(&session), ..REVOKED };
    let calling = served.post(inside(), &request(2, "wait")).await;
    served.until("unwanted, cancelled: true").await;
    assert!(events(calling).await.iter().all(|(_, data)| data.is_empty()), "a cancelled call has no answer");
    assert_eq!(served.post(inside(), &request(3, "whoami")).await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_revoked_token_ends_its_requests_without_a_session() {
    let mut served = served(Limits::default()).await;
    let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "wait")];
    let calling = served.post(PostOptions { headers: &headers, ..REVOKED }, &modern(1, "wait")).await;
    assert_eq!(next(&mut served.seen).await, "waiting");
    assert_eq!(next(&mut served.seen).await, "unwanted, cancelled: true");
    assert!(events(calling).await.is_empty());
}

#[tokio::test]
async fn answers_and_notices_pass_when_the_bytes_of_their_token_are_used_up() {
    let fill = |id: u64, method: &str| {
        let mut call = request(id, method);
        call["params"] = json!({"x": "y".repeat(100_000)});
        call
    };
    // One call uses the whole budget, to the byte.
    let in_flight_each_max_bytes = fill(2, "wait").to_string().len();
    let mut served = served(Limits { in_flight_each_max_bytes, ..Limits::default() }).await;
    let session = served.initialize().await;
    let inside = || PostOptions { session: Some(&session), ..OWNER };
    let stream = served.post(inside(), &fill(2, "wait")).await;
    assert_eq!(next(&mut served.seen).await, "waiting");
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}});
    for refused in [
        request(3, "whoami"),
        json!([cancelled, request(3, "whoami")]),
        // A larger message is rejected before it is read.
        json!({"jsonrpc": "2.0", "method": "notifications/x", "params": {"x": "y".repeat(64 * 1024)}}),
    ] {
        let answer = served.post(inside(), &refused).await;
        assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
        assert!(answer.text().await.unwrap().contains("too large in total"), "it says why");
    }
    assert_eq!(served.post(inside(), &cancelled).await.status(), StatusCode::ACCEPTED);
    served.until("unwanted, cancelled: true").await;
    drop(stream);
    eventually(async || served.post(inside(), &request(3, "whoami")).await.status() == StatusCode::OK).await;
    // The answer to a server request of such a call.
    let mut call = fill(4, "ask");
    call["params"]["x"] = json!("y".repeat(100_001));
    let mut asking = None;
    eventually(async || {
        asking = Some(served.post(inside(), &call).await);
        asking.as_ref().is_some_and(|asking| asking.status() == StatusCode::OK)
    })
    .await;
    let mut asking = asking.unwrap();
    let mut received = String::new();
    while !received.contains("elicitation/create") || !received.ends_with("\n\n") {
        let chunk = tokio::time::timeout(SOON, asking.chunk()).await.expect("silence").unwrap().unwrap();
        received += std::str::from_utf8(&chunk).unwrap();
    }
    let question = received.lines().filter_map(|line| line.strip_prefix("data: ")).next_back().unwrap();
    let question: Value = serde_json::from_str(question).unwrap();
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"name": "Ann"}});
    assert_eq!(served.post(inside(), &request(5, "whoami")).await.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(served.post(inside(), &answer).await.status(), StatusCode::ACCEPTED);
    let replayed = events(asking).await;
    assert!(replayed.last().unwrap().1.contains(r#""answer":{"name":"Ann"}"#), "{replayed:?}");
}
