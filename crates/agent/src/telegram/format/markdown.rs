//! Converts Markdown to runs. Follows Telegram's conventions where they differ: `*one star*` is bold, as the prompt
//! says, and a line break is kept.

use std::collections::HashSet;
use std::rc::Rc;

use pulldown_cmark::{Alignment, CodeBlockKind, CowStr, Event, LinkType, Options, Parser, Tag, TagEnd};
use unicode_segmentation::UnicodeSegmentation;

use super::rich::{Flow, Gap};
use super::rich::{Rich, Style};

/// A longer URL is shown, not linked.
const MAX_LINK_BYTES: usize = 2048;
const MAX_LANGUAGE_BYTES: usize = 32;

pub(super) fn read(markdown: &str) -> Rich {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let parser = Parser::new_ext(markdown, options);
    let mut definitions: Vec<(usize, String, String)> = parser
        .reference_definitions()
        .iter()
        .map(|(label, definition)| (definition.span.start, label.to_owned(), definition.dest.to_string()))
        .collect();
    definitions.sort_unstable();
    let mut reader = Reader { source: markdown, ..Reader::default() };
    let mut events = parser.into_offset_iter().peekable();
    while let Some((event, range)) = events.next() {
        let is_strong_next = matches!(events.peek(), Some((Event::Start(Tag::Strong), _)));
        reader.read(event, range.start, is_strong_next);
    }
    // Link definitions without a reference are shown as text.
    for (_, label, address) in definitions {
        if !reader.referred.contains(&address) {
            reader.out.block(Gap::Line);
            reader.text(&format!("[{label}]: {address}"));
        }
    }
    reader.out.end()
}

#[derive(Default)]
struct Reader<'a> {
    source: &'a str,
    out: Flow,
    bold: usize,
    italic: usize,
    strike: usize,
    /// The style of each open emphasis.
    emphases: Vec<Emphasis>,
    /// The target of each open link, and whether it has shown any text.
    links: Vec<Link>,
    code: Option<(Option<Rc<str>>, String)>,
    table: Option<Table>,
    referred: HashSet<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Emphasis {
    Bold,
    Italic,
}

struct Link {
    address: Rc<str>,
    /// Shown if the link has no text.
    instead: String,
    is_shown: bool,
    /// The link text is its own URL.
    is_bare: bool,
}

impl Reader<'_> {
    fn read(&mut self, event: Event<'_>, at: usize, is_strong_next: bool) {
        match event {
            Event::Start(tag) => self.start(tag, at, is_strong_next),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.text(&text),
            },
            Event::Code(text) => self.styled(&text, true),
            Event::InlineHtml(html) if is_break(&html) => self.new_line(),
            Event::InlineHtml(text) => self.text(&text),
            Event::Html(text) => {
                self.text(text.trim_end_matches('\n'));
                self.out.block(Gap::Line);
            }
            Event::SoftBreak | Event::HardBreak => self.new_line(),
            Event::Rule => {
                self.out.block(Gap::Paragraph);
                self.text("———");
                self.out.block(Gap::Paragraph);
            }
            Event::TaskListMarker(is_done) => self.text(if is_done { "☑ " } else { "☐ " }),
            // These extensions are not enabled.
            Event::FootnoteReference(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.text(&text)
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>, at: usize, is_strong_next: bool) {
        match tag {
            Tag::Heading { .. } => {
                self.out.block(Gap::Paragraph);
                self.bold += 1;
            }
            Tag::BlockQuote(_) => self.out.begin_quote(),
            Tag::CodeBlock(kind) => {
                self.out.block(Gap::Paragraph);
                self.code = Some((language(&kind), String::new()));
            }
            Tag::List(first) => self.out.begin_list(first),
            Tag::Item => self.out.begin_item(),
            Tag::Table(alignments) => {
                self.out.block(Gap::Paragraph);
                self.table = Some(Table::new(alignments));
            }
            Tag::TableHead | Tag::TableRow => self.in_table(Table::begin_row),
            Tag::TableCell => self.in_table(Table::begin_cell),
            Tag::Emphasis => {
                let is_star = self.source.get(at..).is_some_and(|rest| rest.starts_with('*'));
                let is_bold = is_star && self.bold == 0 && !is_strong_next;
                self.emphases.push(if is_bold { Emphasis::Bold } else { Emphasis::Italic });
                *self.counter(is_bold) += 1;
            }
            Tag::Strong => self.bold += 1,
            Tag::Strikethrough => self.strike += 1,
            Tag::Link { link_type, dest_url, .. } => self.link(link_type, &dest_url, None),
            Tag::Image { link_type, dest_url, .. } => self.link(link_type, &dest_url, Some("image")),
            _ => self.out.block(Gap::Paragraph),
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => {
                self.bold = self.bold.saturating_sub(1);
                self.out.block(Gap::Paragraph);
            }
            TagEnd::BlockQuote(_) => self.out.end_quote(),
            TagEnd::CodeBlock => {
                if let Some((language, code)) = self.code.take() {
                    self.out.pre(language, code.trim_end_matches('\n'));
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.out.pre(None, &table.text());
                }
            }
            TagEnd::List(_) => self.out.end_list(),
            TagEnd::Item => self.out.end_item(),
            TagEnd::TableHead | TagEnd::TableRow | TagEnd::TableCell => {}
            TagEnd::Emphasis => {
                let is_bold = self.emphases.pop() == Some(Emphasis::Bold);
                let counter = self.counter(is_bold);
                *counter = counter.saturating_sub(1);
            }
            TagEnd::Strong => self.bold = self.bold.saturating_sub(1),
            TagEnd::Strikethrough => self.strike = self.strike.saturating_sub(1),
            TagEnd::Link | TagEnd::Image => self.end_link(),
            _ => self.out.block(Gap::Paragraph),
        }
    }

    fn counter(&mut self, is_bold: bool) -> &mut usize {
        if is_bold { &mut self.bold } else { &mut self.italic }
    }

    fn in_table(&mut self, change: fn(&mut Table)) {
        if let Some(table) = &mut self.table {
            change(table);
        }
    }

    fn link(&mut self, kind: LinkType, address: &CowStr<'_>, instead: Option<&str>) {
        let is_mail = kind == LinkType::Email && !address.starts_with("mailto:");
        let full = if is_mail { format!("mailto:{address}") } else { address.to_string() };
        self.referred.insert(address.to_string());
        let is_bare = matches!(kind, LinkType::Autolink | LinkType::Email);
        let instead = instead.map_or_else(|| address.to_string(), str::to_owned);
        self.links.push(Link { address: full.into(), instead, is_shown: false, is_bare });
    }

    fn end_link(&mut self) {
        let Some(link) = self.links.last() else { return };
        let is_bare = link.is_bare || !link.is_shown && *link.address == *link.instead;
        if !link.is_shown {
            let instead = link.instead.clone();
            self.text(&instead);
        }
        let Some(link) = self.links.pop() else { return };
        // Where no link is possible, the URL is shown.
        let is_hidden = !is_linkable(&link.address) || self.table.is_some();
        if is_hidden && !is_bare && !link.address.is_empty() {
            self.text(&format!(" ({})", link.address));
        }
    }

    fn text(&mut self, text: &str) {
        self.styled(text, false);
    }

    fn styled(&mut self, text: &str, code: bool) {
        if text.is_empty() {
            return;
        }
        if let Some(link) = self.links.last_mut() {
            link.is_shown = true;
        }
        if let Some(table) = &mut self.table {
            return table.push(text);
        }
        let link =
            self.links.first().filter(|link| is_linkable(&link.address)).map(|link| Rc::clone(&link.address));
        let style = Style {
            link,
            code,
            bold: self.bold > 0,
            italic: self.italic > 0,
            strike: self.strike > 0,
            ..Style::default()
        };
        self.out.text(text, style);
    }

    fn new_line(&mut self) {
        if let Some(table) = &mut self.table {
            return table.push(" ");
        }
        self.out.new_line();
    }
}

fn is_linkable(address: &str) -> bool {
    let scheme = address.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
    let is_known = matches!(scheme.as_deref(), Some("http" | "https" | "tg" | "mailto"));
    is_known
        && address.len() <= MAX_LINK_BYTES
        && !address.chars().any(|c| c.is_control() || c.is_whitespace())
}

fn language(kind: &CodeBlockKind<'_>) -> Option<Rc<str>> {
    let CodeBlockKind::Fenced(info) = kind else { return None };
    let word = info.split([' ', ',', '{']).next().unwrap_or_default();
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '#' | '.');
    let is_fit = !word.is_empty() && word.len() <= MAX_LANGUAGE_BYTES && word.chars().all(is_name);
    is_fit.then(|| word.into())
}

fn is_break(html: &str) -> bool {
    let bare: String = html.chars().filter(|c| !c.is_whitespace() && *c != '/').collect();
    bare.eq_ignore_ascii_case("<br>")
}

#[derive(Debug, Default)]
pub(super) struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(alignments: Vec<Alignment>) -> Self {
        Self { alignments, rows: Vec::new() }
    }

    pub(super) fn begin_row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub(super) fn begin_cell(&mut self) {
        if let Some(row) = self.rows.last_mut() {
            row.push(String::new());
        }
    }

    pub(super) fn push(&mut self, text: &str) {
        if let Some(cell) = self.rows.last_mut().and_then(|row| row.last_mut()) {
            cell.extend(text.chars().map(|c| if c == '\n' { ' ' } else { c }));
        }
    }

    /// The table as lines; the first row is the header.
    pub(super) fn text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                self.rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max().unwrap_or(0)
            })
            .collect();
        let mut lines: Vec<String> = self.rows.iter().map(|row| self.line(row, &widths)).collect();
        if lines.len() > 1 {
            let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
            lines.insert(1, rule.join("─┼─"));
        }
        lines.join("\n")
    }

    fn line(&self, row: &[String], widths: &[usize]) -> String {
        let cells: Vec<String> = widths
            .iter()
            .enumerate()
            .map(|(column, wanted)| {
                let cell = row.get(column).map_or("", String::as_str);
                let missing = " ".repeat(wanted.saturating_sub(width(cell)));
                match self.alignments.get(column) {
                    Some(Alignment::Right) => format!("{missing}{cell}"),
                    _ => format!("{cell}{missing}"),
                }
            })
            .collect();
        cells.join(" │ ").trim_end().to_owned()
    }
}

fn width(text: &str) -> usize {
    text.graphemes(true).count()
}
