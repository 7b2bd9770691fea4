//! Runs the load generator as a process of its own, so that it can be killed.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

/// A running load generator and what it has acknowledged.
pub(crate) struct Hammer {
    child: Child,
    lines: BufReader<ChildStdout>,
    pub(crate) acks: Vec<String>,
}

/// How often the crash tests kill: few in `./test`, many in `cargo xtask soak`.
pub(crate) fn kills() -> usize {
    std::env::var("EMBODY_KILLS").map_or(20, |text| text.parse().expect("EMBODY_KILLS is a number"))
}

impl Hammer {
    pub(crate) fn start(url: &str, keys: &Path, tasks: usize) -> Self {
        let mut child = Command::new(program())
            .args(["write", url, keys.to_str().unwrap(), &tasks.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines, acks: Vec::new() }
    }

    /// Waits until so many more writes were acknowledged.
    pub(crate) fn wait_for(&mut self, more: usize) {
        for _ in 0..more {
            let mut line = String::new();
            assert!(
                self.lines.read_line(&mut line).unwrap() > 0,
                "the load generator ended: see its words above"
            );
            self.acks.push(line);
        }
    }

    /// Kills it as a power cut would, and takes what it had said until then.
    pub(crate) fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let mut line = String::new();
        while self.lines.read_line(&mut line).unwrap() > 0 {
            self.acks.push(std::mem::take(&mut line));
        }
        self.acks
    }
}

/// Everything that was acknowledged must be there; how much it was.
pub(crate) fn check(url: &str, keys: &Path, acks: &[String]) -> usize {
    let mut child = Command::new(program())
        .args(["check", url, keys.to_str().unwrap()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let text = acks.concat();
    let writing = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "something was lost: see above");
    writing.join().unwrap().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
}

/// Cargo builds the examples with the tests, beside them.
pub(crate) fn program() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().unwrap().parent().unwrap().join("examples/hammer");
    assert!(program.exists(), "{} is missing: build with `cargo test --no-run`", program.display());
    program
}

/// A number below `limit`, different every time: where the kill falls must not be chosen.
pub(crate) fn any(limit: u32) -> usize {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes).unwrap();
    (u32::from_le_bytes(bytes) % limit) as usize
}
