//! Processes that end in time: a program that is run, and a server that is started.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::Place;

/// What a program has said.
pub(super) struct Said {
    pub(super) code: Option<i32>,
    pub(super) output: String,
    pub(super) errors: String,
}

/// Runs a program with a home of its own, and ends it with everything that it started when it takes too long.
pub(super) fn run(command: &mut Command, limit: Duration) -> Said {
    let home = tempfile::tempdir().unwrap();
    command.env("HOME", home.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Proxies are for other machines.
    for proxy in ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        command.env_remove(proxy);
    }
    let mut group = Group(command.process_group(0).spawn().unwrap());
    let output = collect(group.0.stdout.take().unwrap());
    let errors = collect(group.0.stderr.take().unwrap());
    // Both end when the last process of the program has closed them.
    let (Ok(output), Ok(errors)) = (output.recv_timeout(limit), errors.recv_timeout(limit)) else {
        panic!("{command:?} took longer than {limit:?}");
    };
    let deadline = Instant::now() + limit;
    let status = loop {
        match group.0.try_wait().unwrap() {
            Some(status) => break status,
            None if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
            None => panic!("{command:?} has said everything and does not end"),
        }
    };
    Said { code: status.code(), output, errors }
}

fn collect(mut stream: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

/// A server that says on its first line where it listens, for as long as this lives.
pub(crate) struct Listening {
    /// Of streamable HTTP: `http://…/mcp`.
    pub(crate) url: String,
    _group: Group,
}

impl Listening {
    /// Starts it and waits for its address.
    pub(crate) fn start(command: &mut Command) -> Self {
        const LIMIT: Duration = Duration::from_secs(20);
        let mut group =
            Group(command.stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0).spawn().unwrap());
        let mut lines = BufReader::new(group.0.stdout.take().unwrap());
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            let _ = lines.read_line(&mut line);
            let _ = sender.send(line);
            // Read on: a server that cannot write would stop.
            let _ = std::io::copy(&mut lines, &mut std::io::sink());
        });
        let line = receiver.recv_timeout(LIMIT).expect("the server does not say where it listens");
        let url = line.trim().to_owned();
        assert!(url.starts_with("http://") && url.ends_with("/mcp"), "`{url}` is not where it listens");
        Self { url, _group: group }
    }

    /// As a peer reaches it by streamable HTTP.
    pub(crate) fn http(&self) -> Place {
        Place::Http(self.url.clone())
    }

    /// As a peer reaches it by legacy HTTP+SSE.
    pub(crate) fn sse(&self) -> Place {
        Place::Sse(self.url.replace("/mcp", "/sse"))
    }
}

/// A process and what it has started; ends them all.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        let group = format!("-{}", self.0.id());
        // Not the process alone: a peer that is ended does not always end its server.
        let _ = Command::new("kill").args(["-s", "KILL", "--", &group]).stderr(Stdio::null()).status();
        let _ = self.0.wait();
    }
}
