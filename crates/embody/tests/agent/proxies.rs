//! Connections through a proxy: which use it, which never do, and the errors when it does not work.

use std::io::Read;
use std::net::TcpListener;
use std::time::Duration;

use serde_json::{Value, json};

use super::forward::Forward;
use crate::support::app::{OWNER, eventually};
use crate::support::model::{Model, WireFormat, rule, says};
use crate::support::persona_server::{Answer, PersonaText, Server, TOKEN};
use crate::support::served::Served;
use crate::support::telegram::Telegram;
use crate::support::world::{CommandOutput, World, finish};

const BODY: [&str; 5] = ["prompt", "show", "--layout", "body", "--json"];
/// `me:pa@ss`, as it is sent.
const BASIC: &str = "Basic bWU6cGFAc3M=";

/// The address of a proxy with a user and a password.
fn with_password(proxy: &Forward) -> String {
    format!("http://me:pa%40ss@{}", proxy.place())
}

/// `HOST:PORT` of a URL.
fn host_of(url: &str) -> &str {
    url.strip_prefix("http://").unwrap().split('/').next().unwrap()
}

/// A world whose persona is at this address.
fn persona_at(url: &str) -> World {
    let world = World::with_body("RULES\n");
    world.file_outside("token", format!("{TOKEN}\n"));
    let command = ["cat".to_owned(), world.outside("token").display().to_string()];
    let config = format!("[persona]\nurl = {url:?}\ntoken_command = {command:?}\ntimeout_s = 20\n");
    world.file("embody.toml", config);
    world
}

/// Runs with one variable more.
fn run_with(world: &World, (variable, value): (&str, &str), arguments: &[&str]) -> CommandOutput {
    let mut command = world.command();
    command.arg("--workspace").arg(world.workspace()).args(arguments).env(variable, value);
    finish(command)
}

/// Why there is no persona.
fn failure_reason(done: CommandOutput) -> String {
    let report = done.ok().json();
    assert_eq!(report["text"], "RULES", "{report}");
    report["notes"][0]["message"].as_str().unwrap().to_owned()
}

fn rules() -> Value {
    json!([rule("hello", 0, says("Good morning."))])
}

#[test]
fn a_remote_model_is_reached_through_the_proxy_with_credentials() {
    let world = World::new();
    let model = Model::alone(&world, &rules());
    world.file(
        "embody.toml",
        model.config(WireFormat::OpenAi).replace(host_of(&model.url), "model.test:8000"),
    );
    let proxy = Forward::start_for(Some(BASIC), &[("model.test:8000", host_of(&model.url))]);
    for variable in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        let before = proxy.seen().len();
        let done = run_with(&world, (variable, &with_password(&proxy)), &["run", "hello"]);
        assert_eq!(done.ok().stdout, "Good morning.\n", "{variable}");
        let seen = proxy.seen();
        assert_eq!(seen.len(), before + 1, "{variable}: {seen:?}");
        assert_eq!(seen[before].line, "POST http://model.test:8000/v1/chat/completions HTTP/1.1");
        assert_eq!(seen[before].authorization.as_deref(), Some(BASIC));
    }
}

#[test]
fn a_proxy_may_speak_socks() {
    let world = World::new();
    let model = Model::alone(&world, &rules());
    world.file(
        "embody.toml",
        model.config(WireFormat::OpenAi).replace(host_of(&model.url), "model.test:8000"),
    );
    let proxy = Forward::start(&[("model.test:8000", host_of(&model.url))]);
    let address = format!("socks5h://me:pa%40ss@{}", proxy.place());
    let done = run_with(&world, ("ALL_PROXY", &address), &["run", "hello"]);
    assert_eq!(done.ok().stdout, "Good morning.\n");
    let seen = proxy.seen();
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert_eq!(
        (&*seen[0].line, seen[0].authorization.as_deref()),
        ("SOCKS model.test:8000", Some("me:pa@ss"))
    );
}

#[test]
fn loopback_addresses_bypass_the_proxy() {
    let proxy = Forward::start(&[]);
    let address = with_password(&proxy);
    let world = World::new()
        .env("HTTP_PROXY", &address)
        .env("HTTPS_PROXY", &address)
        .env("ALL_PROXY", &address)
        .env("NO_PROXY", "elsewhere.example");
    let model = Model::alone(&world, &rules());
    let port = model.url.rsplit(':').next().unwrap();
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0"] {
        let config = model.config(WireFormat::OpenAi);
        world.file("embody.toml", config.replace(host_of(&model.url), &format!("{host}:{port}")));
        assert_eq!(world.run(&["run", "hello"]).ok().stdout, "Good morning.\n", "{host}");
    }
    assert!(proxy.seen().is_empty(), "{:?}", proxy.seen());
}

#[test]
fn every_outgoing_connection_uses_the_proxy() {
    let (world, telegram) = (Telegram::world(), Telegram::start());
    let model = Model::alone(&world, &rules());
    let names = [("model.test:80", host_of(&model.url)), ("telegram.test:80", telegram.host())];
    let proxy = Forward::start(&names);
    let config = model.config(WireFormat::OpenAi).replace(host_of(&model.url), "model.test")
        + &telegram.config(&[OWNER]).replace(telegram.host(), "telegram.test")
        + "[telemetry]\notlp_url = \"http://collector.test\"\n"
        + "[[body]]\nname = \"far\"\nurl = \"http://body.test/mcp\"\nusers = \"all\"\ntransport = \"http\"\n";
    world.file("embody.toml", config);
    let world = world.env("HTTP_PROXY", &format!("http://{}", proxy.place()));
    let _up = Served::start(&world);
    telegram.say(OWNER, 1, "hello");
    assert_eq!(telegram.seen(OWNER, 1), ["Good morning."]);
    for start in [
        "POST http://model.test/v1/chat/completions ",
        "POST http://telegram.test/bot42:TEST/sendMessage ",
        "POST http://body.test/mcp ",
        "POST http://collector.test/v1/traces ",
    ] {
        eventually(start, || proxy.lines().iter().any(|line| line.starts_with(start)).then_some(()));
    }
}

#[test]
fn no_proxy_hosts_bypass_the_proxy() {
    let server = Server::start(PersonaText::Json, Answer::text("I am Ann."));
    let url = server.url("/mcp");
    let proxy = Forward::start(&[("persona.test:80", host_of(&url))]);
    let world = persona_at("http://persona.test/mcp").env("http_proxy", &proxy.place());
    let report = world.run(&BODY).ok().json();
    assert!(report["text"].as_str().unwrap().contains("I am Ann."), "{report}");
    assert!(
        proxy.lines().iter().all(|line| line.contains(" http://persona.test/mcp ")),
        "{:?}",
        proxy.lines()
    );
    let before = proxy.lines().len();
    assert!(before > 1, "{:?}", proxy.lines());
    // Nobody else knows this name.
    for (variable, value) in
        [("NO_PROXY", "other.test, .test"), ("no_proxy", "persona.test:80"), ("NO_PROXY", "*")]
    {
        let why = failure_reason(run_with(&world, (variable, value), &BODY));
        assert!(why.contains("cannot connect") && !why.contains("proxy"), "{value}: {why}");
        assert_eq!(proxy.lines().len(), before, "{value}");
    }
}

#[test]
fn https_goes_through_a_tunnel() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = server.local_addr().unwrap().to_string();
    let proxy = Forward::start_for(Some(BASIC), &[("persona.test:443", &at)]);
    let names = |hello: &[u8]| hello.windows(12).any(|part| part == b"persona.test");
    let hello = std::thread::spawn(move || {
        let (mut stream, _) = server.accept().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let (mut hello, mut piece) = (Vec::new(), [0; 4096]);
        while !names(&hello) {
            let count = stream.read(&mut piece).unwrap();
            assert_ne!(count, 0, "{hello:?}");
            hello.extend_from_slice(&piece[..count]);
        }
        hello
    });
    let world = persona_at("https://persona.test/mcp").env("HTTPS_PROXY", &with_password(&proxy));
    failure_reason(world.run(&BODY));
    // A handshake of TLS that names the server: what follows is nobody's business on the way.
    assert_eq!(hello.join().unwrap()[..2], [22, 3]);
    let seen = proxy.seen();
    assert!(seen.iter().all(|seen| seen.line == "CONNECT persona.test:443 HTTP/1.1"), "{seen:?}");
    assert!(seen.iter().all(|seen| seen.authorization.as_deref() == Some(BASIC)), "{seen:?}");
}

#[test]
fn a_failing_proxy_is_reported_without_its_password() {
    let proxy = Forward::start_for(Some("Basic other"), &[]);
    let world = persona_at("https://persona.test/mcp").env("HTTPS_PROXY", &with_password(&proxy));
    let why = failure_reason(world.run(&BODY));
    let named = format!("cannot connect through the proxy `{}`", proxy.place());
    assert!(why.contains(&named) && why.contains("proxy authorization required"), "{why}");
    assert!(!why.contains("pa@ss") && !why.contains("pa%40ss") && !why.contains(BASIC), "{why}");

    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let world = persona_at("http://persona.test/mcp").env("HTTP_PROXY", &format!("http://me:hunter2@{gone}"));
    let why = failure_reason(world.run(&BODY));
    assert!(why.contains(&format!("cannot connect through the proxy `{gone}`")), "{why}");
    assert!(!why.contains("hunter2"), "{why}");
}

#[test]
fn the_doctor_shows_the_proxy_and_an_invalid_one_is_a_configuration_error() {
    let world = World::new().env("HTTPS_PROXY", "http://me:hunter2@proxy.example:3128");
    let checks = world.run(&["doctor", "--json"]).ok().json()["checks"].clone();
    let proxy = checks.as_array().unwrap().iter().find(|check| check["name"] == "proxy").unwrap();
    assert_eq!(proxy["message"], "https through proxy.example:3128; not for this machine and NO_PROXY");
    assert!(!checks.to_string().contains("hunter2"), "{checks}");
    let checks = World::new().run(&["doctor", "--json"]).ok().json()["checks"].clone();
    assert!(checks.as_array().unwrap().iter().all(|check| check["name"] != "proxy"), "{checks}");

    let world = World::new().env("HTTPS_PROXY", "http://me:hunter2@proxy.example:port");
    let done = world.run(&["up", "--listen", "127.0.0.1:0"]).ended(2).says(&[
        "error: HTTPS_PROXY: its value cannot be used as a proxy: it cannot be read as an address",
        "hint: write it like http://proxy.example:3128",
    ]);
    assert!(!done.stderr.contains("hunter2"), "{}", done.stderr);
}
