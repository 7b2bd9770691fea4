//! The official suites against our fixture behind the broker, in each era on either side: what passes directly passes
//! through it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;

use super::setup::{body, remote_body, world};
use crate::peers::{Listening, Report, Suite, conform};

/// The suites read no contract, and everything that they call is their own.
pub(super) const READS: &str =
    "[[policy.rule]]\ntools = [\"*\"]\nclass = \"read\"\ngate = \"allow\"\nreason = \"a test\"\n";

/// `counts`: scenarios, and checks that succeed: in the session era three fewer than without the broker, as told below.
fn passes(suite: Suite, era: &str, counts: (usize, usize)) {
    let report = report(suite, era);
    assert!(report.complaints.is_empty(), "{}", report.complaints.join("\n"));
    assert_eq!((report.scenarios, report.passed), counts);
}

fn report(suite: Suite, era: &str) -> Report {
    through(suite, &body("fixture", &fixture(era), MORE))
}

const MORE: &str = "sampling = \"allow\"\ntrust_annotations = false";

/// The same where the fixture is reached over HTTP.
fn passes_over_http(suite: Suite, era: &str, counts: (usize, usize)) {
    let [program, flag, era] = fixture(era);
    let remote = Listening::start(Command::new(program).args([&flag, &era, "--listen", "127.0.0.1:0"]));
    let report = through(suite, &remote_body("fixture", &remote.url, MORE));
    assert!(report.complaints.is_empty(), "{}", report.complaints.join("\n"));
    assert_eq!((report.scenarios, report.passed), counts);
}

fn through(suite: Suite, body: &str) -> Report {
    let world = world(&[READS, body]);
    let made = world
        .run(&["token", "add", "--user", "owner", "--scope", "mcp", "--may-approve", "--json"])
        .ok()
        .json();
    let mut command = world.command();
    command.arg("--workspace").arg(world.workspace()).args([
        "--log",
        "error",
        "mcp",
        "--listen",
        "127.0.0.1:0",
    ]);
    let server = Listening::start(&mut command);
    let mut report = conform(suite, &with_token(&server.url, made["token"].as_str().unwrap()));
    // A body on a pipe has no stream that it could let go of in the middle of a call, so there is nothing to take up
    // again: the suite finds a plain answer and calls that well. Directly, the same scenario has checks that succeed.
    report.complaints.retain(|complaint| {
        !(complaint.contains("server-sse-polling") && complaint.ends_with("nothing succeeded"))
    });
    report
}

/// The command line of the fixture in this era.
pub(super) fn fixture(era: &str) -> [String; 3] {
    let tests = std::env::current_exe().unwrap();
    let fixture = tests.parent().unwrap().parent().unwrap().join("examples/fixture");
    assert!(fixture.exists(), "{} is missing: `cargo build -p embody-mcp --examples`", fixture.display());
    [fixture.display().to_string(), "--era".to_owned(), era.to_owned()]
}

#[test]
fn the_stable_suite_passes() {
    passes(Suite::Stable, "sessions", (32, 43));
}

#[test]
fn the_next_suite_passes_in_the_session_era() {
    passes(Suite::Next("2025-11-25"), "sessions", (33, 80));
}

#[test]
fn the_next_suite_passes_in_the_stateless_era() {
    passes(Suite::Next("2026-07-28"), "stateless", (40, 152));
}

#[test]
fn the_next_suite_passes_with_tasks() {
    passes(Suite::Tasks, "stateless", (10, 44));
}

#[test]
fn the_stateless_era_passes_with_a_server_over_http() {
    passes_over_http(Suite::Next("2026-07-28"), "stateless", (40, 152));
    passes_over_http(Suite::Tasks, "stateless", (10, 44));
}

#[test]
fn sessions_pass_before_a_stateless_server() {
    passes(Suite::Next("2025-11-25"), "stateless", (33, 80));
}

#[test]
fn the_stateless_era_passes_before_a_server_with_sessions() {
    let mut report = report(Suite::Next("2026-07-28"), "sessions");
    // Only the stateless era has these: a server with sessions asks one thing after the other, and without a name. The
    // suite's own judgement is about all of them.
    let is_elsewhere = |complaint: &str| {
        complaint.starts_with("server-input-required-result-") || complaint.starts_with("exit code")
    };
    report.complaints.retain(|complaint| !is_elsewhere(complaint));
    assert!(report.complaints.is_empty(), "{}", report.complaints.join("\n"));
    assert_eq!(report.scenarios, 40);
}

/// The suites send no token: a door before the server that adds it to each request and changes nothing else.
fn with_token(url: &str, token: &str) -> String {
    let address = url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap().to_owned();
    let header = format!("Authorization: Bearer {token}\r\n");
    let door = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = door.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in door.incoming().flatten() {
            let Ok(server) = TcpStream::connect(&address) else { return };
            let header = header.clone();
            let (mut from, mut to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(std::net::Shutdown::Both);
            });
            std::thread::spawn(move || {
                let _ = pass_on(&client, &server, &header);
                let _ = server.shutdown(std::net::Shutdown::Both);
            });
        }
    });
    format!("http://127.0.0.1:{port}/mcp")
}

/// Passes requests on until the client has no more of them.
fn pass_on(client: &TcpStream, mut server: &TcpStream, header: &str) -> std::io::Result<()> {
    let mut reader = BufReader::new(client);
    loop {
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let is_last = line == "\r\n";
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap_or(0);
            }
            if is_last {
                head += header;
            }
            head += &line;
            if is_last {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        server.write_all(head.as_bytes())?;
        server.write_all(&body)?;
    }
}
