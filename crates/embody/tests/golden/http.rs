//! HTTP exchanges on plain sockets: every header that is sent and every byte that comes back is on record.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use super::record::Record;

/// A socket on which nothing moves for that long is given up.
const PATIENCE: Duration = Duration::from_secs(60);

/// Headers that every answer has; one exchange records them.
const COMMON: [&str; 9] = [
    "date",
    "connection",
    "content-security-policy",
    "x-content-type-options",
    "referrer-policy",
    "x-frame-options",
    "cross-origin-opener-policy",
    "cross-origin-resource-policy",
    "permissions-policy",
];

pub(super) struct Answer {
    pub(super) head: String,
    pub(super) body: String,
}

impl Answer {
    /// The body, or the last message if it is an event stream.
    pub(super) fn json(&self) -> Value {
        let text = self.body.lines().rev().find_map(|line| line.strip_prefix("data: ")).unwrap_or(&self.body);
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {}\n{}", self.head, self.body))
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (known, value) = line.split_once(": ")?;
            known.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

/// Sends `METHOD PATH` and headers, a line each, and records the exchange without the common headers.
pub(super) fn exchange(record: &mut Record, host: &str, head: &str, body: &str) -> Answer {
    let answer = send(host, head, body);
    record.heading(&format!("> {head}"));
    record.part("sent", body);
    let is_own = |line: &&str| {
        let name = line.split(':').next().unwrap_or_default();
        !COMMON.iter().any(|common| name.eq_ignore_ascii_case(common))
    };
    // The body may name paths of the checkout, so its length differs from one to the next.
    let length = format!("content-length: {}", answer.body.len());
    let checked = |line| if line == length { "content-length: [of the body]" } else { line };
    let head: Vec<&str> = answer.head.lines().filter(is_own).map(checked).collect();
    record.part("status and headers", &(head.join("\n") + "\n"));
    record.part("body", &answer.body);
    answer
}

pub(super) fn send(host: &str, head: &str, body: &str) -> Answer {
    let (line, headers) = head.split_once('\n').unwrap_or((head, ""));
    let mut request = format!("{line} HTTP/1.1\r\nConnection: close\r\n");
    if !headers.to_ascii_lowercase().contains("host:") {
        request += &format!("Host: {host}\r\n");
    }
    for header in headers.lines() {
        request += &format!("{header}\r\n");
    }
    if !body.is_empty() {
        request += &format!("Content-Length: {}\r\n", body.len());
        if !headers.to_ascii_lowercase().contains("content-type:") {
            request += "Content-Type: application/json\r\n";
        }
    }
    let mut stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // A body that is too long may be refused before it was read whole.
    let _ = stream.write_all(format!("{request}\r\n{body}").as_bytes());
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let body = if is_chunked { joined(body) } else { body.to_owned() };
    Answer { head: head.replace("\r\n", "\n"), body }
}

/// The chunks of a body as one text.
fn joined(mut rest: &str) -> String {
    let mut out = String::new();
    while let Some((length, more)) = rest.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        out += &more[..length];
        rest = more[length..].strip_prefix("\r\n").unwrap();
        if length == 0 {
            break;
        }
    }
    out
}
