//! What a value is there for, as far as its name and shape say. It knows everyday words of argument names, and no tool in
//! particular.

use super::address::{address, recipients};
use super::call::name_words;
use super::caution::words::{fold, words};

/// What a value is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It says who is addressed.
    Addressing,
    /// It is what they are told.
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
/// And what they call those of a text.
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

/// The role of a text that stands under a key.
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
}
