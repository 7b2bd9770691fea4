//! How to use long-term memory. The memories themselves are never in the prompt: the tools bring them.

use super::always;
use crate::audience::VisibleInput;
use crate::section::{CacheClass, Frame, Kind, Layer, Section};

const ROW: Section = Section {
    kind: Kind::Memory,
    frame: Frame::Heading("Memory"),
    cache_class: CacheClass::Stable,
    layer: Layer::Operator,
    truncation_priority: None,
    when: always,
    write: |_, block| block.text(RULES),
};

const RULES: &str = "You have a long-term memory behind two tools: `read_memory` and `save_memory`.
IMPORTANT: when a question touches what the user likes, said, decided or asked you to keep, or work that is under way, call `read_memory` FIRST and answer from what it returns, not from a guess.
When the user tells you something worth keeping, call `save_memory` at once, before you reply.";

pub(crate) static MEMORY_CHANNEL: Section = ROW;

/// Only when the memory tools are there.
pub(crate) static MEMORY_HINT: Section = Section { when: has_memory_tools, ..ROW };

fn has_memory_tools(view: &VisibleInput<'_>) -> bool {
    let has = |name: &str| view.all(&view.input().tools).any(|tool| tool.value.name == name);
    has("read_memory") && has("save_memory")
}
