//! `/v1`: the agents as models for clients of OpenAI's API, with the official Python client.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::model::{Model, WireFormat, calls, rule, says};
use crate::support::served::{Served, token};
use crate::support::world::World;

mod python {
    use super::*;

    #[test]
    fn the_official_client_talks_to_the_agents() {
        let world = World::new().env("EMBODY_AGENT", "ada").env("TELEGRAM_BOT_TOKEN", "1:unused");
        let send = json!({"channel": "telegram", "to": "4711", "text": "See you at noon."});
        let rules = json!([
            rule("hello", 0, json!({"text": "Good morning.", "chunk": 4})),
            rule(
                "look it up",
                0,
                json!({"text": "One moment.", "calls": [{"name": "list_tasks", "arguments": {}}]})
            ),
            rule("look it up", 1, says("Nothing is due.")),
            rule("and then", 0, says("That was all.")),
            rule("tell bob", 0, calls("send_message", send)),
            rule("tell bob", 1, says("It waits.")),
            rule("break", 0, json!({"status": 400, "text": "no"})),
        ]);
        let model = Model::alone(&world, &rules);
        let config = model.config(WireFormat::OpenAi);
        world.file(
            "embody.toml",
            config + "[telegram]\napi_url = \"http://127.0.0.1:9\"\n[policy]\nask_wait_s = 1\n",
        );
        world.run(&["agent", "set", "eve", "--identity", "{\"name\": \"Eve\"}"]).ok();
        let chat = token(&world, "owner", "chat");
        let served = Served::start(&world);
        let peers = std::env::var_os("EMBODY_TEST_PEERS").expect("`./test` sets EMBODY_TEST_PEERS");
        let output = Command::new(Path::new(&peers).join("bin/python"))
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/web/openai_client.py"))
            .args([&format!("http://{}/v1", served.host), &chat])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
        let seen: Value = serde_json::from_str(said.trim()).unwrap();
        assert_eq!(seen["models"], json!(["ada", "eve"]));
        assert_eq!(seen["first"], json!(["Good morning.", "stop", true]));
        assert_eq!(seen["second"], json!(["One moment.\n\nNothing is due.", true]));
        assert_eq!(seen["third"], json!(["That was all.", true]));
        assert_eq!(seen["edited"], json!(["That was all.", true]));
        assert_eq!(seen["broken"][0], 502);
        assert_eq!(seen["retried"], json!(["Good morning.", true]));
        let stream = &seen["stream"];
        assert_eq!(
            (&stream["text"], &stream["reasons"], &stream["ids"]),
            (&json!("Good morning."), &json!(["stop"]), &json!(1))
        );
        assert!(stream["total"].as_u64().is_some_and(|total| total > 0), "{stream}");
        let approval = seen["approval"].as_str().unwrap();
        assert!(approval.contains("[`send_message` waits for the owner's approval "), "{approval}");
        assert!(approval.ends_with("]\n\nIt waits."), "{approval}");
        for (case, status, words) in [
            ("no_model", 404, "unknown model `gpt-4`"),
            ("no_text", 400, "the last message must be a `user` message with text"),
            ("tool", 400, "`tool_choice` \"required\" is not supported"),
            ("token", 401, "the token is unknown"),
        ] {
            assert_eq!(seen[case][0], status, "{case}: {seen}");
            assert!(seen[case][1].as_str().unwrap().contains(words), "{case}: {seen}");
        }
        assert_eq!(seen["failed"][0], 502, "{seen}");
        assert_eq!(seen["failed"][1], seen["failed_stream"]);

        // The client's system message ranks as the user's, and earlier turns keep their tool calls.
        let requests = model.requests();
        let first = requests.first().unwrap();
        assert!(first.conversation().contains("Be brief.") && !first.system().contains("Be brief."));
        let is_broken = |text: &str| text.contains("break");
        let broken = requests.iter().filter(|request| is_broken(&request.conversation())).count();
        assert_eq!(broken, 3, "the client does not repeat a turn that failed");
        let third = requests.iter().find(|request| request.conversation().contains("and then")).unwrap();
        assert!(third.conversation().contains("list_tasks"), "{}", third.conversation());
        let edited = requests.iter().find(|request| request.conversation().contains("edited")).unwrap();
        assert!(!edited.conversation().contains("list_tasks"), "{}", edited.conversation());
    }
}

#[test]
fn a_client_that_disconnects_cancels_its_turn() {
    let world = World::new().env("EMBODY_AGENT", "ada");
    let endless = json!({"text": "on and on ", "repeat": 3_000, "chunk": 10, "delay_ms": 20});
    let model = Model::alone(&world, &json!([rule("hello", 0, endless)]));
    world.file("embody.toml", model.config(WireFormat::OpenAi));
    let (chat, operate) = (token(&world, "owner", "chat"), token(&world, "owner", "operate"));
    let served = Served::start(&world);
    let body = json!({"model": "ada", "stream": true, "messages": [{"role": "user", "content": "hello"}]});
    served.post("/v1/chat/completions", &operate, &body).refused(403, "`chat` is required");
    let mut reading = served.begin_post("/v1/chat/completions", &chat, &body);
    let first = reading.message().unwrap();
    assert_eq!(first["choices"][0]["delta"]["role"], "assistant");
    let turns = |state: &str| {
        let status = served.get("/api/status", &operate).json();
        status["turns"][state].as_u64().unwrap_or_else(|| panic!("{status}"))
    };
    assert_eq!(turns("running"), 1);
    drop(reading);
    let deadline = Instant::now() + Duration::from_secs(30);
    while turns("running") > 0 {
        assert!(Instant::now() < deadline, "the turn still runs");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(turns("cancelled"), 1);
}

#[test]
fn large_bodies_that_do_not_arrive_leave_room_for_others() {
    let world = World::new().env("EMBODY_AGENT", "ada");
    let model = Model::alone(&world, &json!([rule("hello", 0, says("Good morning."))]));
    world.file("embody.toml", model.config(WireFormat::OpenAi));
    let chat = token(&world, "owner", "chat");
    let served = Served::start(&world);
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {chat}\r\n\
         Content-Type: application/json\r\nContent-Length: 4194304\r\n\r\n{{",
        served.host
    );
    let waiting: Vec<TcpStream> = (0..40)
        .map(|_| {
            let mut stream = TcpStream::connect(&served.host).unwrap();
            stream.write_all(head.as_bytes()).unwrap();
            stream
        })
        .collect();
    // 16 of them have room; the others are refused at once.
    let refused = waiting.iter().rev().filter(|stream| {
        let (mut stream, mut status) = (*stream, [0; 12]);
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        stream.read_exact(&mut status).is_ok() && &status == b"HTTP/1.1 503"
    });
    assert_eq!(refused.take(24).count(), 24);
    let body = json!({"model": "ada", "messages": [{"role": "user", "content": "hello"}]});
    let answer = served.post("/v1/chat/completions", &chat, &body).json();
    assert_eq!(answer["choices"][0]["message"]["content"], "Good morning.");
}
