//! Server-sent events by the letter of their standard, read from a whole stream at once.

use std::collections::VecDeque;

use embody_wire::sse::{Event, Parser};

/// What a stream says.
#[derive(Default)]
pub(super) struct Stream {
    /// The names and the data.
    pub(super) events: Vec<(String, String)>,
    /// It cannot be read on: what follows is no text.
    pub(super) is_broken: bool,
    /// Whether it says where it can be taken up again.
    pub(super) has_place: bool,
    /// How long to wait before that, if it says so.
    pub(super) retry_ms: Option<u64>,
}

pub(super) fn read(bytes: &[u8]) -> Stream {
    let mut stream = Stream::default();
    let (mut name, mut data, mut has_id) = (String::new(), None::<String>, false);
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    for line in lines(bytes) {
        if line.is_empty() {
            stream.has_place |= has_id;
            let name = std::mem::take(&mut name);
            if let Some(data) = data.take() {
                let name = if name.is_empty() { "message".to_owned() } else { name };
                stream.events.push((name, data));
            }
            continue;
        }
        if line[0] == b':' {
            continue;
        }
        let Ok(line) = std::str::from_utf8(line) else {
            stream.is_broken = true;
            return stream;
        };
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut name),
            "data" => {
                data = Some(data.map_or_else(|| value.to_owned(), |before| format!("{before}\n{value}")));
            }
            "id" if !value.contains('\0') => has_id = true,
            "retry" if value.bytes().all(|byte| byte.is_ascii_digit()) => {
                stream.retry_ms = value.parse().ok().or(stream.retry_ms);
            }
            _ => {}
        }
    }
    stream
}

/// The lines that have an end.
fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    let (mut lines, mut rest) = (Vec::new(), bytes);
    while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
        lines.push(&rest[..end]);
        let is_both = rest[end..].starts_with(b"\r\n");
        rest = &rest[end + 1 + usize::from(is_both)..];
    }
    lines
}

/// Checks that ours reads the same, however the stream is cut.
pub(super) fn check(bytes: &[u8], piece: usize) {
    let meant = read(bytes);
    for piece in [bytes.len().max(1), piece.max(1), 1] {
        let mut parser = Parser::new(usize::MAX);
        let mut events: VecDeque<Event> = VecDeque::new();
        let is_broken = bytes.chunks(piece).any(|chunk| parser.push(chunk, &mut events).is_err());
        let events: Vec<(String, String)> =
            events.into_iter().map(|event| (event.name, event.data)).collect();
        assert_eq!(events, meant.events, "in pieces of {piece}");
        assert_eq!(is_broken, meant.is_broken, "in pieces of {piece}");
        assert_eq!(parser.last_id().is_some(), meant.has_place, "in pieces of {piece}");
    }
}
