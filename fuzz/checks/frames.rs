//! What a line or a body is to a reader of JSON-RPC, by the letter of the protocol: another reading than ours.

use std::collections::BTreeSet;

use super::json::{self, Item, Node};

/// What may be in one frame.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) bytes: usize,
    pub(crate) depth: usize,
    pub(crate) messages: usize,
}

/// One message, with its id as [`key`] has it.
#[derive(Debug, Clone)]
pub(crate) enum Message {
    Request {
        id: String,
        raw_id: String,
    },
    Notification {
        method: String,
        params: Option<String>,
    },
    /// `Ok` with the result as written, or the error.
    Response {
        id: Option<String>,
        outcome: Result<String, String>,
    },
}

/// The messages of a frame; nothing, if it is none.
pub(crate) fn messages(bytes: &[u8], bounds: Bounds) -> Option<Vec<Message>> {
    if bytes.len() > bounds.bytes {
        return None;
    }
    let whole = json::read(std::str::from_utf8(bytes).ok()?)?;
    if whole.depth() > bounds.depth {
        return None;
    }
    match &whole.node {
        Node::Array(items) if items.is_empty() || items.len() > bounds.messages => None,
        Node::Array(items) => items.iter().map(message).collect(),
        _ => Some(vec![message(&whole)?]),
    }
}

/// The same for all ids that are equal: a text without its escapes, a number as written.
pub(crate) fn key(id: &Item<'_>) -> Option<String> {
    match &id.node {
        Node::Text(text) => text.as_ref().map(|text| format!("\"{text}")),
        Node::Number => Some(id.raw.to_owned()),
        _ => None,
    }
}

fn message(item: &Item<'_>) -> Option<Message> {
    let Node::Object(members) = &item.node else { return None };
    // A name that makes no text is no name.
    members.iter().all(|(name, _)| name.is_some()).then_some(())?;
    (item.member("jsonrpc")?.text() == Some("2.0")).then_some(())?;
    let owned = |item: &Item<'_>| item.raw.to_owned();
    let (result, error) = (item.member("result"), item.member("error"));
    if let Some(method) = item.member("method") {
        let method = method.text()?.to_owned();
        let params = item.member("params").map(owned);
        return match (result.or(error), item.member("id")) {
            (Some(_), _) => None,
            (None, None) => {
                method.starts_with("notifications/").then_some(Message::Notification { method, params })
            }
            (None, Some(id)) => Some(Message::Request { id: key(id)?, raw_id: owned(id) }),
        };
    }
    let id = match item.member("id").filter(|id| id.raw != "null") {
        Some(id) => Some(key(id)?),
        None => None,
    };
    // The member that is not meant may be there as null.
    let outcome = match (result, error) {
        (Some(result), Some(error)) if error.raw == "null" => Ok(owned(result)),
        (Some(result), Some(error)) if result.raw == "null" => Err(owned(error)),
        (Some(_), Some(_)) | (None, None) => return None,
        (Some(result), None) => Ok(owned(result)),
        (None, Some(error)) => Err(owned(error)),
    };
    (id.is_some() || outcome.is_err()).then_some(Message::Response { id, outcome })
}

/// The lines of a stream that say something, each with its end. A blank one that is too long is too long.
pub(crate) fn lines(bytes: &[u8], bounds: Bounds) -> impl Iterator<Item = &[u8]> {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let is_blank = |line: &[u8]| line.iter().all(|byte| b" \t\r\n\x0c".contains(byte));
    lines.filter(move |line| line.len() > bounds.bytes || !is_blank(line))
}

/// Checks that a line that we wrote is one message of the protocol, and gives it.
pub(crate) fn check_written(line: &[u8]) -> Message {
    let shown = String::from_utf8_lossy(line);
    let none = Bounds { bytes: usize::MAX, depth: usize::MAX, messages: 0 };
    let mut read = messages(line, none).unwrap_or_else(|| panic!("not a message: {shown}"));
    let message = read.remove(0);
    let whole = json::read(shown.trim_end()).unwrap_or_else(|| panic!("not JSON: {shown}"));
    let Node::Object(members) = &whole.node else { panic!("not an object: {shown}") };
    let names: BTreeSet<&str> = members.iter().filter_map(|(name, _)| name.as_deref()).collect();
    assert_eq!(names.len(), members.len(), "a member stands there twice: {shown}");
    let known = ["jsonrpc", "id", "method", "params", "result", "error"];
    assert!(names.iter().all(|name| known.contains(name)), "{shown}");
    if let Message::Response { outcome: Err(_), .. } = &message {
        let error = whole.member("error").unwrap_or_else(|| panic!("no error: {shown}"));
        let code = error.member("code").and_then(|code| code.raw.parse::<i64>().ok());
        assert!(code.is_some(), "an error without a code: {shown}");
        assert!(error.member("message").is_some_and(|words| words.text().is_some()), "{shown}");
    }
    message
}
