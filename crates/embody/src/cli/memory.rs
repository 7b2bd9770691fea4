//! `embody memory …`: the memories of an agent about a user, open commitments, and what the mind consolidated.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use clap::{Args, Subcommand};
use embody_store::ErrorKind;
use embody_store::commitments::{Commitment, CommitmentStatus};
use embody_store::consolidations::{ConsolidationRun, UndoResult};
use embody_store::memories::{FoundMemory, Memory, MemoryList, MemorySearch, MemoryStatus, NewMemory};
use embody_store::mind_log::LogEntry;
use embody_store::{IdSet, Scope, ShortIds, Store};
use jiff::Timestamp;
use serde_json::json;

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
  embody memory held
  embody memory export > memories.jsonl
  embody memory import memories.jsonl --user ann
  embody memory commitments";

#[derive(Subcommand, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) enum MemoryCommand {
    /// Save a memory
    Add(AddArgs),
    /// Search memories, best match first
    Search(SearchArgs),
    /// List memories, newest first
    List(ListArgs),
    /// Remove a memory from search; its history is kept
    Forget(IdArgs),
    /// Release a quarantined memory, so that searches find it
    Release(IdArgs),
    /// Show every version of a memory, the current one first
    History(IdArgs),
    /// Print every memory with its history as JSON Lines
    Export(ScopeArgs),
    /// Import the output of `export`, all of it or nothing
    Import(ImportArgs),
    /// List statements given to `reflect` that are withheld because they read like orders, newest first
    Held(HeldArgs),
    /// List open commitments
    Commitments(CommitmentsArgs),
    /// Mark a commitment as done, dropped or open again
    Settle(SettleArgs),
    /// List the mind's consolidation runs, newest first
    Consolidations(ConsolidationsArgs),
    /// Undo a consolidation run; what changed since then stays
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
    /// Start after the memory with this id
    #[arg(long, value_name = "ID")]
    after: Option<String>,
    /// Only memories of this kind
    #[arg(long)]
    kind: Option<String>,
    /// The status: active, quarantined or forgotten
    #[arg(long, default_value = "active", value_parser = ["active", "quarantined", "forgotten"])]
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
        MemoryCommand::Forget(args) => forget(args, context),
        MemoryCommand::Release(args) => release(args, context),
        MemoryCommand::History(args) => history(args, context),
        MemoryCommand::Export(args) => export(args, context),
        MemoryCommand::Import(args) => import(args, context),
        MemoryCommand::Held(args) => list_held(args, context),
        MemoryCommand::Commitments(args) => list_commitments(args, context),
        MemoryCommand::Settle(args) => settle(args, context),
        MemoryCommand::Consolidations(args) => list_consolidations(args, context),
        MemoryCommand::Undo(args) => undo(args, context),
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

fn history(args: &IdArgs, context: &Context) -> Result<ExitCode, CliError> {
    let scope = args.scope.resolve()?;
    let versions = store::with_existing(context, async |store| {
        let id = memory_id(store, &scope, &args.id).await?;
        Ok(store.memories().history(&scope, &id).await?)
    })?;
    let versions = versions.unwrap_or_default();
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

fn list_held(args: &HeldArgs, context: &Context) -> Result<ExitCode, CliError> {
    let scope = args.scope.resolve()?;
    let found = store::with_existing(context, async |store| {
        Ok(store.mind_log().list_held(&scope, args.limit).await?)
    })?;
    context.print_list("held", &found.unwrap_or_default(), held_json, held_text)
}

fn held_text(found: &[LogEntry]) -> String {
    if found.is_empty() {
        return "No withheld statements.\n".to_owned();
    }
    let mut out = String::new();
    for LogEntry { seq, entry } in found {
        let (when, kind, writer) =
            (time::display(entry.at), printable(&entry.kind), printable(&entry.writer));
        let _ = writeln!(out, "{DIM}{seq}  {when}  {kind}  {writer} ({}){DIM:#}", printable(&entry.trust));
        push_indented(&mut out, &entry.text);
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

fn list_commitments(args: &CommitmentsArgs, context: &Context) -> Result<ExitCode, CliError> {
    let scope = args.scope.resolve()?;
    let statuses = if args.all { &CommitmentStatus::ALL[..] } else { &[CommitmentStatus::Open] };
    let found = store::with_existing(context, async |store| {
        let mut found = Vec::new();
        for status in statuses {
            found.extend(store.commitments().list(&scope, *status, args.limit).await?);
        }
        let ids = found.iter().map(|commitment| &commitment.id);
        Ok((ids::shorten(context, store, IdSet::Commitments(&scope), ids).await?, found))
    })?;
    let (short, found) = found.unwrap_or_default();
    context.print_list("commitments", &found, commitment_json, |found| commitments_text(found, &short))
}

fn settle(args: &SettleArgs, context: &Context) -> Result<ExitCode, CliError> {
    let scope = args.scope.resolve()?;
    let status = CommitmentStatus::from_name(&args.status).unwrap_or(CommitmentStatus::Done);
    let now = Timestamp::now().as_microsecond();
    let settled = store::with_existing(context, async |store| {
        let id = ids::resolve(store, IdSet::Commitments(&scope), &args.id, commitment_not_found).await?;
        Ok(store.commitments().set_status(&scope, &id, status, now).await?)
    })?;
    let settled = settled.ok_or_else(|| commitment_not_found(&args.id))?;
    let (id, status) = (&settled.id, settled.status.name());
    context.print_plain(&json!({ "id": id, "status": status }), || format!("{id} is {status}\n"))
}

fn commitment_not_found(id: &str) -> CliError {
    CliError::new(format!("unknown commitment `{id}`"))
        .hint("`embody memory commitments` lists them; `--user` and `--agent` select the user and the agent")
}

fn commitments_text(found: &[Commitment], short: &ShortIds) -> String {
    if found.is_empty() {
        return "No commitments.\n".to_owned();
    }
    let now = Timestamp::now().as_microsecond();
    let mut out = String::new();
    for Commitment { id, status, said: commitment, .. } in found {
        let due = commitment.due_at.map_or(String::new(), |due_at| {
            let verb = if due_at < now { "was due" } else { "due" };
            format!("  {verb} {}", time::display(due_at))
        });
        let (status, who) = (status.name(), printable(&commitment.who));
        let _ = writeln!(out, "{DIM}{}  {status}  {who}{due}{DIM:#}", short.of(id));
        push_indented(&mut out, &commitment.text);
    }
    out
}

fn commitment_json(commitment: &Commitment) -> serde_json::Value {
    let said = &commitment.said;
    json!({
        "id": commitment.id,
        "status": commitment.status.name(),
        "who": said.who,
        "text": said.text,
        "due_at": said.due_at.map(time::rfc3339),
        "sentence": said.sentence,
        "session": commitment.session,
        "writer": commitment.writer,
        "trust": commitment.trust,
        "created_at": time::rfc3339(commitment.created_at),
        "changed_at": time::rfc3339(commitment.changed_at),
    })
}

fn list_consolidations(args: &ConsolidationsArgs, context: &Context) -> Result<ExitCode, CliError> {
    let scope = args.scope.resolve()?;
    let runs = store::with_existing(context, async |store| {
        let runs = store.consolidations().list(&scope, args.limit).await?;
        let ids = runs.iter().map(|run| &run.id);
        Ok((ids::shorten(context, store, IdSet::Consolidations(&scope), ids).await?, runs))
    })?;
    let (short, runs) = runs.unwrap_or_default();
    context.print_list("consolidations", &runs, consolidation_json, |runs| consolidations_text(runs, &short))
}

fn undo(args: &UndoArgs, context: &Context) -> Result<ExitCode, CliError> {
    let scope = args.scope.resolve()?;
    let now = Timestamp::now().as_microsecond();
    let undone = store::with_existing(context, async |store| {
        let run = ids::resolve(store, IdSet::Consolidations(&scope), &args.run, run_not_found).await?;
        Ok(store.consolidations().undo(&scope, &run, now).await?)
    })?;
    let UndoResult { memories, commitments, entries, left } =
        undone.ok_or_else(|| run_not_found(&args.run))?;
    if context.json {
        output::json(
            &json!({ "memories": memories, "commitments": commitments, "log_entries": entries, "left": left }),
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    output::plain(&format!(
        "restored: memories {memories}, commitments {commitments}, log entries {entries}\n"
    ))?;
    if left > 0 {
        output::stderr_line(&format!(
            "not restored, because they changed since then or were removed: {left}"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn run_not_found(id: &str) -> CliError {
    CliError::new(format!("unknown consolidation `{id}`")).hint(
        "`embody memory consolidations` lists them; `--user` and `--agent` select the user and the agent",
    )
}

fn consolidations_text(runs: &[ConsolidationRun], short: &ShortIds) -> String {
    if runs.is_empty() {
        return "No consolidation runs yet.\n".to_owned();
    }
    let mut out = format!(
        "{HEAD}{:13}  {:20}  {:>8}  {:>6}  {:>6}{HEAD:#}\n",
        "run", "when", "memories", "lapsed", "log"
    );
    for ConsolidationRun { id, at, merged, lapsed, pruned, undone_at } in runs {
        let back = undone_at
            .map_or(String::new(), |undone_at| format!("  {DIM}undone {}{DIM:#}", time::display(undone_at)));
        let when = time::display(*at);
        let _ = writeln!(out, "{:13}  {when:20}  {merged:>8}  {lapsed:>6}  {pruned:>6}{back}", short.of(id));
    }
    out
}

fn consolidation_json(run: &ConsolidationRun) -> serde_json::Value {
    json!({
        "id": run.id,
        "at": time::rfc3339(run.at),
        "merged": run.merged,
        "lapsed": run.lapsed,
        "pruned": run.pruned,
        "undone_at": run.undone_at.map(time::rfc3339),
    })
}
