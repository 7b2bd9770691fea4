//! `embody prompt lint`: findings in the prompt, and `--fix` for invisible characters.

use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use clap::Args;
use embody_prompt::{Note, NoteKind, PromptInput, Review, assemble, render, review};
use embody_workspace::{StripOutcome, strip_invisible};
use serde::Serialize;
use serde_json::json;

use super::{PromptArgs, display_source, load_prompt};
use crate::cli::Context;
use crate::cli::unused_files::{self, UnusedFile};
use crate::error::{CliError, ErrorContext};
use crate::output::{self, printable};
use crate::prompt_service::LoadedPrompt;

const EXAMPLES: &str = "Examples:
  embody prompt lint
  embody prompt lint --project . --json
  embody prompt lint --fix";

const RULE: Style = AnsiColor::Yellow.on_default().bold();
const DIM: Style = Style::new().dimmed();

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LintArgs {
    #[command(flatten)]
    prompt: PromptArgs,
    /// Take invisible characters out of the workspace's files
    #[arg(long)]
    fix: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    pub(crate) rule: String,
    pub(crate) source: String,
    pub(crate) line: u32,
    pub(crate) message: String,
    pub(crate) excerpt: Option<String>,
}

pub(crate) fn run(args: &LintArgs, context: &Context) -> Result<ExitCode, CliError> {
    let (mut found, unused) = find(args, context)?;
    let mut fixes = Fixes::default();
    if args.fix {
        fixes = fix(&context.workspace, &found)?;
        if !fixes.fixed.is_empty() {
            (found, _) = find(args, context)?;
        }
    }
    let left_alone =
        fixes.left_alone.iter().map(|(source, reason)| json!({ "source": source, "reason": reason }));
    let left_alone: Vec<_> = left_alone.collect();
    let json = json!({ "findings": found, "fixed": fixes.fixed, "left_alone": left_alone, "unused": unused });
    context.print(&json, || as_text(&found, &fixes, &unused))?;
    Ok(output::exit_code(found.is_empty()))
}

#[derive(Default)]
struct Fixes {
    fixed: Vec<String>,
    left_alone: Vec<(String, String)>,
}

fn find(args: &LintArgs, context: &Context) -> Result<(Vec<Finding>, Vec<UnusedFile>), CliError> {
    let loaded = load_prompt(context, &args.prompt)?;
    let LoadedPrompt { workspace, layout, .. } = &loaded;
    let prompt = assemble(&workspace.input, layout);
    let mut unused = unused_files::find(&args.prompt, context, &loaded, (&render(&prompt), &prompt.notes));
    unused.retain(|file| !file.is_blank);
    Ok((findings(&workspace.input, &prompt.notes), unused))
}

/// The findings of the review, and the notes that need action.
pub(crate) fn findings(input: &PromptInput, notes: &[Note]) -> Vec<Finding> {
    let reviews = review(input);
    // Hidden text is both a note and a finding.
    let is_reviewed = |note: &&Note| {
        let hides = |found: &Review| {
            found.finding.rule.name() == note.kind.name() && found.source.name() == note.source.name()
        };
        reviews.iter().any(hides)
    };
    let from_notes =
        notes.iter().filter(|note| is_finding(note.kind) && !is_reviewed(note)).map(|note| Finding {
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

/// Values left out for their audience, and text from elsewhere, are not findings.
fn is_finding(kind: NoteKind) -> bool {
    !matches!(
        kind,
        NoteKind::Withheld | NoteKind::Unused | NoteKind::PersonaUnavailable | NoteKind::Duplicate
    )
}

/// Files without effect are listed, and are not findings.
fn as_text(findings: &[Finding], fixes: &Fixes, unused: &[UnusedFile]) -> String {
    let mut out = String::new();
    for UnusedFile { file, reason, hint, .. } in unused {
        let _ = writeln!(out, "no effect {}: {} {DIM}({hint}){DIM:#}", printable(file), printable(reason));
    }
    for name in &fixes.fixed {
        let _ = writeln!(out, "fixed {}: invisible characters taken out", printable(name));
    }
    for (name, reason) in &fixes.left_alone {
        let _ = writeln!(out, "not fixed {}: {}", printable(name), printable(reason));
    }
    for finding in findings {
        let place = display_source(&finding.source, finding.line);
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

fn fix(workspace: &Path, findings: &[Finding]) -> Result<Fixes, CliError> {
    let mut names: Vec<&str> = findings
        .iter()
        .filter(|finding| finding.rule == NoteKind::HiddenText.name())
        .map(|finding| finding.source.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    let mut fixes = Fixes::default();
    for name in names {
        let stripped = strip_invisible(workspace, name).context(format!("`{name}` could not be changed"))?;
        match stripped {
            StripOutcome::Stripped => fixes.fixed.push(name.to_owned()),
            StripOutcome::Clean => {
                fixes.left_alone.push((name.to_owned(), "they are written as escapes".to_owned()))
            }
            StripOutcome::Skipped(reason) => fixes.left_alone.push((name.to_owned(), reason)),
        }
    }
    Ok(fixes)
}
