//! An incremental parser of server-sent events with a size limit. Does no IO. Follows the WHATWG grammar (CR, LF and CRLF; a
//! leading BOM; comments; `event`, `data`, `id`, `retry`) with one exception: text that is not UTF-8 is an error, because
//! replacing bytes would silently change a payload.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

const BOM: &[u8] = b"\xEF\xBB\xBF";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The `event` field; `message` by default.
    pub name: String,
    /// The `data` lines, joined by line feeds.
    pub data: String,
    /// The last `id` seen up to this event, on this or an earlier one.
    pub id: Option<Arc<str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Complete,
    /// Within an event, which is dropped.
    Truncated,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// An event (or a line) exceeds the limit.
    #[error("an event is longer than {max_bytes} bytes")]
    TooLong { max_bytes: usize },
    /// A field is not UTF-8.
    #[error("an event is not UTF-8")]
    NotUtf8,
}

/// The parser's state between two chunks. The chunking of a stream never changes its events.
#[derive(Debug)]
pub struct Parser {
    max_bytes: usize,
    line: Vec<u8>,
    name: String,
    data: Option<String>,
    /// Shared, not copied, so that one long id on many short events does not multiply.
    last_id: Option<Arc<str>>,
    /// The id as of the last complete event.
    whole_id: Option<Arc<str>>,
    retry: Option<Duration>,
    at_start: bool,
    after_cr: bool,
    within_event: bool,
    failed: Option<SseError>,
}

impl Parser {
    /// A parser that accepts at most `max_bytes` per event.
    #[must_use]
    pub fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            line: Vec::new(),
            name: String::new(),
            data: None,
            last_id: None,
            whole_id: None,
            retry: None,
            at_start: true,
            after_cr: false,
            within_event: false,
            failed: None,
        }
    }

    /// Parses a chunk and appends the events it completes to `events`.
    ///
    /// # Errors
    /// When an event exceeds the limit or is not UTF-8; from then on every call fails with the same error. Events
    /// completed before stay valid.
    pub fn push(&mut self, chunk: &[u8], events: &mut VecDeque<Event>) -> Result<(), SseError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let outcome = self.read_chunk(chunk, events);
        self.failed = outcome.err();
        outcome
    }

    /// Ends the stream. An event without its blank line is dropped and reported as [`End::Truncated`].
    #[must_use]
    pub fn finish(self) -> End {
        let open_line = self.line.first().is_some_and(|byte| *byte != b':');
        if self.within_event || open_line { End::Truncated } else { End::Complete }
    }

    /// The id as of the last complete event, with or without data.
    #[must_use]
    pub fn last_id(&self) -> Option<Arc<str>> {
        self.whole_id.clone()
    }

    /// The reconnection delay the server last asked for.
    #[must_use]
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    fn read_chunk(&mut self, mut chunk: &[u8], events: &mut VecDeque<Event>) -> Result<(), SseError> {
        while let Some(first) = chunk.first() {
            if mem::take(&mut self.after_cr) && *first == b'\n' {
                chunk = chunk.split_at(1).1;
                continue;
            }
            let Some(end) = chunk.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                return self.grow_line(chunk);
            };
            let (text, rest) = chunk.split_at(end);
            self.grow_line(text)?;
            self.after_cr = rest.first() == Some(&b'\r');
            chunk = rest.split_at(1).1;
            self.end_line(events)?;
        }
        Ok(())
    }

    fn grow_line(&mut self, text: &[u8]) -> Result<(), SseError> {
        let held = self.name.len() + self.data.as_ref().map_or(0, String::len) + self.line.len();
        if held.saturating_add(text.len()) > self.max_bytes {
            return Err(SseError::TooLong { max_bytes: self.max_bytes });
        }
        self.line.extend_from_slice(text);
        Ok(())
    }

    fn end_line(&mut self, events: &mut VecDeque<Event>) -> Result<(), SseError> {
        let mut line = mem::take(&mut self.line);
        if mem::take(&mut self.at_start) && line.starts_with(BOM) {
            line.drain(..BOM.len());
        }
        match line.first() {
            None => self.dispatch(events),
            Some(b':') => {}
            Some(_) => self.field(std::str::from_utf8(&line).map_err(|_| SseError::NotUtf8)?),
        }
        line.clear();
        self.line = line;
        Ok(())
    }

    fn field(&mut self, line: &str) {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        self.within_event = true;
        match name {
            "event" => value.clone_into(&mut self.name),
            "data" => match &mut self.data {
                None => self.data = Some(value.to_owned()),
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
            },
            "id" if !value.contains('\0') => self.last_id = Some(value.into()),
            "retry" if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) => {
                self.retry = value.parse().ok().map(Duration::from_millis).or(self.retry);
            }
            _ => {}
        }
    }

    fn dispatch(&mut self, events: &mut VecDeque<Event>) {
        self.within_event = false;
        self.whole_id.clone_from(&self.last_id);
        let name = mem::take(&mut self.name);
        if let Some(data) = self.data.take() {
            let name = if name.is_empty() { "message".to_owned() } else { name };
            events.push_back(Event { name, data, id: self.last_id.clone() });
        }
    }
}

#[cfg(test)]
mod tests;
