//! Who will see what a call does, as far as the arguments name them under a well-known key, at any depth. It finds names;
//! it proves nothing: a body may reach others that no argument names.

use super::argument::{Part, escaped};
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

/// A line for each, `key: "name"`, made visible.
pub(super) fn named(args: &str) -> Vec<String> {
    let mut found = Vec::new();
    look(args, None, &mut found);
    found
}

/// Goes through a value; `under` is the well-known key that it stands under.
fn look(text: &str, under: Option<&str>, found: &mut Vec<String>) {
    let mut name = |value: &str| {
        if let Some(key) = under {
            found.push(format!("{}: {value}", visible::line(key)));
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
        Some(Part::Text(string)) if !string.is_empty() => {
            name(&format!("\"{}\"", visible::line(&escaped(&string))));
        }
        Some(Part::Plain(plain)) if !matches!(plain, "true" | "false" | "null") => name(plain),
        Some(Part::Text(_) | Part::Plain(_)) | None => {}
    }
}

fn is_known(key: &str) -> bool {
    let plain: String = key.chars().filter(char::is_ascii_alphanumeric).collect();
    KEYS.contains(&plain.to_ascii_lowercase().as_str())
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
            (r#"{"to":"","cc":[],"bcc":null,"user":true}"#, &[]),
            (r#"{"text":"to: bob","total":3,"tomorrow":"x"}"#, &[]),
        ] {
            assert_eq!(named(args), expected, "{args}");
        }
    }
}
