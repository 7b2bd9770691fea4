//! The fixture as a program: over standard streams, or listening.

use std::path::PathBuf;
use std::process::Command;

use crate::peers::{Listening, Place};

/// The program that cargo has built besides the tests.
fn program() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().unwrap().parent().unwrap().join("examples/fixture");
    assert!(program.exists(), "{} is missing: build with `cargo test --no-run`", program.display());
    program
}

pub(crate) fn listening() -> Listening {
    Listening::start(Command::new(program()).args(["--listen", "127.0.0.1:0"]))
}

pub(crate) fn stdio() -> Place {
    Place::Command(vec![program().to_str().unwrap().to_owned()])
}
