//! Splits a streaming response into text and calls. A line is held back only while it could still open a block.

use std::mem;

use super::super::chat::{Delta, ToolRequest};
use super::super::response_builder::MAX_CALLS;
use super::parse;

const OPEN_TAG: &str = "<tool_call>";
const CLOSE_TAG: &str = "</tool_call>";
const MARKS: [&str; 4] = ["tool_call", "tool_calls", "tool-call", "toolcall"];

/// The longest block in which a fence at the end of a line is searched for.
const LOOKED_AT_BYTES: usize = 16 * 1024;

#[derive(Debug, Default)]
pub(in super::super) struct StreamSplitter {
    state: State,
    /// The current incomplete line.
    line: String,
    /// How many of its bytes are already emitted.
    shown: usize,
    text: String,
    calls: Vec<ToolRequest>,
    malformed: Vec<String>,
    deltas: Vec<Delta>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(in super::super) struct SplitText {
    pub(in super::super) text: String,
    pub(in super::super) calls: Vec<ToolRequest>,
    pub(in super::super) malformed: Vec<String>,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Plain,
    /// Within a block of another kind; it closes with at least this many backticks.
    Quoted(usize),
    /// Within a marked block.
    Marked { content: String, is_tag: bool },
    /// Within an unmarked block at the very start of the response.
    Unmarked { raw: String, content: String },
    /// Such a block was a call, unless more text follows.
    UnmarkedCall { raw: String, call: ToolRequest },
}

impl StreamSplitter {
    /// Processes more of the response; [`StreamSplitter::take_deltas`] returns the new text and calls.
    pub(in super::super) fn push(&mut self, piece: &str) {
        for part in piece.split_inclusive('\n') {
            self.line.push_str(part);
            if part.ends_with('\n') {
                self.end_line();
            } else if matches!(self.state, State::Plain | State::Quoted(_)) && !may_be_fence(&self.line) {
                self.show_line();
            }
        }
    }

    /// The deltas since the last call.
    pub(in super::super) fn take_deltas(&mut self) -> Vec<Delta> {
        mem::take(&mut self.deltas)
    }

    /// Ends the response.
    pub(in super::super) fn finish(&mut self) -> SplitText {
        if !self.line.is_empty() {
            self.end_line();
        }
        match mem::take(&mut self.state) {
            State::Plain | State::Quoted(_) => {}
            // Models often stop before the last fence.
            State::Marked { content, .. } => self.take_block(&content),
            State::Unmarked { raw, content } => match parse::exact_call(&content) {
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
            State::Marked { content, is_tag } => self.go_on(content, is_tag, &line),
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
            return self.go_on(String::new(), true, rest);
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
            return self.go_on(String::new(), false, rest);
        }
        let is_first = self.text.trim().is_empty() && self.calls.is_empty() && self.malformed.is_empty();
        if is_first && matches!(mark.as_str(), "" | "json") && rest.is_empty() {
            return State::Unmarked { raw: line.to_owned(), content: String::new() };
        }
        self.show(line);
        // Backticks after the info string are inline code.
        if info.contains('`') { State::Plain } else { State::Quoted(ticks) }
    }

    /// Processes a line within a marked block.
    fn go_on(&mut self, mut content: String, is_tag: bool, line: &str) -> State {
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
            && content.len() <= LOOKED_AT_BYTES
        {
            let whole = format!("{content}{}", last.trim_end_matches('`'));
            if parse::calls(&whole).is_ok() {
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
        match parse::exact_call(&content) {
            Some(call) => State::UnmarkedCall { raw, call },
            None => {
                self.show(&raw);
                State::Plain
            }
        }
    }

    fn take_block(&mut self, content: &str) {
        match parse::calls(content) {
            Ok(calls) => calls.into_iter().for_each(|call| self.take_call(call)),
            Err(why) => self.push_malformed(why),
        }
    }

    fn take_call(&mut self, call: ToolRequest) {
        if self.calls.len() >= MAX_CALLS {
            return self.push_malformed(format!(
                "the call of `{}` is one too many: {MAX_CALLS} fit one answer",
                call.name
            ));
        }
        self.deltas.push(Delta::Call { name: call.name.clone() });
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
            self.deltas.push(Delta::Text(text.to_owned()));
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
