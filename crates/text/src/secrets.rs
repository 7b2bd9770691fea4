//! The one detector of credentials: private keys, tokens of known services, signed tokens, literal passwords, names that
//! announce a secret. Owns their shapes; never shows more of one than its kind.

use std::sync::LazyLock;

use crate::lists::Lists;

static LISTS: LazyLock<Lists> = LazyLock::new(|| Lists::parse(include_str!("../rules/secrets.txt")));

struct Prefix {
    text: &'static str,
    /// How many characters must follow for a redaction.
    redacted_from: usize,
    /// How many must follow for a report.
    reported_from: usize,
}

static PREFIXES: LazyLock<Vec<Prefix>> = LazyLock::new(|| {
    let prefix = |entry: &&'static str| {
        let mut parts = entry.split(' ');
        let text = parts.next()?;
        let mut count = || parts.next().and_then(|part| part.parse().ok()).unwrap_or(usize::MAX);
        Some(Prefix { text, redacted_from: count(), reported_from: count() })
    };
    LISTS.get("prefixes").iter().filter_map(prefix).collect()
});

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    PrivateKey,
    /// A token with the prefix of a known service.
    ApiKey,
    SignedToken,
    PasswordLiteral,
}

/// A credential, described without showing it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    pub kind: Kind,
    /// The first byte of its line.
    pub line_start: usize,
    pub description: String,
}

#[must_use]
pub fn find(text: &str) -> Vec<Secret> {
    let mut found = Vec::new();
    let mut line_start = 0;
    for line in text.split_inclusive('\n') {
        let mut add = |kind, description| found.push(Secret { kind, line_start, description });
        if line.contains("-----BEGIN ") && line.contains("PRIVATE KEY") {
            add(Kind::PrivateKey, "-----BEGIN … PRIVATE KEY----- [masked]".to_owned());
        }
        for word in words(line) {
            if let Some((kind, shown)) = token(word) {
                add(kind, format!("{shown}… [masked, {} characters]", word.chars().count()));
            }
        }
        if let Some(name) = assigned_literal(line) {
            add(Kind::PasswordLiteral, format!("{name} = [masked]"));
        }
        line_start += line.len();
    }
    found
}

/// An excerpt without anything in it that could be a credential or the beginning of one.
#[must_use]
pub fn mask(excerpt: &str) -> String {
    if assigned_literal(excerpt).is_some() {
        return "[a line with a secret, masked]".to_owned();
    }
    let parts = excerpt.split_inclusive(char::is_whitespace);
    let masked: String =
        parts.map(|part| if words(part).any(could_be_secret) { "[masked] " } else { part }).collect();
    masked.trim().to_owned()
}

/// Long and random, or with a known prefix however short: an excerpt may have cut it.
fn could_be_secret(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let is_prefixed =
        PREFIXES.iter().any(|prefix| word.len() > prefix.text.len() + 4 && word.starts_with(prefix.text));
    word.len() >= 16 && digits >= 3 && is_random(word)
        || is_prefixed && digits > 0
        || word.starts_with("eyJ") && word.len() > 8
}

/// Runs of characters that tokens are made of.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')))
}

fn token(word: &str) -> Option<(Kind, &'static str)> {
    if let Some(rest) = word.strip_prefix("eyJ") {
        let parts: Vec<&str> = rest.split('.').collect();
        let signed = matches!(parts.as_slice(), [head, body, sign] if head.len() > 8 && body.len() > 8 && sign.len() > 8);
        return signed.then_some((Kind::SignedToken, "eyJ"));
    }
    let (prefix, rest) = PREFIXES.iter().find_map(|prefix| {
        let rest = word.strip_prefix(prefix.text).filter(|rest| rest.len() >= prefix.reported_from)?;
        Some((prefix.text, rest))
    })?;
    is_random(rest).then_some((Kind::ApiKey, prefix))
}

/// Not a placeholder such as `your-key-here` or `xxxxxxxx`.
fn is_random(rest: &str) -> bool {
    let distinct =
        rest.bytes().filter(u8::is_ascii_alphanumeric).fold(0_u128, |set, b| set | 1 << b).count_ones();
    let lower = rest.to_ascii_lowercase();
    let placeholder = ["your", "example", "placeholder", "redacted", "xxxx", "0000", "changeme"];
    distinct >= 8
        && rest.bytes().any(|b| b.is_ascii_digit())
        && !placeholder.iter().any(|p| lower.contains(p))
}

/// The name in `password = "literal"`, when the value is a literal and not a reference or a placeholder.
fn assigned_literal(line: &str) -> Option<&'static str> {
    let (before, value) = line.split_once(['=', ':'])?;
    let name = before.trim().trim_matches(['"', '\'', '`', '*', '-', ' ']).to_lowercase();
    let last = name.rsplit([' ', '.', '"']).next().unwrap_or_default();
    let known = LISTS
        .get("names")
        .iter()
        .find(|known| last == **known || name == **known || last.ends_with(&format!("_{known}")))?;
    let value = value.trim_start_matches(['=', ':']).trim().trim_end_matches([',', ';']).trim();
    let quoted = value.trim_matches(['"', '\'', '`']);
    let literal = quoted.split_whitespace().next().unwrap_or_default();
    let words = quoted.split_whitespace().count();
    let strange =
        literal.bytes().any(|b| b.is_ascii_digit()) || literal.bytes().any(|b| b.is_ascii_punctuation());
    let is_quoted = value.len() > quoted.len();
    (words == 1 && literal.len() >= 6 && (is_quoted || strange) && !is_reference(literal)).then_some(known)
}

fn is_reference(literal: &str) -> bool {
    let lower = literal.to_lowercase();
    LISTS.get("references").iter().any(|mark| lower.contains(mark))
}

/// Of a longer name only the end is read.
const NAME_LIMIT: usize = 64;

/// Whether the value of this name is a secret: `apiKey`, `X-Auth-Token`, `--db_password`.
#[must_use]
pub fn names_secret(name: &str) -> bool {
    may_name_secret(name) && does_name_secret(name)
}

/// A fast check: most names contain none of the words. Every word has one of these parts, even with signs between its
/// letters.
fn may_name_secret(name: &str) -> bool {
    let mut last = [0; 3];
    name.bytes().any(|byte| {
        if byte.is_ascii_alphanumeric() {
            let [_, second, third] = last;
            last = [second, third, byte.to_ascii_lowercase()];
        }
        // Letters of other scripts may have one of ours as their lower case.
        !byte.is_ascii()
            || matches!(last, [_, b'p', b'w'])
            || matches!(
                &last,
                b"pas"
                    | b"sec"
                    | b"tok"
                    | b"aut"
                    | b"cre"
                    | b"coo"
                    | b"bea"
                    | b"jwt"
                    | b"otp"
                    | b"pin"
                    | b"cvv"
                    | b"cvc"
                    | b"key"
            )
    })
}

fn does_name_secret(name: &str) -> bool {
    let skipped = name.chars().count().saturating_sub(NAME_LIMIT);
    let words = words_of_name(name.chars().skip(skipped));
    let flat = words.concat().replace("secretar", "");
    words.iter().any(|word| LISTS.has("words", word))
        || words.windows(2).any(|pair| {
            matches!(pair, [kind, key] if (key == "key" || key == "keys") && LISTS.has("key kinds", kind))
        })
        || LISTS.get("parts").iter().any(|part| flat.contains(part))
}

/// Lower-case words of `snake_case`, `kebab-case`, `camelCase` and `ALLCaps`.
fn words_of_name(name: impl Iterator<Item = char>) -> Vec<String> {
    let mut words: Vec<String> = vec![String::new()];
    let mut was_lower = false;
    for letter in name {
        let begins = !letter.is_alphanumeric() || was_lower && letter.is_uppercase();
        if begins && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if let (true, Some(word)) = (letter.is_alphanumeric(), words.last_mut()) {
            word.extend(letter.to_lowercase());
        }
        was_lower = letter.is_lowercase() || letter.is_numeric();
    }
    words
}

/// Whether the text begins with a token of a well-known service, or a JSON web token, which contains a dot.
#[must_use]
pub fn is_token(text: &str, dotted: bool) -> bool {
    dotted && text.starts_with("eyJ") && text.len() >= 20
        || PREFIXES.iter().any(|prefix| {
            text.as_bytes().first() == prefix.text.as_bytes().first()
                && text.strip_prefix(prefix.text).is_some_and(|rest| rest.len() >= prefix.redacted_from)
        })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn credentials_are_described_and_never_shown() {
        let body = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
        for (text, kind) in [
            (format!("use ghp_{body} to push"), Kind::ApiKey),
            (format!("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.{body}"), Kind::SignedToken),
            ("-----BEGIN OPENSSH PRIVATE KEY-----".to_owned(), Kind::PrivateKey),
            ("x\n- DB_PASSWORD: Tr0ub4dor".to_owned(), Kind::PasswordLiteral),
        ] {
            let found = find(&text);
            assert_eq!(found.first().map(|secret| secret.kind), Some(kind), "{text}");
            assert!(found.iter().all(|secret| !secret.description.contains("B2c3")), "{found:?}");
            assert!(!mask(&text).contains("B2c3") && !mask(&text).contains("Tr0ub"), "{}", mask(&text));
        }
        for text in
            ["password = os.environ[\"P\"]", "sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "password: ask Lou"]
        {
            assert_eq!(find(text), []);
        }
    }

    fn word() -> impl Strategy<Value = String> {
        let lists = ["words", "key kinds", "parts"].into_iter().flat_map(|name| LISTS.get(name));
        let known: Vec<&str> = lists.chain(&["key", "keys"]).copied().collect();
        prop_oneof![proptest::sample::select(known).prop_map(str::to_owned), "[a-zA-Z0-9K_ .-]{0,3}"]
    }

    proptest! {
        #[test]
        fn what_is_told_at_a_glance_is_right(words in prop::collection::vec((word(), "[A-Z_. -]{0,1}"), 0..4), at in 0..40usize) {
            let mut name: String = words.into_iter().flat_map(|(word, between)| [word, between]).collect();
            if let Some((place, _)) = name.char_indices().nth(at) {
                name.insert(place, '-');
            }
            prop_assert!(may_name_secret(&name) || !does_name_secret(&name), "{name}");
        }
    }
}
