//! Runs of styled text, normalized as Telegram does. Blank stretches are bounded, so that a message never consists of
//! invisible text only.

use std::borrow::Cow;
use std::rc::Rc;

use embody_text::invisible::{Invisible, kind};

/// The longest stretch of blanks; more are dropped.
const BLANKS_MOST: usize = 256;

/// The style of a piece of text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Style {
    /// The number of its quote; adjacent quotes stay separate.
    pub(super) quote: Option<usize>,
    /// The code block that contains it.
    pub(super) pre: Option<Pre>,
    /// The link target.
    pub(super) link: Option<Rc<str>>,
    pub(super) bold: bool,
    pub(super) italic: bool,
    pub(super) strike: bool,
    pub(super) code: bool,
}

/// A code block.
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

/// A piece of text in one style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run<'a> {
    pub(super) text: Cow<'a, str>,
    pub(super) style: Style,
}

/// Text in several styles.
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
                if self.blanks >= BLANKS_MOST || self.runs.is_empty() && clean.is_empty() {
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

    /// The visible text.
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

    /// The runs between two positions.
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
