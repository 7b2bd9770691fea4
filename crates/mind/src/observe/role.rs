//! What a value is there for, as far as its name and shape say. It knows everyday words of argument names, and no tool in
//! particular.

use super::features::name_words;
use super::rule_matching::tokenizer::{fold, words};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Addressing,
    Content,
    Other,
}

/// What people call the places where a recipient stands.
const ADDRESSING: [&str; 34] = [
    "to",
    "cc",
    "bcc",
    "recipient",
    "user",
    "member",
    "attendee",
    "participant",
    "invitee",
    "guest",
    "channel",
    "chat",
    "room",
    "team",
    "group",
    "email",
    "mail",
    "address",
    "phone",
    "number",
    "contact",
    "person",
    "people",
    "who",
    "with",
    "assignee",
    "owner",
    "reviewer",
    "target",
    "audience",
    "name",
    "list",
    "payee",
    "mention",
];
const CONTENT: [&str; 16] = [
    "body",
    "text",
    "content",
    "message",
    "subject",
    "title",
    "description",
    "html",
    "note",
    "caption",
    "comment",
    "summary",
    "markdown",
    "agenda",
    "reason",
    "query",
];
/// Words of a path that say what nobody is to read.
const SECRET: [&str; 9] = ["key", "keys", "pin", "pwd", "pw", "otp", "auth", "cookie", "jwt"];
/// And those that say it wherever they stand in one.
const SECRET_ANYWHERE: [&str; 9] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "token",
    "credential",
    "apikey",
    "authorization",
];

pub(super) fn role(key: &str, text: &str) -> Role {
    let key = words(key);
    let is = |list: &[&str]| {
        let singular = |word: &str| {
            list.contains(&word) || word.strip_suffix('s').is_some_and(|one| list.contains(&one))
        };
        key.iter().any(|word| singular(word))
    };
    if address(text).is_some() {
        return Role::Addressing;
    }
    if is(&CONTENT) {
        return Role::Content;
    }
    // Nothing but addresses says whom it is about, whatever it is called.
    let addresses = || text.contains('@') && recipients(text).iter().all(|part| address(part).is_some());
    if is(&ADDRESSING) || addresses() { Role::Addressing } else { Role::Other }
}

/// Whether a value is not to be told in a reason.
pub(super) fn is_secret(path: &str, key: &str) -> bool {
    let named = |name: &str| {
        let folded = fold(name);
        SECRET_ANYWHERE.iter().any(|word| folded.contains(word))
            || name_words(name).iter().any(|word| SECRET.contains(&word.as_str()))
    };
    // A path may be cut before its last word.
    named(path) || named(key)
}

const MAX_ADDRESS_CHARS: usize = 120;

/// The address in a text like `bob@example.com` or `Bob <bob@example.com>`, folded.
pub(super) fn address(text: &str) -> Option<String> {
    let inner =
        text.rsplit_once('<').and_then(|(_, rest)| rest.split_once('>')).map_or(text, |(inner, _)| inner);
    let inner = inner.trim().trim_start_matches("mailto:");
    let (local, domain) = inner.split_once('@')?;
    let plain = !local.is_empty() && domain.contains('.') && !domain.contains('@');
    let short = inner.chars().count() <= MAX_ADDRESS_CHARS && !inner.contains(char::is_whitespace);
    (plain && short).then(|| inner.to_lowercase())
}

/// Each recipient of a list like `Eve <eve@x.org>, al@x.com; Carol`: an address by itself if it has one. A list without
/// commas is one too when it has several addresses.
pub(super) fn recipients(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for part in text.split([',', ';', '\n']).map(str::trim).filter(|part| !part.is_empty()) {
        if address(part).is_some() && part.matches('@').count() == 1 || !part.contains('@') {
            found.push(part.to_owned());
            continue;
        }
        let before = found.len();
        let bare = part.split(|letter: char| letter.is_whitespace() || "<>()[]\"'".contains(letter));
        found.extend(bare.filter_map(address));
        if found.len() == before {
            found.push(part.to_owned());
        }
    }
    found
}

/// What a value belongs to: an address to its domain, a link to its host, a file to its folder.
pub(super) fn parent_of(text: &str) -> Option<(&'static str, String)> {
    if let Some(address) = address(text) {
        return address.split_once('@').map(|(_, domain)| ("domain", domain.to_owned()));
    }
    if text.contains(char::is_whitespace) || text.chars().count() > MAX_ADDRESS_CHARS {
        return None;
    }
    if let Some((_, rest)) = text.split_once("://") {
        return Some(("host", rest.split(['/', '?', '#']).next().unwrap_or_default().to_lowercase()));
    }
    let (folder, _) = text.rsplit_once('/')?;
    let top: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).take(2).collect();
    Some(("folder", top.join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_says_who_is_addressed_however_long_a_value_is() {
        assert_eq!(role("to", &"somebody ".repeat(40)), Role::Addressing);
        assert_eq!(role("x", "a@x.org;b@x.org"), Role::Addressing);
        assert_eq!(role("x", "see you, b@x.org"), Role::Other);
        assert_eq!(role("body", "a@x.org, b@x.org"), Role::Content);
        assert_eq!(role("x", ""), Role::Other);
    }

    #[test]
    fn secrets_are_known_by_their_paths() {
        for path in ["password", "db.userPassword", "apiKey", "auth.value", "headers.X-Access-Token", "pin[]"]
        {
            assert!(is_secret(path, ""), "{path}");
        }
        for path in ["to", "spinner", "keyboard", "author", "body"] {
            assert!(!is_secret(path, ""), "{path}");
        }
    }

    #[test]
    fn a_list_has_recipients() {
        assert_eq!(recipients("a@x.org"), ["a@x.org"]);
        assert_eq!(
            recipients("Eve <a@x.org>,Al <al@x.com> ;Carol"),
            ["Eve <a@x.org>", "Al <al@x.com>", "Carol"]
        );
        assert_eq!(recipients("a@x.org b@x.org\nEve c@x.org"), ["a@x.org", "b@x.org", "c@x.org"]);
        assert_eq!(recipients("Eve <a@x.org> Al <al@x.com>"), ["a@x.org", "al@x.com"]);
        assert_eq!(recipients("@home, the @channel"), ["@home", "the @channel"]);
        assert_eq!(recipients(" ,; "), Vec::<String>::new());
    }

    #[test]
    fn a_value_belongs_somewhere() {
        let belongs = |text| parent_of(text).map(|(what, whom)| format!("{what} {whom}"));
        assert_eq!(belongs("Bob <Bob@X.org>").as_deref(), Some("domain x.org"));
        assert_eq!(belongs("https://x.org/a?b").as_deref(), Some("host x.org"));
        assert_eq!(belongs("/home/ann/docs/a.txt").as_deref(), Some("folder home/ann"));
        assert_eq!(belongs("see you at 3/4 past"), None);
        assert_eq!(belongs("budget"), None);
    }
}
