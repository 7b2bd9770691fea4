//! One memory: shows it, changes its text, erases it.

use std::fmt::Write;
use std::io::{IsTerminal, stdin};
use std::process::ExitCode;

use clap::Args;
use embody_store::Scope;
use embody_store::memories::{EditOutcome, EraseReport, ErasedPlace, Memory, MemoryEdit, MemoryStatus};
use embody_text::truncate;
use serde_json::{Value, json};

use super::{DIM, HEAD, IdArgs, memory_id, not_found, push_indented, versions};
use crate::cli::args::read_text;
use crate::cli::editor::{self, EditedText};
use crate::cli::{Context, ScopeArgs, terminal};
use crate::error::CliError;
use crate::memory::memory_json;
use crate::output::{self, one_line, printable};
use crate::{store, time};

/// The store's limit.
const TEXT_LIMIT: usize = 64 * 1024;
const EXCERPT: usize = 60;

#[derive(Args, Debug)]
#[command(after_help = EDIT_EXAMPLES)]
pub(crate) struct EditArgs {
    /// The memory's id, or its end
    id: String,
    /// The new text, or `-` to read it from stdin [default: opens $VISUAL, $EDITOR or vi]
    #[arg(long)]
    text: Option<String>,
    #[command(flatten)]
    scope: ScopeArgs,
}

const EDIT_EXAMPLES: &str = "Examples:
  embody memory edit 8f21c0de
  embody memory edit 8f21c0de --text 'Ann is back on 4 May.'";

#[derive(Args, Debug)]
#[command(after_help = ERASE_HELP)]
pub(crate) struct EraseArgs {
    /// The memory's id, or its end
    id: String,
    /// Erase without asking
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    scope: ScopeArgs,
}

const ERASE_HELP: &str = "Removes the text from the memory and its history, and wherever else it stands literally in what is stored of the user: other \
memories, conversations, receipts of prompts, queues, approvals, audit records. `[erased]` stands in its place. It cannot be undone. Backups, \
exports, files of the workspace and what servers have received keep it.

Examples:
  embody memory erase 8f21c0de             show where the text is, ask, and erase it
  embody memory erase 8f21c0de --yes --json";

pub(super) fn show(args: &IdArgs, context: &Context) -> Result<ExitCode, CliError> {
    let versions = versions(args, context)?;
    let memory = versions.first().ok_or_else(|| not_found(&args.id))?;
    context.print(&full_json(memory, &versions), || as_text(memory, &versions))
}

fn full_json(memory: &Memory, versions: &[Memory]) -> Value {
    let mut shown = memory_json(memory, None);
    if let Some(members) = shown.as_object_mut() {
        members.insert("changed_at".to_owned(), time::rfc3339(memory.changed_at).into());
        members.insert("versions".to_owned(), versions.iter().map(version_json).collect());
    }
    shown
}

fn version_json(memory: &Memory) -> Value {
    json!({
        "version": memory.version,
        "status": memory.status.name(),
        "writer": memory.writer,
        "changed_at": time::rfc3339(memory.changed_at),
        "text": memory.text,
    })
}

fn as_text(memory: &Memory, versions: &[Memory]) -> String {
    let mut out = String::new();
    if memory.status == MemoryStatus::Erased {
        let (when, by) = (time::display(memory.changed_at), printable(&memory.writer));
        let _ = writeln!(out, "The text was erased {when} by {by}; none of it is stored.\n");
    } else {
        let _ = writeln!(out, "{}\n", printable(memory.text.trim_end()));
    }
    let mut line = |name: &str, value: String| {
        let _ = writeln!(out, "{HEAD}{name:9}{HEAD:#} {value}");
    };
    line("id", memory.id.clone());
    line("status", memory.status.name().to_owned());
    line("kind", one_line(&memory.kind));
    line("writer", format!("{}, trust {}", one_line(&memory.writer), one_line(&memory.trust)));
    for (name, value) in [("actor", &memory.actor), ("session", &memory.session), ("source", &memory.source)]
    {
        if let Some(value) = value {
            line(name, one_line(value));
        }
    }
    if !memory.tags.is_empty() {
        line("tags", one_line(&memory.tags.join(", ")));
    }
    line("happened", time::display(memory.occurred_at));
    line("saved", time::display(memory.created_at));
    if memory.version > 1 {
        line("changed", time::display(memory.changed_at));
    }
    line("version", memory.version.to_string());
    for past in versions.iter().skip(1) {
        let (when, by) = (time::display(past.changed_at), one_line(&past.writer));
        let _ =
            writeln!(out, "\n{DIM}version {}  {when}  {}  by {by}{DIM:#}", past.version, past.status.name());
        push_indented(&mut out, &past.text);
    }
    out
}

pub(super) fn edit(args: &EditArgs, context: &Context) -> Result<ExitCode, CliError> {
    let scope = args.scope.resolve()?;
    let now = read(&scope, &args.id, context)?;
    let edited = match &args.text {
        Some(text) => Ok(read_text(text)?.trim_end().to_owned()),
        None => match editor::edit("memory", &now.text, TEXT_LIMIT)? {
            Some(edited) => Err(edited),
            None => return print_edited(&now, false, context),
        },
    };
    let text = match &edited {
        Ok(text) => text.clone(),
        Err(EditedText { text, .. }) => text.trim_end().to_owned(),
    };
    let change = MemoryEdit { id: now.id.clone(), text, expected_version: Some(now.version) };
    let outcome = store::with(context, async |store| Ok(store.memories().edit(&scope, change).await?));
    let failure = match outcome {
        Ok(EditOutcome::Edited(now)) => return print_edited(&now, true, context),
        Ok(EditOutcome::Unchanged(now)) => return print_edited(&now, false, context),
        Ok(EditOutcome::Stale(now)) => {
            CliError::new(format!("the memory is now at version `{}`; nothing was changed", now.version))
                .hint(format!("`embody memory show {}` prints it; then edit it again", now.id))
        }
        Err(error) => error,
    };
    Err(match edited {
        Ok(_) => failure,
        Err(edited) => edited.keep(failure),
    })
}

fn read(scope: &Scope, id: &str, context: &Context) -> Result<Memory, CliError> {
    let memory = store::with_existing(context, async |store| {
        let id = memory_id(store, scope, id).await?;
        Ok(store.memories().get(scope, &id).await?)
    })?;
    let memory = memory.flatten().ok_or_else(|| not_found(id))?;
    if matches!(memory.status, MemoryStatus::Forgotten | MemoryStatus::Erased) {
        return Err(CliError::new(format!("the memory `{}` is {}", memory.id, memory.status.name()))
            .hint("save what should be remembered as a new memory"));
    }
    Ok(memory)
}

fn print_edited(now: &Memory, is_changed: bool, context: &Context) -> Result<ExitCode, CliError> {
    let Memory { id, version, .. } = now;
    context.print_plain(&json!({ "id": id, "version": version, "changed": is_changed }), || {
        let what = if is_changed { "is now at" } else { "is unchanged, still at" };
        format!("{id} {what} version {version}\n")
    })
}

pub(super) fn erase(args: &EraseArgs, context: &Context) -> Result<ExitCode, CliError> {
    let scope = args.scope.resolve()?;
    let plan = store::with_existing(context, async |store| {
        let id = memory_id(store, &scope, &args.id).await?;
        Ok(store.memories().plan_erase(&scope, &id).await?)
    })?;
    let plan = plan.ok_or_else(|| not_found(&args.id))?;
    if plan.memory.status != MemoryStatus::Erased && !args.yes {
        ask(&plan)?;
    }
    let id = &plan.memory.id;
    let report = store::with(context, async |store| Ok(store.memories().erase(&scope, id).await?))?;
    context.print_plain(&report_json(&report), || report_text(&report))?;
    if report.foreign_records > 0 {
        output::hint(&format!(
            "{} audit records of other replicas keep the text: only those could change them",
            report.foreign_records
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows what goes, and asks.
fn ask(plan: &EraseReport) -> Result<(), CliError> {
    if !stdin().is_terminal() {
        return Err(CliError::usage("`embody memory erase` asks first, and stdin is not a terminal")
            .hint("`--yes` erases it without asking"));
    }
    output::plain(&plan_text(plan))?;
    match terminal::confirm("Erase it? It cannot be undone. [y/N] ")? {
        true => Ok(()),
        false => Err(CliError::new("nothing was erased")),
    }
}

fn plan_text(plan: &EraseReport) -> String {
    let Memory { id, text, .. } = &plan.memory;
    let mut out = format!("{id}\n");
    push_indented(&mut out, &truncate(text.lines().next().unwrap_or_default(), EXCERPT));
    out.push_str("The text is removed from this memory");
    if plan.versions > 0 {
        let _ = write!(out, ", its {} earlier versions", plan.versions);
    }
    match plan.places.as_slice() {
        [] => out.push_str(".\n"),
        places => {
            let _ = writeln!(out, " and from {}.", listed(places));
        }
    }
    if plan.is_too_short {
        out.push_str(TOO_SHORT);
    }
    out
}

const TOO_SHORT: &str = "A text of one word or number occurs by chance: it is not searched for elsewhere.\n";

fn listed(places: &[ErasedPlace]) -> String {
    let places: Vec<String> =
        places.iter().map(|place| format!("{} ({})", place.what, place.count)).collect();
    places.join(", ")
}

fn report_text(report: &EraseReport) -> String {
    let mut out = format!("{} is erased\n", report.memory.id);
    if !report.places.is_empty() {
        let _ = writeln!(out, "The text was also removed from {}.", listed(&report.places));
    }
    if report.is_too_short {
        out.push_str(TOO_SHORT);
    }
    out
}

fn report_json(report: &EraseReport) -> Value {
    let places = report.places.iter().map(|place| json!({ "what": place.what, "count": place.count }));
    json!({
        "id": report.memory.id,
        "status": report.memory.status.name(),
        "by": report.memory.writer,
        "erased_at": time::rfc3339(report.memory.changed_at),
        "versions": report.versions,
        "places": places.collect::<Vec<_>>(),
        "searched_elsewhere": !report.is_too_short,
        "records_of_other_replicas": report.foreign_records,
    })
}
