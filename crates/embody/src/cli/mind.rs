//! `embody mind`: the embedded mind alone, as an MCP server.

use std::process::ExitCode;

use clap::Args;
use embody_mind::server::Principal;

use super::Context;
use super::alone::{self, AloneArgs};
use crate::embedded;
use crate::failure::Failure;

const EXAMPLES: &str = "Examples:
  embody mind                                 for a host that starts it, over stdin and stdout
  embody mind --listen 127.0.0.1:7718         for many hosts, at /mcp, and at /sse for older ones
  embody token add --user owner --scope mcp   the bearer token that such a host sends";

/// How it is served.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct MindArgs {
    #[command(flatten)]
    alone: AloneArgs,
}

pub(crate) fn run(args: &MindArgs, context: Context) -> Result<ExitCode, Failure> {
    alone::run(&args.alone, context, embedded::mind, Principal::host)
}
