//! Runs the scripted model as a process.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

pub(super) struct Scripted {
    pub(super) url: String,
    dir: TempDir,
    child: Child,
}

impl Scripted {
    pub(super) fn start(script: &Value) -> Self {
        let dir = TempDir::new().unwrap();
        std::fs::write(dir.path().join("script.json"), script.to_string()).unwrap();
        let tests = std::env::current_exe().unwrap();
        let program = tests.parent().unwrap().parent().unwrap().join("examples/scripted");
        assert!(program.exists(), "{} is missing: build with `cargo test --no-run`", program.display());
        let mut command = Command::new(program);
        command.args([dir.path().join("script.json"), dir.path().join("log.jsonl")]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Self { url: url.trim().to_owned(), dir, child }
    }

    /// The requests received so far.
    pub(super) fn log(&self) -> Vec<Value> {
        let log = std::fs::read_to_string(self.dir.path().join("log.jsonl")).unwrap();
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
