//! From prompt to text: spans that cover it, the border up to which it can be cached, and hashes. The last step:
//! nothing is appended after it.

use blake3::Hash;

use crate::assemble::{Prompt, Written};
use crate::{Frame, Kind, Layer, Pace, SEPARATOR, Source};

const BUILT_IN: &Source = &Source::BUILT_IN;

/// The prompt as it is sent, and the account of its bytes.
#[derive(Clone, Debug)]
pub struct Rendered {
    /// Exactly what a model gets.
    pub text: String,
    /// The sections in order; they cover the text but for the separators between them.
    pub spans: Vec<Span>,
    /// The byte where the first fresh value starts; the whole length when there is none.
    pub stable_len: usize,
    /// The hash of the text.
    pub hash: Hash,
}

/// A section's place in the text.
#[derive(Clone, Debug)]
pub struct Span {
    /// What it is about.
    pub kind: Kind,
    /// Whose words it carries.
    pub layer: Layer,
    /// Whether anything in it may differ in the next turn.
    pub pace: Pace,
    /// Its first byte.
    pub start: usize,
    /// The byte after its last.
    pub end: usize,
    /// Whether something was cut from it.
    pub truncated: bool,
    /// Its runs of one source each, without gaps.
    pub parts: Vec<Part>,
}

impl Span {
    /// The hash of its bytes, frame included, for a receipt. `text` is the rendered text it belongs to.
    pub fn hash(&self, text: &str) -> Hash {
        blake3::hash(text.as_bytes().get(self.start..self.end).unwrap_or_default())
    }

    /// The source that says most about where this section came from: the first that is not the builder.
    pub fn source(&self) -> &Source {
        self.parts.iter().map(|part| &part.source).find(|source| *source != BUILT_IN).unwrap_or(BUILT_IN)
    }
}

/// A run of bytes from one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Where the bytes came from.
    pub source: Source,
    /// The first of them.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
}

/// Renders the prompt.
pub fn render(prompt: &Prompt<'_>) -> Rendered {
    let mut text = String::with_capacity(length(&prompt.sections));
    let mut spans = Vec::with_capacity(prompt.sections.len());
    let mut stable_len = None;
    for (index, written) in prompt.sections.iter().enumerate() {
        text.push_str(separator_before(&prompt.sections, index));
        let start = text.len();
        let mut parts = Vec::with_capacity(written.pieces.len() + 2);
        open_frame(&mut text, written.section.frame);
        extend_part(&mut parts, BUILT_IN, start, text.len());
        for piece in &written.pieces {
            let from = text.len();
            text.push_str(&piece.text);
            if piece.fresh {
                stable_len.get_or_insert(from);
            }
            extend_part(&mut parts, piece.source.unwrap_or(BUILT_IN), from, text.len());
        }
        let from = text.len();
        close_frame(&mut text, written.section.frame);
        extend_part(&mut parts, BUILT_IN, from, text.len());
        let section = written.section;
        let fresh = written.pieces.iter().any(|piece| piece.fresh);
        let pace = if fresh { Pace::Fresh } else { Pace::Stable };
        let (kind, layer, truncated, end) = (section.kind, section.layer, written.cut.is_some(), text.len());
        spans.push(Span { kind, layer, pace, start, end, truncated, parts });
    }
    let hash = blake3::hash(text.as_bytes());
    Rendered { stable_len: stable_len.unwrap_or(text.len()), text, spans, hash }
}

/// What stands before the section of that number.
pub(crate) fn separator_before(sections: &[Written<'_>], index: usize) -> &'static str {
    match index.checked_sub(1).and_then(|above| sections.get(above)) {
        None => "",
        Some(above) if above.section.kind == Kind::Body => SEPARATOR,
        Some(_) => "\n\n",
    }
}

/// How many bytes the text will have.
pub(crate) fn length(sections: &[Written<'_>]) -> usize {
    sections
        .iter()
        .enumerate()
        .map(|(index, written)| separator_before(sections, index).len() + written.length())
        .sum()
}

impl Written<'_> {
    /// How many bytes it will have, frame included.
    pub(crate) fn length(&self) -> usize {
        let frame = match self.section.frame {
            Frame::Bare => 0,
            Frame::Heading(name) => name.len() + 4,
            Frame::Tag(name) => 2 * name.len() + 7,
        };
        frame + self.pieces.iter().map(|piece| piece.text.len()).sum::<usize>()
    }

    /// Its text, frame included.
    pub(crate) fn push_to(&self, text: &mut String) {
        open_frame(text, self.section.frame);
        for piece in &self.pieces {
            text.push_str(&piece.text);
        }
        close_frame(text, self.section.frame);
    }
}

fn open_frame(text: &mut String, frame: Frame) {
    let (before, name, after) = match frame {
        Frame::Bare => return,
        Frame::Heading(name) => ("## ", name, "\n"),
        Frame::Tag(name) => ("<", name, ">\n"),
    };
    text.push_str(before);
    text.push_str(name);
    text.push_str(after);
}

fn close_frame(text: &mut String, frame: Frame) {
    if let Frame::Tag(name) = frame {
        text.push_str("\n</");
        text.push_str(name);
        text.push('>');
    }
}

fn extend_part(parts: &mut Vec<Part>, source: &Source, start: usize, end: usize) {
    if start == end {
        return;
    }
    match parts.last_mut() {
        Some(last) if last.source == *source => last.end = end,
        _ => parts.push(Part { source: source.clone(), start, end }),
    }
}
