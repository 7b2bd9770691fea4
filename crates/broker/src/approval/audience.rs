//! The recipients that the arguments name by a key, at any depth. The list may be incomplete: a body may reach others that no
//! argument names.

use super::argument::{quoted, quoted_recipient};
use super::keys::Meaning;
use super::overview::{Overview, Value};
use crate::visible;

/// Separators of names in one string.
const SEPARATORS: [char; 9] = [',', ';', '\n', '\r', '\t', '|', '，', '；', '、'];

/// A person or place that the arguments name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    /// The key as written.
    key: String,
    /// A string, or a number as written.
    pub(super) value: String,
    is_text: bool,
    pub(super) meaning: Meaning,
    /// Whether this describes a recipient whose address is also named.
    pub(super) is_label: bool,
    /// The index of the argument.
    pub(super) argument: usize,
}

impl Named {
    /// `key: "value"`, made visible.
    pub(super) fn shown(&self) -> String {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let key = if self.key.chars().all(is_plain) { self.key.clone() } else { quoted(&self.key) };
        let value = match self.is_text {
            true => quoted_recipient(&self.value),
            false => visible::line(&self.value).into_owned(),
        };
        format!("{key}: {value}")
    }
}

/// All names, in the order of the arguments.
pub(super) fn named(overview: &Overview<'_>) -> Vec<Named> {
    let is_named = |value: &&Value| value.meaning.is_named() && !value.is_truth_value;
    let names = overview.values.iter().filter(is_named).flat_map(|value| {
        names(&value.text, value.meaning).into_iter().map(|name| Named {
            key: value.key.clone(),
            value: name,
            is_text: value.is_string,
            meaning: value.meaning,
            is_label: value.is_label,
            argument: value.argument,
        })
    });
    names.collect()
}

/// Whether a key names a person or a place.
pub(super) fn is_known(key: &str) -> bool {
    Meaning::of(key).is_named()
}

/// The names in one string. Prefers too many over too few.
fn names(text: &str, meaning: Meaning) -> Vec<String> {
    let has_many = |text: &str| text.matches('@').count() > 1;
    if meaning != Meaning::Recipient && !has_many(text) {
        return vec![text.to_owned()];
    }
    if let Ok(list) = serde_json::from_str::<Vec<String>>(text) {
        return list.iter().flat_map(|item| names(item, meaning)).collect();
    }
    let is_address = |c: char| c.is_alphanumeric() || "@._+-%".contains(c);
    let mut found = Vec::new();
    for piece in text.split(SEPARATORS).map(str::trim).filter(|piece| !piece.is_empty()) {
        if !has_many(piece) {
            found.push(piece.to_owned());
            continue;
        }
        for word in piece.split_whitespace() {
            let parts = word.split(|c| has_many(word) && !is_address(c));
            found.extend(parts.filter(|part| !part.is_empty()).map(str::to_owned));
        }
    }
    if found.is_empty() { vec![text.to_owned()] } else { found }
}

/// Whether a text contains something like a mail address or a phone number.
pub(super) fn is_address(text: &str) -> bool {
    let is_mail = |word: &str| {
        word.split_once('@').is_some_and(|(before, after)| !before.is_empty() && !after.is_empty())
    };
    let is_phone = || {
        let digits = text.trim().strip_prefix('+').unwrap_or_default();
        let is_part = |c: char| c.is_ascii_digit() || " -().".contains(c);
        digits.chars().all(is_part) && digits.chars().filter(char::is_ascii_digit).count() > 6
    };
    text.split(|c: char| c.is_whitespace() || "<>\"".contains(c)).any(is_mail) || is_phone()
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: N-10
    #[test]
    fn those_that_the_arguments_name_are_found() {
        for (args, expected) in [
            (r#"{"to":"bob@x.org","text":"hi"}"#, &[r#"to: "bob@x.org""#][..]),
            (r#"{"to":"bоb@x.org"}"#, &[r#"to: "b⟨U+043E⟩b@x.org""#]),
            (r#"{"To":["a","b"],"bcc":"c"}"#, &[r#"To: "a""#, r#"To: "b""#, r#"bcc: "c""#]),
            (r#"{"chat_id":-100123456789012345678901}"#, &["chat_id: -100123456789012345678901"]),
            (
                r#"{"message":{"toRecipients":[{"emailAddress":{"address":"bob@x.org","name":"Bob"}}]}}"#,
                &[r#"toRecipients: "bob@x.org""#, r#"toRecipients: "Bob""#],
            ),
            (r#"{"channel":"a\"b\nto: c\u202e"}"#, &[r#"channel: "a\"b⏎to: c⟨U+202E⟩""#]),
            (r#"{"to: \"б\"":"x"}"#, &[r#""to: \"б\"": "x""#]),
            (r#"{"to":"","cc":[],"bcc":null,"user":true}"#, &[]),
            (r#"{"text":"to: bob","total":3,"tomorrow":"x"}"#, &[]),
            // A wrapper is not a name.
            (r#"{"email":{"to":"bob","body":"Hi","subject":"x"}}"#, &[r#"to: "bob""#]),
            (r#"{"requests":[{"user":{"bcc":"eve"}}]}"#, &[r#"bcc: "eve""#]),
        ] {
            let shown: Vec<String> = named(&Overview::read(args, &[])).iter().map(Named::shown).collect();
            assert_eq!(shown, expected, "{args}");
        }
    }

    #[test]
    fn every_name_in_a_string_counts() {
        for (text, expected) in [
            ("ann@x.org", &["ann@x.org"][..]),
            ("ann, bob;zoe\nmax", &["ann", "bob", "zoe", "max"]),
            ("Ann Lee <ann@x.org>", &["Ann Lee <ann@x.org>"]),
            ("ann@x.org eve@y.org", &["ann@x.org", "eve@y.org"]),
            ("ann@x.org/eve@y.org", &["ann@x.org", "eve@y.org"]),
            (r#"["ann@x.org","bob, eve"]"#, &["ann@x.org", "bob", "eve"]),
            (",", &[","]),
        ] {
            assert_eq!(names(text, Meaning::Recipient), expected, "{text}");
        }
        assert_eq!(names("Lee, Ann", Meaning::Person), ["Lee, Ann"]);
        assert_eq!(names("a@x.org, b@x.org", Meaning::Person), ["a@x.org", "b@x.org"]);
    }

    #[test]
    fn addresses_are_seen() {
        for text in ["ann@x.org", "Ann <ann@x.org>", "+49 170 1234567", "write to ann@x"] {
            assert!(is_address(text), "{text}");
        }
        for text in ["", "ann", "@", "a @ b", "+1", "1234567", "+x"] {
            assert!(!is_address(text), "{text}");
        }
    }
}
