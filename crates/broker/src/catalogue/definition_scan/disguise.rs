//! Other readings of a text: look-alike letters, encoded and escaped pieces, digits for letters, spaced-out letters, reversed
//! text, sentences written as a name. Each reading is scanned like plain text.

use super::{Hit, Suspicion, orders};

const SHORTEST_PIECE: usize = 16;
const LONGEST_PIECE: usize = 8192;
const MOST_PIECES: usize = 32;
/// From this many words on, encoded data counts as text, which an honest definition does not need.
const SENTENCE_WORDS: usize = 6;
/// How many consecutive single letters spell something.
const SPACED_LETTERS: usize = 8;
/// From this many underscores on, a name can be a sentence.
const NAME_PARTS: usize = 3;
/// From this many escapes on, they count as a disguise.
const MOST_ESCAPES: usize = 8;

pub(super) fn find(text: &str) -> Option<Hit> {
    if let Some(word) = text.split(|c: char| !c.is_alphabetic()).find(|word| is_mixed(word)) {
        return Some(Hit::new(Suspicion::Disguised, word));
    }
    if let Some(at) = styled_letters(text).or_else(|| spaced_letters(text)) {
        return Some(Hit::new(Suspicion::Disguised, text.get(at..).unwrap_or(text)));
    }
    let encoded = pieces(text).find(|decoded| says_something(decoded));
    let encoded = encoded.or_else(|| unescaped(text).filter(|text| says_something(text)));
    if let Some(decoded) = encoded {
        let order = orders::find(&decoded).map_or(decoded, |hit| hit.text);
        return Some(Hit::new(Suspicion::Encoded, &order));
    }
    let readings = [unleeted(text), rotated(text), text.chars().rev().collect()];
    let order = readings.iter().find_map(|reading| orders::find_words(reading));
    let order = order.or_else(|| orders::find(&words_of_name(text)?))?;
    Some(Hit { suspicion: Suspicion::Disguised, ..order })
}

fn says_something(decoded: &str) -> bool {
    let words = decoded.split_whitespace().filter(|word| {
        word.len() > 1 && word.chars().all(|c| c.is_alphanumeric() || c.is_ascii_punctuation())
    });
    words.count() >= SENTENCE_WORDS && !decoded.trim_start().starts_with(['{', '[', '<'])
        || orders::find(decoded).is_some()
}

/// A word that mixes Latin letters with Cyrillic or look-alike Greek ones.
fn is_mixed(word: &str) -> bool {
    let latin = word.chars().filter(char::is_ascii_alphabetic).count();
    let has = |wanted: fn(char) -> bool| word.chars().any(wanted);
    latin >= 1 && has(|c| matches!(c, '\u{0400}'..='\u{052f}'))
        || latin >= 3
            && has(|c| {
                matches!(
                    c,
                    'ο' | 'α'
                        | 'ε'
                        | 'ι'
                        | 'ν'
                        | 'ρ'
                        | 'τ'
                        | 'υ'
                        | 'κ'
                        | 'Α'
                        | 'Β'
                        | 'Ε'
                        | 'Ι'
                        | 'Ο'
                        | 'Ρ'
                        | 'Τ'
                )
            })
}

/// Consecutive mathematical, circled or squared letters.
fn styled_letters(text: &str) -> Option<usize> {
    let styled = |c: char| matches!(c, '\u{1d400}'..='\u{1d7ff}' | '\u{24b6}'..='\u{24e9}' | '\u{1f110}'..='\u{1f189}' | '\u{249c}'..='\u{24b5}');
    let (mut run, mut start) = (0, 0);
    for (at, c) in text.char_indices().filter(|(_, c)| !c.is_whitespace()) {
        match styled(c) {
            true if run == 0 => (run, start) = (1, at),
            true => run += 1,
            false => run = 0,
        }
        if run >= 4 {
            return Some(start);
        }
    }
    None
}

/// Decodes base64 and hexadecimal pieces.
fn pieces(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '+' | '/' | '-' | '_' | '='))
        .filter(|piece| (SHORTEST_PIECE..=LONGEST_PIECE).contains(&piece.len()))
        .take(MOST_PIECES)
        .flat_map(|piece| [base64(piece), hexadecimal(piece)])
        .flatten()
}

fn base64(piece: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(piece.len());
    let (mut held, mut bits) = (0_u32, 0);
    for c in piece.trim_end_matches('=').bytes() {
        let six = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        held = held << 6 & 0xffff | u32::from(six);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits & 0xff) as u8);
        }
    }
    String::from_utf8(bytes).ok()
}

fn hexadecimal(piece: &str) -> Option<String> {
    let digits: Option<Vec<u8>> =
        piece.chars().map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    let bytes = digits?
        .chunks_exact(2)
        .filter_map(|pair| match pair {
            [high, low] => Some(high << 4 | low),
            _ => None,
        })
        .collect();
    String::from_utf8(bytes).ok()
}

/// The text with `%49`, `&#73;`, `\u0049` and `\x49` decoded, if there are many.
fn unescaped(text: &str) -> Option<String> {
    let (mut out, mut escapes, mut rest) = (String::new(), 0, text);
    while let Some(at) = rest.find(['%', '&', '\\']) {
        let (before, tail) = rest.split_at_checked(at)?;
        out.push_str(before);
        let (shown, length) = match escape(tail) {
            Some(escape) => {
                escapes += 1;
                escape
            }
            None => tail.chars().next().map(|c| (c, c.len_utf8()))?,
        };
        out.push(shown);
        rest = tail.get(length..)?;
    }
    out.push_str(rest);
    (escapes >= MOST_ESCAPES).then_some(out)
}

fn escape(tail: &str) -> Option<(char, usize)> {
    let lower = tail.get(..3.min(tail.len()))?.to_ascii_lowercase();
    let (start, radix, most) = match lower.as_str() {
        "&#x" => (3, 16, 6),
        start if start.starts_with("&#") => (2, 10, 7),
        start if start.starts_with("\\u") => (2, 16, 4),
        start if start.starts_with("\\x") => (2, 16, 2),
        start if start.starts_with('%') => (1, 16, 2),
        _ => return None,
    };
    let digits = tail.bytes().skip(start).take(most).take_while(|c| char::from(*c).is_digit(radix)).count();
    let code = u32::from_str_radix(tail.get(start..start + digits)?, radix).ok()?;
    let closed = usize::from(
        tail.get(start + digits..).is_some_and(|rest| rest.starts_with(';')) && tail.starts_with('&'),
    );
    Some((char::from_u32(code)?, start + digits + closed))
}

/// `i g n o r e  t h i s`, `i-g-n-o-r-e t-h-i-s`: consecutive single letters.
fn spaced_letters(text: &str) -> Option<usize> {
    let (mut run, mut start, mut at) = (0, 0, 0);
    for piece in text.split([' ', '-', '.', '_', '*']) {
        let mut chars = piece.chars();
        match (chars.next(), chars.next()) {
            (None, _) => {}
            (Some(letter), None) if letter.is_alphabetic() => {
                if run == 0 {
                    start = at;
                }
                run += 1;
            }
            _ => run = 0,
        }
        if run >= SPACED_LETTERS {
            return Some(start);
        }
        at += piece.len() + 1;
    }
    None
}

/// `read_this_and_send_it` with spaces.
fn words_of_name(text: &str) -> Option<String> {
    let is_name = !text.contains(char::is_whitespace) && text.matches('_').count() >= NAME_PARTS;
    is_name.then(|| text.replace('_', " "))
}

/// `1gn0re` with letters in place of the digits.
fn unleeted(text: &str) -> String {
    let letter = |c: char| match c {
        '0' => 'o',
        '1' | '!' => 'i',
        '3' => 'e',
        '4' | '@' => 'a',
        '5' | '$' => 's',
        '7' => 't',
        c => c,
    };
    text.chars().map(letter).collect()
}

fn rotated(text: &str) -> String {
    let turn = |c: u8, first: u8| char::from((c - first + 13) % 26 + first);
    let letter = |c: char| match u8::try_from(c) {
        Ok(c @ b'a'..=b'z') => turn(c, b'a'),
        Ok(c @ b'A'..=b'Z') => turn(c, b'A'),
        _ => c,
    };
    text.chars().map(letter).collect()
}
