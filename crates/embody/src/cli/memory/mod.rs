//! `embody memory …`: the memories of an agent about a user; `commitments` and `consolidations` have their own files.

mod commitments;
mod consolidations;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use clap::{Args, Subcommand};
use embody_store::ErrorKind;
use embody_store::memories::{FoundMemory, Memory, MemoryList, MemorySearch, MemoryStatus, NewMemory};
use embody_store::mind_log::LogEntry;
use jiff::Timestamp;
use serde_json::json;

use crate::cli::{Context, ScopeArgs};
use crate::error::CliError;
use crate::output::{self, StdoutStream, printable};
use crate::{input, store, time};

/// A person at the terminal with access to the store acts as its owner.
const OPERATOR: &str = "operator";
const OWNER: &str = "owner";
const HEAD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const EXAMPLES: &str = "Examples:
  embody memory add 'Ann is on leave until 3 May.' --actor Ann --session standup
  embody memory search 'when is Ann back?'
  embody memory list --status quarantined
  embody memory held
  embody memory export > memories.jsonl
  embody memory import memories.jsonl --user ann
  embody memory commitments";

#[derive(Subcommand, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) enum MemoryCommand {
    /// Saves a memory
    Add(AddArgs),
    /// Finds memories, the best answer first
    Search(SearchArgs),
    /// Lists memories, newest first
    List(ListArgs),
    /// Takes a memory out of every search; its history keeps it
    Forget(IdArgs),
    /// Lets a quarantined memory be found
    Release(IdArgs),
    /// Shows every version of a memory, the present one first
    History(IdArgs),
    /// Writes every memory with its history as JSON Lines
    Export(ExportArgs),
    /// Takes in what `export` wrote, all of it or nothing
    Import(ImportArgs),
    /// Lists what `reflect` was told and holds back since it reads like an order, newest first
    Held(HeldArgs),
    /// Lists what somebody took upon themselves and has not done yet
    Commitments(commitments::CommitmentsArgs),
    /// Marks a commitment as done, dropped or open again
    Settle(commitments::SettleArgs),
    /// Lists when the mind tidied up and what it did, newest first
    Consolidations(consolidations::ConsolidationsArgs),
    /// Takes back what one tidying up did; what was changed since is left alone
    Undo(consolidations::UndoArgs),
}

#[derive(Args, Debug)]
pub(crate) struct AddArgs {
    /// What to remember, or `-` to read it from stdin
    text: String,
    /// What kind of thing it is
    #[arg(long, default_value = "note")]
    kind: String,
    /// A word to file it under; may be repeated
    #[arg(long = "tag", value_name = "WORD")]
    tags: Vec<String>,
    /// Who said it
    #[arg(long)]
    actor: Option<String>,
    /// In which conversation; memories of one conversation help each other to be found
    #[arg(long)]
    session: Option<String>,
    /// Where it comes from
    #[arg(long)]
    source: Option<String>,
    /// When it happened [default: now]
    #[arg(long, value_name = "RFC3339", value_parser = time::parse_timestamp)]
    occurred_at: Option<Timestamp>,
    #[command(flatten)]
    scope: ScopeArgs,
}

#[derive(Args, Debug)]
pub(crate) struct SearchArgs {
    /// In your own words; an empty one lists the newest
    query: String,
    /// How many
    #[arg(long, default_value_t = 10)]
    limit: u32,
    /// Only those of this kind
    #[arg(long)]
    kind: Option<String>,
    /// Only what happened since
    #[arg(long, value_name = "RFC3339", value_parser = time::parse_timestamp)]
    since: Option<Timestamp>,
    #[command(flatten)]
    scope: ScopeArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// How many
    #[arg(long, default_value_t = 20)]
    limit: u32,
    /// Those that follow the memory of this id
    #[arg(long, value_name = "ID")]
    after: Option<String>,
    /// Only those of this kind
    #[arg(long)]
    kind: Option<String>,
    /// With this status: active, quarantined or forgotten
    #[arg(long, default_value = "active", value_parser = ["active", "quarantined", "forgotten"])]
    status: String,
    #[command(flatten)]
    scope: ScopeArgs,
}

#[derive(Args, Debug)]
pub(crate) struct IdArgs {
    /// The memory's id
    id: String,
    #[command(flatten)]
    scope: ScopeArgs,
}

pub(crate) fn run(command: &MemoryCommand, context: &Context) -> Result<ExitCode, CliError> {
    match command {
        MemoryCommand::Add(args) => add(args, context),
        MemoryCommand::Search(args) => search(args, context),
        MemoryCommand::List(args) => list(args, context),
        MemoryCommand::Forget(args) => forget(args, context),
        MemoryCommand::Release(args) => release(args, context),
        MemoryCommand::History(args) => history(args, context),
        MemoryCommand::Export(args) => export(args, context),
        MemoryCommand::Import(args) => import(args, context),
        MemoryCommand::Held(args) => list_held(args, context),
        MemoryCommand::Commitments(args) => commitments::list(args, context),
        MemoryCommand::Settle(args) => commitments::settle(args, context),
        MemoryCommand::Consolidations(args) => consolidations::list(args, context),
        MemoryCommand::Undo(args) => consolidations::undo(args, context),
    }
}

fn add(args: &AddArgs, context: &Context) -> Result<ExitCode, CliError> {
    let scope = args.scope.resolve()?;
    let memory = NewMemory {
        kind: args.kind.clone(),
        tags: args.tags.clone(),
        actor: args.actor.clone(),
        session: args.session.clone(),
        source: args.source.clone(),
        occurred_at: args.occurred_at.map(Timestamp::as_microsecond),
        ..NewMemory::note(&input::text(&args.text)?, OPERATOR, OWNER)
    };
    let saved = store::with(context, async |store| Ok(store.memories().save(&scope, memory).await?))?;
    if context.json {
        let status = saved.status.name();
        output::json(
            &json!({ "id": saved.id, "version": saved.version, "status": status, "repeated": saved.repeated }),
        )?;
    } else {
        output::plain(&format!("{}\n", saved.id))?;
        if saved.repeated {
            output::stderr_line("it was there already");
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn search(args: &SearchArgs, context: &Context) -> Result<ExitCode, CliError> {
    let scope = args.scope.resolve()?;
    let search = MemorySearch {
        query: args.query.clone(),
        limit: args.limit,
        kind: args.kind.clone(),
        since: args.since.map(Timestamp::as_microsecond),
    };
    let found =
        store::with_existing(context, async |store| Ok(store.memories().search(&scope, &search).await?))?;
    let found = found.unwrap_or_default();
    show(
        &found.iter().map(|FoundMemory { memory, score }| (memory, Some(*score))).collect::<Vec<_>>(),
        context,
    )
}

fn list(args: &ListArgs, context: &Context) -> Result<ExitCode, CliError> {
    let scope = args.scope.resolve()?;
    let list = MemoryList {
        status: MemoryStatus::from_name(&args.status).unwrap_or(MemoryStatus::Active),
        kind: args.kind.clone(),
        since: None,
        after: args.after.clone(),
        limit: args.limit,
    };
    let found =
        store::with_existing(context, async |store| Ok(store.memories().list(&scope, &list).await?))?;
    let found = found.unwrap_or_default();
    show(&found.iter().map(|memory| (memory, None)).collect::<Vec<_>>(), context)
}

fn show(found: &[(&Memory, Option<f64>)], context: &Context) -> Result<ExitCode, CliError> {
    if context.json {
        let memories: Vec<_> = found.iter().map(|(memory, score)| as_json(memory, *score)).collect();
        output::json(&json!({ "memories": memories }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = String::new();
    for (memory, score) in found {
        push(&mut out, memory, *score);
    }
    if found.is_empty() {
        out.push_str("Nothing is remembered that fits.\n");
    }
    output::styled(&out)?;
    Ok(ExitCode::SUCCESS)
}

fn push(out: &mut String, memory: &Memory, score: Option<f64>) {
    const SCORE: Style = AnsiColor::Green.on_default();
    let score = score.map_or(String::new(), |score| format!("{SCORE}{score:.3}{SCORE:#}  "));
    let said = memory.actor.as_ref().map_or(String::new(), |actor| format!("  {}", printable(actor)));
    let (when, kind) = (time::display(memory.occurred_at), printable(&memory.kind));
    let _ = writeln!(out, "{score}{DIM}{}  {when}  {kind}{said}{DIM:#}", memory.id);
    for line in printable(&memory.text).lines() {
        let _ = writeln!(out, "  {line}");
    }
}

pub(crate) fn as_json(memory: &Memory, score: Option<f64>) -> serde_json::Value {
    json!({
        "id": memory.id,
        "text": memory.text,
        "kind": memory.kind,
        "score": score,
        "tags": memory.tags,
        "actor": memory.actor,
        "session": memory.session,
        "writer": memory.writer,
        "source": memory.source,
        "trust": memory.trust,
        "status": memory.status.name(),
        "version": memory.version,
        "occurred_at": time::rfc3339(memory.occurred_at),
        "created_at": time::rfc3339(memory.created_at),
    })
}

fn forget(args: &IdArgs, context: &Context) -> Result<ExitCode, CliError> {
    let scope = args.scope.resolve()?;
    changed(
        store::with_existing(context, async |store| Ok(store.memories().forget(&scope, &args.id).await?))?,
        args,
        context,
    )
}

fn release(args: &IdArgs, context: &Context) -> Result<ExitCode, CliError> {
    let scope = args.scope.resolve()?;
    changed(
        store::with_existing(context, async |store| Ok(store.memories().release(&scope, &args.id).await?))?,
        args,
        context,
    )
}

fn changed(memory: Option<Memory>, args: &IdArgs, context: &Context) -> Result<ExitCode, CliError> {
    let memory = memory.ok_or_else(|| not_found(&args.id))?;
    let (id, status) = (&memory.id, memory.status.name());
    context.print_plain(&json!({ "id": id, "status": status, "version": memory.version }), || {
        format!("{id} is {status}\n")
    })
}

/// The error of the store for an unknown id, for when there is no store.
fn not_found(id: &str) -> CliError {
    CliError::new(format!("there is no memory `{id}`"))
        .hint("`embody memory list` shows the ids; `--user` and `--agent` say whose")
}

fn history(args: &IdArgs, context: &Context) -> Result<ExitCode, CliError> {
    let scope = args.scope.resolve()?;
    let versions =
        store::with_existing(context, async |store| Ok(store.memories().history(&scope, &args.id).await?))?;
    let versions = versions.unwrap_or_default();
    if versions.is_empty() {
        return Err(not_found(&args.id));
    }
    if context.json {
        let versions: Vec<_> = versions.iter().map(|memory| as_json(memory, None)).collect();
        output::json(&json!({ "versions": versions }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = String::new();
    for memory in &versions {
        let when = time::display(memory.changed_at);
        let _ = writeln!(out, "{HEAD}version {}{HEAD:#}  {when}  {}", memory.version, memory.status.name());
        for line in printable(&memory.text).lines() {
            let _ = writeln!(out, "  {line}");
        }
    }
    output::styled(&out)?;
    Ok(ExitCode::SUCCESS)
}

/// The largest file that is imported.
const IMPORT_LIMIT: u64 = 1024 * 1024 * 1024;

#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    scope: ScopeArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ImportArgs {
    /// The file, or `-` for stdin
    file: PathBuf,
    #[command(flatten)]
    scope: ScopeArgs,
}

fn export(args: &ExportArgs, context: &Context) -> Result<ExitCode, CliError> {
    let scope = args.scope.resolve()?;
    let exported = store::with_existing(context, async |store| {
        let mut out = StdoutStream::new();
        let written = store.memories().export(&scope, &mut out).await;
        out.finish(written)
    })?;
    if let Some(count) = exported.unwrap_or(Some(0)) {
        output::stderr_line(&format!("{count} memories of {} and {}", scope.user(), scope.agent()));
    }
    Ok(ExitCode::SUCCESS)
}

fn import(args: &ImportArgs, context: &Context) -> Result<ExitCode, CliError> {
    let scope = args.scope.resolve()?;
    let lines = input::file(&args.file, IMPORT_LIMIT)?.ok_or_else(|| {
        CliError::new(format!("`{}` is larger than {IMPORT_LIMIT} bytes", args.file.display()))
            .hint("import it in several parts: every line stands for itself")
    })?;
    let done = store::with(context, async |store| {
        store.memories().import(&scope, &lines).await.map_err(|error| import_error(&args.file, error))
    })?;
    context.print_plain(&json!({ "added": done.added, "unchanged": done.unchanged }), || {
        format!("{} added, {} were there already\n", done.added, done.unchanged)
    })
}

/// Adds the name of the file to an error about its lines.
fn import_error(file: &Path, error: embody_store::Error) -> CliError {
    if error.kind() != ErrorKind::Invalid {
        return error.into();
    }
    let name = if file == Path::new("-") { "stdin".to_owned() } else { format!("`{}`", file.display()) };
    CliError::new(format!("{name} cannot be imported"))
        .caused_by(&error)
        .hint("it takes the lines that `embody memory export` writes")
}

#[derive(Args, Debug)]
pub(crate) struct HeldArgs {
    /// How many
    #[arg(long, default_value_t = 20)]
    limit: u32,
    #[command(flatten)]
    scope: ScopeArgs,
}

fn list_held(args: &HeldArgs, context: &Context) -> Result<ExitCode, CliError> {
    let scope = args.scope.resolve()?;
    let found = store::with_existing(context, async |store| {
        Ok(store.mind_log().list_held(&scope, args.limit).await?)
    })?;
    let found = found.unwrap_or_default();
    if context.json {
        let held: Vec<_> = found.iter().map(held_json).collect();
        output::json(&json!({ "held": held }))?;
    } else {
        output::styled(&held_text(&found))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn held_text(found: &[LogEntry]) -> String {
    if found.is_empty() {
        return "Nothing is held back.\n".to_owned();
    }
    let mut out = String::new();
    for LogEntry { seq, entry } in found {
        let (when, kind, writer) =
            (time::display(entry.at), printable(&entry.kind), printable(&entry.writer));
        let _ = writeln!(out, "{DIM}{seq}  {when}  {kind}  {writer} ({}){DIM:#}", printable(&entry.trust));
        for line in printable(&entry.text).lines() {
            let _ = writeln!(out, "  {line}");
        }
    }
    out
}

fn held_json(LogEntry { seq, entry }: &LogEntry) -> serde_json::Value {
    json!({
        "number": seq,
        "at": time::rfc3339(entry.at),
        "session": entry.session,
        "kind": entry.kind,
        "writer": entry.writer,
        "trust": entry.trust,
        "text": entry.text,
    })
}
