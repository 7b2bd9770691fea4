//! When to use tools, what not to repeat, when to be silent.

use super::always;
use crate::section::{CacheClass, Frame, Kind, Layer, Section};

const WITH_TOOLS: &str = "- Use a tool when it finds out or does what words cannot; answer straight away when you already know.
- Tell the user what a result means for them. Do not repeat raw tool output.
- When a call fails, say what failed and try another way before you give up.
- Silence is allowed: if your tool calls have already done or shown everything, end the turn with an empty answer instead of a remark about it. Never do so without having called a tool in this turn.";

const WITHOUT_TOOLS: &str =
    "- Answer from what you know and what is in this conversation; say when that is not enough.
- You have no tools here: do not claim to have looked something up or done something.";

pub(crate) static GUIDELINES: Section = Section {
    kind: Kind::Guidelines,
    frame: Frame::Heading("Guidelines"),
    cache_class: CacheClass::Stable,
    layer: Layer::Operator,
    truncation_priority: None,
    when: always,
    write: |view, block| {
        let tools = view.all(&view.input().tools).next().is_some();
        block.text(if tools { WITH_TOOLS } else { WITHOUT_TOOLS });
    },
};
