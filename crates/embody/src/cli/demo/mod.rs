//! `embody demo`: a guided run of the real thing for somebody without a model or a host.
//!
//! A scripted host speaks the protocol to the broker; mind, body, gates and record are those of `embody mcp`. Everything
//! happens in a folder that is removed at the end, and each claim is checked before it is told.
//!
//! - `folder`: where it happens
//! - `stage`: the broker, the mind and the body there
//! - `host`: the scripted host
//! - `person`: whoever decides
//! - `tale`: what is told
//! - `steps`, `sending`, `absence`: what happens

mod absence;
mod folder;
mod host;
mod person;
mod sending;
mod stage;
mod steps;
mod tale;

use std::io::{IsTerminal, stdin, stdout};
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use embody_store::AuditReport;
use serde_json::json;
use tracing::level_filters::LevelFilter;

use self::folder::Folder;
use self::person::{Answer, Seat};
use self::stage::Stage;
use self::tale::Tale;
use super::Global;
use crate::failure::Failure;
use crate::{log, output, serve, store};

const EXAMPLES: &str = "Examples:
  embody demo          you are asked, as an owner is
  embody demo --yes    the script says yes for you

It has a workspace of its own in a temporary folder, which it removes. Yours is neither read nor written.";

/// Who is asked.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DemoArgs {
    /// Answer the question with yes instead of asking
    #[arg(long)]
    yes: bool,
}

/// What came of it.
struct Outcome {
    answer: Answer,
    report: AuditReport,
}

pub(crate) fn run(args: &DemoArgs, global: Global) -> Result<ExitCode, Failure> {
    let seat = seat(args, &global)?;
    let begun = Instant::now();
    let is_json = global.json;
    let folder = Folder::new()?;
    // A server that goes away is worth a warning elsewhere; here it is part of the play.
    log::start(folder.path(), super::asked_level(&global).unwrap_or(LevelFilter::ERROR));
    let mut tale = Tale::new(is_json);
    let outcome = store::block_on_all(async {
        let mut ending = serve::ending()?;
        let stage = Stage::open(folder.path(), global).await?;
        let played = tokio::select! {
            played = play(&stage, &mut tale, seat) => played,
            () = ending.wait() => {
                // Whoever was asked sees the reason on a line of its own.
                output::aside("");
                Err(Failure::new("the demo was broken off"))
            }
        };
        stage.close().await;
        played
    })?;
    folder.remove()?;
    let took = begun.elapsed();
    if is_json {
        output::json(&json!({
            "steps": tale.into_steps(),
            "approved": outcome.answer == Answer::Yes,
            "audit": outcome.report.chains,
            "took_ms": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        }))?;
    } else {
        output::styled(&steps::farewell(took))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Who decides. Without a terminal nobody could.
fn seat(args: &DemoArgs, global: &Global) -> Result<Seat, Failure> {
    if args.yes {
        return Ok(Seat::Script);
    }
    let hint = "`embody demo --yes` answers for you";
    if global.json {
        return Err(Failure::usage("the demo asks a person something, which is no JSON").hint(hint));
    }
    if !stdin().is_terminal() || !stdout().is_terminal() {
        return Err(Failure::usage("the demo asks a person something, and there is no terminal").hint(hint));
    }
    Ok(Seat::Terminal)
}

async fn play(stage: &Stage, tale: &mut Tale, seat: Seat) -> Result<Outcome, Failure> {
    tale.line(steps::WELCOME)?;
    steps::introduce(stage, tale).await?;
    let (host, answer) = sending::send(stage, tale, seat).await?;
    absence::mind_leaves_and_returns(stage, tale, &host).await?;
    host.leave().await;
    let report = steps::verify(stage, tale).await?;
    Ok(Outcome { answer, report })
}
