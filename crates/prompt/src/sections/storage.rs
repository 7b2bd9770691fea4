//! Where to keep what, for agents that can keep something.

use crate::section::{CacheClass, Frame, Kind, Layer, Section};

pub(crate) static STORAGE: Section = Section {
    kind: Kind::Storage,
    frame: Frame::Tag("Storage"),
    cache_class: CacheClass::Stable,
    layer: Layer::Operator,
    truncation_priority: None,
    when: |view| view.input().agent.persists,
    write: |_, block| block.text(GUIDE),
};

const GUIDE: &str = "What you do not store is gone when this run ends. Pick the place by what the thing is:
- Files: work products and anything long - drafts, reports, data - in your working directory, if you have one.
- Instructions: how you should behave from now on (\"always …\", \"never …\"). They are in every later prompt, so keep them few and short.
- Memory: facts, preferences and decisions about people and work. Save one fact at a time; look them up when needed.
- Triggers: anything that must happen later or again. Schedule it; do not rely on remembering.
If something fits two places, take the one that will be looked at when it matters.";
