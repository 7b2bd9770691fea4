//! `embody prompt diff A B`: compares section by section, and reports changes that break the cacheable prefix.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use clap::Args;
use serde_json::json;

use super::{PromptArgs, find_receipt, load_prompt};
use crate::cli::Context;
use crate::error::CliError;
use crate::output::{self, printable};
use crate::prompt_report::{PromptReport, SectionReport};

const EXAMPLES: &str =
    "A and B are each a workspace folder, a file with the output of `prompt show --json`, or receipt:ID.

Examples:
  embody prompt show --json > before.json
  embody prompt diff before.json ~/.embody
  embody prompt diff ./old-workspace ./new-workspace --layout tagged --exit-code";

const FILE_LIMIT: u64 = 64 * 1024 * 1024;
const LINES_SHOWN: usize = 12;
const ADDED: Style = AnsiColor::Green.on_default();
const REMOVED: Style = AnsiColor::Red.on_default();
const HEAD: Style = Style::new().bold();

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DiffArgs {
    /// The prompt before
    a: PathBuf,
    /// The prompt after
    b: PathBuf,
    /// Exit with 1 when they differ
    #[arg(long)]
    exit_code: bool,
    #[command(flatten)]
    prompt: PromptArgs,
}

pub(crate) fn run(args: &DiffArgs, context: &Context) -> Result<ExitCode, CliError> {
    // Use the same time for both, so that the clock makes no difference.
    let mut prompt = args.prompt.clone();
    prompt.now.get_or_insert_with(jiff::Timestamp::now);
    let a = read(&args.a, &prompt, context)?;
    let b = read(&args.b, &prompt, context)?;
    let changes = changes(&a, &b);
    let cache = CacheBreak::find(&a, &b);
    context
        .print(&as_json(&a, &b, &changes, cache.as_ref()), || as_text(&a, &b, &changes, cache.as_ref()))?;
    Ok(output::exit_code(!args.exit_code || a.hash == b.hash))
}

fn read(path: &Path, args: &PromptArgs, context: &Context) -> Result<PromptReport, CliError> {
    if let Some(id) = path.to_str().and_then(|path| path.strip_prefix("receipt:")) {
        return find_receipt(id, &args.scope.user(), context);
    }
    let failed = |error: &dyn std::error::Error| {
        CliError::new(format!("`{}` cannot be read", path.display())).caused_by(error)
    };
    let metadata = std::fs::metadata(path).map_err(|error| failed(&error))?;
    if metadata.is_dir() {
        return Ok(load_prompt(&context.in_folder(path)?, args)?.report());
    }
    if !metadata.is_file() {
        return Err(CliError::new(format!("`{}` is neither a folder nor a regular file", path.display())));
    }
    if metadata.len() > FILE_LIMIT {
        return Err(CliError::new(format!(
            "`{}` has {} bytes, the limit is {FILE_LIMIT}",
            path.display(),
            metadata.len()
        )));
    }
    let text = std::fs::read_to_string(path).map_err(|error| failed(&error))?;
    serde_json::from_str(&text).map_err(|error| {
        failed(&error).hint("it must be a workspace folder or the output of `embody prompt show --json`")
    })
}

struct Change<'a> {
    before: Option<&'a SectionReport>,
    after: Option<&'a SectionReport>,
}

impl Change<'_> {
    fn verb(&self) -> &'static str {
        match (self.before, self.after) {
            (Some(before), Some(after)) if before.hash == after.hash => "same",
            (Some(_), Some(_)) => "changed",
            (None, _) => "added",
            (_, None) => "removed",
        }
    }

    fn kind(&self) -> &str {
        self.after.or(self.before).map_or("", |section| section.kind.as_str())
    }

    fn tokens(&self) -> (usize, usize) {
        let tokens = |section: Option<&SectionReport>| section.map_or(0, |section| section.tokens);
        (tokens(self.before), tokens(self.after))
    }
}

fn changes<'a>(a: &'a PromptReport, b: &'a PromptReport) -> Vec<Change<'a>> {
    let find =
        |report: &'a PromptReport, kind: &str| report.sections.iter().find(|section| section.kind == kind);
    let after = b.sections.iter().map(|after| Change { before: find(a, &after.kind), after: Some(after) });
    let gone = a.sections.iter().filter(|before| find(b, &before.kind).is_none());
    after.chain(gone.map(|before| Change { before: Some(before), after: None })).collect()
}

/// The first byte that differs.
struct CacheBreak {
    at: usize,
    kind: String,
    within_stable: bool,
}

impl CacheBreak {
    fn find(a: &PromptReport, b: &PromptReport) -> Option<Self> {
        let same = a.text.bytes().zip(b.text.bytes()).take_while(|(a, b)| a == b).count();
        if same == a.text.len() && same == b.text.len() {
            return None;
        }
        let section = |report: &PromptReport| {
            report.sections.iter().find(|section| same < section.end).map(|section| section.kind.clone())
        };
        let kind = section(b).or_else(|| section(a)).unwrap_or_else(|| "end".into());
        Some(Self { at: same, kind, within_stable: same < a.stable_len.min(b.stable_len) })
    }
}

fn as_json(
    a: &PromptReport,
    b: &PromptReport,
    changes: &[Change<'_>],
    cache: Option<&CacheBreak>,
) -> serde_json::Value {
    let sections: Vec<_> = changes
        .iter()
        .map(|change| {
            let (before, after) = change.tokens();
            json!({ "kind": change.kind(), "change": change.verb(), "tokens_before": before, "tokens_after": after })
        })
        .collect();
    json!({
        "same": a.hash == b.hash,
        "a": { "hash": a.hash, "tokens": a.tokens, "stable_len": a.stable_len },
        "b": { "hash": b.hash, "tokens": b.tokens, "stable_len": b.stable_len },
        "sections": sections,
        "cache": cache.map(|cache| json!({ "same_bytes": cache.at, "section": cache.kind, "breaks_stable_prefix": cache.within_stable })),
    })
}

fn as_text(a: &PromptReport, b: &PromptReport, changes: &[Change<'_>], cache: Option<&CacheBreak>) -> String {
    let Some(cache) = cache else {
        return format!("The prompts are the same: {} tokens, {}\n", a.tokens, a.hash);
    };
    let mut out = format!("{HEAD}{} → {} tokens{HEAD:#}\n", a.tokens, b.tokens);
    for change in changes {
        let (before, after) = change.tokens();
        let _ = writeln!(out, "{:9} {:18} {before:>6} → {after:<6}", change.verb(), printable(change.kind()));
        if change.verb() == "changed" {
            push_lines(&mut out, change, a, b);
        }
    }
    let verdict = if cache.within_stable {
        format!(
            "The cacheable prefix breaks in `{}`: a stable section differs from byte {} on.",
            cache.kind, cache.at
        )
    } else {
        format!(
            "The cacheable prefix holds: the first difference is at byte {}, in `{}`.",
            cache.at, cache.kind
        )
    };
    out + "\n" + &verdict + "\n"
}

/// The lines from the first to the last that differ.
fn push_lines(out: &mut String, change: &Change<'_>, a: &PromptReport, b: &PromptReport) {
    let before: Vec<&str> =
        change.before.map(|section| a.text_of(section).lines().collect()).unwrap_or_default();
    let after: Vec<&str> =
        change.after.map(|section| b.text_of(section).lines().collect()).unwrap_or_default();
    let head = before.iter().zip(&after).take_while(|(a, b)| a == b).count();
    let rest = before.len().min(after.len()) - head;
    let same = before.iter().rev().zip(after.iter().rev()).take(rest);
    let tail = same.take_while(|(a, b)| a == b).count();
    for (lines, sign, style) in [(before, '-', REMOVED), (after, '+', ADDED)] {
        let changed = lines.get(head..lines.len() - tail).unwrap_or_default();
        for line in changed.iter().take(LINES_SHOWN) {
            let _ = writeln!(out, "  {style}{sign} {}{style:#}", printable(line));
        }
        if changed.len() > LINES_SHOWN {
            let _ = writeln!(out, "  {sign} … {} more lines", changed.len() - LINES_SHOWN);
        }
    }
}
