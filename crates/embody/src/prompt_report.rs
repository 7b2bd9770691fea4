//! The report of a request to a model: the system prompt with its sections and notes, and what is sent beside it. `--json` prints it,
//! `diff` reads it, a receipt stores it.

use embody_agent::model::{ChatMessage, Usage};
use embody_prompt::{CacheClass, Note, Prompt, RenderedPrompt, Source, Span, Tool, tokens};
use embody_store::receipts::{NewReceipt, Receipt, SentRequest};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::error::{CliError, ErrorContext};

/// Of the definitions that a receipt keeps, in bytes and in number.
const RECEIPT_TOOL_BYTES: usize = 8 * 1024 * 1024;
const RECEIPT_TOOLS: usize = 2000;

/// The system prompt, its sections and its notes, and the rest of the request. Offsets are in bytes; `chars`, `tokens` and `hash` are
/// those of the system prompt.
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
    /// The definitions that are sent beside the text; none for a model without native tools, whose prompt explains them.
    #[serde(default)]
    pub(crate) tools: Vec<ToolReport>,
    /// The conversation of a request that was sent.
    #[serde(default)]
    pub(crate) messages: Vec<MessageReport>,
    /// The tokens that the model reported for the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<Usage>,
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

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ToolReport {
    pub(crate) name: String,
    pub(crate) source: String,
    pub(crate) chars: usize,
    pub(crate) tokens: usize,
    /// Name, description and schema as JSON; in a receipt and on a page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) definition: Option<Box<RawValue>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct MessageReport {
    pub(crate) role: String,
    pub(crate) chars: usize,
    pub(crate) tokens: usize,
    pub(crate) message: Box<RawValue>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NoteReport {
    pub(crate) kind: String,
    pub(crate) message: String,
    pub(crate) source: String,
    pub(crate) line: u32,
}

impl PromptReport {
    pub(crate) fn new(prompt: &Prompt<'_>, rendered: RenderedPrompt, tools: &[(Tool, Source)]) -> Self {
        let RenderedPrompt { text, spans, stable_len, hash } = rendered;
        Self {
            layout: prompt.layout.name.to_owned(),
            hash: hash.to_hex().to_string(),
            chars: text.chars().count(),
            tokens: tokens::count(&text),
            stable_len,
            sections: spans.iter().map(|span| section(span, &text)).collect(),
            notes: prompt.notes.iter().map(NoteReport::new).collect(),
            tools: tools.iter().filter_map(ToolReport::new).collect(),
            messages: Vec::new(),
            usage: None,
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
        let account = PromptReport { text: String::new(), ..self.clone() }.without_definitions();
        let mut bytes = 0;
        let tools = self.tools.iter().filter_map(|tool| tool.definition.as_ref()).take_while(|definition| {
            bytes += definition.get().len();
            bytes <= RECEIPT_TOOL_BYTES
        });
        let tools = tools.take(RECEIPT_TOOLS);
        let detail = serde_json::to_string(&account).context("the prompt's account cannot be written")?;
        Ok(NewReceipt {
            layout: self.layout.clone(),
            hash: self.hash.clone(),
            parts: parts.into_iter().map(str::to_owned).collect(),
            tools: tools.map(|definition| definition.get().to_owned()).collect(),
            messages: Vec::new(),
            detail,
        })
    }

    /// The report of a request that was sent. The definitions and the messages are those of the receipt.
    pub(crate) fn of_receipt(receipt: &Receipt, sent: SentRequest) -> Result<Self, CliError> {
        let failed = || format!("the account of receipt `{}` cannot be read", receipt.id);
        let mut report: Self = serde_json::from_str(&receipt.detail).context(failed())?;
        for (tool, definition) in report.tools.iter_mut().zip(sent.tools) {
            tool.definition = Some(RawValue::from_string(definition).context(failed())?);
        }
        report.messages = sent
            .messages
            .into_iter()
            .map(MessageReport::new)
            .collect::<Result<Vec<_>, _>>()
            .context(failed())?;
        report.usage = receipt.usage.as_deref().map(serde_json::from_str).transpose().context(failed())?;
        Ok(Self { text: sent.text, receipt: Some(receipt.id.clone()), ..report })
    }

    /// The account alone: definitions are long, and every host can list them.
    pub(crate) fn without_definitions(mut self) -> Self {
        self.tools.iter_mut().for_each(|tool| tool.definition = None);
        self
    }

    pub(crate) fn tool_tokens(&self) -> usize {
        self.tools.iter().map(|tool| tool.tokens).sum()
    }

    pub(crate) fn message_tokens(&self) -> usize {
        self.messages.iter().map(|message| message.tokens).sum()
    }

    /// The estimate for the whole request.
    pub(crate) fn request_tokens(&self) -> usize {
        self.tokens + self.tool_tokens() + self.message_tokens()
    }
}

impl ToolReport {
    fn new((tool, source): &(Tool, Source)) -> Option<Self> {
        #[derive(Serialize)]
        struct Definition<'a> {
            name: &'a str,
            description: &'a str,
            schema: &'a RawValue,
        }
        let Tool { name, description, schema } = tool;
        let definition = Definition { name, description, schema: serde_json::from_str(schema).ok()? };
        let definition = to_raw_value(&definition).ok()?;
        Some(Self {
            name: name.clone(),
            source: source.name().to_owned(),
            chars: definition.get().chars().count(),
            tokens: tokens::count(definition.get()),
            definition: Some(definition),
        })
    }
}

impl MessageReport {
    fn new(text: String) -> Result<Self, serde_json::Error> {
        let role = match serde_json::from_str::<ChatMessage>(&text)? {
            ChatMessage::User { .. } => "user",
            ChatMessage::Assistant { .. } => "assistant",
            ChatMessage::Tool { .. } => "tool",
        };
        Ok(Self {
            role: role.to_owned(),
            chars: text.chars().count(),
            tokens: tokens::count(&text),
            message: RawValue::from_string(text)?,
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
