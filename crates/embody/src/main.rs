//! The binary: reads the command line, runs one command, says what went wrong.

mod cli;
mod compose;
mod config;
mod contract;
mod failure;
mod input;
mod log;
mod nerves;
mod output;
mod persona;
mod policy;
mod serve;
mod store;
mod stored;
mod streams;
mod time;
mod token;
mod tools;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    // Before anything else: it stands beside every body, and is to cost next to nothing.
    if std::env::args_os().nth(1).is_some_and(|word| word == nerves::GUARD) {
        return embody_wire::upstream::guard::stand();
    }
    let cli = cli::Cli::parse();
    match cli::run(cli) {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}
