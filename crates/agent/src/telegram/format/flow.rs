//! The layout of blocks: gaps between them, list markers and depths, quotes. Independent of Markdown.

use std::rc::Rc;

use super::rich::{Pre, Rich, Style};

/// Deeper lists are not indented further.
const INDENT_MOST: usize = 8;

/// The gap between two blocks.
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

    pub(super) fn end_item(&mut self) {
        self.flush_mark();
        self.block(Gap::Line);
    }

    /// A code block.
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

    /// A line break within a block.
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
        "  ".repeat(self.lists.len().min(INDENT_MOST))
    }

    fn around(&self) -> Style {
        Style { quote: self.quote, ..Style::default() }
    }
}
