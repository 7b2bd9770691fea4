//! Tags that name a part of the prompt's frame. Owns balance: a text may open and close tags of its own, but it may
//! not close what it never opened, nor write the tags that only a system writes.

use super::super::finding::{Findings, Rule};
use super::is_one_of;

/// Parts of a prompt; opened and closed by the same text they are its own business.
const FRAMES: &str = "identity instructions responsibilities directories storage formatting context memories task background role \
     available_skills skill body soul persona user_instructions rules policy safety user assistant human prompt project \
     memory tools tool data untrusted guidelines layer";

/// Tags that only a system writes.
const RESERVED: &str = "system system_prompt system-prompt systemprompt system_message system-message system_instructions \
     system-reminder system_reminder sys body_rules body-rules system_rules developer_message";

const MAX_NAME_BYTES: usize = 40;

/// Reports closing tags of frames that this text never opened, and tags that are the system's own.
pub(super) fn find(text: &str, findings: &mut Findings<'_>) {
    let mut open: Vec<(String, usize)> = Vec::new();
    for (at, _) in text.match_indices('<') {
        let Some(tag) = Tag::at(text, at) else { continue };
        let reserved = is_one_of(&tag.name, RESERVED);
        if !reserved && !is_one_of(&tag.name, FRAMES) {
            continue;
        }
        let mentioned = text.get(..at).is_some_and(|before| before.ends_with('`'));
        if reserved && tag.bare && !tag.closing && !mentioned {
            findings.add(Rule::FrameMark, at);
        }
        let count = open.iter_mut().find(|(name, _)| *name == tag.name);
        match (tag.closing, count) {
            (false, Some((_, count))) => *count += 1,
            (false, None) => open.push((tag.name, 1)),
            (true, Some((_, count))) if *count > 0 => *count -= 1,
            (true, _) if !mentioned => findings.add(Rule::FrameMark, at),
            _ => {}
        }
    }
}

struct Tag {
    name: String,
    closing: bool,
    /// Without attributes.
    bare: bool,
}

impl Tag {
    fn at(text: &str, at: usize) -> Option<Self> {
        let inside = text.get(at + 1..)?;
        let closing = inside.starts_with('/');
        let inside = inside.strip_prefix('/').unwrap_or(inside).trim_start_matches(' ');
        let is_name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
        let length = inside.bytes().take(MAX_NAME_BYTES).take_while(is_name).count();
        let name = inside.get(..length).filter(|name| !name.is_empty())?.to_ascii_lowercase();
        let after = inside.get(length..)?;
        let bare = after.trim_start_matches(' ').starts_with('>');
        (bare || after.starts_with([' ', '/'])).then_some(Self { name, closing, bare })
    }
}
