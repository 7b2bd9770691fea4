//! One sentence that sets the scene: with tools, or without.

use super::always;
use crate::section::{CacheClass, Frame, Kind, Layer, Section};

const WITH_TOOLS: &str = "You are an assistant that gets things done with the tools listed below.";
const WITHOUT_TOOLS: &str = "You are an assistant. Answer plainly, correctly and to the point.";

pub(crate) static INTRO: Section = Section {
    write: |view, block| {
        let tools = view.all(&view.input().tools).next().is_some();
        block.text(if tools { WITH_TOOLS } else { WITHOUT_TOOLS });
    },
    ..ROW
};

pub(crate) static INTRO_PLAIN: Section = Section { write: |_, block| block.text(WITHOUT_TOOLS), ..ROW };

const ROW: Section = Section {
    kind: Kind::Intro,
    frame: Frame::Bare,
    cache_class: CacheClass::Stable,
    layer: Layer::Operator,
    truncation_priority: None,
    when: always,
    write: |_, _| {},
};
