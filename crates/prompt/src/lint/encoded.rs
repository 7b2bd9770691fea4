//! Base64 that reads as text once decoded. Owns decoding, bounded in number and size; what it says is judged elsewhere.

const MIN_BLOB_CHARS: usize = 20;
const MAX_BLOB_CHARS: usize = 4096;
const MAX_BLOBS: usize = 64;

/// Decoded text of the base64 blobs in `text`, each with the byte where it starts.
pub(super) fn readable_blobs(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut start = None;
    let ends = text.char_indices().chain(std::iter::once((text.len(), ' ')));
    for (at, c) in ends {
        if c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '-' | '_' | '=') {
            start.get_or_insert(at);
            continue;
        }
        if let Some(from) = start.take()
            && (MIN_BLOB_CHARS..=MAX_BLOB_CHARS).contains(&(at - from))
            && let Some(decoded) = text.get(from..at).and_then(decode)
        {
            found.push((from, decoded));
        }
        if found.len() >= MAX_BLOBS {
            break;
        }
    }
    found
}

fn decode(blob: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(blob.len());
    let (mut bits, mut count) = (0_u32, 0);
    for c in blob.trim_end_matches('=').bytes() {
        let value = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = (bits << 6 | u32::from(value)) & 0xffff;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 0xff) as u8);
        }
    }
    let decoded = String::from_utf8(bytes).ok()?;
    let readable = decoded.chars().all(|c| !c.is_control() || c.is_whitespace());
    (readable && decoded.contains(' ')).then_some(decoded)
}
