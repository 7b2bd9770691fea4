//! The meaning of an argument by the words of its key: `bcc_emails`, `toEmails` and `bccemails` name recipients. A heuristic
//! that only decides what is shown first.

/// The meaning of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Meaning {
    /// A recipient.
    Recipient,
    /// A destination: a channel, a chat.
    Place,
    /// A person that the call is about: a user, a member.
    Person,
    /// A file that is attached to a message.
    Attachment,
    /// Code to run, best first.
    Code(usize),
    /// Text, best first.
    Text(usize),
    Other,
}

const RECIPIENTS: [&str; 5] = ["cc", "bcc", "recipient", "addressee", "mailto"];
const PLACES: [&str; 6] = ["channel", "chat", "conversation", "room", "destination", "audience"];
const PEOPLE: [&str; 14] = [
    "group",
    "team",
    "member",
    "participant",
    "attendee",
    "invitee",
    "guest",
    "user",
    "assignee",
    "reviewer",
    "email",
    "mail",
    "phone",
    "handle",
];
const ATTACHMENTS: [&str; 4] = ["attachment", "attach", "attached", "enclosure"];
const CODE: [&str; 11] = [
    "command",
    "cmd",
    "script",
    "code",
    "sql",
    "shell",
    "program",
    "statement",
    "expression",
    "query",
    "javascript",
];
/// Prefixes of such a word: `shell_command`, but not `country_code`.
const CODE_KINDS: [&str; 9] = ["shell", "bash", "python", "sql", "source", "js", "run", "raw", "exec"];
const TEXTS: [&str; 13] = [
    "body",
    "text",
    "message",
    "content",
    "html",
    "markdown",
    "plaintext",
    "caption",
    "description",
    "comment",
    "reply",
    "note",
    "summary",
];
/// The form of a name, after the word for its owner: `user_id`, `channelName`.
const FORMS: [&str; 10] =
    ["id", "name", "list", "address", "email", "mail", "number", "handle", "key", "identifier"];
/// With these `to` is a limit or a format: `to_date`, `to_page`.
const LIMITS: [&str; 17] = [
    "date",
    "time",
    "timestamp",
    "day",
    "month",
    "year",
    "page",
    "line",
    "row",
    "column",
    "index",
    "offset",
    "version",
    "format",
    "currency",
    "unit",
    "in",
];
/// Words that are joined with others: `replyto`, `sharedwith`.
const JOINTS: [&str; 6] = ["to", "with", "share", "shared", "reply", "send"];
/// Tools with one of these in their name run code.
const RUNNERS: [&str; 12] = [
    "run", "exec", "execute", "eval", "shell", "bash", "terminal", "command", "script", "code", "sql",
    "query",
];

impl Meaning {
    pub(super) fn of(key: &str) -> Self {
        let words = words(key);
        let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
        let is_at_end = |wanted: &str| [words.first(), words.last()].contains(&Some(&wanted.to_owned()));
        let is_shared = has(&["share", "shared"]) && has(&["with"]);
        if has(&RECIPIENTS) || is_shared || is_at_end("to") && !has(&LIMITS) {
            return Self::Recipient;
        }
        if has(&ATTACHMENTS) {
            return Self::Attachment;
        }
        // The words before the forms determine the meaning; `email` alone is both.
        let end = words.iter().rposition(|word| !FORMS.contains(&word.as_str())).unwrap_or(0);
        let owner = words.get(end).map_or("", String::as_str);
        if PLACES.contains(&owner) {
            return Self::Place;
        }
        if PEOPLE.contains(&owner) {
            return Self::Person;
        }
        let rank = |list: &[&str], word: &str| list.iter().position(|known| *known == word);
        match words.as_slice() {
            [word] => rank(&CODE, word).map(Self::Code),
            [kind, word] if CODE_KINDS.contains(&kind.as_str()) => rank(&CODE, word).map(Self::Code),
            _ => None,
        }
        .or_else(|| rank(&TEXTS, words.last()?).map(Self::Text))
        .unwrap_or(Self::Other)
    }

    /// Whether the value names a person or a place.
    pub(super) fn is_named(self) -> bool {
        self <= Self::Person
    }

    /// Whether it is a destination.
    pub(super) fn is_addressed(self) -> bool {
        self <= Self::Place
    }
}

/// Whether a key is the form of a name: `id`, `emailAddress`.
pub(super) fn is_form_of_name(key: &str) -> bool {
    words(key).last().is_some_and(|word| FORMS.contains(&word.as_str()))
}

/// Whether a tool of this name runs code.
pub(super) fn is_runner(tool: &str) -> bool {
    words(tool).iter().any(|word| RUNNERS.contains(&word.as_str()))
}

/// A key without case and punctuation.
pub(super) fn plain(key: &str) -> String {
    let plain: String = key.chars().filter(char::is_ascii_alphanumeric).collect();
    plain.to_ascii_lowercase()
}

/// The words of a key in lower case; known ones in the singular.
fn words(key: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for c in key.chars() {
        let starts = c.is_ascii_uppercase() && !before.is_ascii_uppercase();
        if starts || !c.is_ascii_alphanumeric() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_ascii_alphanumeric()) {
            word.push(c.to_ascii_lowercase());
        }
        before = c;
    }
    words.into_iter().filter(|word| !word.is_empty()).flat_map(separated).collect()
}

/// Splits a word into known words; leaves any other unchanged.
fn separated(word: String) -> Vec<String> {
    fn split(rest: &str, most: usize) -> Option<Vec<String>> {
        if let Some(known) = known(rest) {
            return Some(vec![known]);
        }
        // Longest first: `bccemails` has no `b` before its `cc`.
        (2..rest.len()).rev().filter(|_| most > 0).find_map(|length| {
            let (start, end) = (known(rest.get(..length)?)?, rest.get(length..)?);
            let mut words = split(end, most - 1)?;
            words.insert(0, start);
            Some(words)
        })
    }
    // No key of this kind is longer.
    let parts = if word.len() <= 32 { split(&word, 2) } else { None };
    parts.unwrap_or_else(|| vec![word])
}

/// The singular of a known word.
fn known(word: &str) -> Option<String> {
    let lists: [&[&str]; 9] =
        [&RECIPIENTS, &PLACES, &PEOPLE, &ATTACHMENTS, &CODE, &TEXTS, &FORMS, &LIMITS, &JOINTS];
    let is_known = |word: &&str| lists.iter().any(|list| list.contains(word));
    let singular = [Some(word), word.strip_suffix('s'), word.strip_suffix("es")];
    singular.into_iter().flatten().find(is_known).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_by_its_words() {
        use Meaning::{Attachment, Other, Person, Place, Recipient};
        for (keys, expected) in [
            (
                "to To cc bcc bcc_emails toEmails to_emails recipient_list recipientIDs forward_to sendTo replyto \
                 reply_to torecipients toaddresses bccaddresses ccList to-address email_to shared_with sharewith \
                 BCC_EMAILS message.to",
                Recipient,
            ),
            ("channel channels channelid channel_name chat_id conversationId slack_channel rooms", Place),
            ("user users user_ids username emailaddress email phone_number assignee teams userEmail", Person),
            ("attachments attachment_ids attachedFiles", Attachment),
            (
                "total tomorrow to_date up_to_page in_reply_to channel_type user_agent from address name id",
                Other,
            ),
            ("reply_to_message_id country_code zip_code content_type x date_to", Other),
        ] {
            for key in keys.split_whitespace() {
                assert_eq!(Meaning::of(key), expected, "{key}");
            }
        }
        assert_eq!(Meaning::of("shell_command"), Meaning::Code(0));
        assert!(Meaning::of("command") < Meaning::of("sql") && Meaning::of("sql") < Meaning::of("body"));
        assert!(Meaning::of("textBody") < Meaning::of("html") && Meaning::of("html") < Meaning::of("x_note"));
        assert!(is_runner("run_shell") && is_runner("executeSQL") && !is_runner("send_email"));
    }
}
