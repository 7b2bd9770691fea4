//! `embody demo`: a guided run without a model or a host.
//!
//! A scripted MCP host calls the broker; mind, body, gate and audit are those of `embody mcp`. It runs in a temporary folder,
//! and each claim is checked before it is printed.
//!
//! - `runtime`: the folder, the broker, the mind and the body
//! - `host`: the scripted host
//! - `approver`: the person at the terminal, or the script
//! - `transcript`: the output
//! - `steps`, `send_steps`: the steps

mod approver;
mod host;
mod runtime;
mod send_steps;
mod steps;
mod transcript;

use std::io::{IsTerminal, stdin, stdout};
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use embody_store::audit::AuditReport;
use serde_json::json;
use tracing::level_filters::LevelFilter;

use self::approver::{Answer, AnswerSource};
use self::runtime::{DemoRuntime, Folder};
use self::transcript::Transcript;
use super::Global;
use crate::error::CliError;
use crate::{log, output, serve, store};

const EXAMPLES: &str = "Examples:
  embody demo          you are asked, as an owner is
  embody demo --yes    the script says yes for you

It has a workspace of its own in a temporary folder, which it removes. Yours is neither read nor written.";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DemoArgs {
    /// Answer the question with yes instead of asking
    #[arg(long)]
    yes: bool,
}

struct Outcome {
    answer: Answer,
    report: AuditReport,
}

pub(crate) fn run(args: &DemoArgs, global: Global) -> Result<ExitCode, CliError> {
    let source = source(args, &global)?;
    let begun = Instant::now();
    let is_json = global.json;
    let folder = Folder::new()?;
    // An unavailable mind is part of the demo, so warnings are off.
    log::start(folder.path(), super::log_flag(&global).unwrap_or(LevelFilter::ERROR));
    let mut transcript = Transcript::new(is_json);
    let outcome = store::block_on_multi_thread(async {
        let ending = serve::shutdown_signal()?;
        let runtime = DemoRuntime::open(folder.path(), global).await?;
        let result = tokio::select! {
            result = run_steps(&runtime, &mut transcript, source) => result,
            () = ending.cancelled() => {
                // The error starts on a new line after a question.
                output::stderr_line("");
                Err(CliError::new("the demo was broken off"))
            }
        };
        runtime.close().await;
        result
    })?;
    folder.remove()?;
    let took = begun.elapsed();
    if is_json {
        output::json(&json!({
            "steps": transcript.into_steps(),
            "approved": outcome.answer == Answer::Yes,
            "audit": outcome.report.chains,
            "took_ms": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        }))?;
    } else {
        output::styled(&steps::closing_text(took))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Fails without a terminal, because the demo needs an answer.
fn source(args: &DemoArgs, global: &Global) -> Result<AnswerSource, CliError> {
    if args.yes {
        return Ok(AnswerSource::Script);
    }
    let hint = "`embody demo --yes` answers for you";
    if global.json {
        return Err(CliError::usage("the demo asks a person something, which is no JSON").hint(hint));
    }
    if !stdin().is_terminal() || !stdout().is_terminal() {
        return Err(CliError::usage("the demo asks a person something, and there is no terminal").hint(hint));
    }
    Ok(AnswerSource::Terminal)
}

async fn run_steps(
    runtime: &DemoRuntime,
    transcript: &mut Transcript,
    source: AnswerSource,
) -> Result<Outcome, CliError> {
    transcript.line(steps::WELCOME)?;
    steps::introduce(runtime, transcript).await?;
    let (host, answer) = send_steps::send(runtime, transcript, source).await?;
    steps::mind_outage(runtime, transcript, &host).await?;
    host.close().await;
    let report = steps::verify(runtime, transcript).await?;
    Ok(Outcome { answer, report })
}
