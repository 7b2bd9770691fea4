//! A service that asks stateless hosts for input: with its responses, over several requests.

use std::future::ready;
use std::sync::Arc;

use embody_wire::message::{Notification, Outcome, Request};
use embody_wire::server::http::{Options, OriginGuard};
use embody_wire::server::{
    AuthError, BoxFuture, Call, CancellationToken, Claim, Credentials, Host, HostResponse, MultiRoundService,
    ServerRequest, Service, code, failure,
};
use embody_wire::{Limits, Response, Secret};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;

use super::{Seen, next, raw};

/// Asks as often as the call says, and returns the answers.
struct Curious {
    seen: mpsc::UnboundedSender<String>,
}

impl MultiRoundService<String> for Curious {
    fn suspend<'a>(
        &'a self,
        _: &'a String,
        _: &'a str,
        _: Option<&'a RawValue>,
    ) -> BoxFuture<'a, Result<(), Outcome>> {
        Box::pin(ready(Ok(())))
    }

    fn claim<'a>(
        &'a self,
        _: &'a Host<String>,
        _: &'a Request,
        _: &'a str,
    ) -> BoxFuture<'a, Result<Claim, Outcome>> {
        Box::pin(ready(Ok(Claim::Here)))
    }

    fn sign_state<'a>(
        &'a self,
        _: &'a Host<String>,
        _: &'a Request,
        ticket: &'a str,
    ) -> BoxFuture<'a, Result<String, Outcome>> {
        Box::pin(ready(Ok(format!("sealed {ticket}"))))
    }

    fn verify_state<'a>(
        &'a self,
        _: &'a Host<String>,
        _: &'a Request,
        state: &'a str,
    ) -> BoxFuture<'a, Result<String, Outcome>> {
        let ticket = state.strip_prefix("sealed ").map(str::to_owned);
        Box::pin(ready(ticket.ok_or_else(|| failure(code::INVALID_PARAMS, "not sealed"))))
    }
}

impl Service for Curious {
    type Principal = String;

    async fn authenticate(&self, credentials: Credentials) -> Result<String, AuthError> {
        let token = credentials.bearer.map(|token| token.expose().to_owned());
        token.ok_or_else(|| AuthError::Unknown("a token is needed".into()))
    }

    async fn are_valid(&self, bearers: &[Secret]) -> Vec<bool> {
        bearers.iter().map(|bearer| !bearer.expose().starts_with("revoked")).collect()
    }

    fn multi_round(&self) -> Option<&dyn MultiRoundService<String>> {
        Some(self)
    }

    async fn call(&self, call: Call<String>) -> Outcome {
        let params: Value = serde_json::from_str(call.request.params.as_deref().unwrap().get()).unwrap();
        let seen = self.seen.clone();
        call.on_flushed(move || drop(seen.send("written".into())));
        let mut told = Vec::new();
        for round in params["arguments"]["rounds"].as_array().cloned().unwrap_or_default() {
            let progress = Some(raw(&json!({"progress": told.len()})));
            call.notify(Notification { method: "notifications/progress".into(), params: progress }).await;
            let question = |key: &Value| ServerRequest {
                key: key.as_str().map(str::to_owned),
                method: "elicitation/create".into(),
                params: Some(raw(&json!({"message": key}))),
                resume_data: None,
                must_be_seen: key == "approval",
            };
            let questions = round.as_array().unwrap().iter().map(question).collect();
            for answer in call.ask_all(questions).await {
                told.push(match answer {
                    Ok(HostResponse { outcome: Outcome::Result(answer), .. }) => {
                        serde_json::from_str(answer.get()).unwrap()
                    }
                    Ok(HostResponse { outcome: Outcome::Error(_), .. }) => json!("error"),
                    Err(error) => {
                        self.seen.send(error.to_string()).unwrap();
                        json!("nobody")
                    }
                });
            }
        }
        Outcome::Result(raw(&json!({ "told": told })))
    }
}

fn asked(id: u64, rounds: &Value, more: &Value) -> Value {
    let mut params = json!({"name": "t", "arguments": {"rounds": rounds}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    }});
    for (name, value) in more.as_object().unwrap() {
        params[name] = value.clone();
    }
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

struct World {
    url: String,
    http: reqwest::Client,
    seen: Seen,
    _switch: CancellationToken,
}

impl World {
    async fn new() -> Self {
        Self::with(Limits::default()).await
    }

    async fn with(limits: Limits) -> Self {
        let (seen, test) = mpsc::unbounded_channel();
        let ending = CancellationToken::new();
        let switch = ending.clone();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let options = Options { origin_guard: OriginGuard::default(), limits };
        let router = embody_wire::server::http::router(Arc::new(Curious { seen }), options, ending.clone());
        tokio::spawn(async move {
            embody_wire::server::http::serve(listener, router, &Limits::default(), ending).await;
        });
        Self {
            url,
            http: reqwest::Client::builder().tls_certs_only([]).no_proxy().build().unwrap(),
            seen: test,
            _switch: switch,
        }
    }

    fn post(&self, token: &str, message: &Value) -> reqwest::RequestBuilder {
        self.http
            .post(&self.url)
            .bearer_auth(token)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", "t")
            .body(message.to_string())
    }

    /// The response to a request, as a body or as an event stream.
    async fn answer(&self, token: &str, message: &Value) -> Value {
        let text = self.post(token, message).send().await.unwrap().text().await.unwrap();
        let last = text.lines().filter_map(|line| line.strip_prefix("data: ")).next_back().unwrap_or(&text);
        serde_json::from_str(last).unwrap()
    }
}

#[tokio::test]
async fn one_call_goes_on_over_several_requests() {
    let mut world = World::new().await;
    let rounds = json!([["name", "age"], ["name"], [null]]);
    let first = world.answer("ann", &asked(1, &rounds, &json!({}))).await["result"].take();
    assert_eq!(first["resultType"], "input_required");
    let keys = |result: &Value| {
        let asked: Vec<String> = result["inputRequests"].as_object().unwrap().keys().cloned().collect();
        asked
    };
    assert_eq!(keys(&first), ["age", "name"]);
    assert_eq!(
        first["inputRequests"]["age"],
        json!({"method": "elicitation/create", "params": {"message": "age"}})
    );
    // Unanswered requests are asked again; unknown answers are ignored.
    let some = json!({"requestState": first["requestState"], "inputResponses": {"age": 7, "other": 1}});
    let second = world.answer("ann", &asked(2, &rounds, &some)).await["result"].take();
    assert_eq!(keys(&second), ["name"]);
    assert_ne!(second["requestState"], first["requestState"]);
    let rest = json!({"requestState": second["requestState"], "inputResponses": {"name": "Ann"}});
    let third = world.answer("ann", &asked(3, &rounds, &rest)).await["result"].take();
    let again = json!({"requestState": third["requestState"], "inputResponses": {"name": "Ann again"}});
    let fourth = world.answer("ann", &asked(4, &rounds, &again)).await["result"].take();
    let [key] = &*keys(&fourth) else { panic!("{fourth}") };
    let last = json!({"requestState": fourth["requestState"], "inputResponses": {key.as_str(): true}});
    assert!(world.seen.try_recv().is_err(), "nothing but the call's own answer counts as that");
    let over = world.answer("ann", &asked(5, &rounds, &last)).await;
    assert_eq!(over["result"]["told"], json!(["Ann", 7, "Ann again", true]));
    assert_eq!(next(&mut world.seen).await, "written");
    // Every state is valid once, and cannot be forged.
    for state in [&first["requestState"], &fourth["requestState"], &json!("sealed x"), &json!("x")] {
        let used = json!({"requestState": state, "inputResponses": {}});
        assert_eq!(world.answer("ann", &asked(6, &rounds, &used)).await["error"]["code"], -32602);
    }
}

#[tokio::test]
async fn what_is_brought_back_and_cannot_be_read_is_no_new_call() {
    let mut world = World::new().await;
    let rounds = json!([["name"]]);
    let asks = world.answer("ann", &asked(1, &rounds, &json!({}))).await["result"].take();
    let state = &asks["requestState"];
    for brought in [
        json!({"requestState": state, "inputResponses": []}),
        json!({"requestState": state, "inputResponses": "name"}),
        json!({"requestState": [state], "inputResponses": {"name": "Ann"}}),
        json!({"requestState": 7}),
    ] {
        let refused = world.answer("ann", &asked(2, &rounds, &brought)).await;
        assert_eq!(refused["error"]["code"], -32602, "{brought}: {refused}");
    }
    // The call still waits, and was made once.
    let answered = json!({"requestState": state, "inputResponses": {"name": "Ann"}});
    assert_eq!(world.answer("ann", &asked(3, &rounds, &answered)).await["result"]["told"], json!(["Ann"]));
    assert_eq!(next(&mut world.seen).await, "written");
    assert!(world.seen.try_recv().is_err());
}

#[tokio::test]
async fn what_a_person_must_see_is_not_answered_in_advance() {
    let world = World::new().await;
    let early = json!({"inputResponses": {"approval": {"action": "accept"}}});
    let asks = world.answer("ann", &asked(1, &json!([["approval"]]), &early)).await["result"].take();
    assert_eq!(asks["resultType"], "input_required", "{asks}");
}

#[tokio::test]
async fn a_call_is_resumed_only_by_its_owner() {
    let world = World::new().await;
    let rounds = json!([["name"]]);
    let asks = world.answer("ann", &asked(1, &rounds, &json!({}))).await["result"].take();
    let answered = json!({"requestState": asks["requestState"], "inputResponses": {"name": "Eve"}});
    assert_eq!(world.answer("eve", &asked(1, &rounds, &answered)).await["error"]["code"], -32602);
    let over = world.answer("ann", &asked(1, &rounds, &answered)).await;
    assert_eq!(over["result"]["told"], json!(["Eve"]), "it was not hers to end");
}

#[tokio::test]
async fn what_is_answered_in_advance_is_not_asked() {
    let world = World::new().await;
    let rounds = json!([["name"], ["name"]]);
    let early = json!({"inputResponses": {"name": "Ann", "other": 1}});
    let asks = world.answer("ann", &asked(1, &rounds, &early)).await["result"].take();
    let answered = json!({"requestState": asks["requestState"], "inputResponses": {"name": "again"}});
    let over = world.answer("ann", &asked(2, &rounds, &answered)).await;
    assert_eq!(over["result"]["told"], json!(["Ann", "again"]), "an answer is used once");
}

#[tokio::test]
async fn a_call_that_waits_for_its_host_ends_when_its_token_is_revoked() {
    let mut world = World::new().await;
    let (rounds, none) = (json!([["name"]]), json!({}));
    let kept = world.answer("ann", &asked(1, &rounds, &none)).await["result"].take();
    let lost = world.answer("revoked", &asked(1, &rounds, &none)).await["result"].take();
    assert_eq!(
        (&kept["resultType"], &lost["resultType"]),
        (&json!("input_required"), &json!("input_required"))
    );
    assert_eq!(next(&mut world.seen).await, "the host has disconnected");
    let brings =
        |asks: &Value| json!({"requestState": asks["requestState"], "inputResponses": {"name": "Ann"}});
    assert_eq!(world.answer("revoked", &asked(2, &rounds, &brings(&lost))).await["error"]["code"], -32602);
    assert_eq!(
        world.answer("ann", &asked(2, &rounds, &brings(&kept))).await["result"]["told"],
        json!(["Ann"])
    );
}

#[tokio::test]
async fn the_bytes_of_a_call_that_waits_for_its_host_count_until_it_is_over() {
    let limits =
        Limits { in_flight_max_bytes: 300_000, in_flight_each_max_bytes: 150_000, ..Limits::default() };
    let world = World::with(limits).await;
    let (rounds, large) = (json!([["name"]]), json!({"more": "y".repeat(100_000)}));
    let asks = world.answer("ann", &asked(1, &rounds, &large)).await["result"].take();
    assert_eq!(asks["resultType"], "input_required");
    let refused = world.answer("ann", &asked(2, &json!([]), &large)).await;
    assert!(refused["error"]["message"].to_string().contains("too large in total"), "{refused}");
    let other = world.answer("bob", &asked(2, &json!([]), &large)).await;
    assert_eq!(other["result"]["told"], json!([]), "others are not held up");
    let answered = json!({"requestState": asks["requestState"], "inputResponses": {"name": "Ann"}});
    let over = world.answer("ann", &asked(3, &rounds, &answered)).await;
    assert_eq!(over["result"]["told"], json!(["Ann"]));
    let again = world.answer("ann", &asked(4, &json!([]), &large)).await;
    assert_eq!(again["result"]["told"], json!([]), "its bytes are given back");
}

#[tokio::test]
async fn on_a_pipe_too_and_its_end_ends_what_waits() {
    let (seen, mut test) = mpsc::unbounded_channel();
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let ending = CancellationToken::new();
    let serving = tokio::spawn(embody_wire::server::lines::serve(
        Arc::new(Curious { seen }),
        "ann".to_owned(),
        tokio::io::split(theirs),
        Limits::default(),
        ending,
    ));
    let (input, mut output) = tokio::io::split(ours);
    let mut lines = BufReader::new(input).lines();
    let rounds = json!([["name"]]);
    let mut state = Value::Null;
    for (id, more) in [(1, json!({})), (2, json!({}))] {
        output.write_all(format!("{}\n", asked(id, &rounds, &more)).as_bytes()).await.unwrap();
        loop {
            let line = lines.next_line().await.unwrap().unwrap();
            if let Ok(Response { outcome: Outcome::Result(result), .. }) = answer(&line) {
                state = serde_json::from_str::<Value>(result.get()).unwrap()["requestState"].take();
                break;
            }
        }
    }
    let answered = json!({"requestState": state, "inputResponses": {"name": "Ann"}});
    output.write_all(format!("{}\n", asked(3, &rounds, &answered)).as_bytes()).await.unwrap();
    let line = lines.next_line().await.unwrap().unwrap();
    assert!(line.contains("Ann"), "{line}");
    assert_eq!(next(&mut test).await, "written");
    drop(output);
    drop(lines);
    // The first call still waits; its host cannot resume it.
    assert_eq!(next(&mut test).await, "the host has disconnected");
    serving.await.unwrap().unwrap();
}

fn answer(line: &str) -> Result<Response, ()> {
    match embody_wire::message::parse_frame(line.as_bytes(), &Limits::default()).map_err(|_| ())?.pop() {
        Some(embody_wire::Message::Response(response)) => Ok(response),
        _ => Err(()),
    }
}
