//! `embody prompt show`: the bytes that would be sent.

use std::process::ExitCode;

use clap::Args;
use embody_prompt::{assemble, render};

use super::{PromptReport, receipt};
use crate::cli::Context;
use crate::compose::{PromptArgs, compose};
use crate::failure::Failure;
use crate::output;
use crate::store;

const EXAMPLES: &str = "Examples:
  embody prompt show --layout tagged
  embody prompt show --layout channel --channel telegram --timezone Europe/Paris
  embody prompt show --layout full --project . --native-tools false
  embody prompt show --receipt > sent.txt
  embody prompt show --json | jq '.sections[] | {kind, source, tokens}'";

/// Which prompt.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ShowArgs {
    /// Keep a receipt: `prompt receipt ID` replays the bytes
    #[arg(long)]
    receipt: bool,
    #[command(flatten)]
    prompt: PromptArgs,
}

pub(crate) fn run(args: &ShowArgs, context: &Context) -> Result<ExitCode, Failure> {
    if args.receipt {
        let mut report = PromptReport::make(&args.prompt, context)?;
        let scope = args.prompt.who.scope()?;
        let id = store::with(context, async |store| receipt::keep(store, &scope, &report).await)?;
        if context.json {
            output::json(&PromptReport { receipt: Some(id), ..report })?;
        } else {
            output::exactly(&std::mem::take(&mut report.text))?;
            output::aside(&format!("receipt {id}"));
        }
    } else if context.json {
        output::json(&PromptReport::make(&args.prompt, context)?)?;
    } else {
        let composed = compose(context, &args.prompt)?;
        output::exactly(&render(&assemble(&composed.loaded.input, &composed.layout)).text)?;
    }
    Ok(ExitCode::SUCCESS)
}
