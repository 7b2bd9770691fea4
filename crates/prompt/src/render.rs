//! From prompt to text: spans that cover it, the border up to which it can be cached, and hashes. The last step:
//! nothing is appended after it.

use blake3::Hash;

use crate::assemble::{Prompt, RenderedSection};
use crate::{CacheClass, Frame, Kind, Layer, SEPARATOR, Source};

const BUILT_IN: &Source = &Source::BUILT_IN;

/// The prompt as it is sent, and the account of its bytes.
#[derive(Clone, Debug)]
pub struct RenderedPrompt {
    pub text: String,
    /// The sections in order; they cover the text but for the separators between them.
    pub spans: Vec<Span>,
    /// The byte where the first fresh value starts; the whole length when there is none.
    pub stable_len: usize,
    pub hash: Hash,
}

#[derive(Clone, Debug)]
pub struct Span {
    pub kind: Kind,
    pub layer: Layer,
    pub cache_class: CacheClass,
    pub start: usize,
    pub end: usize,
    pub truncated: bool,
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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub source: Source,
    pub start: usize,
    pub end: usize,
}

pub fn render(prompt: &Prompt<'_>) -> RenderedPrompt {
    let mut text = String::with_capacity(length(&prompt.sections));
    let mut spans = Vec::with_capacity(prompt.sections.len());
    let mut stable_len = None;
    for (index, rendered) in prompt.sections.iter().enumerate() {
        text.push_str(separator_before(&prompt.sections, index));
        let start = text.len();
        let mut parts = Vec::with_capacity(rendered.pieces.len() + 2);
        open_frame(&mut text, rendered.section.frame);
        extend_part(&mut parts, BUILT_IN, start, text.len());
        for piece in &rendered.pieces {
            let from = text.len();
            text.push_str(&piece.text);
            if piece.volatile {
                stable_len.get_or_insert(from);
            }
            extend_part(&mut parts, piece.source.unwrap_or(BUILT_IN), from, text.len());
        }
        let from = text.len();
        close_frame(&mut text, rendered.section.frame);
        extend_part(&mut parts, BUILT_IN, from, text.len());
        let section = rendered.section;
        let volatile = rendered.pieces.iter().any(|piece| piece.volatile);
        let cache_class = if volatile { CacheClass::Volatile } else { CacheClass::Stable };
        let (kind, layer, truncated, end) = (section.kind, section.layer, rendered.cut.is_some(), text.len());
        spans.push(Span { kind, layer, cache_class, start, end, truncated, parts });
    }
    let hash = blake3::hash(text.as_bytes());
    RenderedPrompt { stable_len: stable_len.unwrap_or(text.len()), text, spans, hash }
}

pub(crate) fn separator_before(sections: &[RenderedSection<'_>], index: usize) -> &'static str {
    match index.checked_sub(1).and_then(|above| sections.get(above)) {
        None => "",
        Some(above) if above.section.kind == Kind::Body => SEPARATOR,
        Some(_) => "\n\n",
    }
}

pub(crate) fn length(sections: &[RenderedSection<'_>]) -> usize {
    sections
        .iter()
        .enumerate()
        .map(|(index, rendered)| separator_before(sections, index).len() + rendered.length())
        .sum()
}

impl RenderedSection<'_> {
    pub(crate) fn length(&self) -> usize {
        let frame = match self.section.frame {
            Frame::Bare => 0,
            Frame::Heading(name) => name.len() + 4,
            Frame::Tag(name) => 2 * name.len() + 7,
        };
        frame + self.pieces.iter().map(|piece| piece.text.len()).sum::<usize>()
    }

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
