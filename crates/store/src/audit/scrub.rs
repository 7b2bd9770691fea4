//! Redacting secrets in a text: private keys, passwords in URLs, tokens by their format, values by the name before
//! them.
//!
//! Prefers to redact too much. A secret with neither such a name nor such a format cannot be found. One pass each, in
//! linear time.

use std::borrow::Cow;

use embody_text::secrets::{is_token, names_secret};

pub(super) const REDACTED: &str = "[redacted]";

pub(super) fn scrub(text: &str) -> String {
    without_values(&without_userinfo(&without_private_keys(text)))
}

/// Redacts PEM blocks of private keys; one without its end extends to the end of the text.
fn without_private_keys(text: &str) -> Cow<'_, str> {
    if !text.as_bytes().contains(&b'-') {
        return Cow::Borrowed(text);
    }
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, block)) = rest.split_once("-----BEGIN ") {
        kept.push_str(before);
        let label: String = block.chars().take(48).collect();
        if !label.contains("PRIVATE KEY") {
            kept.push_str("-----BEGIN ");
            rest = block;
            continue;
        }
        kept.push_str(REDACTED);
        let after = block.split_once("-----END ").map_or("", |(_, after)| after);
        rest = after.split_once("-----").map_or("", |(_, rest)| rest);
    }
    kept.push_str(rest);
    Cow::Owned(kept)
}

/// Redacts the password in `scheme://user:password@host`, and a long user name without one, which is a token.
fn without_userinfo(text: &str) -> Cow<'_, str> {
    if !text.as_bytes().contains(&b':') {
        return Cow::Borrowed(text);
    }
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, address)) = rest.split_once("://") {
        kept.push_str(before);
        kept.push_str("://");
        let end = address
            .find(|letter: char| letter.is_whitespace() || matches!(letter, '"' | '\'' | '`' | '<' | '>'))
            .unwrap_or(address.len());
        let (run, after) = address.split_at(end);
        let authority = run.split(['/', '?', '#']).next().unwrap_or_default();
        let is_port = |text: &str| {
            let port = text.split(['/', '?', '#']).next().unwrap_or_default();
            !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) && port.len() < text.len()
        };
        // A password may contain unescaped characters, so the last `@` counts.
        match run.rsplit_once('@').map(|(info, host)| (info.split_once(':'), host)) {
            Some((Some((user, password)), host)) if !is_port(password) => {
                kept.push_str(&format!("{user}:{REDACTED}@{host}"));
            }
            _ => match authority.rsplit_once('@') {
                Some((name, host)) if name.len() >= 20 => {
                    let path = run.get(authority.len()..).unwrap_or_default();
                    kept.push_str(&format!("{REDACTED}@{host}{path}"));
                }
                _ => kept.push_str(run),
            },
        }
        rest = after;
    }
    kept.push_str(rest);
    Cow::Owned(kept)
}

/// Redacts tokens by their format, and values after a name of a secret: `password=x`, `"token": "x"`, `--secret x`.
fn without_values(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = "";
    while let Some(start) = rest.find(is_atom) {
        let (gap, tail) = rest.split_at(start);
        let (atom, after) = tail.split_at(tail.find(|letter| !is_atom(letter)).unwrap_or(tail.len()));
        kept.push_str(gap);
        let bot = gap == ":"
            && atom.len() >= 30
            && before.bytes().rev().take(6).filter(u8::is_ascii_digit).count() == 6;
        let escaped = gap.ends_with('\\');
        match if bot { Some(0) } else { token_start(atom, escaped) } {
            Some(at) => {
                kept.push_str(atom.get(..at).unwrap_or_default());
                kept.push_str(REDACTED);
            }
            None => kept.push_str(atom),
        }
        (before, rest) = (atom, after);
        if let Some((start, end)) = value_after(gap, atom, after) {
            kept.push_str(after.get(..start).unwrap_or_default());
            kept.push_str(REDACTED);
            rest = after.get(end..).unwrap_or_default();
        }
    }
    kept.push_str(rest);
    kept
}

fn is_atom(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | '+' | '/' | '~' | '%' | '$')
}

/// The start of a token in the word: the beginning, or after a sign or an escaped letter.
fn token_start(atom: &str, escaped: bool) -> Option<usize> {
    // Computed once: a word can have as many starts as letters.
    let last_dot = atom.rfind('.');
    let mut signs: [char; 3] = ['\0'; 3];
    for (at, letter) in atom.char_indices() {
        let [third, second, last] = signs;
        let begins = at == 0
            || !last.is_alphanumeric()
            || third == '%' && second.is_ascii_hexdigit() && last.is_ascii_hexdigit()
            || escaped && (at == 1 || at == 5 && atom.starts_with('u'));
        if begins && atom.get(at..).is_some_and(|text| is_token(text, last_dot > Some(at))) {
            return Some(at);
        }
        signs = [second, last, letter];
    }
    None
}

/// The range of the value that follows this name.
fn value_after(gap: &str, atom: &str, after: &str) -> Option<(usize, usize)> {
    let spaces = after.len() - after.trim_start().len();
    if spaces > 0 {
        let next = after.get(spaces..).unwrap_or_default();
        let word = next.find(char::is_whitespace).map_or(next.len(), |end| end);
        let scheme = atom.eq_ignore_ascii_case("bearer") && word >= 6
            || atom.eq_ignore_ascii_case("basic")
                && word >= 8
                && next.chars().take(word).any(|c| !c.is_lowercase());
        if scheme || atom.starts_with("--") && !next.starts_with('-') && names_secret(atom) {
            return value(next, spaces, None);
        }
    }
    let unescaped = atom.get(1..).filter(|_| gap.ends_with('\\')).unwrap_or(atom);
    let start = assignment(after)?;
    let name = if names_secret(atom) { atom } else { Some(unescaped).filter(|name| names_secret(name))? };
    let name = name.to_ascii_lowercase();
    // The value of a header contains spaces and ends with the line, or with the quotes around the header.
    let line = name.contains("authorization") || name.contains("cookie");
    let around = gap.chars().next_back().filter(|letter| matches!(letter, '"' | '\'' | '`'));
    value(after.get(start..)?, start, line.then_some(around))
}

/// The start of the value after `=`, `:` or `=>`, with the quotes of the name and spaces around it.
fn assignment(after: &str) -> Option<usize> {
    let sign = after.find(|letter: char| !matches!(letter, '"' | '\'' | '`' | '\\' | ']' | ' ' | '\t'))?;
    let rest = after.get(sign..)?;
    let rest = rest.strip_prefix("=>").or_else(|| rest.strip_prefix([':', '=']))?;
    Some(after.len() - rest.trim_start().len())
}

/// The value at the start of the text: quoted, in brackets, a line, or up to a space.
fn value(text: &str, offset: usize, line: Option<Option<char>>) -> Option<(usize, usize)> {
    let slashes = text.len() - text.trim_start_matches('\\').len();
    let first = text.chars().nth(slashes)?;
    let (start, length) = match (first, line) {
        ('"' | '\'' | '`', _) => {
            let start = slashes + 1;
            (start, quoted(text.get(start..)?, first, slashes))
        }
        ('[' | '{', _) => (0, bracketed(text)),
        (_, Some(around)) => (
            0,
            text.find(|letter| matches!(letter, '\n' | '\r') || Some(letter) == around).unwrap_or(text.len()),
        ),
        _ => {
            let ends =
                |letter: char| letter.is_whitespace() || matches!(letter, '"' | '\'' | '`' | '&' | ';');
            (0, text.find(ends).unwrap_or(text.len()))
        }
    };
    (length > 0).then_some((offset + start, offset + start + length))
}

/// The length up to the closing quote; a quote with more backslashes than the opening one is part of the value.
fn quoted(text: &str, quote: char, slashes: usize) -> usize {
    let mut run = 0;
    for (at, letter) in text.char_indices() {
        match letter {
            '\\' => run += 1,
            letter if letter == quote && run <= slashes => return at - run,
            _ => run = 0,
        }
    }
    text.len()
}

fn bracketed(text: &str) -> usize {
    let mut depth = 0_usize;
    for (at, letter) in text.char_indices() {
        match letter {
            '[' | '{' => depth += 1,
            ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at + letter.len_utf8();
        }
    }
    text.len()
}
