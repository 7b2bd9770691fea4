//! Runs of styled text, normalized as Telegram does. Blank stretches are bounded, so that a message never consists of
//! invisible text only.

use std::borrow::Cow;
use std::rc::Rc;

use embody_text::invisible::{Invisible, kind};

/// The longest stretch of blanks; more are dropped.
const MAX_BLANKS: usize = 256;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Style {
    /// The number of its quote; adjacent quotes stay separate.
    pub(super) quote: Option<usize>,
    pub(super) pre: Option<Pre>,
    pub(super) link: Option<Rc<str>>,
    pub(super) bold: bool,
    pub(super) italic: bool,
    pub(super) strike: bool,
    pub(super) code: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pre {
    pub(super) number: usize,
    pub(super) language: Option<Rc<str>>,
}

impl Style {
    /// Removes combinations that Telegram does not allow: code has no other style, a link no code.
    pub(super) fn allowed(self) -> Self {
        if self.pre.is_some() {
            return Self { quote: self.quote, pre: self.pre, ..Self::default() };
        }
        if self.code && self.link.is_none() {
            return Self { quote: self.quote, code: true, ..Self::default() };
        }
        Self { code: false, ..self }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run<'a> {
    pub(super) text: Cow<'a, str>,
    pub(super) style: Style,
}

#[derive(Debug, Default)]
pub(super) struct Rich {
    runs: Vec<Run<'static>>,
    /// The number of blanks at its end.
    blanks: usize,
}

impl Rich {
    pub(super) fn push(&mut self, text: &str, style: &Style) {
        let mut clean = String::with_capacity(text.len());
        for c in text.chars() {
            let c = match c {
                '\r' => continue,
                '\n' | '\t' => c,
                c if c.is_control() => ' ',
                c => c,
            };
            if is_blank(c) {
                if self.blanks >= MAX_BLANKS || self.runs.is_empty() && clean.is_empty() {
                    continue;
                }
                self.blanks += 1;
            } else {
                self.blanks = 0;
            }
            clean.push(c);
        }
        if clean.is_empty() {
            return;
        }
        let style = style.clone().allowed();
        match self.runs.last_mut() {
            Some(last) if last.style == style => last.text.to_mut().push_str(&clean),
            _ => self.runs.push(Run { text: clean.into(), style }),
        }
    }

    /// Drops the blanks at the end.
    pub(super) fn end(&mut self) {
        while let Some(last) = self.runs.last_mut() {
            let length = last.text.trim_end_matches(is_blank).len();
            last.text.to_mut().truncate(length);
            if length > 0 {
                break;
            }
            self.runs.pop();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The style at its end.
    pub(super) fn last(&self) -> Option<&Style> {
        self.runs.last().map(|run| &run.style)
    }

    pub(super) fn text(&self) -> String {
        self.runs.iter().map(|run| run.text.as_ref()).collect()
    }

    /// Whether the byte at this position is in a code block.
    pub(super) fn is_pre(&self, at: usize) -> bool {
        let mut end = 0;
        let run = self.runs.iter().find(|run| {
            end += run.text.len();
            at < end
        });
        run.is_some_and(|run| run.style.pre.is_some())
    }

    pub(super) fn between(&self, start: usize, end: usize) -> Vec<Run<'_>> {
        let mut at = 0;
        let mut found = Vec::new();
        for run in &self.runs {
            let (from, to) = (start.max(at), end.min(at + run.text.len()));
            if let Some(text) = run.text.get(from.saturating_sub(at)..to.saturating_sub(at))
                && !text.is_empty()
            {
                found.push(Run { text: Cow::Borrowed(text), style: run.style.clone() });
            }
            at += run.text.len();
        }
        found
    }
}

/// Whether it is invisible: white space, and characters without a glyph.
fn is_blank(c: char) -> bool {
    let has_shape = |kind| matches!(kind, Invisible::Private | Invisible::NonCharacter | Invisible::Layout);
    c.is_whitespace() || kind(c).is_some_and(|kind| !has_shape(kind))
}

const MAX_INDENT: usize = 8;

#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gap {
    #[default]
    None,
    Line,
    Paragraph,
}

/// Text that grows block by block.
#[derive(Default)]
pub(super) struct Flow {
    out: Rich,
    /// The gap to write before the next text.
    gap: Gap,
    /// The marker of a list item that has no text yet.
    mark: Option<String>,
    /// The open lists, each with its next number if it is numbered.
    lists: Vec<Option<u64>>,
    /// The number of open quotes; they are shown as one.
    quotes: usize,
    quote: Option<usize>,
    /// Counts quotes and code blocks, so that adjacent ones stay separate.
    blocks: usize,
}

impl Flow {
    /// A block starts or ends.
    pub(super) fn block(&mut self, gap: Gap) {
        // The first block of an item stands next to its marker.
        if self.mark.is_none() {
            self.gap = self.gap.max(gap);
        }
    }

    pub(super) fn begin_quote(&mut self) {
        self.block(Gap::Paragraph);
        self.quotes += 1;
        self.blocks += 1;
        self.quote.get_or_insert(self.blocks);
    }

    pub(super) fn end_quote(&mut self) {
        self.quotes = self.quotes.saturating_sub(1);
        if self.quotes == 0 {
            self.quote = None;
        }
        self.block(Gap::Paragraph);
    }

    /// A list, with its first number if it is numbered.
    pub(super) fn begin_list(&mut self, first: Option<u64>) {
        self.block(if self.lists.is_empty() { Gap::Paragraph } else { Gap::Line });
        self.flush_mark();
        self.lists.push(first);
    }

    pub(super) fn end_list(&mut self) {
        self.lists.pop();
        self.block(if self.lists.is_empty() { Gap::Paragraph } else { Gap::Line });
    }

    pub(super) fn begin_item(&mut self) {
        self.block(Gap::Line);
        self.flush_mark();
        let indent = "  ".repeat(self.lists.len().saturating_sub(1).min(MAX_INDENT));
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

    pub(super) fn end_item(&mut self) {
        self.flush_mark();
        self.block(Gap::Line);
    }

    pub(super) fn pre(&mut self, language: Option<Rc<str>>, text: &str) {
        // It cannot stand next to a list marker.
        self.flush_mark();
        self.write_gap("");
        self.blocks += 1;
        let pre = Some(Pre { number: self.blocks, language });
        self.out.push(text, &Style { pre, ..self.around() });
        self.block(Gap::Paragraph);
    }

    pub(super) fn text(&mut self, text: &str, style: Style) {
        self.before_text();
        self.out.push(text, &Style { quote: self.quote, ..style });
    }

    pub(super) fn new_line(&mut self) {
        self.before_text();
        self.out.push("\n", &self.around());
        self.out.push(&self.indent(), &self.around());
    }

    pub(super) fn end(mut self) -> Rich {
        self.out.end();
        self.out
    }

    /// Writes the marker of an item without text.
    fn flush_mark(&mut self) {
        if let Some(mark) = self.mark.take() {
            self.write_gap("");
            self.out.push(mark.trim_end(), &self.around());
            self.block(Gap::Line);
        }
    }

    /// Writes the gap before the next text.
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

    /// The indentation of an item's text.
    fn indent(&self) -> String {
        "  ".repeat(self.lists.len().min(MAX_INDENT))
    }

    fn around(&self) -> Style {
        Style { quote: self.quote, ..Style::default() }
    }
}
