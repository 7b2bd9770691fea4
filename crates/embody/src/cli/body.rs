//! `embody body`: the embedded body alone, as an MCP server.

use std::process::ExitCode;

use clap::Args;
use embody_body::server::Principal;

use super::Context;
use super::alone::{self, AloneArgs};
use crate::embedded;
use crate::failure::Failure;

const EXAMPLES: &str = "Examples:
  embody body                                 for a host that starts it, over stdin and stdout
  embody body --listen 127.0.0.1:7719         for many hosts, at /mcp, and at /sse for older ones
  embody mcp                                  behind the broker, where its messages are gated";

/// How it is served.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BodyArgs {
    #[command(flatten)]
    alone: AloneArgs,
}

pub(crate) fn run(args: &BodyArgs, context: Context) -> Result<ExitCode, Failure> {
    alone::run(&args.alone, context, embedded::body, Principal::host)
}
