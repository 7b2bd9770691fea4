//! The page of `explain --html`: the prompt coloured by section, with sources. One self-contained file.

use std::fmt::Write;

use super::report::{PartReport, PromptReport, SectionReport, display_source};

const STYLE: &str = include_str!("explain.css");
const SCRIPT: &str = include_str!("explain.js");

pub(crate) fn page(report: &PromptReport) -> String {
    let mut out = String::with_capacity(report.text.len() * 3 + 8_192);
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Prompt: {}</title>\n<style>\n{STYLE}</style>\n",
        report.layout
    );
    header(&mut out, report);
    out.push_str("<main>\n<nav aria-label=\"Sections\">\n");
    sections(&mut out, report);
    notes(&mut out, report);
    out.push_str("</nav>\n<pre id=\"prompt\">");
    text(&mut out, report);
    let _ = write!(
        out,
        "</pre>\n</main>\n<div id=\"place\" role=\"status\"></div>\n<script>\n{SCRIPT}</script>\n</html>\n"
    );
    out
}

fn header(out: &mut String, report: &PromptReport) {
    let percent = (report.stable_len * 100).checked_div(report.text.len()).unwrap_or(100);
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

fn sections(out: &mut String, report: &PromptReport) {
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

fn notes(out: &mut String, report: &PromptReport) {
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

fn text(out: &mut String, report: &PromptReport) {
    let mut at = 0;
    for (index, section) in report.sections.iter().enumerate() {
        separator(out, report.text.get(at..section.start).unwrap_or(""));
        let _ = write!(out, "<section id=\"s{index}\" style=\"--hue:{}\">", hue(index));
        for part in &section.parts {
            piece(out, report, section, part);
        }
        out.push_str("</section>");
        at = section.end;
    }
}

fn separator(out: &mut String, text: &str) {
    let _ = write!(out, "<span class=\"sep\">{}</span>", escape(text));
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
