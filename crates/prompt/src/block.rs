//! A section while it is being written: pieces of text, each with its source; none can leave the frame. This is the only
//! place where a value's content becomes prompt text.

use std::borrow::Cow;

use crate::audience::Visible;
use crate::escape::{self, EscapeReport, TextPosition};
use crate::{Dialect, Note, NoteKind, Source};

#[derive(Clone)]
pub(crate) struct Piece<'a> {
    pub(crate) text: Cow<'a, str>,
    /// `None`: the builder's own text.
    pub(crate) source: Option<&'a Source>,
    pub(crate) volatile: bool,
    pub(crate) truncation: Truncation<'a>,
}

#[derive(Clone, Copy)]
pub(crate) enum Truncation<'a> {
    Never,
    /// Line by line; the cut is made in the raw text, which is then escaped anew.
    Lines {
        raw: &'a str,
        position: TextPosition,
    },
    /// As part of the item of that number, whole.
    Item(usize),
}

pub(crate) struct Block<'a> {
    position: TextPosition,
    pieces: Vec<Piece<'a>>,
    notes: Vec<Note>,
    item: Option<usize>,
    items: usize,
}

impl<'a> Block<'a> {
    pub(crate) fn new(position: TextPosition) -> Self {
        Self { position, pieces: Vec::with_capacity(8), notes: Vec::new(), item: None, items: 0 }
    }

    pub(crate) fn text(&mut self, words: impl Into<Cow<'static, str>>) {
        self.push(words.into(), None, false);
    }

    /// The builder's own text that may differ in every turn.
    pub(crate) fn volatile_text(&mut self, words: String) {
        self.push(Cow::Owned(words), None, true);
    }

    pub(crate) fn inline(&mut self, value: Visible<'a, str>) {
        let text = self.escape(value, escape::inline);
        self.push(text, Some(value.source), false);
    }

    pub(crate) fn line(&mut self, value: Visible<'a, str>) {
        let text = self.escape(value, escape::line);
        self.push(text, Some(value.source), false);
    }

    pub(crate) fn volatile_line(&mut self, value: Visible<'a, str>) {
        let text = self.escape(value, escape::line);
        self.push(text, Some(value.source), true);
    }

    pub(crate) fn volatile(&mut self, value: Visible<'a, str>) {
        let text = self.escape(value, escape::inline);
        self.push(text, Some(value.source), true);
    }

    /// A value in a line of `key=value` pairs. Some come from requests, so none may look like the next pair.
    pub(crate) fn fact(&mut self, value: Visible<'a, str>, volatile: bool) {
        let mut text = self.escape(value, escape::inline);
        let bars = text.matches('|').count();
        if bars > 0 {
            text = Cow::Owned(text.replace('|', "¦"));
            self.note(EscapeReport { frames: bars, ..EscapeReport::default() }, value.source);
        }
        self.push(text, Some(value.source), volatile);
    }

    pub(crate) fn markup(&mut self, value: Visible<'a, str>) {
        let text = self.escape(value, |text, dialect, report| escape::markup(text, dialect, report).into());
        self.push(text, Some(value.source), false);
    }

    pub(crate) fn markup_line(&mut self, value: Visible<'a, str>) {
        let text =
            self.escape(value, |text, dialect, report| escape::markup_line(text, dialect, report).into());
        self.push(text, Some(value.source), false);
    }

    /// A text of several lines that is never cut.
    pub(crate) fn whole(&mut self, value: Visible<'a, str>) {
        let text = self.escape_text(value, self.position);
        self.push(text, Some(value.source), false);
    }

    /// A text of several lines that may be cut between lines.
    pub(crate) fn lines(&mut self, value: Visible<'a, str>) {
        self.lines_under(value, self.position.depth);
    }

    /// The same behind a label. A text that starts with code gets its own line: behind the label the code would never
    /// start, and what ends it would start some.
    pub(crate) fn lines_behind(&mut self, label: &'static str, value: Visible<'a, str>) {
        self.text(label);
        self.text(if escape::starts_code(value.value) { "\n" } else { " " });
        self.lines(value);
    }

    pub(crate) fn lines_under(&mut self, value: Visible<'a, str>, depth: usize) {
        let position = TextPosition { depth, ..self.position };
        let text = self.escape_text(value, position);
        let truncation = Truncation::Lines { raw: value.value, position };
        self.pieces.push(Piece { text, source: Some(value.source), volatile: false, truncation });
    }

    pub(crate) fn verbatim(&mut self, text: &'a str, source: &'a Source) {
        self.push(Cow::Borrowed(text), Some(source), false);
    }

    /// What follows belongs to the next item of a list; each ends with a line end.
    pub(crate) fn item(&mut self) {
        self.item = Some(self.items);
        self.items += 1;
    }

    pub(crate) fn end_items(&mut self) {
        self.item = None;
    }

    /// The pieces, without a line end at the end, and the notes about them.
    pub(crate) fn finish(mut self) -> (Vec<Piece<'a>>, Vec<Note>) {
        while let Some(last) = self.pieces.last_mut() {
            let end = last.text.trim_end_matches('\n').len();
            if end > 0 {
                if end < last.text.len() {
                    last.text.to_mut().truncate(end);
                }
                break;
            }
            self.pieces.pop();
        }
        (self.pieces, self.notes)
    }

    fn push(&mut self, text: Cow<'a, str>, source: Option<&'a Source>, volatile: bool) {
        let truncation = self.item.map_or(Truncation::Never, Truncation::Item);
        self.pieces.push(Piece { text, source, volatile, truncation });
    }

    fn escape(
        &mut self,
        value: Visible<'a, str>,
        escape: impl FnOnce(&'a str, Dialect, &mut EscapeReport) -> Cow<'a, str>,
    ) -> Cow<'a, str> {
        let mut report = EscapeReport::default();
        let text = escape(value.value, self.position.dialect, &mut report);
        self.note(report, value.source);
        text
    }

    fn escape_text(&mut self, value: Visible<'a, str>, position: TextPosition) -> Cow<'a, str> {
        self.escape(value, |text, _, report| escape::text(text, position, report))
    }

    fn note(&mut self, report: EscapeReport, source: &Source) {
        if report.hidden > 0 {
            let message = format!("{} taken out", counted(report.hidden, "invisible character"));
            self.notes.push(Note::new(NoteKind::HiddenText, message, source.clone()));
        }
        if report.frames > 0 {
            let message = format!("{} escaped", counted(report.frames, "imitated frame"));
            self.notes.push(Note::new(NoteKind::FrameEscaped, message, source.clone()));
        }
    }
}

pub(crate) fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
