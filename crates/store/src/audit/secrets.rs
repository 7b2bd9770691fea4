//! How secrets are recognized: names that announce one, and words that are one.

pub(super) const REDACTED: &str = "[redacted]";

const WORDS: [&str; 29] = [
    "password",
    "passwords",
    "passwd",
    "passwort",
    "pass",
    "pw",
    "pwd",
    "passphrase",
    "passcode",
    "secret",
    "secrets",
    "token",
    "tokens",
    "auth",
    "authorization",
    "credential",
    "credentials",
    "creds",
    "cookie",
    "cookies",
    "bearer",
    "jwt",
    "otp",
    "totp",
    "pin",
    "cvv",
    "cvc",
    "apikey",
    "apikeys",
];
/// Words before `key` that make it a secret.
const KEY_KINDS: [&str; 11] = [
    "api",
    "access",
    "private",
    "secret",
    "signing",
    "encryption",
    "ssh",
    "master",
    "session",
    "auth",
    "account",
];
/// Parts of names that are written in one piece.
const PARTS: [&str; 13] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "apikey",
    "accesskey",
    "privatekey",
    "authtoken",
    "accesstoken",
    "refreshtoken",
    "authorization",
    "credential",
    "cookie",
];
/// Prefixes of tokens of well-known services, and how many characters must follow.
const PREFIXES: [(&str, usize); 32] = [
    // Our own; a shorter word may be the name of a metric.
    ("embody_", 32),
    ("sk-", 8),
    ("sk_", 8),
    ("rk_live_", 8),
    ("rk_test_", 8),
    ("ghp_", 8),
    ("gho_", 8),
    ("ghu_", 8),
    ("ghs_", 8),
    ("ghr_", 8),
    ("github_pat_", 8),
    ("glpat-", 8),
    ("xoxb-", 8),
    ("xoxp-", 8),
    ("xoxa-", 8),
    ("xoxr-", 8),
    ("xoxs-", 8),
    ("xapp-", 8),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("ya29.", 8),
    ("hf_", 16),
    ("npm_", 16),
    ("pypi-", 16),
    ("dop_v1_", 8),
    ("SG.", 16),
    ("whsec_", 8),
    ("shpat_", 8),
    ("lin_api_", 8),
    ("AGE-SECRET-KEY-", 8),
    ("hooks.slack.com/services/", 8),
];
/// Of a longer name only the end is read.
const NAME_LIMIT: usize = 64;

/// Whether the value of this name is a secret: `apiKey`, `X-Auth-Token`, `--db_password`.
pub(super) fn names_secret(name: &str) -> bool {
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
    let words = words(name.chars().skip(skipped));
    let flat = words.concat().replace("secretar", "");
    words.iter().any(|word| WORDS.contains(&word.as_str()))
        || words.windows(2).any(|pair| {
            matches!(pair, [kind, key] if (key == "key" || key == "keys") && KEY_KINDS.contains(&kind.as_str()))
        })
        || PARTS.iter().any(|part| flat.contains(part))
}

/// Lower-case words of `snake_case`, `kebab-case`, `camelCase` and `ALLCaps`.
fn words(name: impl Iterator<Item = char>) -> Vec<String> {
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
pub(super) fn is_token(text: &str, dotted: bool) -> bool {
    dotted && text.starts_with("eyJ") && text.len() >= 20
        || PREFIXES.iter().any(|(prefix, more)| {
            text.as_bytes().first() == prefix.as_bytes().first()
                && text.strip_prefix(prefix).is_some_and(|rest| rest.len() >= *more)
        })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn word() -> impl Strategy<Value = String> {
        let known: Vec<&str> =
            WORDS.iter().chain(&KEY_KINDS).chain(&PARTS).chain(&["key", "keys"]).copied().collect();
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
