//! `embody mcp` on a pipe. Lines go out and come in as they are.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

use super::record::Record;
use super::scene;
use crate::support::world::World;

/// Long enough for anything that happens at all.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct Pipe {
    process: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    /// Notifications of the server, which come when they come: they are not recorded.
    pub(super) notifications: Vec<String>,
}

impl Pipe {
    pub(super) fn start(world: &World, arguments: &[&str]) -> Self {
        let mut command = world.command();
        command.arg("--workspace").arg(world.workspace()).args(["--log", "error"]).args(arguments);
        let mut process = command.stdin(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { input: process.stdin.take(), process, lines, notifications: Vec::new() }
    }

    pub(super) fn write(&mut self, line: &str) {
        self.input.as_mut().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// The next line that is not a notification.
    pub(super) fn next(&mut self) -> String {
        loop {
            let line = self.lines.recv_timeout(PATIENCE).expect("a line from the server");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message.get("id").is_some() || message.get("method").is_none() {
                return line;
            }
            self.notifications.push(line);
        }
    }

    /// Sends a line and returns the next one.
    pub(super) fn ask(&mut self, line: &str) -> Value {
        self.write(line);
        serde_json::from_str(&self.next()).unwrap()
    }

    /// The same, on record under a name.
    pub(super) fn exchange(&mut self, record: &mut Record, name: &str, line: &str) -> Value {
        record.heading(&format!("# {name}"));
        record.part("sent", &format!("{line}\n"));
        self.write(line);
        self.receive(record)
    }

    /// The next line, on record.
    pub(super) fn receive(&mut self, record: &mut Record) -> Value {
        let line = self.next();
        record.part("received", &format!("{line}\n"));
        serde_json::from_str(&line).unwrap()
    }

    /// Waits until every server is connected.
    pub(super) fn connected(&mut self, meta: Option<&str>) {
        let request = scene::status(meta);
        scene::until_connected(|| self.ask(&request));
    }

    /// Closes the pipe and waits for the process, which must end well.
    pub(super) fn close(mut self) {
        drop(self.input.take());
        assert!(self.process.wait().unwrap().success());
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
