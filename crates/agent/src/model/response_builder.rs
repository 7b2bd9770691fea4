//! A response as it streams in, and its limits. Independent of the wire format; does no IO.

use std::collections::HashSet;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::value::RawValue;

use super::chat::{ChatResponse, StopReason, ToolRequest, Usage};
use super::errors::ModelError;
use super::reasoning::ReasoningFilter;
use crate::event::TurnEvent;

/// Text and arguments of one response together.
pub(super) const ANSWER_MAX_BYTES: usize = 4 * 1024 * 1024;
pub(super) const ARGUMENTS_MAX_BYTES: usize = 1024 * 1024;
const NAME_MAX_BYTES: usize = 1024;
pub(super) const MAX_CALLS: usize = 64;

#[derive(Debug, Default)]
pub(super) struct ResponseBuilder {
    pub(super) usage: Usage,
    pub(super) stop: Option<StopReason>,
    /// Whether the provider has marked the response as complete.
    pub(super) is_whole: bool,
    reasoning: ReasoningFilter,
    text: String,
    calls: Vec<Call>,
    deltas: Vec<TurnEvent>,
    total_bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamState {
    Open,
    Closed,
}

#[derive(Debug, Default)]
pub(super) struct Call {
    /// The index that the provider assigns; only compared for equality.
    pub(super) index: Option<i64>,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
}

impl ResponseBuilder {
    pub(super) fn push_text(&mut self, text: &str) -> Result<(), ModelError> {
        if text.is_empty() {
            return Ok(());
        }
        self.add_bytes(text.len())?;
        let visible = self.reasoning.push(text);
        self.add(visible);
        Ok(())
    }

    pub(super) fn finish_text(&mut self) {
        let visible = self.reasoning.finish();
        self.add(visible);
    }

    fn add(&mut self, visible: String) {
        if !visible.is_empty() {
            self.text.push_str(&visible);
            self.deltas.push(TurnEvent::Text(visible));
        }
    }

    pub(super) fn calls(&self) -> &[Call] {
        &self.calls
    }

    pub(super) fn begin_call(&mut self, index: Option<i64>) -> Result<usize, ModelError> {
        if self.calls.len() >= MAX_CALLS {
            return Err(ModelError::broken(format!("the answer has more than {MAX_CALLS} calls")));
        }
        self.calls.push(Call { index, ..Call::default() });
        Ok(self.calls.len() - 1)
    }

    /// Appends to the call at this position. The first id and name are kept.
    pub(super) fn grow_call(
        &mut self,
        position: usize,
        id: &str,
        name: &str,
        arguments: &str,
    ) -> Result<(), ModelError> {
        self.add_bytes(id.len() + name.len() + arguments.len())?;
        let Some(call) = self.calls.get_mut(position) else { return Ok(()) };
        if id.len().max(name.len()) > NAME_MAX_BYTES {
            return Err(ModelError::broken(format!(
                "the name or id of a call is longer than {NAME_MAX_BYTES} bytes"
            )));
        }
        if call.arguments.len() + arguments.len() > ARGUMENTS_MAX_BYTES {
            return Err(ModelError::broken(format!(
                "the arguments of a call are longer than {ARGUMENTS_MAX_BYTES} bytes"
            )));
        }
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        if call.name.is_empty() && !name.is_empty() {
            name.clone_into(&mut call.name);
        }
        call.arguments.push_str(arguments);
        Ok(())
    }

    /// Whether a person or a tool could have seen any part of it.
    pub(super) fn has_begun(&self) -> bool {
        !self.text.is_empty() || !self.calls.is_empty()
    }

    pub(super) fn take_deltas(&mut self) -> Vec<TurnEvent> {
        mem::take(&mut self.deltas)
    }

    /// The complete response; its text as received, without reasoning.
    pub(super) fn finish(self) -> Result<ChatResponse, ModelError> {
        if !self.is_whole {
            return Err(ModelError::broken("the stream ended before the response was complete"));
        }
        let mut malformed = Vec::new();
        let mut calls = self.calls;
        let mut stop = self.stop.unwrap_or(StopReason::End);
        let is_cut = |call: &mut Call| !is_json(&call.arguments);
        if stop == StopReason::Length
            && let Some(call) = calls.pop_if(is_cut)
        {
            malformed.push(format!("the call of `{}` is cut off: the response reached its limit", call.name));
        }
        let named = calls.into_iter().filter(|call| {
            if call.name.is_empty() {
                malformed.push("a call without the name of a tool".to_owned());
            }
            !call.name.is_empty()
        });
        let mut ids = HashSet::new();
        let calls: Vec<ToolRequest> = named.map(|call| call.finish(&mut ids)).collect();
        if !calls.is_empty() && stop == StopReason::End {
            // Some servers send `stop` when the model waits for its calls.
            stop = StopReason::Calls;
        }
        Ok(ChatResponse { text: self.text, calls, malformed, usage: self.usage, stop })
    }

    fn add_bytes(&mut self, bytes: usize) -> Result<(), ModelError> {
        self.total_bytes = self.total_bytes.saturating_add(bytes);
        if self.total_bytes > ANSWER_MAX_BYTES {
            return Err(ModelError::broken(format!("the answer is longer than {ANSWER_MAX_BYTES} bytes")));
        }
        Ok(())
    }
}

impl Call {
    fn finish(self, ids: &mut HashSet<String>) -> ToolRequest {
        let arguments = if self.arguments.trim().is_empty() { "{}".to_owned() } else { self.arguments };
        let mut id = self.id;
        while id.is_empty() || ids.contains(&id) {
            id = generate_id();
        }
        ids.insert(id.clone());
        ToolRequest { id, name: self.name, arguments }
    }
}

/// Nine letters and digits: the form that the strictest provider requires.
pub(super) fn generate_id() -> String {
    const SIGNS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    static TURN: AtomicU64 = AtomicU64::new(0);
    // Without randomness, at least unique within the process.
    let mut number = getrandom::u64().unwrap_or_else(|_| TURN.fetch_add(1, Ordering::Relaxed));
    let mut sign = || {
        let sign = SIGNS.get((number % 36) as usize).copied().unwrap_or(b'x');
        number /= 36;
        char::from(sign)
    };
    (0..9).map(|_| sign()).collect()
}

/// The arguments, if they are a complete JSON object.
pub(super) fn as_json_object(text: &str) -> Option<&RawValue> {
    serde_json::from_str::<&RawValue>(text).ok().filter(|raw| raw.get().starts_with('{'))
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}
