//! `embody memory held`: what the mind was told and keeps to itself because it reads like an order. For the owner's eyes
//! only; nothing here lets it out.

use std::fmt::Write;
use std::process::ExitCode;

use clap::Args;
use embody_store::LogEntry;
use serde_json::json;

use super::DIM;
use crate::cli::{Context, Who};
use crate::failure::Failure;
use crate::output::{self, printable};
use crate::store;
use crate::time;

#[derive(Args, Debug)]
pub(crate) struct HeldArgs {
    /// How many
    #[arg(long, default_value_t = 20)]
    limit: u32,
    #[command(flatten)]
    who: Who,
}

pub(super) fn list(args: &HeldArgs, context: &Context) -> Result<ExitCode, Failure> {
    let scope = args.who.scope()?;
    let found = store::read(context, async |store| Ok(store.held_log_entries(&scope, args.limit).await?))?;
    let found = found.unwrap_or_default();
    if context.json {
        let held: Vec<_> = found.iter().map(as_json).collect();
        output::json(&json!({ "held": held }))?;
    } else {
        output::styled(&as_text(&found))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn as_text(found: &[LogEntry]) -> String {
    if found.is_empty() {
        return "Nothing is held back.\n".to_owned();
    }
    let mut out = String::new();
    for LogEntry { seq, entry } in found {
        let (when, kind, writer) = (time::shown(entry.at), printable(&entry.kind), printable(&entry.writer));
        let _ = writeln!(out, "{DIM}{seq}  {when}  {kind}  {writer} ({}){DIM:#}", printable(&entry.trust));
        for line in printable(&entry.text).lines() {
            let _ = writeln!(out, "  {line}");
        }
    }
    out
}

fn as_json(LogEntry { seq, entry }: &LogEntry) -> serde_json::Value {
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
