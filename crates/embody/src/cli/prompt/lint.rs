//! `embody prompt lint`: what is wrong with the prompt, and `--fix` for what can be mended without changing a meaning.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use clap::Args;
use embody_prompt::{Note, NoteKind, PromptInput, Review, assemble, review, without_hidden};
use serde::Serialize;
use serde_json::json;

use super::report::shown;
use crate::cli::Context;
use crate::compose::{PromptArgs, compose};
use crate::failure::Failure;
use crate::output;

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
    let mut composed = compose(context.workspace.clone(), &context.config, &args.prompt)?;
    let mut fixed = Vec::new();
    if args.fix {
        let notes = assemble(&composed.loaded.input, &composed.layout).notes;
        fixed = fix(&context.workspace, &notes)?;
        if !fixed.is_empty() {
            composed = compose(context.workspace.clone(), &context.config, &args.prompt)?;
        }
    }
    let notes = assemble(&composed.loaded.input, &composed.layout).notes;
    let findings = findings(&composed.loaded.input, &notes);
    if context.json {
        output::json(&json!({ "findings": findings, "fixed": fixed }))?;
    } else {
        output::styled(&as_text(&findings, &fixed))?;
    }
    Ok(output::verdict(findings.is_empty()))
}

/// What the lint found in the values, and those notes that somebody should act on.
pub(crate) fn findings(input: &PromptInput, notes: &[Note]) -> Vec<Finding> {
    let from_notes = notes.iter().filter(|note| is_finding(note.kind)).map(|note| Finding {
        rule: note.kind.name().to_owned(),
        source: note.source.name().to_owned(),
        line: note.source.line(),
        message: note.message.clone(),
        excerpt: None,
    });
    let from_review = review(input).into_iter().map(|Review { source, finding }| Finding {
        rule: finding.rule.name().to_owned(),
        source: source.name().to_owned(),
        line: source.line(),
        message: finding.rule.why().to_owned(),
        excerpt: Some(finding.excerpt),
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

fn as_text(findings: &[Finding], fixed: &[String]) -> String {
    let mut out = String::new();
    for name in fixed {
        let _ = writeln!(out, "fixed {name}: invisible characters taken out");
    }
    for finding in findings {
        let place = shown(&finding.source, finding.line);
        let _ = writeln!(out, "{place}: {RULE}{}{RULE:#} {}", finding.rule, finding.message);
        if let Some(excerpt) = &finding.excerpt {
            let _ = writeln!(out, "    {DIM}{excerpt}{DIM:#}");
        }
    }
    let _ = match findings.len() {
        0 => writeln!(out, "Nothing found."),
        1 => writeln!(out, "\n1 finding"),
        count => writeln!(out, "\n{count} findings"),
    };
    out
}

/// Rewrites the workspace's own files that hold invisible characters. Each is replaced whole or not at all.
fn fix(workspace: &Path, notes: &[Note]) -> Result<Vec<String>, Failure> {
    let mut names: Vec<&str> = notes
        .iter()
        .filter(|note| note.kind == NoteKind::HiddenText && note.source.line() > 0)
        .map(|note| note.source.name())
        .filter(|name| Path::new(name).is_relative())
        .collect();
    names.sort_unstable();
    names.dedup();
    let mut fixed = Vec::new();
    for name in names {
        let path = workspace.join(name);
        let failed = |error: std::io::Error| {
            Failure::new(format!("`{}` could not be mended", path.display())).because(&error)
        };
        let text = std::fs::read_to_string(&path).map_err(failed)?;
        let clean = without_hidden(&text);
        if clean != text {
            replace(&path, &clean).map_err(failed)?;
            fixed.push(name.to_owned());
        }
    }
    Ok(fixed)
}

fn replace(path: &PathBuf, text: &str) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let aside = folder.join(format!(".embody-fix-{}", std::process::id()));
    let write = || {
        let mut file = std::fs::File::create(&aside)?;
        file.set_permissions(std::fs::metadata(path)?.permissions())?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&aside, path)
    };
    write().inspect_err(|_| {
        let _ = std::fs::remove_file(&aside);
    })
}
