//! Two `embody up` on one PostgreSQL serve one host, request by request, in both eras, while either of them is killed.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use super::conformance::{READS, fixture};
use super::host::READING_TIME;
use super::setup::{body, decision, remote_body};
use super::unruly::Unruly;
use crate::peers::Listening;
use crate::support::app::eventually;
use crate::support::served::{Reading, Served, approving_token, begin, token};
use crate::support::stores::database;
use crate::support::world::World;

/// Replicas with a workspace each, and one body that both start for themselves.
struct Scene {
    worlds: Vec<World>,
    ups: Vec<Served>,
    desk: Unruly,
    token: String,
}

impl Scene {
    fn new() -> Self {
        Self::with("")
    }

    /// With more in their configuration.
    fn with(more: &str) -> Self {
        let url = database();
        let log = World::new();
        let desk = Unruly::new(log.outside("desk.log"));
        let store = format!("[store]\nurl = \"{url}\"\ndirect_url = \"{url}\"\n");
        let world = || {
            let world = World::with_body("Be honest. The rules of the house.");
            world.file("embody.toml", format!("{store}{}{more}", body("desk", desk.words(), "")));
            world
        };
        let mut worlds = vec![world(), world()];
        let token = approving_token(&worlds[0]);
        let ups = worlds.iter().map(Served::start).collect();
        worlds.push(log);
        Self { worlds, ups, desk, token }
    }

    /// Ends one as nothing can prepare for, and starts another in its place.
    fn kill(&mut self, which: usize) {
        self.ups[which].signal("-9");
        self.ups[which] = Served::start(&self.worlds[which]);
    }

    fn post(&self, which: usize, headers: &[(&str, &str)], message: &Value) -> Reading {
        post(&self.ups[which].host, &self.token, headers, message)
    }

    fn executed(&self, tool: &str) -> usize {
        self.desk.calls(tool).len()
    }
}

fn post(host: &str, token: &str, headers: &[(&str, &str)], message: &Value) -> Reading {
    let bearer = format!("Bearer {token}");
    let mut all = vec![("authorization", &*bearer), ("accept", "application/json, text/event-stream")];
    all.extend(headers);
    begin(host, "POST /mcp", &all, Some(message))
}

fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// The messages of an answer, in whichever form it comes; `on` answers what the server asks meanwhile.
fn messages(mut reading: Reading, mut on: impl FnMut(&Value)) -> Vec<Value> {
    let mut all = Vec::new();
    if !reading.is_events() {
        let answer = reading.whole();
        assert_eq!(answer.status, 200, "{answer:?}");
        return vec![answer.json()];
    }
    while let Some(message) = reading.message() {
        if message["method"].is_string() && message["id"] != Value::Null {
            on(&message);
        }
        all.push(message);
    }
    all
}

/// The answer to a request.
fn answer(reading: Reading) -> Value {
    messages(reading, |question| panic!("{question}")).pop().expect("an answer")
}

/// A host with a session, which sends each request to the other replica than the one before.
struct Host<'a> {
    scene: &'a Scene,
    session: String,
    last: u64,
}

impl<'a> Host<'a> {
    fn initialize(scene: &'a Scene, at: usize) -> Self {
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "host", "version": "1"}});
        let reading = scene.post(at, &[], &request(1, "initialize", &hello));
        let session = reading.header("mcp-session-id").expect("a session").to_owned();
        let initialized = answer(reading);
        assert_eq!(initialized["result"]["protocolVersion"], "2025-11-25", "{initialized}");
        Self { scene, session, last: 1 }
    }

    fn headers(&self) -> [(&str, &str); 2] {
        [("mcp-session-id", &self.session), ("mcp-protocol-version", "2025-11-25")]
    }

    fn begin(&mut self, at: usize, method: &str, params: &Value) -> Reading {
        self.last += 1;
        self.scene.post(at, &self.headers(), &request(self.last, method, params))
    }

    fn call(&mut self, at: usize, tool: &str, arguments: &Value) -> Value {
        let answered = answer(self.begin(at, "tools/call", &json!({"name": tool, "arguments": arguments})));
        answered["result"].clone()
    }
}

fn is_done(result: &Value, tool: &str) -> bool {
    result["content"][0]["text"] == format!("{tool} is done")
}

// spec: N-12
#[test]
fn a_session_continues_on_every_replica() {
    let mut scene = Scene::new();
    let session = {
        let mut host = Host::initialize(&scene, 0);
        let listed = answer(host.begin(1, "tools/list", &json!({})));
        assert!(listed["result"]["tools"].to_string().contains("send_note"), "{listed}");
        for round in 0..4 {
            assert!(is_done(&host.call(round % 2, "look", &json!({})), "look"));
        }
        // What one has shown, the other soon knows that the host has read.
        assert_eq!(decision(&host.call(0, "note", &json!({}))), "bounce");
        eventually("the note", || {
            let result = host.call(1, "note", &json!({}));
            assert!(is_done(&result, "note") || decision(&result) == "bounce", "{result}");
            is_done(&result, "note").then_some(())
        });
        assert!(is_done(&host.call(0, "note", &json!({})), "note"), "the model repeats what was bounced");
        // The question of one is answered at the other.
        let call = json!({"name": "send_note", "arguments": {"text": "hi"}});
        let (reading, headers, scene) = (host.begin(0, "tools/call", &call), host.headers(), host.scene);
        let said = messages(reading, |question| {
            assert_eq!(question["method"], "elicitation/create");
            // A person reads it.
            thread::sleep(super::host::READING_TIME);
            let yes = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {}}});
            assert_eq!(scene.post(1, &headers, &yes).whole().status, 202);
        });
        assert!(is_done(&said.last().unwrap()["result"], "send_note"), "{said:?}");
        assert_eq!(scene.executed("send_note"), 1);
        // What is cancelled at one ends at the other.
        let call = json!({"name": "look", "arguments": {"trick": "hang"}});
        let (before, token, at) = (scene.executed("look"), scene.token.clone(), scene.ups[0].host.clone());
        host.last += 1;
        let headers: Vec<(String, String)> =
            host.headers().iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let message = request(host.last, "tools/call", &call);
        let hanging = thread::spawn(move || {
            let headers: Vec<(&str, &str)> =
                headers.iter().map(|(name, value)| (&**name, &**value)).collect();
            post(&at, &token, &headers, &message).status
        });
        eventually("the call", || (scene.executed("look") > before).then_some(()));
        let gone = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": host.last}});
        assert_eq!(scene.post(1, &host.headers(), &gone).whole().status, 202);
        eventually("the end of the call", || {
            let received = scene.desk.of_kind("notification");
            received.iter().any(|one| one["method"] == "notifications/cancelled").then_some(())
        });
        assert_eq!(hanging.join().unwrap(), 200);
        host.session
    };
    // Either is killed, and another takes its place: the host notices nothing.
    scene.kill(0);
    let mut host = Host { scene: &scene, session: session.clone(), last: 100 };
    assert!(is_done(&host.call(0, "note", &json!({"text": "after"})), "note"));
    drop(host);
    scene.kill(1);
    let mut host = Host { scene: &scene, session, last: 200 };
    for round in 0..4 {
        assert!(is_done(&host.call(round % 2, "look", &json!({})), "look"));
    }
    // Nobody else has it, and once it is over it is over everywhere.
    let other = token(&scene.worlds[0], "bob", "mcp");
    let list = request(1, "tools/list", &json!({}));
    assert_eq!(post(&scene.ups[0].host, &other, &host.headers(), &list).whole().status, 404);
    let bearer = format!("Bearer {}", scene.token);
    let ended = begin(
        &scene.ups[0].host,
        "DELETE /mcp",
        &[("authorization", &bearer), ("mcp-session-id", &host.session)],
        None,
    );
    assert_eq!(ended.whole().status, 204);
    eventually("the end of the session", || {
        let refused = [0, 1].map(|at| scene.post(at, &host.headers(), &list).whole().status);
        (refused == [404, 404]).then_some(())
    });
}

// spec: N-12
#[test]
fn a_session_and_a_call_that_waits_are_their_tokens_in_every_replica() {
    let scene = Scene::new();
    let mut host = Host::initialize(&scene, 0);
    assert!(is_done(&host.call(0, "look", &json!({})), "look"));
    // The same user with the same rights, and another token.
    let other = approving_token(&scene.worlds[0]);
    let list = request(7, "tools/list", &json!({}));
    for up in &scene.ups {
        assert_eq!(post(&up.host, &other, &host.headers(), &list).whole().status, 404);
    }
    let none = json!({});
    let asks = alone(&scene, 0, "look", &json!({"trick": "elicit"}), &none);
    let answers = answered(&asks, &json!({"name": "Eve"}));
    let headers =
        [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "look")];
    let call = modern(1, "look", &json!({"trick": "elicit"}), &answers);
    for up in &scene.ups {
        let refused = messages(post(&up.host, &other, &headers, &call), |_| {}).pop().unwrap();
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    let reported =
        alone(&scene, 1, "look", &json!({"trick": "elicit"}), &answered(&asks, &json!({"name": "Ann"})));
    assert!(reported["result"].to_string().contains("Ann"), "{reported}");
}

/// The client information that a stateless host sends with every request.
fn meta(capabilities: &Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        "io.modelcontextprotocol/clientInfo": {"name": "host", "version": "1"},
    })
}

/// A call of such a host.
fn modern(id: u64, tool: &str, arguments: &Value, more: &Value) -> Value {
    let mut params =
        json!({"name": tool, "arguments": arguments, "_meta": meta(&json!({"elicitation": {}}))});
    for (name, value) in more.as_object().unwrap() {
        params[name] = value.clone();
    }
    request(id, "tools/call", &params)
}

fn alone(scene: &Scene, at: usize, tool: &str, arguments: &Value, more: &Value) -> Value {
    let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", tool)];
    let said = messages(scene.post(at, &headers, &modern(1, tool, arguments, more)), |_| {});
    said.last().expect("an answer").clone()
}

/// The answer to what a result asks.
fn answered(asks: &Value, content: &Value) -> Value {
    let result = &asks["result"];
    assert_eq!(result["resultType"], "input_required", "{asks}");
    thread::sleep(READING_TIME);
    let keys = result["inputRequests"].as_object().unwrap().keys();
    let answers: serde_json::Map<String, Value> =
        keys.map(|key| (key.clone(), json!({"action": "accept", "content": content}))).collect();
    json!({"requestState": result["requestState"], "inputResponses": answers})
}

// spec: N-10, N-15
#[test]
fn a_stateless_call_continues_on_every_replica() {
    let mut scene = Scene::new();
    let none = json!({});
    assert_eq!(decision(&alone(&scene, 0, "note", &none, &none)["result"]), "bounce");
    assert!(is_done(&alone(&scene, 1, "note", &none, &none)["result"], "note"));
    // One replica's approval decides the call of the other.
    let hi = json!({"text": "hi"});
    let asks = alone(&scene, 0, "send_note", &hi, &none);
    let yes = answered(&asks, &none);
    assert_eq!(alone(&scene, 1, "send_note", &json!({"text": "ho"}), &yes)["error"]["code"], -32602);
    let done = alone(&scene, 1, "send_note", &hi, &yes);
    assert!(is_done(&done["result"], "send_note"), "{done}");
    for at in [0, 1] {
        assert_eq!(
            alone(&scene, at, "send_note", &hi, &yes)["error"]["code"],
            -32602,
            "a state is good once"
        );
    }
    assert_eq!(scene.executed("send_note"), 1);
    // A body with sessions asks in the middle of its call, which waits where it was begun.
    let elicit = json!({"trick": "elicit"});
    let asks = alone(&scene, 0, "look", &elicit, &none);
    let reported = alone(&scene, 1, "look", &elicit, &answered(&asks, &json!({"name": "Ann"})));
    assert!(reported["result"].to_string().contains("Ann"), "{reported}");
    // The replica that asked for approval is killed: nothing was sent, so another can continue.
    let bye = json!({"text": "bye"});
    let asks = alone(&scene, 0, "send_note", &bye, &none);
    scene.kill(0);
    let done = alone(&scene, 1, "send_note", &bye, &answered(&asks, &none));
    assert!(is_done(&done["result"], "send_note"), "{done}");
    assert_eq!(scene.executed("send_note"), 2);
    // The replica that sent a call is killed: its outcome is unknown, and it is not sent again.
    let before = scene.executed("look");
    let asks = alone(&scene, 1, "look", &elicit, &none);
    scene.kill(1);
    let lost = alone(&scene, 0, "look", &elicit, &answered(&asks, &json!({"name": "Ann"})));
    assert!(lost["error"]["message"].as_str().unwrap().contains("outcome is unknown"), "{lost}");
    assert_eq!(scene.executed("look"), before + 1);
}

// spec: N-10
#[test]
fn a_server_without_sessions_is_asked_on_from_another_process() {
    let [program, flag, era] = fixture("stateless");
    let server = Listening::start(Command::new(program).args([&flag, &era, "--listen", "127.0.0.1:0"]));
    let mut scene = Scene::with(&format!("{}{READS}", remote_body("form", &server.url, "")));
    let (tool, none) = ("test_input_required_result_multi_round", json!({}));
    for kills in [false, true] {
        // What the server has learned travels with its own state, inside of ours.
        let mut asks = alone(&scene, 0, tool, &none, &none);
        for (at, content) in [(1, json!({"name": "Ann"})), (0, json!({"color": "red"}))] {
            if kills {
                // Whoever has asked is gone, and nothing of the call with it.
                scene.kill(1 - at);
            }
            asks = alone(&scene, at, tool, &none, &answered(&asks, &content));
        }
        let text = asks["result"]["content"][0]["text"].as_str();
        assert_eq!(text, Some("Multi-round complete for Ann who likes red"), "{asks}");
    }
    // A call that became a task can be polled on every replica.
    let call = json!({"name": "confirm_delete", "arguments": {"filename": "old.txt"}});
    let begun = with_tasks(&scene, 0, "tools/call", &call);
    assert_eq!(begun["result"]["resultType"], "task", "{begun}");
    let task = json!({"taskId": begun["result"]["taskId"]});
    let status = |scene: &Scene, at: usize, status: &str| {
        eventually(status, || {
            let reported = with_tasks(scene, at, "tasks/get", &task);
            (reported["result"]["status"] == status).then_some(reported)
        })
    };
    let asks = status(&scene, 1, "input_required");
    scene.kill(0);
    let keys = asks["result"]["inputRequests"].as_object().unwrap().keys();
    let yes: serde_json::Map<String, Value> = keys
        .map(|key| (key.clone(), json!({"action": "accept", "content": {"confirm": true, "ok": true}})))
        .collect();
    let update = json!({"taskId": task["taskId"], "inputResponses": yes});
    let updated = with_tasks(&scene, 1, "tasks/update", &update);
    assert!(updated["error"].is_null(), "{updated}");
    let over = status(&scene, 0, "completed");
    assert!(over["result"]["result"].to_string().contains("old.txt"), "{over}");
}

/// The requests and responses of a host with tasks.
fn with_tasks(scene: &Scene, at: usize, method: &str, params: &Value) -> Value {
    let mut params = params.clone();
    params["_meta"] = meta(&json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}));
    let name = params["taskId"].as_str().or(params["name"].as_str()).unwrap().to_owned();
    let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", method), ("mcp-name", &*name)];
    let said = messages(scene.post(at, &headers, &request(1, method, &params)), |_| {});
    said.last().expect("an answer").clone()
}

/// One address in front of several: each connection goes to the next of them that is there.
struct Proxy {
    address: String,
    hosts: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    fn start(hosts: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let hosts = Arc::new(Mutex::new(hosts));
        let known = Arc::clone(&hosts);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let server = {
                    let mut hosts = known.lock().unwrap();
                    hosts.rotate_left(1);
                    hosts.iter().find_map(|host| TcpStream::connect(host).ok())
                };
                if let Some(server) = server {
                    join(client, server);
                }
            }
        });
        Self { address, hosts }
    }
}

fn join(client: TcpStream, server: TcpStream) {
    for (mut from, mut to) in [(client.try_clone().unwrap(), server.try_clone().unwrap()), (server, client)] {
        thread::spawn(move || {
            let _ = std::io::copy(&mut from, &mut to);
            let _ = to.shutdown(std::net::Shutdown::Both);
        });
    }
}

/// The status and the result of a call through the proxy; nothing, if the connection broke.
fn through(proxy: &str, scene: &Scene, headers: &[(&str, &str)], message: &Value) -> Option<Value> {
    let mut stream = TcpStream::connect(proxy).ok()?;
    let body = message.to_string();
    let mut head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {proxy}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\n",
        scene.token,
        body.len()
    );
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    stream.write_all(format!("{head}\r\n{body}").as_bytes()).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let start = text.find("{\"jsonrpc\"")?;
    let end = text.rfind('}')?;
    serde_json::from_str(text.get(start..=end)?).ok()
}

// spec: N-12
#[test]
fn without_sessions_a_new_conversation_is_shown_the_contract_again() {
    let scene = Scene::new();
    let note = |at: usize, text: &str| alone(&scene, at, "note", &json!({"text": text}), &json!({}));
    assert_eq!(decision(&note(0, "one")["result"]), "bounce");
    assert!(is_done(&note(0, "one")["result"], "note"), "the same conversation has read it");
    eventually("a write through the other process", || {
        is_done(&note(1, "two")["result"], "note").then_some(())
    });
    // A host may say less about itself here than with its calls.
    let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "server/discover")];
    let discover = request(1, "server/discover", &json!({"_meta": meta(&json!({}))}));
    assert_eq!(scene.post(0, &headers, &discover).whole().status, 200);
    let bounced = note(0, "three");
    assert_eq!(decision(&bounced["result"]), "bounce");
    assert!(bounced.to_string().contains("Session contract."), "{bounced}");
    assert_eq!(decision(&note(1, "four")["result"]), "bounce", "in the other process too");
}

// spec: N-15
#[test]
fn behind_one_address_either_may_be_killed() {
    let mut scene = Scene::new();
    let proxy = Proxy::start(scene.ups.iter().map(|up| up.host.clone()).collect());
    let session = {
        let host = Host::initialize(&scene, 0);
        host.session.clone()
    };
    let in_session = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25")];
    let modern_headers =
        [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "note")];
    let note = |number: u64| json!({"name": "note", "arguments": {"text": number.to_string()}});
    let mut done = Vec::new();
    for number in 0..60 {
        if number % 15 == 7 {
            let which = usize::try_from(number / 15).unwrap() % 2;
            scene.kill(which);
            *proxy.hosts.lock().unwrap() = scene.ups.iter().map(|up| up.host.clone()).collect();
        }
        let send = |number: u64| {
            if (number / 2).is_multiple_of(2) {
                through(
                    &proxy.address,
                    &scene,
                    &in_session,
                    &request(number + 10, "tools/call", &note(number)),
                )
            } else {
                let message = modern(number, "note", &note(number)["arguments"], &json!({}));
                through(&proxy.address, &scene, &modern_headers, &message)
            }
        };
        let answer = send(number).unwrap_or_else(|| panic!("no answer to {number}"));
        // A bounced call comes again, as a model would send it.
        let answer = if is_done(&answer["result"], "note") { answer } else { send(number).unwrap_or(answer) };
        if is_done(&answer["result"], "note") {
            done.push(number.to_string());
        } else {
            assert_eq!(decision(&answer["result"]), "bounce", "{answer}");
        }
    }
    // Each era reads the contract once, or twice if a call was faster than its delivery record.
    assert!(done.len() >= 50, "{done:?}");
    let executed: Vec<String> =
        scene.desk.calls("note").iter().map(|call| call["text"].as_str().unwrap().to_owned()).collect();
    assert_eq!(executed, done);
}
