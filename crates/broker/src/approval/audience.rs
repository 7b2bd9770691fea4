//! Who will see what a call does, as far as the arguments name them under a well-known key, at any depth. It finds names;
//! it proves nothing: a body may reach others that no argument names.

use super::argument::{Part, quoted, quoted_recipient};
use crate::visible;

/// The keys, without case and punctuation.
const KEYS: [&str; 61] = [
    "to",
    "torecipients",
    "toaddress",
    "toaddresses",
    "cc",
    "ccrecipients",
    "ccaddresses",
    "bcc",
    "bccrecipients",
    "bccaddresses",
    "recipient",
    "recipients",
    "recipientid",
    "recipientids",
    "replyto",
    "channel",
    "channels",
    "channelid",
    "channelids",
    "channelname",
    "chat",
    "chats",
    "chatid",
    "conversation",
    "conversationid",
    "room",
    "rooms",
    "roomid",
    "group",
    "groups",
    "groupid",
    "team",
    "teams",
    "teamid",
    "member",
    "members",
    "memberid",
    "memberids",
    "participant",
    "participants",
    "attendee",
    "attendees",
    "invitee",
    "invitees",
    "guests",
    "user",
    "users",
    "userid",
    "userids",
    "username",
    "email",
    "emails",
    "emailaddress",
    "phone",
    "phonenumber",
    "assignee",
    "assignees",
    "reviewers",
    "sharewith",
    "sharedwith",
    "audience",
];

/// How the keys begin that say who something is sent to; the others may say who it is about.
const ADDRESSES: [&str; 10] =
    ["to", "cc", "bcc", "recipient", "replyto", "channel", "chat", "conversation", "room", "share"];

/// Someone that the arguments name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    /// The key, as it is written.
    pub(super) key: String,
    /// A string, or a number as it is written.
    pub(super) value: String,
    is_text: bool,
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

    /// Whether the key says that something is sent to them.
    pub(super) fn is_addressed(&self) -> bool {
        let key = plain(&self.key);
        ADDRESSES.iter().any(|start| key.starts_with(start))
    }
}

/// All of them, in the order of the arguments.
pub(super) fn named(args: &str) -> Vec<Named> {
    let mut found = Vec::new();
    look(args, None, &mut found);
    found
}

/// Goes through a value; `under` is the well-known key that it stands under.
fn look(text: &str, under: Option<&str>, found: &mut Vec<Named>) {
    let mut name = |value: &str, is_text: bool| {
        if let Some(key) = under {
            found.push(Named { key: key.to_owned(), value: value.to_owned(), is_text });
        }
    };
    match Part::read(text) {
        Some(Part::Object(members)) => {
            for (key, value) in members {
                // The outermost key says what they are; what is below it is how a name is written.
                let own = is_known(&key).then_some(key.as_str());
                look(value.get(), under.or(own), found);
            }
        }
        Some(Part::Array(items)) => items.into_iter().for_each(|item| look(item.get(), under, found)),
        Some(Part::Text(string)) if !string.is_empty() => name(&string, true),
        Some(Part::Plain(plain)) if !matches!(plain, "true" | "false" | "null") => name(plain, false),
        Some(Part::Text(_) | Part::Plain(_)) | None => {}
    }
}

/// Whether a key is a well-known one.
pub(super) fn is_known(key: &str) -> bool {
    KEYS.contains(&plain(key).as_str())
}

/// A key without case and punctuation.
pub(super) fn plain(key: &str) -> String {
    let plain: String = key.chars().filter(char::is_ascii_alphanumeric).collect();
    plain.to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: N-10
    #[test]
    fn those_that_the_arguments_name_are_found() {
        for (args, expected) in [
            (r#"{"to":"bob@x.org","text":"hi"}"#, &[r#"to: "bob@x.org""#][..]),
            (r#"{"To":["a","b"],"bcc":"c"}"#, &[r#"To: "a""#, r#"To: "b""#, r#"bcc: "c""#]),
            (r#"{"chat_id":-100123456789012345678901}"#, &["chat_id: -100123456789012345678901"]),
            (
                r#"{"message":{"toRecipients":[{"emailAddress":{"address":"bob@x.org","name":"Bob"}}]}}"#,
                &[r#"toRecipients: "bob@x.org""#, r#"toRecipients: "Bob""#],
            ),
            (r#"{"channel":"a\"b\nto: c\u202e"}"#, &[r#"channel: "a\"b⏎to: c⟨U+202E⟩""#]),
            (r#"{"to":"bоb@x.org"}"#, &[r#"to: "b⟨U+043E⟩b@x.org""#]),
            (r#"{"to: \"б\"":"x"}"#, &[r#""to: \"б\"": "x""#]),
            (r#"{"to":"","cc":[],"bcc":null,"user":true}"#, &[]),
            (r#"{"text":"to: bob","total":3,"tomorrow":"x"}"#, &[]),
        ] {
            let shown: Vec<String> = named(args).iter().map(Named::shown).collect();
            assert_eq!(shown, expected, "{args}");
        }
    }
}
