//! A section while it is being written: pieces of text, each with its source, none of them able to leave the frame.
//! This is the only place where a value's content becomes prompt text.

use std::borrow::Cow;

use crate::audience::Seen;
use crate::escape::{self, Place, Report};
use crate::{Note, NoteKind, Source};

/// A run of text from one source.
#[derive(Clone)]
pub(crate) struct Piece<'a> {
    pub(crate) text: Cow<'a, str>,
    /// `None`: the builder's own words.
    pub(crate) source: Option<&'a Source>,
    pub(crate) fresh: bool,
    pub(crate) gives: Gives<'a>,
}

/// How a piece gives way to the budget.
#[derive(Clone, Copy)]
pub(crate) enum Gives<'a> {
    Never,
    /// Line by line; the cut is made in the raw text, which is then escaped anew.
    Lines {
        raw: &'a str,
        place: Place,
    },
    /// As part of the item of that number, whole.
    Item(usize),
}

pub(crate) struct Block<'a> {
    place: Place,
    pieces: Vec<Piece<'a>>,
    notes: Vec<Note>,
    item: Option<usize>,
    items: usize,
}

impl<'a> Block<'a> {
    pub(crate) fn new(place: Place) -> Self {
        Self { place, pieces: Vec::with_capacity(8), notes: Vec::new(), item: None, items: 0 }
    }

    /// The builder's own words.
    pub(crate) fn text(&mut self, words: impl Into<Cow<'static, str>>) {
        self.push(words.into(), None, false);
    }

    /// The builder's own words about something that may differ in every turn.
    pub(crate) fn fresh_text(&mut self, words: String) {
        self.push(Cow::Owned(words), None, true);
    }

    /// A value that stands inside a line.
    pub(crate) fn inline(&mut self, value: Seen<'a, str>) {
        let text = self.escape_inline(value);
        self.push(text, Some(value.source), false);
    }

    /// A value that starts a line.
    pub(crate) fn line(&mut self, value: Seen<'a, str>) {
        let text = self.escape_line(value);
        self.push(text, Some(value.source), false);
    }

    /// A value that starts a line and may differ in every turn.
    pub(crate) fn fresh_line(&mut self, value: Seen<'a, str>) {
        let text = self.escape_line(value);
        self.push(text, Some(value.source), true);
    }

    /// A value inside a line that may differ in every turn.
    pub(crate) fn fresh(&mut self, value: Seen<'a, str>) {
        let text = self.escape_inline(value);
        self.push(text, Some(value.source), true);
    }

    /// A value in a line of `key=value` pairs. Requests bring some of them, so none may look like the next pair.
    pub(crate) fn fact(&mut self, value: Seen<'a, str>, fresh: bool) {
        let mut text = self.escape_inline(value);
        let bars = text.matches('|').count();
        if bars > 0 {
            text = Cow::Owned(text.replace('|', "¦"));
            self.note(Report { frames: bars, ..Report::default() }, value.source);
        }
        self.push(text, Some(value.source), fresh);
    }

    /// A value inside the builder's own markup.
    pub(crate) fn markup(&mut self, value: Seen<'a, str>) {
        let mut report = Report::default();
        let text = escape::markup(value.value, self.place.dialect, &mut report);
        self.note(report, value.source);
        self.push(Cow::Owned(text), Some(value.source), false);
    }

    /// A value inside the builder's own markup that is a line of its own.
    pub(crate) fn markup_line(&mut self, value: Seen<'a, str>) {
        let mut report = Report::default();
        let text = escape::markup_line(value.value, self.place.dialect, &mut report);
        self.note(report, value.source);
        self.push(Cow::Owned(text), Some(value.source), false);
    }

    /// A text of several lines that is never cut.
    pub(crate) fn whole(&mut self, value: Seen<'a, str>) {
        let text = self.escape_text(value, self.place);
        self.push(text, Some(value.source), false);
    }

    /// A text of several lines that may be cut between lines.
    pub(crate) fn lines(&mut self, value: Seen<'a, str>) {
        self.lines_under(value, self.place.depth);
    }

    /// The same behind a label. A text that starts with code gets its own line: behind the label the code would never
    /// start, and what ends it would start some.
    pub(crate) fn lines_behind(&mut self, label: &'static str, value: Seen<'a, str>) {
        self.text(label);
        self.text(if escape::starts_code(value.value) { "\n" } else { " " });
        self.lines(value);
    }

    /// The same below a sub-heading of that level.
    pub(crate) fn lines_under(&mut self, value: Seen<'a, str>, depth: usize) {
        let place = Place { depth, ..self.place };
        let text = self.escape_text(value, place);
        let gives = Gives::Lines { raw: value.value, place };
        self.pieces.push(Piece { text, source: Some(value.source), fresh: false, gives });
    }

    /// The body: as it stands in its file.
    pub(crate) fn verbatim(&mut self, text: &'a str, source: &'a Source) {
        self.push(Cow::Borrowed(text), Some(source), false);
    }

    /// What follows belongs to the next item of a list; each ends with a line end.
    pub(crate) fn item(&mut self) {
        self.item = Some(self.items);
        self.items += 1;
    }

    /// The list ends.
    pub(crate) fn end_items(&mut self) {
        self.item = None;
    }

    /// What was written, without a line end at its end, and what there is to say about it.
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

    fn push(&mut self, text: Cow<'a, str>, source: Option<&'a Source>, fresh: bool) {
        let gives = self.item.map_or(Gives::Never, Gives::Item);
        self.pieces.push(Piece { text, source, fresh, gives });
    }

    fn escape_inline(&mut self, value: Seen<'a, str>) -> Cow<'a, str> {
        let mut report = Report::default();
        let text = escape::inline(value.value, self.place.dialect, &mut report);
        self.note(report, value.source);
        text
    }

    fn escape_line(&mut self, value: Seen<'a, str>) -> Cow<'a, str> {
        let mut report = Report::default();
        let text = escape::line(value.value, self.place.dialect, &mut report);
        self.note(report, value.source);
        text
    }

    fn escape_text(&mut self, value: Seen<'a, str>, place: Place) -> Cow<'a, str> {
        let mut report = Report::default();
        let text = escape::text(value.value, place, &mut report);
        self.note(report, value.source);
        text
    }

    fn note(&mut self, report: Report, source: &Source) {
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

/// A number and what it counts.
pub(crate) fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
