//! The binary: reads the command line, runs one command, says what went wrong.

mod cli;
mod compose;
mod config;
mod contract;
mod failure;
mod house;
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
    let cli = cli::Cli::parse();
    match cli::run(cli) {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}
