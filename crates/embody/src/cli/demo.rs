//! `embody demo`: the guided run at a terminal, in a pipe or as JSON.

use std::io::{IsTerminal, stdin, stdout};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;
use tracing::level_filters::LevelFilter;

use super::Global;
use crate::demo::{self, Answer, Approver, Destination, Folder, Transcript};
use crate::error::CliError;
use crate::{log, output, serve, store};

const EXAMPLES: &str = "Examples:
  embody demo          asks you for one approval
  embody demo --yes    approves by itself

The demo uses its own workspace in a temporary folder and removes it. It does not read or write your workspace.";

const WELCOME: &str = "\
This demo runs the real broker, mind and body. Only the host is scripted: it takes the place of your
coding agent or chat program, without a model. The mind stores persona and memory, the body sends
messages, and the broker decides about every call. All files are in a temporary folder that is
removed at the end. Nothing leaves this machine.

  →  what the host calls      ←  what it gets      │  quoted";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DemoArgs {
    /// Answer the question with yes instead of asking
    #[arg(long)]
    yes: bool,
}

pub(crate) fn run(args: &DemoArgs, global: Global) -> Result<ExitCode, CliError> {
    let approver = approver(args, &global)?;
    let started = Instant::now();
    let is_json = global.json;
    let folder = Folder::new()?;
    // An unavailable mind is part of the demo, so warnings are off.
    let level = super::log_flag(&global).unwrap_or(LevelFilter::ERROR);
    log::start(folder.path(), level, level);
    let mut transcript = Transcript::new(if is_json { Destination::Nowhere } else { Destination::Terminal });
    let outcome = store::block_on_multi_thread(async {
        let ending = serve::shutdown_signal()?;
        let interruption = async {
            ending.cancelled().await;
            // The error starts on a new line after a question.
            output::stderr_line("");
            CliError::new("the demo was interrupted")
        };
        transcript.line(WELCOME)?;
        demo::run(folder.path(), &mut transcript, approver, interruption).await
    })?;
    folder.remove()?;
    let took = started.elapsed();
    if is_json {
        output::json(&json!({
            "steps": transcript.into_steps(),
            "approved": outcome.answer == Answer::Yes,
            "audit": outcome.report.chains,
            "took_ms": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        }))?;
    } else {
        output::styled(&closing_text(took))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Fails without a terminal, because the demo needs an answer.
fn approver(args: &DemoArgs, global: &Global) -> Result<Approver, CliError> {
    if args.yes {
        return Ok(Approver::Script);
    }
    let hint = "`embody demo --yes` approves by itself";
    if global.json {
        return Err(CliError::usage("the demo asks for an approval, which `--json` cannot show").hint(hint));
    }
    if !stdin().is_terminal() || !stdout().is_terminal() {
        return Err(CliError::usage("the demo asks for an approval, and there is no terminal").hint(hint));
    }
    Ok(Approver::Terminal)
}

fn closing_text(took: Duration) -> String {
    format!(
        "\nDone in {:.1} s. Each step was checked while it ran. The temporary folder is removed.\n\n\
         Next steps:\n  \
         embody init    create a workspace: rules, identity, soul, configuration\n  \
         embody mcp     the MCP server for your host, with your other servers behind it\n  \
         embody up      the agent in the browser\n",
        took.as_secs_f64()
    )
}
