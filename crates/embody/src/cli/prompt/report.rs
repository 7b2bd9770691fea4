//! A prompt and the account of its bytes, as `--json` prints it and `diff` reads it.

use embody_prompt::{Note, Pace, Prompt, Rendered, Source, Span, assemble, render, tokens};
use serde::{Deserialize, Serialize};

use crate::cli::Context;
use crate::compose::{PromptArgs, compose};
use crate::failure::Failure;
use crate::output::printable;

/// The prompt, its sections and its notes. Offsets are in bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PromptReport {
    pub(crate) layout: String,
    pub(crate) text: String,
    pub(crate) hash: String,
    pub(crate) chars: usize,
    pub(crate) tokens: usize,
    pub(crate) stable_len: usize,
    pub(crate) sections: Vec<SectionReport>,
    pub(crate) notes: Vec<NoteReport>,
    /// The receipt that was kept of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) receipt: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SectionReport {
    pub(crate) kind: String,
    pub(crate) source: String,
    /// The line where the source starts; 0 where lines make no sense.
    pub(crate) line: u32,
    pub(crate) layer: String,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) chars: usize,
    pub(crate) tokens: usize,
    pub(crate) stable: bool,
    pub(crate) truncated: bool,
    pub(crate) hash: String,
    pub(crate) parts: Vec<PartReport>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PartReport {
    pub(crate) source: String,
    pub(crate) line: u32,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NoteReport {
    pub(crate) kind: String,
    pub(crate) message: String,
    pub(crate) source: String,
    pub(crate) line: u32,
}

impl PromptReport {
    /// Assembles the prompt that the flags ask for and counts everything in it.
    pub(crate) fn make(args: &PromptArgs, context: &Context) -> Result<Self, Failure> {
        let composed = compose(context, args)?;
        let prompt = assemble(&composed.loaded.input, &composed.layout);
        Ok(Self::of(&prompt, render(&prompt)))
    }

    pub(crate) fn of(prompt: &Prompt<'_>, rendered: Rendered) -> Self {
        let Rendered { text, spans, stable_len, hash } = rendered;
        Self {
            layout: prompt.layout.name().to_owned(),
            hash: hash.to_hex().to_string(),
            chars: text.chars().count(),
            tokens: tokens::count(&text),
            stable_len,
            sections: spans.iter().map(|span| section(span, &text)).collect(),
            notes: prompt.notes.iter().map(NoteReport::of).collect(),
            text,
            receipt: None,
        }
    }

    /// The text of a section.
    pub(crate) fn text_of(&self, section: &SectionReport) -> &str {
        self.text.get(section.start..section.end).unwrap_or("")
    }
}

impl NoteReport {
    pub(crate) fn of(note: &Note) -> Self {
        let (source, line) = place(&note.source);
        Self { kind: note.kind.name().to_owned(), message: note.message.clone(), source, line }
    }
}

fn section(span: &Span, all: &str) -> SectionReport {
    let text = all.get(span.start..span.end).unwrap_or("");
    let (source, line) = place(span.source());
    SectionReport {
        kind: span.kind.name().to_owned(),
        source,
        line,
        layer: span.layer.name().to_owned(),
        start: span.start,
        end: span.end,
        chars: text.chars().count(),
        tokens: tokens::count(text),
        stable: span.pace == Pace::Stable,
        truncated: span.truncated,
        hash: span.hash(all).to_hex().to_string(),
        parts: span
            .parts
            .iter()
            .map(|part| {
                let (source, line) = place(&part.source);
                PartReport { source, line, start: part.start, end: part.end }
            })
            .collect(),
    }
}

fn place(source: &Source) -> (String, u32) {
    (source.name().to_owned(), source.line())
}

/// A source and its line as people write them, fit for a terminal.
pub(crate) fn shown(source: &str, line: u32) -> String {
    let source = printable(source);
    if line == 0 { source.into_owned() } else { format!("{source}:{line}") }
}
