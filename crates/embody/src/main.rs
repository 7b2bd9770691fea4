//! The binary: reads the command line, runs one command, says what went wrong.

mod approvals;
mod channels;
mod cli;
mod compose;
mod config;
mod contract;
mod embedded;
mod eras;
mod failure;
mod house;
mod input;
mod log;
mod metrics;
mod nerves;
mod output;
mod persona;
mod policy;
mod purse;
mod running;
mod serve;
mod store;
mod stored;
mod streams;
mod telemetry;
mod time;
mod token;
mod tools;
mod web;

use std::process::ExitCode;

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

fn main() -> ExitCode {
    // Bodies run under the same account: they must not read the environment or the memory of this process. A kernel that
    // refuses leaves everything else as it is.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    // Before anything else: it stands beside every body, and is to cost next to nothing.
    if std::env::args_os().nth(1).is_some_and(|word| word == nerves::GUARD) {
        return embody_wire::upstream::guard::stand();
    }
    match cli::run(cli::parse()) {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}
