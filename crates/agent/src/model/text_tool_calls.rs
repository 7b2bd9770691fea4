//! Tool calls that a model writes as text because it, or its server, does not support them natively. Pure. A call is a block
//! fenced as `tool_call` (or `<tool_call>` lines), never text within another block. An unmarked block counts only if it is the
//! whole response and exactly one call. A marked block that cannot be parsed is reported to the model.

use std::mem;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::chat::{ChatMessage, ToolRequest};
use super::conversation::{Step, steps};
use super::response_builder::{ARGUMENTS_MAX_BYTES, MAX_CALLS, as_json_object, generate_id};
use crate::event::TurnEvent;

const OPEN_TAG: &str = "<tool_call>";
const CLOSE_TAG: &str = "</tool_call>";
const MARKS: [&str; 4] = ["tool_call", "tool_calls", "tool-call", "toolcall"];

/// The longest block in which a fence at the end of a line is searched for.
const FENCE_SEARCH_BYTES: usize = 16 * 1024;

#[derive(Debug, Default)]
pub(super) struct StreamSplitter {
    state: State,
    line: String,
    /// How many of its bytes are already emitted.
    shown: usize,
    text: String,
    calls: Vec<ToolRequest>,
    malformed: Vec<String>,
    deltas: Vec<TurnEvent>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SplitText {
    pub(super) text: String,
    pub(super) calls: Vec<ToolRequest>,
    pub(super) malformed: Vec<String>,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Plain,
    /// Within a block of another kind; it closes with at least this many backticks.
    Quoted(usize),
    Marked {
        content: String,
        is_tag: bool,
    },
    /// Within an unmarked block at the very start of the response.
    Unmarked {
        raw: String,
        content: String,
    },
    /// Such a block was a call, unless more text follows.
    UnmarkedCall {
        raw: String,
        call: ToolRequest,
    },
}

impl StreamSplitter {
    /// Processes more of the response; [`StreamSplitter::take_deltas`] returns the new text and calls.
    pub(super) fn push(&mut self, piece: &str) {
        for part in piece.split_inclusive('\n') {
            self.line.push_str(part);
            if part.ends_with('\n') {
                self.end_line();
            } else if matches!(self.state, State::Plain | State::Quoted(_)) && !may_be_fence(&self.line) {
                self.show_line();
            }
        }
    }

    pub(super) fn take_deltas(&mut self) -> Vec<TurnEvent> {
        mem::take(&mut self.deltas)
    }

    pub(super) fn finish(&mut self) -> SplitText {
        if !self.line.is_empty() {
            self.end_line();
        }
        match mem::take(&mut self.state) {
            State::Plain | State::Quoted(_) => {}
            // Models often stop before the last fence.
            State::Marked { content, .. } => self.take_block(&content),
            State::Unmarked { raw, content } => match exact_call(&content) {
                Some(call) => self.take_call(call),
                None => self.show(&raw),
            },
            State::UnmarkedCall { call, .. } => self.take_call(call),
        }
        SplitText {
            text: mem::take(&mut self.text).trim().to_owned(),
            calls: mem::take(&mut self.calls),
            malformed: mem::take(&mut self.malformed),
        }
    }

    fn end_line(&mut self) {
        if self.shown > 0 {
            self.show_line();
            self.line.clear();
            self.shown = 0;
            return;
        }
        let line = mem::take(&mut self.line);
        self.state = match mem::take(&mut self.state) {
            State::Plain => self.open(&line),
            State::Quoted(ticks) => {
                self.show(&line);
                if closing_ticks(&line) >= ticks { State::Plain } else { State::Quoted(ticks) }
            }
            State::Marked { content, is_tag } => self.continue_marked(content, is_tag, &line),
            State::Unmarked { raw, content } => self.continue_unmarked(raw + &line, content, &line),
            State::UnmarkedCall { raw, call } if line.trim().is_empty() => {
                State::UnmarkedCall { raw: raw + &line, call }
            }
            State::UnmarkedCall { raw, .. } => {
                self.show(&raw);
                self.open(&line)
            }
        };
    }

    fn open(&mut self, line: &str) -> State {
        let trimmed = line.trim();
        if let Some(rest) = trimmed.strip_prefix(OPEN_TAG) {
            return self.continue_marked(String::new(), true, rest);
        }
        let info = trimmed.trim_start_matches('`');
        let ticks = trimmed.len() - info.len();
        if ticks < 3 {
            self.show(line);
            return State::Plain;
        }
        let mark_end = info.find(|c: char| c.is_whitespace() || matches!(c, '{' | '[')).unwrap_or(info.len());
        let (mark, rest) = info.split_at(mark_end);
        let mark = mark.to_ascii_lowercase();
        if MARKS.contains(&mark.as_str()) {
            return self.continue_marked(String::new(), false, rest);
        }
        let is_first = self.text.trim().is_empty() && self.calls.is_empty() && self.malformed.is_empty();
        if is_first && matches!(mark.as_str(), "" | "json") && rest.is_empty() {
            return State::Unmarked { raw: line.to_owned(), content: String::new() };
        }
        self.show(line);
        // Backticks after the info string are inline code.
        if info.contains('`') { State::Plain } else { State::Quoted(ticks) }
    }

    fn continue_marked(&mut self, mut content: String, is_tag: bool, line: &str) -> State {
        if is_tag {
            let Some((last, after)) = line.split_once(CLOSE_TAG) else {
                content.push_str(line);
                return State::Marked { content, is_tag };
            };
            self.take_block(&(content + last));
            if !after.trim().is_empty() {
                self.show(after);
            }
            return State::Plain;
        }
        if closing_ticks(line) >= 3 {
            self.take_block(&content);
            return State::Plain;
        }
        // The fence may directly follow the JSON. Checked in short blocks only, because each check reads the whole
        // block.
        if let Some(last) = line.trim_end().strip_suffix("```")
            && content.len() <= FENCE_SEARCH_BYTES
        {
            let whole = format!("{content}{}", last.trim_end_matches('`'));
            if parse_block(&whole).is_ok() {
                self.take_block(&whole);
                return State::Plain;
            }
        }
        content.push_str(line);
        State::Marked { content, is_tag }
    }

    fn continue_unmarked(&mut self, raw: String, content: String, line: &str) -> State {
        if closing_ticks(line) < 3 {
            return State::Unmarked { raw, content: content + line };
        }
        match exact_call(&content) {
            Some(call) => State::UnmarkedCall { raw, call },
            None => {
                self.show(&raw);
                State::Plain
            }
        }
    }

    fn take_block(&mut self, content: &str) {
        match parse_block(content) {
            Ok(calls) => calls.into_iter().for_each(|call| self.take_call(call)),
            Err(why) => self.push_malformed(why),
        }
    }

    fn take_call(&mut self, call: ToolRequest) {
        if self.calls.len() >= MAX_CALLS {
            return self.push_malformed(format!(
                "the call of `{}` exceeds the limit of {MAX_CALLS} calls in one response",
                call.name
            ));
        }
        self.calls.push(call);
    }

    fn push_malformed(&mut self, why: String) {
        if self.malformed.len() < MAX_CALLS {
            self.malformed.push(why);
        }
    }

    fn show_line(&mut self) {
        let line = mem::take(&mut self.line);
        self.show(line.get(self.shown..).unwrap_or_default());
        self.shown = line.len();
        self.line = line;
    }

    fn show(&mut self, text: &str) {
        if !text.is_empty() {
            self.text.push_str(text);
            self.deltas.push(TurnEvent::Text(text.to_owned()));
        }
    }
}

/// Whether the start of a line may become the start of a block.
fn may_be_fence(line: &str) -> bool {
    let start = line.trim_start();
    let may_be = |fence: &str| start.starts_with(fence) || fence.starts_with(start);
    may_be("```") || may_be(OPEN_TAG)
}

/// The number of backticks in a line that contains nothing else.
fn closing_ticks(line: &str) -> usize {
    let line = line.trim();
    if line.bytes().all(|byte| byte == b'`') { line.len() } else { 0 }
}

/// The calls of one block, or why it has none.
fn parse_block(content: &str) -> Result<Vec<ToolRequest>, String> {
    let content = content.trim();
    if content.is_empty() {
        return Err("a `tool_call` block is empty".to_owned());
    }
    parse_calls(content).or_else(|why| match with_escaped_breaks(content) {
        Some(repaired) => parse_calls(&repaired).map_err(|_| why),
        None => Err(why),
    })
}

/// The call in an unmarked block, if it is exactly one.
fn exact_call(content: &str) -> Option<ToolRequest> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Exact {
        tool: String,
        arguments: Box<RawValue>,
    }
    let exact: Exact = serde_json::from_str(content).ok()?;
    request(RawCall { tool: exact.tool, arguments: Some(exact.arguments) }).ok()
}

#[derive(Deserialize)]
struct RawCall {
    #[serde(alias = "name")]
    tool: String,
    #[serde(alias = "parameters", alias = "args", alias = "input")]
    arguments: Option<Box<RawValue>>,
}

fn parse_calls(content: &str) -> Result<Vec<ToolRequest>, String> {
    let unreadable = |error: serde_json::Error| {
        format!("the block `{}` is not a call: {}", start(content), start(&error.to_string()))
    };
    let calls: Vec<RawCall> = if content.starts_with('[') {
        serde_json::from_str(content).map_err(unreadable)?
    } else {
        let each = serde_json::Deserializer::from_str(content).into_iter::<RawCall>();
        each.collect::<Result<_, _>>().map_err(unreadable)?
    };
    if calls.is_empty() {
        return Err("a `tool_call` block is empty".to_owned());
    }
    calls.into_iter().map(request).collect()
}

fn request(call: RawCall) -> Result<ToolRequest, String> {
    let name = call.tool;
    let arguments = match call.arguments {
        None => "{}".to_owned(),
        Some(raw) => match raw.get().as_bytes().first() {
            Some(b'{') => raw.get().to_owned(),
            Some(b'n') => "{}".to_owned(),
            Some(b'"') => serde_json::from_str::<String>(raw.get())
                .ok()
                .filter(|text| as_json_object(text).is_some())
                .ok_or_else(|| format!("the `arguments` of `{}` are not a JSON object", start(&name)))?,
            _ => return Err(format!("the `arguments` of `{}` are not a JSON object", start(&name))),
        },
    };
    if name.trim().is_empty() {
        return Err("a `tool_call` block names no tool".to_owned());
    }
    if arguments.len() > ARGUMENTS_MAX_BYTES {
        return Err(format!(
            "the `arguments` of `{}` are longer than {ARGUMENTS_MAX_BYTES} bytes",
            start(&name)
        ));
    }
    Ok(ToolRequest { id: generate_id(), name, arguments })
}

/// Escapes line breaks and tabs within strings, which JSON requires and models forget.
fn with_escaped_breaks(content: &str) -> Option<String> {
    let mut repaired = String::with_capacity(content.len() + 16);
    let (mut is_string, mut is_escaped, mut has_changed) = (false, false, false);
    for c in content.chars() {
        let escape = match c {
            '\n' => "\\n",
            '\r' => "\\r",
            '\t' => "\\t",
            _ => "",
        };
        if is_string && !is_escaped && !escape.is_empty() {
            repaired.push_str(escape);
            has_changed = true;
            continue;
        }
        if c == '"' && !is_escaped {
            is_string = !is_string;
        }
        is_escaped = is_string && c == '\\' && !is_escaped;
        repaired.push(c);
    }
    has_changed.then_some(repaired)
}

fn start(text: &str) -> String {
    let mut start: String = text.chars().take(80).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(80).is_some() {
        start.push('…');
    }
    start
}

/// The same conversation as text only. A result is fenced so that its text cannot close the fence.
pub(super) fn as_plain_text(messages: &[ChatMessage]) -> Vec<ChatMessage> {
    let mut rendered = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for step in steps(messages) {
        let message = match step {
            Step::User(texts) => ChatMessage::User { text: texts.join("\n\n") },
            Step::Assistant { texts, calls } => {
                names = calls.iter().map(|call| call.name.as_str()).collect();
                let blocks = calls.iter().map(|call| block(&call.name, &call.arguments));
                let parts: Vec<String> = texts.into_iter().map(str::to_owned).chain(blocks).collect();
                ChatMessage::Assistant { text: parts.join("\n\n"), calls: Vec::new() }
            }
            Step::Results(results) => {
                let parts = results.iter().zip(&names).map(|(result, name)| {
                    let mark = if result.is_error { "tool_error" } else { "tool_result" };
                    fenced(&format!("{mark} {name}"), result.text)
                });
                ChatMessage::User { text: parts.collect::<Vec<_>>().join("\n\n") }
            }
        };
        rendered.push(message);
    }
    rendered
}

fn block(name: &str, arguments: &str) -> String {
    let name = serde_json::Value::from(name);
    let arguments = as_json_object(arguments).map_or("{}", |raw| raw.get());
    format!("```tool_call\n{{\"tool\": {name}, \"arguments\": {arguments}}}\n```")
}

fn fenced(mark: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{}\n{text}\n{fence}", mark.replace(['\n', '`'], " "))
}

#[cfg(test)]
mod tests;
