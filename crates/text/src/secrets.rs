//! The one detector of credentials: private keys, tokens of known services, signed tokens, literal passwords. Owns their
//! shapes; never shows more of one than its kind.

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
        PREFIXES.iter().any(|(prefix, _)| word.len() > prefix.len() + 4 && word.starts_with(prefix));
    word.len() >= 16 && digits >= 3 && is_random(word)
        || is_prefixed && digits > 0
        || word.starts_with("eyJ") && word.len() > 8
}

/// Runs of characters that tokens are made of.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')))
}

/// Prefixes of well-known services with the least length of what follows.
const PREFIXES: &[(&str, usize)] = &[
    ("embody_", 32),
    ("sk-ant-", 20),
    ("sk-proj-", 20),
    ("sk-or-", 20),
    ("sk-", 20),
    ("sk_live_", 16),
    ("sk_test_", 16),
    ("rk_live_", 16),
    ("pk_live_", 16),
    ("whsec_", 20),
    ("ghp_", 30),
    ("gho_", 30),
    ("ghu_", 30),
    ("ghs_", 30),
    ("ghr_", 30),
    ("github_pat_", 30),
    ("glpat-", 18),
    ("xoxb-", 16),
    ("xoxp-", 16),
    ("xoxa-", 16),
    ("xoxs-", 16),
    ("xapp-", 16),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("ya29.", 20),
    ("hf_", 30),
    ("npm_", 30),
    ("pypi-", 40),
    ("SG.", 40),
    ("dop_v1_", 40),
    ("shpat_", 28),
    ("tvly-", 20),
    ("gsk_", 30),
    ("xai-", 30),
    ("lin_api_", 30),
    ("secret_", 40),
    ("ntn_", 30),
    ("AGE-SECRET-KEY-", 40),
];

fn token(word: &str) -> Option<(Kind, &'static str)> {
    if let Some(rest) = word.strip_prefix("eyJ") {
        let parts: Vec<&str> = rest.split('.').collect();
        let signed = matches!(parts.as_slice(), [head, body, sign] if head.len() > 8 && body.len() > 8 && sign.len() > 8);
        return signed.then_some((Kind::SignedToken, "eyJ"));
    }
    let (prefix, rest) = PREFIXES.iter().find_map(|&(prefix, least)| {
        word.strip_prefix(prefix).filter(|rest| rest.len() >= least).map(|rest| (prefix, rest))
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

const NAMES: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "secret",
    "client_secret",
    "api_key",
    "apikey",
    "api-key",
    "access_token",
    "auth_token",
    "secret_key",
    "private_key",
    "token",
    "pwd",
    "passwort",
    "kennwort",
    "contraseña",
    "mot de passe",
];

/// The name in `password = "literal"`, when the value is a literal and not a reference or a placeholder.
fn assigned_literal(line: &str) -> Option<&'static str> {
    let (before, value) = line.split_once(['=', ':'])?;
    let name = before.trim().trim_matches(['"', '\'', '`', '*', '-', ' ']).to_lowercase();
    let last = name.rsplit([' ', '.', '"']).next().unwrap_or_default();
    let known = NAMES
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
    let marks = [
        "$", "<", "{", "%", "[", "env", "os.", "process.", "vault", "secrets.", "op://", "get", "(",
        "keyring", "file:", "/", "http",
    ];
    let placeholders = [
        "your",
        "example",
        "changeme",
        "placeholder",
        "redacted",
        "xxx",
        "***",
        "...",
        "…",
        "string",
        "optional",
        "required",
        "none",
        "null",
        "true",
        "false",
        "hidden",
        "masked",
    ];
    marks.iter().any(|mark| lower.contains(mark)) || placeholders.iter().any(|word| lower.contains(word))
}

#[cfg(test)]
mod tests {
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
}
