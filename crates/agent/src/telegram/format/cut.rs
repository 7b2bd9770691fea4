//! Splits a long text: before the limit, at the best boundary for a reader, never inside a character.

use unicode_segmentation::UnicodeSegmentation;

use super::PART_UNITS;

/// From the worst boundary to the best.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Border {
    Character,
    Word,
    Sentence,
    Line,
    Paragraph,
}

/// The ends of the parts; the last one is the end of the text. An empty text has none.
pub(super) fn cuts(text: &str, is_pre: impl Fn(usize) -> bool) -> Vec<usize> {
    let mut cuts = Vec::new();
    let mut start = 0;
    while let Some(rest) = text.get(start..).filter(|rest| !rest.is_empty()) {
        let length = first(rest, |at| is_pre(start + at));
        start += length.max(rest.chars().next().map_or(1, char::len_utf8));
        cuts.push(start);
    }
    cuts
}

/// The length of the first part.
fn first(text: &str, is_pre: impl Fn(usize) -> bool) -> usize {
    let mut units = 0;
    let mut best: Option<(Border, usize)> = None;
    let mut end = 0;
    let mut before = Before::default();
    for (at, cluster) in text.grapheme_indices(true) {
        if at > 0 {
            let border = before.border(cluster, || is_pre(at.saturating_sub(1)) && is_pre(at));
            // A boundary near the start would make a very short message.
            if units * 2 >= PART_UNITS && best.is_none_or(|(known, _)| border >= known) {
                best = Some((border, at));
            }
            end = at;
        }
        units += cluster.encode_utf16().count();
        if units > PART_UNITS {
            return best.map(|(_, at)| at).or((end > 0).then_some(end)).unwrap_or_else(|| fitting(cluster));
        }
        before.see(cluster);
    }
    text.len()
}

/// The length of one part of a grapheme cluster that is longer than a message.
fn fitting(cluster: &str) -> usize {
    let mut units = 0;
    let fits = cluster.chars().take_while(|c| {
        units += c.len_utf16();
        units <= PART_UNITS
    });
    fits.map(char::len_utf8).sum()
}

/// The text before a position.
#[derive(Default)]
struct Before {
    lines: usize,
    is_space: bool,
    is_stop: bool,
    is_wide_stop: bool,
}

impl Before {
    fn see(&mut self, cluster: &str) {
        let c = cluster.chars().next().unwrap_or_default();
        self.lines = if c == '\n' { self.lines + 1 } else { 0 };
        self.is_space = c.is_whitespace();
        // A space, a bracket or a quote after a full stop still ends the sentence.
        self.is_stop = matches!(c, '.' | '!' | '?' | '…' | ':' | ';')
            || self.is_stop && (self.is_space || matches!(c, ')' | '"' | '”' | '’' | '»'));
        self.is_wide_stop = matches!(c, '。' | '！' | '？' | '；');
    }

    fn border(&self, next: &str, is_in_code: impl Fn() -> bool) -> Border {
        // White space belongs to the text before it.
        if next.starts_with(char::is_whitespace) {
            return Border::Character;
        }
        match self.lines {
            0 if self.is_wide_stop || self.is_space && self.is_stop => Border::Sentence,
            0 if self.is_space => Border::Word,
            0 => Border::Character,
            1 => Border::Line,
            _ if is_in_code() => Border::Line,
            _ => Border::Paragraph,
        }
    }
}
