//! `embody prompt lint`: what is wrong with the prompt, and `--fix` for invisible characters.

use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use clap::Args;
use embody_prompt::{Note, NoteKind, PromptInput, Review, assemble, review};
use embody_workspace::{Mended, mend};
use serde::Serialize;
use serde_json::json;

use super::report::shown;
use crate::cli::Context;
use crate::compose::{PromptArgs, compose};
use crate::failure::Failure;
use crate::output::{self, printable};

const EXAMPLES: &str = "Examples:
  embody prompt lint
  embody prompt lint --project . --json
  embody prompt lint --fix";

const RULE: Style = AnsiColor::Yellow.on_default().bold();
const DIM: Style = Style::new().dimmed();

/// Which prompt, and whether to mend it.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LintArgs {
    #[command(flatten)]
    prompt: PromptArgs,
    /// Take invisible characters out of the workspace's files
    #[arg(long)]
    fix: bool,
}

/// One thing that is wrong.
#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    pub(crate) rule: String,
    pub(crate) source: String,
    pub(crate) line: u32,
    pub(crate) message: String,
    pub(crate) excerpt: Option<String>,
}

pub(crate) fn run(args: &LintArgs, context: &Context) -> Result<ExitCode, Failure> {
    let mut found = look(args, context)?;
    let mut fixes = Fixes::default();
    if args.fix {
        fixes = fix(&context.workspace, &found)?;
        if !fixes.fixed.is_empty() {
            found = look(args, context)?;
        }
    }
    if context.json {
        let left_alone: Vec<_> = fixes
            .left_alone
            .iter()
            .map(|(source, reason)| json!({ "source": source, "reason": reason }))
            .collect();
        output::json(&json!({ "findings": found, "fixed": fixes.fixed, "left_alone": left_alone }))?;
    } else {
        output::styled(&as_text(&found, &fixes))?;
    }
    Ok(output::verdict(found.is_empty()))
}

/// What `--fix` did.
#[derive(Default)]
struct Fixes {
    fixed: Vec<String>,
    left_alone: Vec<(String, String)>,
}

fn look(args: &LintArgs, context: &Context) -> Result<Vec<Finding>, Failure> {
    let composed = compose(context, &args.prompt)?;
    let notes = assemble(&composed.loaded.input, &composed.layout).notes;
    Ok(findings(&composed.loaded.input, &notes))
}

/// What the lint found in the values, and those notes that somebody should act on.
pub(crate) fn findings(input: &PromptInput, notes: &[Note]) -> Vec<Finding> {
    let reviews = review(input);
    // What hides in a value is found by both.
    let known = |note: &&Note| {
        let hides = |found: &Review| {
            found.finding.rule.name() == note.kind.name() && found.source.name() == note.source.name()
        };
        reviews.iter().any(hides)
    };
    let from_notes = notes.iter().filter(|note| is_finding(note.kind) && !known(note)).map(|note| Finding {
        rule: note.kind.name().to_owned(),
        source: note.source.name().to_owned(),
        line: note.source.line(),
        message: note.message.clone(),
        excerpt: None,
    });
    let from_review = reviews.iter().map(|Review { source, finding }| Finding {
        rule: finding.rule.name().to_owned(),
        source: source.name().to_owned(),
        line: source.line(),
        message: finding.rule.why().to_owned(),
        excerpt: Some(finding.excerpt.clone()).filter(|excerpt| !excerpt.is_empty()),
    });
    from_notes.chain(from_review).collect()
}

/// A value that is left out for its audience is as it should be; so is text that somebody else keeps.
fn is_finding(kind: NoteKind) -> bool {
    !matches!(
        kind,
        NoteKind::Withheld | NoteKind::Unused | NoteKind::PersonaUnavailable | NoteKind::Duplicate
    )
}

fn as_text(findings: &[Finding], fixes: &Fixes) -> String {
    let mut out = String::new();
    for name in &fixes.fixed {
        let _ = writeln!(out, "fixed {}: invisible characters taken out", printable(name));
    }
    for (name, reason) in &fixes.left_alone {
        let _ = writeln!(out, "not fixed {}: {}", printable(name), printable(reason));
    }
    for finding in findings {
        let place = shown(&finding.source, finding.line);
        let _ = writeln!(out, "{place}: {RULE}{}{RULE:#} {}", finding.rule, printable(&finding.message));
        if let Some(excerpt) = &finding.excerpt {
            let _ = writeln!(out, "    {DIM}{}{DIM:#}", printable(excerpt));
        }
    }
    let _ = match findings.len() {
        0 => writeln!(out, "Nothing found."),
        1 => writeln!(out, "\n1 finding"),
        count => writeln!(out, "\n{count} findings"),
    };
    out
}

/// Takes invisible characters out of every file of the workspace that the lint has found some in.
fn fix(workspace: &Path, findings: &[Finding]) -> Result<Fixes, Failure> {
    let mut names: Vec<&str> = findings
        .iter()
        .filter(|finding| finding.rule == NoteKind::HiddenText.name())
        .map(|finding| finding.source.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    let mut fixes = Fixes::default();
    for name in names {
        let mended = mend(workspace, name)
            .map_err(|error| Failure::new(format!("`{name}` could not be mended")).because(&error))?;
        match mended {
            Mended::Fixed => fixes.fixed.push(name.to_owned()),
            Mended::Clean => {
                fixes.left_alone.push((name.to_owned(), "they are written as escapes".to_owned()))
            }
            Mended::LeftAlone(reason) => fixes.left_alone.push((name.to_owned(), reason)),
        }
    }
    Ok(fixes)
}
