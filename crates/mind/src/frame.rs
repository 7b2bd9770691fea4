//! Memories as text for hosts and models that show nothing else. Owns the frame: what stands in it cannot close it, open
//! another, or hide. Programs get plain fields instead.

use std::fmt::Write;

use embody_prompt::{escaped_json, without_hidden};
use serde::Serialize;

use crate::memory::{Memories, MemoryEntry};

const OPEN: &str = "<memories>";
const CLOSE: &str = "</memories>";
/// Every line of a memory begins with it, so none can pass for a line of the frame.
const MARGIN: &str = "  | ";

impl Memories {
    #[must_use]
    pub fn framed(&self) -> String {
        let mut out = format!("{}\n{OPEN}\n", self.about);
        if self.memories.is_empty() {
            out.push_str("(none)\n");
        }
        for entry in &self.memories {
            push(&mut out, entry);
        }
        out.push_str(CLOSE);
        out
    }
}

/// A result as JSON text in which no tag and no invisible character can stand; programs read the same values from it.
pub fn json_text(result: &impl Serialize) -> serde_json::Result<String> {
    serde_json::to_string(result).map(|text| escaped_json(&text))
}

fn push(out: &mut String, entry: &MemoryEntry) {
    let MemoryEntry { id, kind, occurred_at, writer, trust, .. } = entry;
    let said = entry.actor.as_ref().map_or(String::new(), |actor| format!(", said by {}", inline(actor)));
    let from = entry
        .source
        .as_ref()
        .map_or(String::new(), |source| format!(", from {} (as the writer says)", inline(source)));
    let _ = writeln!(
        out,
        "- {} ({}, {occurred_at}{said}{from}; written by {}, trust: {})",
        inline(id),
        inline(kind),
        inline(writer),
        inline(trust)
    );
    for line in escaped(&entry.text).split('\n') {
        let _ = writeln!(out, "{MARGIN}{line}");
    }
}

/// Text of several lines without anything that could open or close a tag, or that cannot be seen.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in without_hidden(text).chars() {
        match c {
            '<' | '＜' | '﹤' | '‹' | '〈' | '《' | '˂' | '❮' | '⟨' => out.push_str("&lt;"),
            // What some readers take for the end of a line must not escape the margin.
            '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => out.push('\n'),
            c => out.push(c),
        }
    }
    out
}

fn inline(text: &str) -> String {
    escaped(text).split_whitespace().collect::<Vec<_>>().join(" ")
}
