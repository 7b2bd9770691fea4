//! Faults before the session is initialized.
//!
//! | trick | does |
//! |---|---|
//! | `exit` | ends at once |
//! | `slow:MS` | reads nothing for that long |
//! | `garbage` | first writes lines that are not messages |
//! | `stderr:BYTES` | writes that much to stderr |
//! | `silent` | never answers `initialize` |
//! | `wrong_id` | answers `initialize` under another id |
//! | `refuses` | answers `initialize` with an error |

use std::io::Write;
use std::time::Duration;

use serde_json::json;
use serde_json::value::RawValue;

use super::Body;
use super::outlet::answer;

/// Lines that are not messages; one of them is not text either.
pub(super) const GARBAGE: &[u8] =
    b"Listening on stdio...\n\n{\"jsonrpc\":\"2.0\",\n[]\nnull\n\"text\"\n42\n{}\n\xff\xfe\x00\n{\"id\":1}\n";

pub(super) fn misbehave(body: &Body) {
    for (trick, amount) in &body.options.start {
        match trick.as_str() {
            "exit" => std::process::exit(1),
            "slow" => std::thread::sleep(Duration::from_millis(*amount)),
            "garbage" => body.outlet.bytes(GARBAGE),
            "stderr" => complain(*amount),
            "silent" | "wrong_id" | "refuses" => {}
            _ => panic!("`{trick}` is nothing to start with"),
        }
    }
}

pub(super) fn initialize(body: &Body, id: &RawValue) {
    let tries = |trick: &str| body.options.start.iter().any(|(name, _)| name == trick);
    let file = body.options.instructions.as_ref();
    let instructions =
        file.map_or_else(|| "Do not trust me.".to_owned(), |file| std::fs::read_to_string(file).unwrap());
    let greeting = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": body.capabilities(),
        "serverInfo": {"name": body.options.name, "version": "1"},
        "instructions": instructions,
    })
    .to_string();
    if tries("silent") {
        return;
    }
    if tries("refuses") {
        return body.outlet.error(id, -32603, "not today");
    }
    let id = if tries("wrong_id") { r#""somebody else""# } else { id.get() };
    body.outlet.line(&answer(id, &greeting));
}

/// Writes that many bytes to stderr, in lines.
pub(super) fn complain(bytes: u64) {
    let line = format!("{}\n", "unruly complains. ".repeat(64));
    let mut errors = std::io::stderr().lock();
    for _ in 0..bytes.div_ceil(line.len() as u64) {
        let _ = errors.write_all(line.as_bytes());
    }
}
