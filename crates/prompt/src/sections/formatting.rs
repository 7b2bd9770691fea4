//! What a channel can show, for channels that have rules of their own.

use crate::audience::VisibleInput;
use crate::section::{CacheClass, Frame, Kind, Layer, Section};

pub(crate) static FORMATTING: Section = Section {
    kind: Kind::Formatting,
    frame: Frame::Tag("Formatting"),
    cache_class: CacheClass::Stable,
    layer: Layer::Operator,
    truncation_priority: None,
    when: is_telegram,
    write: |_, block| block.text(TELEGRAM),
};

const TELEGRAM: &str = "Your reply is shown in Telegram.
- Use *bold*, _italic_, `code`, fenced code blocks and [text](address) links; nothing else is rendered.
- No headings, no tables, no HTML, no images: write short paragraphs, and lists with a dash.
- Keep it brief. A message ends at 4,096 characters; longer ones are split.";

fn is_telegram(view: &VisibleInput<'_>) -> bool {
    view.text(&view.input().channel).is_some_and(|channel| channel.value.trim().starts_with("telegram"))
}
