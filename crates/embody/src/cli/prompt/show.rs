//! `embody prompt show`: the bytes that would be sent.

use std::process::ExitCode;

use clap::Args;
use embody_prompt::{assemble, render};

use super::PromptReport;
use crate::cli::Context;
use crate::compose::{PromptArgs, compose};
use crate::failure::Failure;
use crate::output;

const EXAMPLES: &str = "Examples:
  embody prompt show --layout tagged
  embody prompt show --layout channel --channel telegram --timezone Europe/Paris
  embody prompt show --layout full --project . --native-tools false
  embody prompt show --json | jq '.sections[] | {kind, source, tokens}'";

/// Which prompt.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    prompt: PromptArgs,
}

pub(crate) fn run(args: &ShowArgs, context: &Context) -> Result<ExitCode, Failure> {
    if context.json {
        output::json(&PromptReport::make(&args.prompt, context)?)?;
    } else {
        let composed = compose(context.workspace.clone(), &context.config, &args.prompt)?;
        output::exactly(&render(&assemble(&composed.loaded.input, &composed.layout)).text)?;
    }
    Ok(ExitCode::SUCCESS)
}
