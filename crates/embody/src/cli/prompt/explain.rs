//! `embody prompt explain`: a table of sections that fits 100 columns, as JSON, or as a self-contained page that shows the prompt
//! coloured by section.

use std::fmt::Write;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use clap::Args;
use embody_agent::model::Usage;

use super::{PromptArgs, display_source, find_receipt, load_prompt};
use crate::cli::Context;
use crate::error::{CliError, ErrorContext};
use crate::output::{pluralize, printable};
use crate::prompt_report::{PartReport, PromptReport, SectionReport};

const EXAMPLES: &str = "Examples:
  embody prompt explain --layout channel --channel web
  embody prompt explain --html prompt.html
  embody prompt explain --receipt 019a8b3e";

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
    /// Explain a request that was sent, by the id of its receipt, or its end
    #[arg(long, value_name = "ID")]
    receipt: Option<String>,
    /// Write a self-contained page that shows the prompt coloured by section
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub(crate) fn run(args: &ExplainArgs, context: &Context) -> Result<ExitCode, CliError> {
    let report = match &args.receipt {
        Some(id) => find_receipt(id, &args.prompt.scope.user(), context)?,
        None => load_prompt(context, &args.prompt)?.report(),
    };
    if let Some(path) = &args.html {
        // The prompt holds memories and instructions.
        write_private(path, &page(&report)).context(format!("`{}` could not be written", path.display()))?;
    }
    let page = args.html.as_ref().map(|path| format!("\nPage: {}\n", path.display()));
    let text = table(&report) + &page.unwrap_or_default();
    let report = if args.receipt.is_some() { report } else { report.without_definitions() };
    context.print(&report, || text)
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

fn table(report: &PromptReport) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{HEAD}layout {}{HEAD:#}: {} tokens, {} characters, the first {} % ({} bytes) can be cached",
        report.layout,
        report.tokens,
        report.chars,
        cacheable_percent(report),
        report.stable_len
    );
    let _ = writeln!(out, "{DIM}hash {}{DIM:#}\n", report.hash);
    let _ = writeln!(
        out,
        "{HEAD}{:KIND$} {:BAR$} {:>6} {:>4}  {:6} source{HEAD:#}",
        "section", "", "tokens", "%", "cache"
    );
    let most = report.sections.iter().map(|section| section.tokens).max().unwrap_or(1).max(1);
    for section in &report.sections {
        row(&mut out, section, most, report.tokens);
    }
    request(&mut out, report);
    notes(&mut out, report);
    out
}

/// What is sent: the system prompt and what goes beside it, estimated, and the tokens that the model reported.
fn request(out: &mut String, report: &PromptReport) {
    let total = report.request_tokens();
    let _ = writeln!(
        out,
        "\n{HEAD}{:KIND$} {:BAR$} {:>6} {:>4}  what is sent{HEAD:#}",
        "request", "", "tokens", "%"
    );
    let most = report.tokens.max(report.tool_tokens()).max(report.message_tokens()).max(1);
    for (name, tokens, what) in request_rows(report) {
        let percent = (tokens * 100).checked_div(total).unwrap_or(0);
        let _ =
            writeln!(out, "{name:KIND$} {} {tokens:>6} {percent:>4}  {DIM}{what}{DIM:#}", bar(tokens, most));
    }
    let _ = writeln!(out, "{:KIND$} {:BAR$} {total:>6}       {DIM}estimated{DIM:#}", "total", "");
    if let Some((input, rest)) = reported(report) {
        let _ =
            writeln!(out, "{:KIND$} {:BAR$} {input:>6}       {DIM}by the model{rest}{DIM:#}", "reported", "");
    }
}

fn request_rows(report: &PromptReport) -> [(&'static str, usize, String); 3] {
    let tool_chars: usize = report.tools.iter().map(|tool| tool.chars).sum();
    let message_chars: usize = report.messages.iter().map(|message| message.chars).sum();
    let tools = format!("{}, {tool_chars} characters", pluralize(report.tools.len(), "definition"));
    let history = match report.messages.len() {
        0 => "added by a turn".to_owned(),
        count => format!("{}, {message_chars} characters", pluralize(count, "message")),
    };
    [
        ("system prompt", report.tokens, format!("{} characters", report.chars)),
        ("tools", report.tool_tokens(), tools),
        ("history", report.message_tokens(), history),
    ]
}

/// The input tokens that the model reported, and what else it did.
fn reported(report: &PromptReport) -> Option<(u64, String)> {
    let Usage { input, output, cache_read, .. } = report.usage?;
    let cached = cache_read.map(|cached| format!(", {cached} cached")).unwrap_or_default();
    let written = output.map(|output| format!(", {output} written")).unwrap_or_default();
    Some((input?, format!("{cached}{written}")))
}

fn cacheable_percent(report: &PromptReport) -> usize {
    (report.stable_len * 100).checked_div(report.text.len()).unwrap_or(100)
}

fn row(out: &mut String, section: &SectionReport, most: usize, total: usize) {
    let percent = (section.tokens * 100).checked_div(total).unwrap_or(0);
    let (cache, style) = if section.stable { ("stable", DIM) } else { ("fresh", FRESH) };
    let mark = if section.truncated { " (cut)" } else { "" };
    let _ = writeln!(
        out,
        "{:KIND$} {} {:>6} {:>4}  {style}{cache:6}{style:#} {}{mark}",
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

const STYLE: &str = include_str!("explain.css");
const SCRIPT: &str = include_str!("explain.js");

fn page(report: &PromptReport) -> String {
    let mut out = String::with_capacity(report.text.len() * 3 + 8_192);
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Prompt: {}</title>\n<style>\n{STYLE}</style>\n",
        report.layout
    );
    page_header(&mut out, report);
    out.push_str("<main>\n<nav aria-label=\"Sections\">\n");
    page_sections(&mut out, report);
    page_request(&mut out, report);
    page_notes(&mut out, report);
    out.push_str("</nav>\n<pre id=\"prompt\">");
    page_text(&mut out, report);
    let _ = write!(
        out,
        "</pre>\n</main>\n<div id=\"place\" role=\"status\"></div>\n<script>\n{SCRIPT}</script>\n</html>\n"
    );
    out
}

fn page_header(out: &mut String, report: &PromptReport) {
    let percent = cacheable_percent(report);
    let _ = write!(
        out,
        "<header>\n<h1>{} prompt</h1>\n<p><b>{}</b> tokens · <b>{}</b> characters · <b>{percent} %</b> can be cached · \
         <code>{}</code></p>\n<div class=\"bar\" aria-hidden=\"true\">",
        report.layout,
        report.tokens,
        report.chars,
        report.hash.get(..16).unwrap_or(&report.hash)
    );
    for (index, section) in report.sections.iter().enumerate() {
        let _ = write!(
            out,
            "<a href=\"#s{index}\" style=\"flex:{};--hue:{}\" title=\"{}: {} tokens\"></a>",
            section.tokens.max(1),
            hue(index),
            section.kind,
            section.tokens
        );
    }
    out.push_str("</div>\n</header>\n");
}

fn page_sections(out: &mut String, report: &PromptReport) {
    for (index, section) in report.sections.iter().enumerate() {
        let _ = writeln!(
            out,
            "<a class=\"row\" href=\"#s{index}\" style=\"--hue:{}\"><b>{}</b><span>{}</span><small>{} · {} · {}{}</small></a>",
            hue(index),
            section.kind,
            section.tokens,
            section.layer,
            if section.stable { "stable" } else { "fresh" },
            escape(&display_source(&section.source, section.line)),
            if section.truncated { " · cut" } else { "" },
        );
    }
}

fn page_request(out: &mut String, report: &PromptReport) {
    let total = report.request_tokens();
    let reported = reported(report);
    let reported = reported.map(|(input, rest)| format!(", <b>{input}</b> reported by the model{rest}"));
    let reported = reported.unwrap_or_default();
    let _ = writeln!(out, "<h2>Request</h2>\n<p><b>{total}</b> tokens estimated{reported}</p>\n<ul>");
    for (name, tokens, what) in request_rows(report) {
        let _ = writeln!(out, "<li><b>{name}</b> {tokens} tokens, {what}</li>");
    }
    out.push_str("</ul>\n");
    let tools = report.tools.iter().map(|tool| {
        let definition = tool.definition.as_ref().map_or("", |definition| definition.get());
        (tool.name.as_str(), tool.tokens, definition)
    });
    let messages =
        report.messages.iter().map(|message| (message.role.as_str(), message.tokens, message.message.get()));
    for (name, tokens, text) in tools.chain(messages) {
        let (name, text) = (escape(name), escape(text));
        let _ = writeln!(out, "<details><summary>{name} {tokens}</summary><code>{text}</code></details>");
    }
}

fn page_notes(out: &mut String, report: &PromptReport) {
    if report.notes.is_empty() {
        return;
    }
    out.push_str("<h2>Notes</h2>\n<ul>\n");
    for note in &report.notes {
        let place = escape(&display_source(&note.source, note.line));
        let _ = writeln!(out, "<li><b>{}</b> {place}<br>{}</li>", note.kind, escape(&note.message));
    }
    out.push_str("</ul>\n");
}

fn page_text(out: &mut String, report: &PromptReport) {
    let mut at = 0;
    for (index, section) in report.sections.iter().enumerate() {
        let separator = escape(report.text.get(at..section.start).unwrap_or(""));
        let _ = write!(out, "<span class=\"sep\">{separator}</span>");
        let _ = write!(out, "<section id=\"s{index}\" style=\"--hue:{}\">", hue(index));
        for part in &section.parts {
            piece(out, report, section, part);
        }
        out.push_str("</section>");
        at = section.end;
    }
}

/// The text of one source, with the end of the cacheable prefix marked.
fn piece(out: &mut String, report: &PromptReport, section: &SectionReport, part: &PartReport) {
    let place = escape(&format!("{} · {}", section.kind, display_source(&part.source, part.line)));
    let class = if part.source == "built-in" { "own" } else { "from" };
    let _ = write!(out, "<span class=\"{class}\" data-from=\"{place}\" title=\"{place}\">");
    let text = report.text.get(part.start..part.end).unwrap_or("");
    let border = report
        .stable_len
        .checked_sub(part.start)
        .filter(|_| (part.start..part.end).contains(&report.stable_len));
    match border.and_then(|at| text.split_at_checked(at)) {
        Some((stable, fresh)) => {
            let _ = write!(
                out,
                "{}<i class=\"border\" title=\"what is above can be cached\"></i>{}",
                escape(stable),
                escape(fresh)
            );
        }
        None => out.push_str(&escape(text)),
    }
    out.push_str("</span>");
}

/// Steps of the golden angle, so that neighbours differ.
fn hue(index: usize) -> usize {
    (index * 137 + 210) % 360
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
