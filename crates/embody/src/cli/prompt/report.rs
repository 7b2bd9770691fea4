//! A prompt and the origin of its bytes, as `--json` prints it and `diff` reads it.

use embody_prompt::{CacheClass, Note, Prompt, RenderedPrompt, Source, Span, assemble, render, tokens};
use serde::{Deserialize, Serialize};

use crate::cli::Context;
use crate::error::CliError;
use crate::output::printable;
use crate::prompt_loading::{LoadedPrompt, PromptArgs, load_prompt};

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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) receipt: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SectionReport {
    pub(crate) kind: String,
    pub(crate) source: String,
    /// 0 if the source has no lines.
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
    pub(crate) fn build(args: &PromptArgs, context: &Context) -> Result<Self, CliError> {
        let LoadedPrompt { workspace, layout, .. } = load_prompt(context, args)?;
        let prompt = assemble(&workspace.input, &layout);
        Ok(Self::new(&prompt, render(&prompt)))
    }

    pub(crate) fn new(prompt: &Prompt<'_>, rendered: RenderedPrompt) -> Self {
        let RenderedPrompt { text, spans, stable_len, hash } = rendered;
        Self {
            layout: prompt.layout.name.to_owned(),
            hash: hash.to_hex().to_string(),
            chars: text.chars().count(),
            tokens: tokens::count(&text),
            stable_len,
            sections: spans.iter().map(|span| section(span, &text)).collect(),
            notes: prompt.notes.iter().map(NoteReport::new).collect(),
            text,
            receipt: None,
        }
    }

    pub(crate) fn text_of(&self, section: &SectionReport) -> &str {
        self.text.get(section.start..section.end).unwrap_or("")
    }
}

impl NoteReport {
    fn new(note: &Note) -> Self {
        let (source, line) = source_line(&note.source);
        Self { kind: note.kind.name().to_owned(), message: note.message.clone(), source, line }
    }
}

fn section(span: &Span, all: &str) -> SectionReport {
    let text = all.get(span.start..span.end).unwrap_or("");
    let (source, line) = source_line(span.source());
    SectionReport {
        kind: span.kind.name().to_owned(),
        source,
        line,
        layer: span.layer.name().to_owned(),
        start: span.start,
        end: span.end,
        chars: text.chars().count(),
        tokens: tokens::count(text),
        stable: span.cache_class == CacheClass::Stable,
        truncated: span.truncated,
        hash: span.hash(all).to_hex().to_string(),
        parts: span
            .parts
            .iter()
            .map(|part| {
                let (source, line) = source_line(&part.source);
                PartReport { source, line, start: part.start, end: part.end }
            })
            .collect(),
    }
}

fn source_line(source: &Source) -> (String, u32) {
    (source.name().to_owned(), source.line())
}

/// `source:line`, for a terminal.
pub(crate) fn display_source(source: &str, line: u32) -> String {
    let source = printable(source);
    if line == 0 { source.into_owned() } else { format!("{source}:{line}") }
}
