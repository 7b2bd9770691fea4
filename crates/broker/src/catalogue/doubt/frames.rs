//! Marks with which a text poses as another part of the prompt: tags of speakers, chat templates, comments that a page would
//! not show.

use super::Doubt;

/// Tags that no description of a tool needs, with or without a slash.
const TAGS: [&str; 20] = [
    "important",
    "system",
    "system_prompt",
    "system-prompt",
    "system_instruction",
    "system-reminder",
    "instruction",
    "instructions",
    "assistant",
    "user",
    "human",
    "admin",
    "developer",
    "secret",
    "hidden",
    "critical",
    "override",
    "priority",
    "tool_result",
    "function_calls",
];
/// Marks of chat templates.
const MARKS: [&str; 16] = [
    "<|im_start|>",
    "<|im_end|>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|start_header_id|>",
    "[inst]",
    "[/inst]",
    "<<sys>>",
    "<start_of_turn>",
    "<end_of_turn>",
    "[system]",
    "[system message]",
    "[/system]",
];
/// Who speaks, at the start of a line.
const SPEAKERS: [&str; 12] = [
    "system:",
    "### system",
    "## system prompt",
    "# system prompt",
    "system prompt:",
    "system message:",
    "system override",
    "[system",
    "\nhuman: ",
    "\nassistant: ",
    "### instruction",
    "begin system",
];
/// Styles under which nobody sees text.
const INVISIBLE: [&str; 6] = [
    "display:none",
    "display: none",
    "font-size:0",
    "font-size: 0",
    "visibility:hidden",
    "visibility: hidden",
];
/// Words in a comment from which on it is a text.
const COMMENT_WORDS: usize = 4;

/// A mark in a text.
pub(super) fn find(text: &str) -> Option<Doubt> {
    let lower = text.to_lowercase();
    let marked = MARKS.iter().any(|mark| lower.contains(mark))
        || tags(&lower).any(|tag| TAGS.contains(&tag))
        || speaks(&lower)
        || comments(&lower).any(|comment| comment.split_whitespace().count() >= COMMENT_WORDS)
        || lower.contains("style=") && INVISIBLE.iter().any(|style| lower.contains(style))
        || has_leaking_image(&lower);
    marked.then_some(Doubt::Frame)
}

/// The names in `<name>` and `</name>`.
fn tags(lower: &str) -> impl Iterator<Item = &str> {
    lower.split('<').skip(1).filter_map(|rest| {
        let (tag, _) = rest.split_once('>')?;
        tag.trim().trim_matches('/').split_whitespace().next()
    })
}

fn speaks(lower: &str) -> bool {
    let starts = |line: &str| {
        let line = line.trim_start_matches([' ', '\t', '*', '>', '`']);
        SPEAKERS
            .iter()
            .any(|speaker| line.starts_with(speaker.trim_start_matches('\n')) && !speaker.starts_with('\n'))
    };
    // A transcript of another kind begins in the middle of a text only.
    lower.lines().any(starts)
        || SPEAKERS.iter().any(|speaker| speaker.starts_with('\n') && lower.contains(speaker))
}

fn comments(lower: &str) -> impl Iterator<Item = &str> {
    lower.split("<!--").skip(1).map(|rest| rest.split_once("-->").map_or(rest, |(comment, _)| comment))
}

/// A picture whose address carries something out.
fn has_leaking_image(lower: &str) -> bool {
    lower.split("![").skip(1).any(|rest| {
        let address =
            rest.split_once("](").and_then(|(_, rest)| rest.split_once(')')).map(|(address, _)| address);
        address.is_some_and(|address| address.starts_with("http") && address.contains('?'))
    })
}
