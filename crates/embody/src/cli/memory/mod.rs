//! `embody memory …`: the memories of an agent about a user, open commitments, and what the mind consolidated.

mod mind;
mod one;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use clap::{Args, Subcommand};
use embody_store::ErrorKind;
use embody_store::memories::{FoundMemory, Memory, MemoryList, MemorySearch, MemoryStatus, NewMemory};
use embody_store::{IdSet, Scope, ShortIds, Store};
use jiff::Timestamp;
use serde_json::json;

use self::one::{EditArgs, EraseArgs};
use super::args::{read_file, read_text};
use super::{Context, ScopeArgs, ids};
use crate::error::CliError;
use crate::memory::memory_json;
use crate::output::{self, StdoutStream, printable};
use crate::{store, time};

/// A person at the terminal with access to the store acts as its owner.
const OPERATOR: &str = "operator";
const OWNER: &str = "owner";
const HEAD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const EXAMPLES: &str = "Examples:
  embody memory add 'Ann is on leave until 3 May.' --actor Ann --session standup
  embody memory search 'when is Ann back?'
  embody memory list --status quarantined
  embody memory show 8f21c0de
  embody memory edit 8f21c0de
  embody memory erase 8f21c0de              remove its text from everything that is stored
  embody memory held
  embody memory export > memories.jsonl
  embody memory import memories.jsonl --user ann
  embody memory commitments";

#[derive(Subcommand, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) enum MemoryCommand {
    /// Save a memory
    #[command(
        after_help = "Examples:\n  embody memory add 'Ann is on leave until 3 May.' --actor Ann\n  git log -1 --format=%B | embody memory add - --kind commit"
    )]
    Add(AddArgs),
    /// Search memories, best match first
    #[command(
        after_help = "Examples:\n  embody memory search 'when is Ann back?'\n  embody memory search '' --since 2026-11-01T00:00:00Z --json"
    )]
    Search(SearchArgs),
    /// List memories, newest first
    #[command(
        after_help = "Examples:\n  embody memory list\n  embody memory list --status quarantined --limit 100"
    )]
    List(ListArgs),
    /// Show one memory: its text, where it comes from, its versions
    #[command(after_help = "Examples:\n  embody memory show 8f21c0de\n  embody memory show 8f21c0de --json")]
    Show(IdArgs),
    /// Change the text of a memory, in your editor or with --text; the version before stays in its history
    Edit(EditArgs),
    /// Remove a memory from search; its history is kept
    #[command(after_help = "Examples:\n  embody memory forget 8f21c0de")]
    Forget(IdArgs),
    /// Remove the text of a memory from everything that is stored; only its id and the time stay
    Erase(EraseArgs),
    /// Release a quarantined memory, so that searches find it
    #[command(
        after_help = "Examples:\n  embody memory list --status quarantined\n  embody memory release 8f21c0de"
    )]
    Release(IdArgs),
    /// Show every version of a memory, the current one first
    #[command(after_help = "Examples:\n  embody memory history 8f21c0de")]
    History(IdArgs),
    /// Print every memory with its history as JSON Lines
    #[command(
        after_help = "Examples:\n  embody memory export > memories.jsonl\n  embody memory export --user ann --agent coach > ann.jsonl"
    )]
    Export(ScopeArgs),
    /// Import the output of `export`, all of it or nothing
    #[command(after_help = "Examples:\n  embody memory import memories.jsonl --user ann")]
    Import(ImportArgs),
    /// List statements given to `reflect` that are withheld because they read like orders, newest first
    #[command(after_help = "Examples:\n  embody memory held")]
    Held(HeldArgs),
    /// List open commitments
    #[command(
        after_help = "Examples:\n  embody memory commitments\n  embody memory commitments --all --json"
    )]
    Commitments(CommitmentsArgs),
    /// Mark a commitment as done, dropped or open again
    #[command(
        after_help = "Examples:\n  embody memory settle 8f21c0de\n  embody memory settle 8f21c0de --as dropped"
    )]
    Settle(SettleArgs),
    /// List the mind's consolidation runs, newest first
    #[command(after_help = "Examples:\n  embody memory consolidations")]
    Consolidations(ConsolidationsArgs),
    /// Undo a consolidation run; what changed since then stays
    #[command(after_help = "Examples:\n  embody memory consolidations\n  embody memory undo 8f21c0de")]
    Undo(UndoArgs),
}

#[derive(Args, Debug)]
pub(crate) struct AddArgs {
    /// The text to remember, or `-` to read it from stdin
    text: String,
    /// The kind of memory
    #[arg(long, default_value = "note")]
    kind: String,
    /// A tag; may be repeated
    #[arg(long = "tag", value_name = "WORD")]
    tags: Vec<String>,
    /// The person who said it
    #[arg(long)]
    actor: Option<String>,
    /// The conversation; memories of one conversation improve each other's ranking
    #[arg(long)]
    session: Option<String>,
    /// The source
    #[arg(long)]
    source: Option<String>,
    /// The time of the event [default: now]
    #[arg(long, value_name = "RFC3339", value_parser = time::parse_timestamp)]
    occurred_at: Option<Timestamp>,
    #[command(flatten)]
    scope: ScopeArgs,
}

#[derive(Args, Debug)]
pub(crate) struct SearchArgs {
    /// The query in plain words; an empty query lists the newest memories
    query: String,
    /// The maximum number of results
    #[arg(long, default_value_t = 10)]
    limit: u32,
    /// Only memories of this kind
    #[arg(long)]
    kind: Option<String>,
    /// Only events since this time
    #[arg(long, value_name = "RFC3339", value_parser = time::parse_timestamp)]
    since: Option<Timestamp>,
    #[command(flatten)]
    scope: ScopeArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// The maximum number of results
    #[arg(long, default_value_t = 20)]
    limit: u32,
    /// Start after the memory with this id, or its end
    #[arg(long, value_name = "ID")]
    after: Option<String>,
    /// Only memories of this kind
    #[arg(long)]
    kind: Option<String>,
    /// The status: active, quarantined, forgotten or erased
    #[arg(long, default_value = "active", value_parser = ["active", "quarantined", "forgotten", "erased"])]
    status: String,
    #[command(flatten)]
    scope: ScopeArgs,
}

#[derive(Args, Debug)]
pub(crate) struct IdArgs {
    /// The memory's id, or its end
    id: String,
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

#[derive(Args, Debug)]
pub(crate) struct HeldArgs {
    /// The maximum number of results
    #[arg(long, default_value_t = 20)]
    limit: u32,
    #[command(flatten)]
    scope: ScopeArgs,
}

#[derive(Args, Debug)]
pub(crate) struct CommitmentsArgs {
    /// Include done, dropped and lapsed commitments
    #[arg(long)]
    all: bool,
    /// The number of each kind
    #[arg(long, default_value_t = 100)]
    limit: u32,
    #[command(flatten)]
    scope: ScopeArgs,
}

#[derive(Args, Debug)]
pub(crate) struct SettleArgs {
    /// The commitment's id, or its end
    id: String,
    /// The new status: done, dropped or open
    #[arg(long = "as", value_name = "STATUS", default_value = "done", value_parser = ["done", "dropped", "open"])]
    status: String,
    #[command(flatten)]
    scope: ScopeArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ConsolidationsArgs {
    /// The maximum number of results
    #[arg(long, default_value_t = 20)]
    limit: u32,
    #[command(flatten)]
    scope: ScopeArgs,
}

#[derive(Args, Debug)]
pub(crate) struct UndoArgs {
    /// The id of the run, or its end
    run: String,
    #[command(flatten)]
    scope: ScopeArgs,
}

pub(crate) fn run(command: &MemoryCommand, context: &Context) -> Result<ExitCode, CliError> {
    match command {
        MemoryCommand::Add(args) => add(args, context),
        MemoryCommand::Search(args) => search(args, context),
        MemoryCommand::List(args) => list(args, context),
        MemoryCommand::Show(args) => one::show(args, context),
        MemoryCommand::Edit(args) => one::edit(args, context),
        MemoryCommand::Erase(args) => one::erase(args, context),
        MemoryCommand::Forget(args) => forget(args, context),
        MemoryCommand::Release(args) => release(args, context),
        MemoryCommand::History(args) => history(args, context),
        MemoryCommand::Export(args) => export(args, context),
        MemoryCommand::Import(args) => import(args, context),
        MemoryCommand::Held(args) => mind::list_held(args, context),
        MemoryCommand::Commitments(args) => mind::list_commitments(args, context),
        MemoryCommand::Settle(args) => mind::settle(args, context),
        MemoryCommand::Consolidations(args) => mind::list_consolidations(args, context),
        MemoryCommand::Undo(args) => mind::undo(args, context),
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
        ..NewMemory::note(&read_text(&args.text)?, OPERATOR, OWNER)
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
            output::stderr_line("the memory exists already");
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
    let found = store::with_existing(context, async |store| {
        let found = store.memories().search(&scope, &search).await?;
        let ids = found.iter().map(|found| &found.memory.id);
        Ok((ids::shorten(context, store, IdSet::Memories(&scope), ids).await?, found))
    })?;
    let (short, found) = found.unwrap_or_default();
    let scored = |found: FoundMemory| (found.memory, Some(found.score));
    show(found.into_iter().map(scored).collect(), &short, context)
}

fn list(args: &ListArgs, context: &Context) -> Result<ExitCode, CliError> {
    let scope = args.scope.resolve()?;
    let list = |after| MemoryList {
        status: MemoryStatus::from_name(&args.status).unwrap_or(MemoryStatus::Active),
        kind: args.kind.clone(),
        since: None,
        after,
        limit: args.limit,
    };
    let found = store::with_existing(context, async |store| {
        let set = IdSet::Memories(&scope);
        let after = match &args.after {
            Some(id) => Some(ids::resolve(store, set, id, not_found).await?),
            None => None,
        };
        let found = store.memories().list(&scope, &list(after)).await?;
        Ok((ids::shorten(context, store, set, found.iter().map(|memory| &memory.id)).await?, found))
    })?;
    let (short, found) = found.unwrap_or_default();
    show(found.into_iter().map(|memory| (memory, None)).collect(), &short, context)
}

fn show(
    found: Vec<(Memory, Option<f64>)>,
    short: &ShortIds,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let json = |(memory, score): &(Memory, Option<f64>)| memory_json(memory, *score);
    context.print_list("memories", &found, json, |found| match found {
        [] => "No matching memory.\n".to_owned(),
        found => found.iter().map(|(memory, score)| as_text(memory, short.of(&memory.id), *score)).collect(),
    })
}

fn as_text(memory: &Memory, id: &str, score: Option<f64>) -> String {
    const SCORE: Style = AnsiColor::Green.on_default();
    let score = score.map_or(String::new(), |score| format!("{SCORE}{score:.3}{SCORE:#}  "));
    let actor = memory.actor.as_ref().map_or(String::new(), |actor| format!("  {}", printable(actor)));
    let (when, kind) = (time::display(memory.occurred_at), printable(&memory.kind));
    let mut out = format!("{score}{DIM}{id}  {when}  {kind}{actor}{DIM:#}\n");
    push_indented(&mut out, &memory.text);
    out
}

fn push_indented(out: &mut String, text: &str) {
    for line in printable(text).lines() {
        let _ = writeln!(out, "  {line}");
    }
}

fn forget(args: &IdArgs, context: &Context) -> Result<ExitCode, CliError> {
    let scope = args.scope.resolve()?;
    print_status(
        store::with_existing(context, async |store| {
            let id = memory_id(store, &scope, &args.id).await?;
            Ok(store.memories().forget(&scope, &id).await?)
        })?,
        args,
        context,
    )
}

fn release(args: &IdArgs, context: &Context) -> Result<ExitCode, CliError> {
    let scope = args.scope.resolve()?;
    print_status(
        store::with_existing(context, async |store| {
            let id = memory_id(store, &scope, &args.id).await?;
            Ok(store.memories().release(&scope, &id).await?)
        })?,
        args,
        context,
    )
}

fn print_status(memory: Option<Memory>, args: &IdArgs, context: &Context) -> Result<ExitCode, CliError> {
    let memory = memory.ok_or_else(|| not_found(&args.id))?;
    let (id, status) = (&memory.id, memory.status.name());
    context.print_plain(&json!({ "id": id, "status": status, "version": memory.version }), || {
        format!("{id} is {status}\n")
    })
}

/// The error of the store for an unknown id, for when there is no store.
fn not_found(id: &str) -> CliError {
    CliError::new(format!("unknown memory `{id}`"))
        .hint("`embody memory list` shows the ids; `--user` and `--agent` select the user and the agent")
}

async fn memory_id(store: &Store, scope: &Scope, given: &str) -> Result<String, CliError> {
    ids::resolve(store, IdSet::Memories(scope), given, not_found).await
}

/// All versions of a memory, newest first; empty without a store.
fn versions(args: &IdArgs, context: &Context) -> Result<Vec<Memory>, CliError> {
    let scope = args.scope.resolve()?;
    let versions = store::with_existing(context, async |store| {
        let id = memory_id(store, &scope, &args.id).await?;
        Ok(store.memories().history(&scope, &id).await?)
    })?;
    Ok(versions.unwrap_or_default())
}

fn history(args: &IdArgs, context: &Context) -> Result<ExitCode, CliError> {
    let versions = versions(args, context)?;
    if versions.is_empty() {
        return Err(not_found(&args.id));
    }
    context.print_list("versions", &versions, |memory| memory_json(memory, None), history_text)
}

fn history_text(versions: &[Memory]) -> String {
    let mut out = String::new();
    for memory in versions {
        let when = time::display(memory.changed_at);
        let _ = writeln!(out, "{HEAD}version {}{HEAD:#}  {when}  {}", memory.version, memory.status.name());
        push_indented(&mut out, &memory.text);
    }
    out
}

const IMPORT_LIMIT: u64 = 1024 * 1024 * 1024;

fn export(scope: &ScopeArgs, context: &Context) -> Result<ExitCode, CliError> {
    let scope = scope.resolve()?;
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
    let lines = read_file(&args.file, IMPORT_LIMIT)?.ok_or_else(|| {
        CliError::new(format!("`{}` is larger than {IMPORT_LIMIT} bytes", args.file.display()))
            .hint("split it: every line is independent")
    })?;
    let done = store::with(context, async |store| {
        store.memories().import(&scope, &lines).await.map_err(|error| import_error(&args.file, error))
    })?;
    context.print_plain(&json!({ "added": done.added, "unchanged": done.unchanged }), || {
        format!("{} added, {} unchanged\n", done.added, done.unchanged)
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
        .hint("the file must be the output of `embody memory export`")
}
