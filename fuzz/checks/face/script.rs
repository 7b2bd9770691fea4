//! What a host writes. Most bytes are written as they are; a control byte stands for a part of a message, for what only the
//! broker's own words can tell, or for something that happens meanwhile.

/// One thing that happens.
pub(super) enum Step {
    Bytes(Vec<u8>),
    /// The last state that the host was given, as a member.
    State,
    /// Yes to everything that was asked with it, as a member.
    Responses,
    /// Yes to the last question, as a line.
    Answer,
    /// The body behind the broker says something on its own.
    BodySays(&'static str),
    /// The host waits.
    Rest,
}

/// Steps that are done; what follows is not.
const MOST_STEPS: usize = 256;
/// Bytes that are written.
const MOST_BYTES: usize = 32 * 1024;

const ERA: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}"#;
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{},"sampling":{},"roots":{}},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
"#;

pub(super) fn steps(data: &[u8]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let (mut left, mut bytes) = (MOST_BYTES, data.iter());
    while let Some(byte) = bytes.next() {
        if steps.len() >= MOST_STEPS || left == 0 {
            break;
        }
        let step = match byte {
            0x1B => Step::Bytes(bytes.next().copied().into_iter().collect()),
            _ => step(*byte),
        };
        match (step, steps.last_mut()) {
            (Step::Bytes(more), Some(Step::Bytes(before))) => {
                left = left.saturating_sub(more.len());
                before.extend(more);
            }
            (step, _) => steps.push(step),
        }
    }
    steps
}

fn step(byte: u8) -> Step {
    let text = match byte {
        0x01 => INITIALIZE,
        0x02 => r#"{"jsonrpc":"2.0","id":"#,
        0x03 => r#","method":"#,
        0x04 => r#","params":{"#,
        0x05 => r#""name":"#,
        0x06 => r#""arguments":{"#,
        0x07 => ERA,
        0x08 => return Step::State,
        0x0B => return Step::Responses,
        0x0E => r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"#,
        0x0F => return Step::Answer,
        0x10 => {
            "{\"jsonrpc\":\"2.0\",\"id\":\"b\",\"method\":\"tools/call\",\"params\":{\"name\":\"runtime_bootstrap\",\"arguments\":{}}}\n"
        }
        0x11 => {
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"send_mail","arguments":{"to":"bob"},"#
        }
        0x12 => {
            "{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"tools/call\",\"params\":{\"name\":\"send_mail\",\"arguments\":{\"to\":\"bob\"}}}\n"
        }
        0x13 => {
            "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"tools/call\",\"params\":{\"name\":\"note_down\",\"arguments\":{}}}\n"
        }
        0x14 => {
            "{\"jsonrpc\":\"2.0\",\"id\":10,\"method\":\"tools/call\",\"params\":{\"name\":\"wait\",\"_meta\":{\"progressToken\":\"t\"}}}\n"
        }
        0x15 => "{\"jsonrpc\":\"2.0\",\"id\":11,\"method\":\"tools/list\"}\n",
        0x16 => {
            r#"{"jsonrpc":"2.0","id":12,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"#
        }
        0x17 => return Step::Bytes(vec![b' '; 1024]),
        0x18 => {
            return Step::BodySays(
                r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"who?","requestedSchema":{"type":"object","properties":{}}}}"#,
            );
        }
        0x19 => {
            return Step::BodySays(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
        }
        0x1A => return Step::Rest,
        0x1C => return Step::BodySays(r#"{"jsonrpc":"2.0","id":3,"result":{"content":[]}}"#),
        0x1D => {
            return Step::BodySays(
                r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}"#,
            );
        }
        0x1E => "}}\n",
        0x1F => r#""method":"#,
        other => return Step::Bytes(vec![other]),
    };
    Step::Bytes(text.as_bytes().to_vec())
}
