//! Text in disguise that reads as text once decoded: base64, hexadecimal bytes, character escapes.
//! Owns decoding, bounded in number and size. Also characters that people cannot see, except where a script or an emoji
//! needs them.

use embody_text::invisible::{Invisible, kind};

use super::finding::{Findings, Rule};
use super::fold;

const MIN_BLOB_CHARS: usize = 20;
const MAX_BLOB_CHARS: usize = 4096;
const MAX_BLOBS: usize = 64;
const MIN_ESCAPES: usize = 8;
const MIN_HEX_BYTES: usize = 10;

/// Every text hidden in `text`, decoded, with the byte where it starts.
pub(super) fn decode_hidden_texts(text: &str) -> Vec<(usize, String)> {
    let mut found = readable_blobs(text);
    found.extend(hexadecimal(text));
    found.extend(unescaped(text).map(|decoded| (0, decoded)));
    found
}

/// Decoded text of the base64 blobs in `text`, each with the byte where it starts.
fn readable_blobs(text: &str) -> Vec<(usize, String)> {
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

/// The text with `&#73;` and `\u0049` turned into characters, when it has enough of them to hide a sentence.
fn unescaped(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut escapes = 0;
    let mut rest = text;
    while let Some(at) = rest.find(['&', '\\']) {
        let (before, tail) = rest.split_at_checked(at)?;
        out.push_str(before);
        let decoded = escape(tail);
        let (shown, length) = decoded.or_else(|| tail.chars().next().map(|c| (c, c.len_utf8())))?;
        escapes += usize::from(decoded.is_some());
        out.push(shown);
        rest = tail.get(length..)?;
    }
    out.push_str(rest);
    (escapes >= MIN_ESCAPES).then_some(out)
}

/// The character that an escape at the start of `tail` stands for, and the length of the escape.
fn escape(tail: &str) -> Option<(char, usize)> {
    let (digits_at, radix, closed) = match tail.get(..3) {
        Some("&#x" | "&#X") => (3, 16, true),
        Some(start) if start.starts_with("&#") => (2, 10, true),
        Some(start) if start.starts_with("\\u") || start.starts_with("\\x") => (2, 16, false),
        _ => return None,
    };
    let most = if closed {
        6
    } else if tail.starts_with("\\x") {
        2
    } else {
        4
    };
    let length = tail.bytes().skip(digits_at).take(most).take_while(u8::is_ascii_hexdigit).count();
    let code = u32::from_str_radix(tail.get(digits_at..digits_at + length)?, radix).ok()?;
    let closing = usize::from(closed && tail.as_bytes().get(digits_at + length) == Some(&b';'));
    Some((char::from_u32(code)?, digits_at + length + closing))
}

/// Runs of at least ten hexadecimal bytes, decoded.
fn hexadecimal(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut run: Option<(usize, Vec<u8>)> = None;
    let mut at = 0;
    for word in text.split_inclusive(char::is_whitespace) {
        let bytes = hex_bytes(word.trim());
        match (&mut run, bytes) {
            (Some((_, all)), Some(bytes)) if all.len() < MAX_BLOB_CHARS => all.extend(bytes),
            (None, Some(bytes)) => run = Some((at, bytes)),
            _ => found.extend(run.take().and_then(readable_run)),
        }
        at += word.len();
    }
    found.extend(run.and_then(readable_run));
    found.truncate(MAX_BLOBS);
    found
}

fn hex_bytes(word: &str) -> Option<Vec<u8>> {
    let even =
        !word.is_empty() && word.len().is_multiple_of(2) && word.bytes().all(|b| b.is_ascii_hexdigit());
    let pairs = word.as_bytes().chunks(2).take(MAX_BLOB_CHARS);
    let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    even.then(|| pairs.filter_map(byte).collect())
}

fn readable_run((at, bytes): (usize, Vec<u8>)) -> Option<(usize, String)> {
    (bytes.len() >= MIN_HEX_BYTES).then(|| readable(bytes))?.map(|text| (at, text))
}

fn readable(bytes: Vec<u8>) -> Option<String> {
    let decoded = String::from_utf8(bytes).ok()?;
    let plain = decoded.chars().all(|c| !c.is_control() || c.is_whitespace());
    (plain && decoded.contains(' ')).then_some(decoded)
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
    readable(bytes)
}

pub(super) fn find_hidden(text: &str, findings: &mut Findings<'_>) {
    let mut line = LineState::default();
    let mut selectors = 0;
    let mut before = None;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|&(_, next)| next);
        if c == '\n' {
            line.end(findings);
            line = LineState::default();
        }
        line.right_to_left |= fold::is_right_to_left(c);
        match kind(c) {
            Some(Invisible::ZeroWidth | Invisible::Joiner | Invisible::Direction)
                if !is_soft_hyphen(c) && splits_word(before, next) =>
            {
                findings.add(Rule::HiddenText, at);
            }
            Some(Invisible::Direction) if matches!(c, '\u{202d}' | '\u{202e}') => {
                findings.add(Rule::HiddenText, at);
            }
            Some(Invisible::Direction)
                if matches!(c, '\u{202a}' | '\u{202b}' | '\u{2066}' | '\u{2067}' | '\u{2068}') =>
            {
                line.embedding.get_or_insert(at);
            }
            Some(Invisible::Tag) if !line.flag => findings.add(Rule::HiddenText, at),
            _ => {}
        }
        selectors = if kind(c) == Some(Invisible::Selector) { selectors + 1 } else { 0 };
        if selectors == 3 {
            findings.add(Rule::HiddenText, at);
        }
        line.flag = c == '\u{1f3f4}' || line.flag && matches!(c, '\u{e0020}'..='\u{e007f}');
        if !fold::is_invisible(c) {
            before = Some(c);
        }
    }
    line.end(findings);
}

#[derive(Default)]
struct LineState {
    right_to_left: bool,
    /// A direction embedding that needs right-to-left text to make sense.
    embedding: Option<usize>,
    /// Inside a flag emoji, which is spelled with tag characters.
    flag: bool,
}

impl LineState {
    fn end(&self, findings: &mut Findings<'_>) {
        if let Some(at) = self.embedding
            && !self.right_to_left
        {
            findings.add(Rule::HiddenText, at);
        }
    }
}

/// Where a word may be broken at the end of a line; texts from the web are full of them.
fn is_soft_hyphen(c: char) -> bool {
    c == '\u{ad}'
}

/// Between two letters of a script that never needs it there.
fn splits_word(before: Option<char>, next: Option<char>) -> bool {
    let plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '\u{c0}'..='\u{24f}' | '\u{370}'..='\u{52f}');
    before.is_some_and(plain) && next.is_some_and(|c| plain(c) || fold::is_invisible(c))
}
