//! `embody memory export` and `import`: all memories of a user and an agent, as lines.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use embody_store::ErrorKind;
use serde_json::json;

use crate::cli::{Context, Who};
use crate::failure::Failure;
use crate::input;
use crate::output::{self, Stream};
use crate::store;

/// The largest file that is imported.
const IMPORT_LIMIT: u64 = 1024 * 1024 * 1024;

#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    who: Who,
}

#[derive(Args, Debug)]
pub(crate) struct ImportArgs {
    /// The file, or `-` for stdin
    file: PathBuf,
    #[command(flatten)]
    who: Who,
}

pub(super) fn export(args: &ExportArgs, context: &Context) -> Result<ExitCode, Failure> {
    let scope = args.who.scope()?;
    let exported = store::read(context, async |store| {
        let mut out = Stream::new();
        let written = store.export_memories(&scope, &mut out).await;
        out.finish(written)
    })?;
    if let Some(count) = exported.unwrap_or(Some(0)) {
        output::aside(&format!("{count} memories of {} and {}", scope.user(), scope.agent()));
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn import(args: &ImportArgs, context: &Context) -> Result<ExitCode, Failure> {
    let scope = args.who.scope()?;
    let lines = input::file(&args.file, IMPORT_LIMIT)?.ok_or_else(|| {
        Failure::new(format!("`{}` is larger than {IMPORT_LIMIT} bytes", args.file.display()))
            .hint("import it in several parts: every line stands for itself")
    })?;
    let done = store::with(context, async |store| {
        store.import_memories(&scope, &lines).await.map_err(|error| wrong(&args.file, error))
    })?;
    if context.json {
        output::json(&json!({ "added": done.added, "unchanged": done.unchanged }))?;
    } else {
        output::plain(&format!("{} added, {} were there already\n", done.added, done.unchanged))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What is wrong with a file's lines, with the file's name.
fn wrong(file: &Path, error: embody_store::Error) -> Failure {
    if error.kind() != ErrorKind::Invalid {
        return error.into();
    }
    let name = if file == Path::new("-") { "stdin".to_owned() } else { format!("`{}`", file.display()) };
    Failure::new(format!("{name} cannot be imported"))
        .because(&error)
        .hint("it takes the lines that `embody memory export` writes")
}
