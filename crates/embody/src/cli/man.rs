//! `embody man`: the manual page on stdout, or a page for every command in a folder.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory};
use clap_mangen::{Man, generate_to};

use super::{Cli, reference};
use crate::failure::Failure;
use crate::output;

/// Where to.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  embody man | man -l -\n  embody man --dir ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// Write a page for every command into this folder
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Print the reference page in Markdown instead
    #[arg(long, hide = true, conflicts_with = "dir")]
    markdown: bool,
}

pub(crate) fn run(args: &ManArgs) -> Result<ExitCode, Failure> {
    let failed = |error: std::io::Error| Failure::new("the manual could not be written").because(&error);
    if args.markdown {
        output::plain(&reference::markdown())?;
        return Ok(ExitCode::SUCCESS);
    }
    match &args.dir {
        Some(dir) => {
            std::fs::create_dir_all(dir).map_err(failed)?;
            generate_to(Cli::command(), dir).map_err(failed)?;
        }
        None => {
            let mut page = Vec::new();
            Man::new(Cli::command()).render(&mut page).map_err(failed)?;
            output::plain(&String::from_utf8_lossy(&page))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
