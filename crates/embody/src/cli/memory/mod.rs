//! `embody memory …`: what an agent remembers about a user, what is to be done, and how it was tidied up.

mod commitments;
mod consolidations;
mod held;
mod transfer;

use std::fmt::Write;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use clap::{Args, Subcommand};
use embody_store::{FoundMemory, Memory, MemoryList, MemorySearch, MemoryStatus, NewMemory};
use jiff::Timestamp;
use serde_json::json;

use super::{Context, Who};
use crate::failure::Failure;
use crate::input;
use crate::output::{self, printable};
use crate::store;
use crate::time;

/// Whoever sits at the terminal with the store's address is its owner.
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

/// What to do with them.
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
    Export(transfer::ExportArgs),
    /// Takes in what `export` wrote, all of it or nothing
    Import(transfer::ImportArgs),
    /// Lists what `reflect` was told and holds back since it reads like an order, newest first
    Held(held::HeldArgs),
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
    #[arg(long, value_name = "RFC3339", value_parser = time::moment)]
    occurred_at: Option<Timestamp>,
    #[command(flatten)]
    who: Who,
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
    #[arg(long, value_name = "RFC3339", value_parser = time::moment)]
    since: Option<Timestamp>,
    #[command(flatten)]
    who: Who,
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
    who: Who,
}

#[derive(Args, Debug)]
pub(crate) struct IdArgs {
    /// The memory's id
    id: String,
    #[command(flatten)]
    who: Who,
}

pub(crate) fn run(command: &MemoryCommand, context: &Context) -> Result<ExitCode, Failure> {
    match command {
        MemoryCommand::Add(args) => add(args, context),
        MemoryCommand::Search(args) => search(args, context),
        MemoryCommand::List(args) => list(args, context),
        MemoryCommand::Forget(args) => forget(args, context),
        MemoryCommand::Release(args) => release(args, context),
        MemoryCommand::History(args) => history(args, context),
        MemoryCommand::Export(args) => transfer::export(args, context),
        MemoryCommand::Import(args) => transfer::import(args, context),
        MemoryCommand::Held(args) => held::list(args, context),
        MemoryCommand::Commitments(args) => commitments::list(args, context),
        MemoryCommand::Settle(args) => commitments::settle(args, context),
        MemoryCommand::Consolidations(args) => consolidations::list(args, context),
        MemoryCommand::Undo(args) => consolidations::undo(args, context),
    }
}

fn add(args: &AddArgs, context: &Context) -> Result<ExitCode, Failure> {
    let scope = args.who.scope()?;
    let memory = NewMemory {
        kind: args.kind.clone(),
        tags: args.tags.clone(),
        actor: args.actor.clone(),
        session: args.session.clone(),
        source: args.source.clone(),
        occurred_at: args.occurred_at.map(Timestamp::as_microsecond),
        ..NewMemory::note(&input::text(&args.text)?, OPERATOR, OWNER)
    };
    let saved = store::with(context, async |store| Ok(store.save_memory(&scope, memory).await?))?;
    if context.json {
        let status = saved.status.name();
        output::json(
            &json!({ "id": saved.id, "version": saved.version, "status": status, "repeated": saved.repeated }),
        )?;
    } else {
        output::plain(&format!("{}\n", saved.id))?;
        if saved.repeated {
            output::aside("it was there already");
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn search(args: &SearchArgs, context: &Context) -> Result<ExitCode, Failure> {
    let scope = args.who.scope()?;
    let search = MemorySearch {
        query: args.query.clone(),
        limit: args.limit,
        kind: args.kind.clone(),
        since: args.since.map(Timestamp::as_microsecond),
    };
    let found = store::read(context, async |store| Ok(store.search_memories(&scope, &search).await?))?;
    let found = found.unwrap_or_default();
    show(
        &found.iter().map(|FoundMemory { memory, score }| (memory, Some(*score))).collect::<Vec<_>>(),
        context,
    )
}

fn list(args: &ListArgs, context: &Context) -> Result<ExitCode, Failure> {
    let scope = args.who.scope()?;
    let list = MemoryList {
        status: MemoryStatus::from_name(&args.status).unwrap_or(MemoryStatus::Active),
        kind: args.kind.clone(),
        since: None,
        after: args.after.clone(),
        limit: args.limit,
    };
    let found = store::read(context, async |store| Ok(store.list_memories(&scope, &list).await?))?;
    let found = found.unwrap_or_default();
    show(&found.iter().map(|memory| (memory, None)).collect::<Vec<_>>(), context)
}

fn show(found: &[(&Memory, Option<f64>)], context: &Context) -> Result<ExitCode, Failure> {
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
    let (when, kind) = (time::shown(memory.occurred_at), printable(&memory.kind));
    let _ = writeln!(out, "{score}{DIM}{}  {when}  {kind}{said}{DIM:#}", memory.id);
    for line in printable(&memory.text).lines() {
        let _ = writeln!(out, "  {line}");
    }
}

/// A memory for programs.
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

fn forget(args: &IdArgs, context: &Context) -> Result<ExitCode, Failure> {
    let scope = args.who.scope()?;
    changed(
        store::change(context, async |store| Ok(store.forget_memory(&scope, &args.id).await?))?,
        args,
        context,
    )
}

fn release(args: &IdArgs, context: &Context) -> Result<ExitCode, Failure> {
    let scope = args.who.scope()?;
    changed(
        store::change(context, async |store| Ok(store.release_memory(&scope, &args.id).await?))?,
        args,
        context,
    )
}

fn changed(memory: Option<Memory>, args: &IdArgs, context: &Context) -> Result<ExitCode, Failure> {
    let memory = memory.ok_or_else(|| missing(&args.id))?;
    let (id, status) = (&memory.id, memory.status.name());
    if context.json {
        output::json(&json!({ "id": id, "status": status, "version": memory.version }))?;
    } else {
        output::plain(&format!("{id} is {status}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What the store says of an id that it does not know, for when there is no store.
fn missing(id: &str) -> Failure {
    Failure::new(format!("there is no memory `{id}`"))
        .hint("`embody memory list` shows the ids; `--user` and `--agent` say whose")
}

fn history(args: &IdArgs, context: &Context) -> Result<ExitCode, Failure> {
    let scope = args.who.scope()?;
    let versions = store::read(context, async |store| Ok(store.memory_history(&scope, &args.id).await?))?;
    let versions = versions.unwrap_or_default();
    if versions.is_empty() {
        return Err(missing(&args.id));
    }
    if context.json {
        let versions: Vec<_> = versions.iter().map(|memory| as_json(memory, None)).collect();
        output::json(&json!({ "versions": versions }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = String::new();
    for memory in &versions {
        let when = time::shown(memory.changed_at);
        let _ = writeln!(out, "{HEAD}version {}{HEAD:#}  {when}  {}", memory.version, memory.status.name());
        for line in printable(&memory.text).lines() {
            let _ = writeln!(out, "  {line}");
        }
    }
    output::styled(&out)?;
    Ok(ExitCode::SUCCESS)
}
