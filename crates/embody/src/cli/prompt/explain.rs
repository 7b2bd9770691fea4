//! `embody prompt explain`: a table of sections that fits 100 columns, as JSON, or as a page.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use clap::Args;

use super::html;
use super::report::{PromptReport, SectionReport, display_source};
use crate::cli::Context;
use crate::error::CliError;
use crate::output::{self, printable};
use crate::prompt_loading::PromptArgs;

const EXAMPLES: &str = "Examples:
  embody prompt explain --layout channel --channel web
  embody prompt explain --html prompt.html";

const COLUMNS: usize = 100;
const BAR: usize = 20;
const KIND: usize = 17;
const SOURCE: usize = 34;
const HEAD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const FRESH: Style = AnsiColor::Yellow.on_default();
const NOTE: Style = AnsiColor::Yellow.on_default();

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    prompt: PromptArgs,
    /// Write a self-contained page that shows the prompt coloured by section
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub(crate) fn run(args: &ExplainArgs, context: &Context) -> Result<ExitCode, CliError> {
    let report = PromptReport::build(&args.prompt, context)?;
    if let Some(path) = &args.html {
        std::fs::write(path, html::page(&report)).map_err(|error| {
            CliError::new(format!("`{}` could not be written", path.display())).caused_by(&error)
        })?;
    }
    if context.json {
        output::json(&report)?;
    } else {
        let page = args.html.as_ref().map(|path| format!("\nPage: {}\n", path.display()));
        output::styled(&(table(&report) + &page.unwrap_or_default()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn table(report: &PromptReport) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{HEAD}{}{HEAD:#}  {} tokens, {} characters, {}",
        report.layout,
        report.tokens,
        report.chars,
        cacheable(report)
    );
    let _ = writeln!(out, "{DIM}{}{DIM:#}\n", report.hash);
    let _ = writeln!(
        out,
        "{HEAD}{:KIND$} {:BAR$} {:>6} {:>4}  {:6} source{HEAD:#}",
        "section", "", "tokens", "%", "pace"
    );
    let most = report.sections.iter().map(|section| section.tokens).max().unwrap_or(1).max(1);
    for section in &report.sections {
        row(&mut out, section, most, report.tokens);
    }
    notes(&mut out, report);
    out
}

fn cacheable(report: &PromptReport) -> String {
    let percent = (report.stable_len * 100).checked_div(report.text.len()).unwrap_or(100);
    format!("the first {percent} % ({} bytes) can be cached", report.stable_len)
}

fn row(out: &mut String, section: &SectionReport, most: usize, total: usize) {
    let percent = (section.tokens * 100).checked_div(total).unwrap_or(0);
    let (pace, style) = if section.stable { ("stable", DIM) } else { ("fresh", FRESH) };
    let mark = if section.truncated { " (cut)" } else { "" };
    let _ = writeln!(
        out,
        "{:KIND$} {} {:>6} {:>4}  {style}{pace:6}{style:#} {}{mark}",
        section.kind,
        bar(section.tokens, most),
        section.tokens,
        percent,
        shorten(&display_source(&section.source, section.line), SOURCE)
    );
    for part in other_sources(section) {
        let _ = writeln!(out, "{:55}  {DIM}+ {}{DIM:#}", "", shorten(&part, SOURCE));
    }
}

/// The sources of a section besides its main one.
fn other_sources(section: &SectionReport) -> Vec<String> {
    let mut names = vec![section.source.as_str(), "built-in"];
    let mut shown_names = Vec::new();
    for part in &section.parts {
        if !names.contains(&part.source.as_str()) {
            names.push(&part.source);
            shown_names.push(display_source(&part.source, part.line));
        }
    }
    shown_names
}

fn bar(tokens: usize, most: usize) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let eighths = (tokens * BAR * 8).div_ceil(most);
    let mut bar = "█".repeat(eighths / 8);
    if let Some(part) = EIGHTHS.get(eighths % 8).filter(|part| **part != ' ') {
        bar.push(*part);
    }
    format!("{bar:BAR$}")
}

/// Keeps the end of a path, which is more specific than its start.
fn shorten(text: &str, limit: usize) -> String {
    if width(text) <= limit {
        return text.to_owned();
    }
    let mut used = 1;
    let kept = text.chars().rev().take_while(|c| {
        used += cells(*c);
        used <= limit
    });
    let mut end: Vec<char> = kept.collect();
    end.push('…');
    end.into_iter().rev().collect()
}

/// The width in terminal cells.
fn width(text: &str) -> usize {
    text.chars().map(cells).sum()
}

fn cells(c: char) -> usize {
    match c as u32 {
        0x1100..=0x115F | 0x2E80..=0xA4CF | 0xAC00..=0xD7A3 | 0xF900..=0xFAFF | 0xFE30..=0xFE6F => 2,
        0xFF00..=0xFF60 | 0x1F300..=0x1FAFF | 0x20000..=0x3FFFD => 2,
        0x300..=0x36F | 0x200D | 0xFE00..=0xFE0F => 0,
        _ => 1,
    }
}

fn notes(out: &mut String, report: &PromptReport) {
    if report.notes.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{HEAD}notes{HEAD:#}");
    for note in &report.notes {
        let place = shorten(&display_source(&note.source, note.line), COLUMNS - KIND - 3);
        let _ = writeln!(out, "  {NOTE}{:KIND$}{NOTE:#} {place}", note.kind);
        for line in wrapped(&printable(&note.message), COLUMNS - KIND - 3) {
            let _ = writeln!(out, "  {:KIND$} {line}", "");
        }
    }
}

/// The text in lines of at most `width` characters; a longer word is broken.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if self::width(line) + 1 + self::width(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => {
                let letters: Vec<char> = word.chars().collect();
                lines.extend(letters.chunks(width).map(|piece| piece.iter().collect::<String>()));
            }
        }
    }
    lines
}
