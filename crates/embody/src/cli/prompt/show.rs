//! `embody prompt show`: the bytes that would be sent.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::Args;
use embody_prompt::{assemble, render};

use super::PromptReport;
use crate::cli::Context;
use crate::compose::{PromptArgs, compose};
use crate::failure::Failure;

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
    let text = if context.json {
        let report = PromptReport::make(&args.prompt, context)?;
        let json = serde_json::to_string_pretty(&report);
        json.map_err(|error| Failure::new("the prompt could not be written as JSON").because(&error))? + "\n"
    } else {
        let composed = compose(context.workspace.clone(), &context.config, &args.prompt)?;
        render(&assemble(&composed.loaded.input, &composed.layout)).text
    };
    print_exactly(&text, context.json)
}

/// Writes the text and nothing else; only a terminal gets a line end, so that the shell's prompt starts on its own line.
fn print_exactly(text: &str, ended: bool) -> Result<ExitCode, Failure> {
    let mut stdout = std::io::stdout().lock();
    let end = if !ended && stdout.is_terminal() { "\n" } else { "" };
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.write_all(end.as_bytes()))
        .and_then(|()| stdout.flush())
    {
        Ok(()) => Ok(ExitCode::SUCCESS),
        // The reader has seen enough, as `head` does.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        Err(error) => Err(Failure::new("the prompt could not be written").because(&error)),
    }
}
