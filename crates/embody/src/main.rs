//! The binary: parses the command line, runs one command, prints its error.

mod app;
mod approvals;
mod audit_entries;
mod audit_report;
mod broker_setup;
mod channels;
mod cli;
mod config;
mod conversation;
mod demo;
mod embedded;
mod era_cache;
mod error;
mod log;
mod memory;
mod model_check;
mod model_key;
mod notices;
mod output;
mod persona;
mod pidfile;
mod processes;
mod prompt_report;
mod prompt_service;
mod prompt_tools;
mod reload;
mod serve;
mod server_check;
mod server_tools;
mod settings;
mod status;
mod store;
mod telemetry;
mod time;
mod token_cache;
mod usage;
mod web;
mod workspace_files;

use std::process::ExitCode;

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

fn main() -> ExitCode {
    // Bodies run under the same account: they must not read the environment or the memory of this process. Best effort.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    // Before anything else: a reaper runs beside every body and must stay small.
    if std::env::args_os().nth(1).is_some_and(|argument| argument == broker_setup::REAPER_ARG) {
        return embody_wire::upstream::reaper::run();
    }
    match cli::run(cli::parse()) {
        Ok(code) => code,
        Err(error) => error.print(),
    }
}
