//! What a server says. Most bytes are said as they are; a control byte stands for a part of a message.

/// Bytes that are said; what follows is not.
const MOST_BYTES: usize = 32 * 1024;

/// What is said while calls of these numbers run.
pub(super) fn said(data: &[u8], numbers: &[u64]) -> Vec<u8> {
    let number = |at: usize| numbers.get(at % numbers.len().max(1)).copied().unwrap_or_default();
    let mut said = Vec::new();
    let mut bytes = data.iter();
    while let Some(byte) = bytes.next() {
        let part = match byte {
            0x01..=0x04 => {
                format!(r#"{{"jsonrpc":"2.0","id":{},"result":"#, number(usize::from(*byte) - 1))
            }
            0x05 => format!(r#"{{"jsonrpc":"2.0","id":{},"error":"#, number(0)),
            0x06 => progress(number(0)),
            0x07 => progress(number(1)),
            0x08 => "{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}\n".to_owned(),
            0x0B => "{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"elicitation/create\",\"params\":{}}\n"
                .to_owned(),
            0x0E => "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n".to_owned(),
            0x0F => "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n".to_owned(),
            0x10 => " ".repeat(1024),
            0x11 => r#"{"jsonrpc":"2.0","#.to_owned(),
            0x12 => number(0).to_string(),
            0x13 => "data: ".to_owned(),
            0x14 => "event: message\n".to_owned(),
            0x15 => "id: 1\nretry: 50\n".to_owned(),
            0x16 => r#"{"resultType":"input_required","inputRequests":{"#.to_owned(),
            0x17 => r#""requestState":"#.to_owned(),
            0x18 => r#""progressToken":"#.to_owned(),
            0x1B => {
                said.extend(bytes.next());
                continue;
            }
            other => {
                said.push(*other);
                continue;
            }
        };
        said.extend_from_slice(part.as_bytes());
        if said.len() >= MOST_BYTES {
            break;
        }
    }
    said
}

fn progress(token: u64) -> String {
    let params = format!(r#"{{"progressToken":{token},"progress":1}}"#);
    format!("{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{params}}}\n")
}
