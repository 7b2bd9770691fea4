//! The report of a prompt: its text, sections and notes. `--json` prints it, `diff` reads it, a receipt stores it.

use embody_prompt::{CacheClass, Note, Prompt, RenderedPrompt, Source, Span, tokens};
use embody_store::receipts::NewReceipt;
use serde::{Deserialize, Serialize};

use crate::error::{CliError, ErrorContext};

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

    /// A receipt of the prompt: its sections by hash, the rest of the report as JSON.
    pub(crate) fn new_receipt(&self) -> Result<NewReceipt, CliError> {
        let mut parts = Vec::new();
        let mut end = 0;
        for section in &self.sections {
            parts.extend(self.text.get(end..section.start).filter(|text| !text.is_empty()));
            parts.push(self.text_of(section));
            end = section.end;
        }
        parts.extend(self.text.get(end..).filter(|text| !text.is_empty()));
        let account = PromptReport { text: String::new(), ..self.clone() };
        let detail = serde_json::to_string(&account).context("the prompt's account cannot be written")?;
        Ok(NewReceipt {
            layout: self.layout.clone(),
            hash: self.hash.clone(),
            parts: parts.into_iter().map(str::to_owned).collect(),
            detail,
        })
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
