//! Sections with a fixed text and a condition: the first sentence, guidelines, memory, storage, formatting, background.

use super::tools::has_tools;
use crate::audience::VisibleInput;
use crate::section::{Frame, Kind, Section};

const INTRO_ROW: Section = Section::new(Kind::Intro, Frame::Bare);

pub(crate) static INTRO: Section = Section {
    write: |view, block| block.text(if has_tools(view) { INTRO_WITH_TOOLS } else { INTRO_WITHOUT_TOOLS }),
    ..INTRO_ROW
};

pub(crate) static INTRO_PLAIN: Section =
    Section { write: |_, block| block.text(INTRO_WITHOUT_TOOLS), ..INTRO_ROW };

const INTRO_WITH_TOOLS: &str = "You are an assistant that gets things done with the tools listed below.";
const INTRO_WITHOUT_TOOLS: &str = "You are an assistant. Answer plainly, correctly and to the point.";

pub(crate) static GUIDELINES: Section = Section {
    write: |view, block| {
        block.text(if has_tools(view) { GUIDELINES_WITH_TOOLS } else { GUIDELINES_WITHOUT_TOOLS })
    },
    ..Section::new(Kind::Guidelines, Frame::Heading("Guidelines"))
};

const GUIDELINES_WITH_TOOLS: &str = "- Use a tool when it finds out or does what words cannot; answer straight away when you already know.
- Tell the user what a result means for them. Do not repeat raw tool output.
- When a call fails, say what failed and try another way before you give up.
- Silence is allowed: if your tool calls have already done or shown everything, end the turn with an empty answer instead of a remark about it. Never do so without having called a tool in this turn.";

const GUIDELINES_WITHOUT_TOOLS: &str =
    "- Answer from what you know and what is in this conversation; say when that is not enough.
- You have no tools here: do not claim to have looked something up or done something.";

/// How to use long-term memory. The memories themselves are never in the prompt: the tools return them.
const MEMORY_ROW: Section =
    Section { write: |_, block| block.text(MEMORY), ..Section::new(Kind::Memory, Frame::Heading("Memory")) };

pub(crate) static MEMORY_CHANNEL: Section = MEMORY_ROW;

pub(crate) static MEMORY_HINT: Section = Section { when: has_memory_tools, ..MEMORY_ROW };

const MEMORY: &str = "You have a long-term memory behind two tools: `read_memory` and `save_memory`.
IMPORTANT: when a question touches what the user likes, said, decided or asked you to keep, or work that is under way, call `read_memory` FIRST and answer from what it returns, not from a guess.
When the user tells you something worth keeping, call `save_memory` at once, before you reply.";

fn has_memory_tools(view: &VisibleInput<'_>) -> bool {
    let has = |name: &str| view.all(&view.input().tools).any(|tool| tool.value.name == name);
    has("read_memory") && has("save_memory")
}

pub(crate) static STORAGE: Section = Section {
    when: |view| view.input().agent.persists,
    write: |_, block| block.text(STORAGE_GUIDE),
    ..Section::new(Kind::Storage, Frame::Tag("Storage"))
};

const STORAGE_GUIDE: &str = "What you do not store is gone when this run ends. Pick the place by what the thing is:
- Files: work products and anything long - drafts, reports, data - in your working directory, if you have one.
- Instructions: how you should behave from now on (\"always …\", \"never …\"). They are in every later prompt, so keep them few and short.
- Memory: facts, preferences and decisions about people and work. Save one fact at a time; look them up when needed.
- Triggers: anything that must happen later or again. Schedule it; do not rely on remembering.
If something fits two places, take the one that will be looked at when it matters.";

pub(crate) static FORMATTING: Section = Section {
    when: is_telegram,
    write: |_, block| block.text(TELEGRAM),
    ..Section::new(Kind::Formatting, Frame::Tag("Formatting"))
};

const TELEGRAM: &str = "Your reply is shown in Telegram.
- Use *bold*, _italic_, `code`, fenced code blocks and [text](address) links; nothing else is rendered.
- No headings, no tables, no HTML, no images: write short paragraphs, and lists with a dash.
- Keep it brief. A message ends at 4,096 characters; longer ones are split.";

fn is_telegram(view: &VisibleInput<'_>) -> bool {
    view.text(&view.input().channel).is_some_and(|channel| channel.value.trim().starts_with("telegram"))
}

pub(crate) static BACKGROUND: Section = Section {
    when: |view| view.input().background,
    write: |_, block| {
        block.text(
            "This run was started by a schedule or a trigger, and nobody is watching. Your reply is kept but not \
             delivered to the user.\nIf there is something they need to know now, call notify_user; otherwise finish quietly.",
        );
    },
    ..Section::new(Kind::Background, Frame::Tag("Background"))
};
