//! Markdown to runs. Telegram's own habit is followed where the two differ: `*one star*` is bold, as the prompt says, and a
//! line break stays one.

use std::rc::Rc;

use pulldown_cmark::{CodeBlockKind, CowStr, Event, LinkType, Options, Parser, Tag, TagEnd};

use super::rich::{Pre, Rich, Style};
use super::table::Table;

/// Deeper lists are not moved further to the right.
const INDENT_MOST: usize = 8;
/// A longer address is shown, not linked.
const LINK_BYTES_MOST: usize = 2048;
const LANGUAGE_BYTES_MOST: usize = 32;

/// Reads a text.
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
    // Sources that nothing refers to are text that somebody wrote.
    for (_, label, address) in definitions {
        if !reader.referred.contains(&address) {
            reader.block(Gap::Line);
            reader.text(&format!("[{label}]: {address}"));
        }
    }
    reader.out.end();
    reader.out
}

/// What stands between two blocks.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    #[default]
    None,
    Line,
    Paragraph,
}

#[derive(Default)]
struct Reader<'a> {
    source: &'a str,
    out: Rich,
    /// What has to be written before the next text.
    gap: Gap,
    /// The mark of a list's item that has no text so far.
    mark: Option<String>,
    /// The lists that are open, each with its next number if it has numbers.
    lists: Vec<Option<u64>>,
    /// Quotes that are open, and all there were.
    quotes: usize,
    blocks: usize,
    quote: Option<usize>,
    bold: usize,
    italic: usize,
    strike: usize,
    /// What each emphasis that is open became.
    emphases: Vec<Emphasis>,
    /// Where each link that is open leads, and whether it has shown anything.
    links: Vec<Link>,
    /// The code block that is open.
    code: Option<(Option<Rc<str>>, String)>,
    table: Option<Table>,
    referred: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Emphasis {
    Bold,
    Italic,
}

struct Link {
    address: Rc<str>,
    /// What it shows if it shows nothing else.
    instead: String,
    is_shown: bool,
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
                self.block(Gap::Line);
            }
            Event::SoftBreak | Event::HardBreak => self.new_line(),
            Event::Rule => {
                self.block(Gap::Paragraph);
                self.text("———");
                self.block(Gap::Paragraph);
            }
            Event::TaskListMarker(is_done) => self.text(if is_done { "☑ " } else { "☐ " }),
            // Not switched on.
            Event::FootnoteReference(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.text(&text)
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>, at: usize, is_strong_next: bool) {
        match tag {
            Tag::Heading { .. } => {
                self.block(Gap::Paragraph);
                self.bold += 1;
            }
            Tag::BlockQuote(_) => {
                self.block(Gap::Paragraph);
                self.quotes += 1;
                self.blocks += 1;
                self.quote.get_or_insert(self.blocks);
            }
            Tag::CodeBlock(kind) => {
                self.block(Gap::Paragraph);
                self.code = Some((language(&kind), String::new()));
            }
            Tag::List(first) => {
                self.block(if self.lists.is_empty() { Gap::Paragraph } else { Gap::Line });
                self.flush_mark();
                self.lists.push(first);
            }
            Tag::Item => self.item(),
            Tag::Table(alignments) => {
                self.block(Gap::Paragraph);
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
            _ => self.block(Gap::Paragraph),
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => {
                self.bold = self.bold.saturating_sub(1);
                self.block(Gap::Paragraph);
            }
            TagEnd::BlockQuote(_) => {
                self.quotes = self.quotes.saturating_sub(1);
                if self.quotes == 0 {
                    self.quote = None;
                }
                self.block(Gap::Paragraph);
            }
            TagEnd::CodeBlock => {
                if let Some((language, code)) = self.code.take() {
                    self.pre(language, code.trim_end_matches('\n'));
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.pre(None, &table.text());
                }
            }
            TagEnd::List(_) => {
                self.lists.pop();
                self.block(if self.lists.is_empty() { Gap::Paragraph } else { Gap::Line });
            }
            TagEnd::Item => {
                self.flush_mark();
                self.block(Gap::Line);
            }
            TagEnd::TableHead | TagEnd::TableRow | TagEnd::TableCell => {}
            TagEnd::Emphasis => {
                let is_bold = self.emphases.pop() == Some(Emphasis::Bold);
                let counter = self.counter(is_bold);
                *counter = counter.saturating_sub(1);
            }
            TagEnd::Strong => self.bold = self.bold.saturating_sub(1),
            TagEnd::Strikethrough => self.strike = self.strike.saturating_sub(1),
            TagEnd::Link | TagEnd::Image => self.end_link(),
            _ => self.block(Gap::Paragraph),
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

    fn item(&mut self) {
        self.block(Gap::Line);
        self.flush_mark();
        let indent = "  ".repeat(self.lists.len().saturating_sub(1).min(INDENT_MOST));
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                let mark = format!("{indent}{number}. ");
                *number = number.saturating_add(1);
                mark
            }
            _ => format!("{indent}• "),
        };
        self.mark = Some(mark);
    }

    /// An item without text is still an item.
    fn flush_mark(&mut self) {
        if let Some(mark) = self.mark.take() {
            self.write_gap("");
            self.out.push(mark.trim_end(), &self.around());
            self.block(Gap::Line);
        }
    }

    fn link(&mut self, kind: LinkType, address: &CowStr<'_>, instead: Option<&str>) {
        let is_mail = kind == LinkType::Email && !address.starts_with("mailto:");
        let full = if is_mail { format!("mailto:{address}") } else { address.to_string() };
        self.referred.push(address.to_string());
        let instead = instead.map_or_else(|| address.to_string(), str::to_owned);
        self.links.push(Link { address: full.into(), instead, is_shown: false });
    }

    fn end_link(&mut self) {
        let Some(link) = self.links.last() else { return };
        if !link.is_shown {
            let instead = link.instead.clone();
            self.text(&instead);
        }
        let Some(link) = self.links.pop() else { return };
        let is_hidden = !may_lead(&link.address) || self.table.is_some();
        if is_hidden && (link.is_shown || link.instead == "image") && !link.address.is_empty() {
            self.text(&format!(" ({})", link.address));
        }
    }

    fn pre(&mut self, language: Option<Rc<str>>, text: &str) {
        // A block of code cannot stand behind a list's mark.
        self.flush_mark();
        self.write_gap("");
        self.blocks += 1;
        let pre = Some(Pre { number: self.blocks, language });
        self.out.push(text, &Style { quote: self.quote, pre, ..Style::default() });
        self.block(Gap::Paragraph);
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
        self.before_text();
        let link =
            self.links.first().filter(|link| may_lead(&link.address)).map(|link| Rc::clone(&link.address));
        let style = Style {
            link,
            code,
            bold: self.bold > 0,
            italic: self.italic > 0,
            strike: self.strike > 0,
            ..self.around()
        };
        self.out.push(text, &style);
    }

    fn new_line(&mut self) {
        if let Some(table) = &mut self.table {
            return table.push(" ");
        }
        self.before_text();
        self.out.push("\n", &self.around());
        self.out.push(&self.indent(), &self.around());
    }

    /// Whatever stands between the last text and the next.
    fn before_text(&mut self) {
        match self.mark.take() {
            Some(mark) => {
                self.write_gap("");
                self.out.push(&mark, &self.around());
            }
            None => self.write_gap(&self.indent()),
        }
    }

    fn write_gap(&mut self, indent: &str) {
        let lines = match std::mem::take(&mut self.gap) {
            Gap::None => return,
            Gap::Line => "\n",
            Gap::Paragraph => "\n\n",
        };
        if self.out.is_empty() {
            return;
        }
        let is_same_quote = self.out.last().is_some_and(|last| last.quote == self.quote);
        let style = if is_same_quote { self.around() } else { Style::default() };
        self.out.push(lines, &style);
        self.out.push(indent, &self.around());
    }

    /// How far to the right the text of an item stands.
    fn indent(&self) -> String {
        "  ".repeat(self.lists.len().min(INDENT_MOST))
    }

    fn around(&self) -> Style {
        Style { quote: self.quote, ..Style::default() }
    }

    /// A block begins or ends.
    fn block(&mut self, gap: Gap) {
        // What follows a list's mark stands beside it.
        if self.mark.is_none() {
            self.gap = self.gap.max(gap);
        }
    }
}

/// Whether a link may lead there.
fn may_lead(address: &str) -> bool {
    let scheme = address.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
    let is_known = matches!(scheme.as_deref(), Some("http" | "https" | "tg" | "mailto"));
    is_known
        && address.len() <= LINK_BYTES_MOST
        && !address.chars().any(|c| c.is_control() || c.is_whitespace())
}

fn language(kind: &CodeBlockKind<'_>) -> Option<Rc<str>> {
    let CodeBlockKind::Fenced(info) = kind else { return None };
    let word = info.split([' ', ',', '{']).next().unwrap_or_default();
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '#' | '.');
    let is_fit = !word.is_empty() && word.len() <= LANGUAGE_BYTES_MOST && word.chars().all(is_name);
    is_fit.then(|| word.into())
}

fn is_break(html: &str) -> bool {
    let bare: String = html.chars().filter(|c| !c.is_whitespace() && *c != '/').collect();
    bare.eq_ignore_ascii_case("<br>")
}
