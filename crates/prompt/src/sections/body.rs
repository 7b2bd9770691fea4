//! The body rules, first and as they stand: the one layer that is not escaped, because nothing stands above it.

use crate::audience::VisibleInput;
use crate::block::Block;
use crate::section::{Frame, Kind, Layer, Section};

pub(crate) static BODY: Section =
    Section { layer: Layer::Body, write, ..Section::new(Kind::Body, Frame::Bare) };

fn write<'a>(view: &VisibleInput<'a>, block: &mut Block<'a>) {
    let Some(body) = view.body() else { return };
    // White space at the end would blur the separator that follows.
    let last = body.parts.iter().rposition(|part| !part.text.trim_end().is_empty()).unwrap_or(0);
    for (index, part) in body.parts.iter().enumerate().take(last + 1) {
        let text = if index == last { part.text.trim_end() } else { part.text.as_str() };
        block.verbatim(text, &part.source);
    }
}
