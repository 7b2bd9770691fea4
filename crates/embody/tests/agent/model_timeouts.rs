//! The configured timeouts of a model.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::json;

use crate::support::model::{Model, WireFormat, rule};
use crate::support::world::World;

const BEGUN: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n\
                     data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel\"}}]}\n\n";

/// A model that starts every response with this text and then stays silent on an open connection.
fn stops_responding(words: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(&stream, words));
        }
    });
    url
}

fn answer(mut stream: &TcpStream, words: &str) {
    let mut reader = BufReader::new(stream);
    let (mut length, mut line) = (0, String::new());
    while reader.read_line(&mut line).unwrap_or(0) > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    reader.read_exact(&mut vec![0; length]).unwrap();
    stream.write_all(words.as_bytes()).unwrap();
    // Until the other side has had enough.
    let _ = reader.read(&mut [0]);
}

fn world_with(url: &str, times: &str) -> World {
    let world = World::new();
    world.file("embody.toml", format!("[model]\nmodel = \"slow\"\nbase_url = {url:?}\n{times}\n"));
    world
}

#[test]
fn a_slow_model_times_out_as_configured() {
    for (words, times, said, key) in [
        ("", "first_byte_timeout_s = 1", "no first byte within 1s", "first_byte_timeout_s"),
        (BEGUN, "idle_timeout_s = 1", "no further byte within 1s", "idle_timeout_s"),
    ] {
        let world = world_with(&stops_responding(words), times);
        world.run(&["run", "hello"]).ended(1).says(&["took too long", said, key]);
    }
}

#[test]
fn a_slow_connection_times_out_as_configured() {
    // It accepts the connection and never starts TLS.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/v1", listener.local_addr().unwrap());
    let world = world_with(&url, "connect_timeout_s = 1\nretry_s = 0");
    world.run(&["run", "hello"]).ended(1).says(&["no connection within 1s", "hint:", "`connect_timeout_s`"]);
}

#[test]
fn an_endless_response_times_out_after_the_total_time() {
    let world = World::new();
    // A piece every tenth of a second, for minutes.
    let endless = json!({"text": "word ", "repeat": 10_000, "chunk": 5, "delay_ms": 100});
    let model = Model::start(&world, WireFormat::OpenAi, &json!([rule("hello", 0, endless)]));
    world.file("embody.toml", model.config(WireFormat::OpenAi) + "total_timeout_s = 2\n");
    world.run(&["run", "hello"]).ended(1).says(&["no whole answer within 2s", "hint:", "`total_timeout_s`"]);
}

#[test]
fn a_failed_request_is_not_retried_if_retries_are_off() {
    let world = World::new();
    let model = Model::start(
        &world,
        WireFormat::OpenAi,
        &json!([rule("hello", 0, json!({"status": 503, "text": "no"}))]),
    );
    world.file("embody.toml", model.config(WireFormat::OpenAi) + "retry_s = 0\n");
    world.run(&["run", "hello"]).ended(1).says(&["is not available"]);
    assert_eq!(model.requests().len(), 1);
}

#[test]
fn an_impossible_timeout_is_rejected_with_its_line() {
    let world = world_with("http://127.0.0.1:1/v1", "first_byte_timeout_s = 0");
    world
        .run(&["config", "check"])
        .ended(2)
        .says(&["embody.toml:4: `model.first_byte_timeout_s` is `0`, but must be from 1 to 86400"]);
    let world = world_with("http://127.0.0.1:1/v1", "first_byte_timeout_s = 700\ntotal_timeout_s = 600");
    world.run(&["run", "hello"]).ended(2).says(&[
        "embody.toml:4: `model.first_byte_timeout_s` is `700`, which is longer than `model.total_timeout_s`, `600`",
        "hint: a part of an answer cannot take longer than the whole",
    ]);
    let world = world_with("http://127.0.0.1:1/v1", "connect_timeout_s = 61\nfirst_byte_timeout_s = 60");
    world.run(&["run", "hello"]).ended(2).says(&[
        "embody.toml:4: `model.connect_timeout_s` is `61`, which is longer than `model.first_byte_timeout_s`, `60`",
        "hint: the time for the first byte includes the time for the connection",
    ]);
    let world = world_with("http://127.0.0.1:1/v1", "idle_timeout_s = 7\nconnect_timeout_s = 8");
    let shown = world.run(&["config", "show"]).ok().stdout;
    assert!(shown.contains("idle_timeout_s") && shown.contains("connect_timeout_s"), "{shown}");
}
