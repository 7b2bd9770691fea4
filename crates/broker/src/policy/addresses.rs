//! The mail addresses in a value, for conditions. Fails closed: mail programs disagree on how to read an unusual address, so text
//! that one of them could read as another address is unclear, and an unclear address is in no domain.

use std::collections::BTreeSet;

use cel::Value;
use cel::objects::Key;
use serde_json::Value as Json;

/// The addresses in a value, in lower case, and the texts that may be or hide an address.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Addresses {
    pub clear: BTreeSet<String>,
    pub unclear: BTreeSet<String>,
    /// Whether a recipient key has an address. An address in a subject or a body does not count.
    has_recipient: bool,
}

impl Addresses {
    pub fn in_json(json: &Json) -> Self {
        cel::to_value(json)
            .map_or_else(|error| Self::unreadable(&error.to_string()), |value| Self::new(&value))
    }

    /// A map is read by its keys. A text or a list is taken as recipients, because the condition selected it.
    pub(super) fn new(value: &Value) -> Self {
        let mut found = Self::default();
        found.collect(value, if matches!(value, Value::Map(_)) { Role::Text } else { Role::Recipients });
        found
    }

    /// Whether there is an address, and all are in exactly this domain, not in a subdomain. `domain` is in lower case.
    pub(super) fn all_in_domain(&self, domain: &str) -> bool {
        let is_inside = |address: &String| address.split_once('@').is_some_and(|(_, host)| host == domain);
        self.unclear.is_empty() && self.has_recipient && self.clear.iter().all(is_inside)
    }

    fn unreadable(reason: &str) -> Self {
        Self { unclear: BTreeSet::from([reason.to_owned()]), ..Self::default() }
    }

    /// Returns whether anything was found.
    fn collect(&mut self, value: &Value, role: Role) -> bool {
        match value {
            Value::String(text) => self.collect_text(text, role),
            Value::List(items) => items.iter().fold(false, |found, item| self.collect(item, role) | found),
            Value::Map(map) if role == Role::Recipients => {
                if !map.map.iter().fold(false, |found, (key, value)| self.collect_member(key, value) | found)
                {
                    self.unclear.insert("a recipient without an address".to_owned());
                }
                true
            }
            Value::Map(map) => {
                let mut found = false;
                for (key, value) in map.map.iter() {
                    let inner = if let Key::String(key) = key {
                        found |= self.collect_text(key, Role::Text);
                        Role::of_key(key, role)
                    } else {
                        Role::Text
                    };
                    found |= self.collect(value, inner);
                }
                found
            }
            Value::Null => false,
            other if role == Role::Recipients => self.unclear.insert(format!("{other:?}")),
            _ => false,
        }
    }

    /// A member of an object that stands for a recipient. Returns whether it is an address; a member that may select another
    /// recipient, such as an id or a group, is unclear.
    fn collect_member(&mut self, key: &Key, value: &Value) -> bool {
        let Key::String(key) = key else {
            self.unclear.insert("a recipient without an address".to_owned());
            return false;
        };
        if has_at(key) {
            self.collect(value, Role::Text);
            return self.collect_text(key, Role::Recipients);
        }
        if Role::of_key(key, Role::Recipients) == Role::Recipients {
            return self.collect(value, Role::Recipients);
        }
        self.collect(value, Role::Text);
        if *value != Value::Null && !is_label(key) {
            self.unclear.insert(format!("a recipient's `{key}`"));
        }
        false
    }

    fn collect_text(&mut self, text: &str, role: Role) -> bool {
        // Text may be JSON that the server reads. The text itself is read too, because of keys that occur twice.
        if text.trim_start().starts_with(['{', '[', '"'])
            && let Ok(json) = serde_json::from_str::<Json>(text)
            && let Ok(value) = cel::to_value(&json)
        {
            let inside = self.collect(&value, role);
            return self.scan(text) | inside;
        }
        let found = self.scan(text);
        match role {
            Role::Text => found,
            Role::Recipients => {
                self.has_recipient |= found;
                self.check_recipients(text) | found
            }
        }
    }

    /// Finds each fragment with an `@`, plain or encoded.
    fn scan(&mut self, text: &str) -> bool {
        const DOTS: [char; 4] = ['.', '。', '．', '｡'];
        let (mut found, mut ends_with_dot) = (false, false);
        for fragment in text.split(is_delimiter).filter(|fragment| !fragment.is_empty()) {
            // `a@example.com .other.example` and `a@example.com. other.example` are one address each: space and comments may
            // stand around a dot.
            let continues = found && fragment.starts_with(DOTS) || ends_with_dot;
            ends_with_dot = false;
            if has_at(fragment) || continues {
                found = true;
                ends_with_dot = fragment.ends_with(DOTS);
                match clear_address(fragment).filter(|_| !continues) {
                    Some(address) => self.clear.insert(address),
                    None => self.unclear.insert(fragment.to_owned()),
                };
            }
        }
        found
    }

    /// Each recipient must be an address alone, or a name with an address in angle brackets.
    fn check_recipients(&mut self, text: &str) -> bool {
        let unclear = recipients(text).into_iter().filter(|one| !is_plain_recipient(one));
        unclear.fold(false, |_, one| {
            self.unclear.insert(one.trim().to_owned());
            true
        })
    }
}

/// What a text is, by its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Every part must be an address: a name without one may be resolved to any address.
    Recipients,
    Text,
}

impl Role {
    fn of_key(key: &str, parent: Self) -> Self {
        let words = words(key);
        let is_one =
            |word: &String| RECIPIENT_WORDS.contains(&word.trim_end_matches(|c: char| c.is_ascii_digit()));
        if words.iter().any(is_one) || RECIPIENT_KEYS.contains(&words.concat().as_str()) {
            return Self::Recipients;
        }
        match words.last().map(String::as_str) {
            Some("address" | "addresses") => parent,
            _ => Self::Text,
        }
    }
}

/// A key with one of these words names recipients: `to`, `reply_to`, `BccAddresses`, `emails_to`.
const RECIPIENT_WORDS: [&str; 20] = [
    "to",
    "cc",
    "bcc",
    "rcpt",
    "recipient",
    "recipients",
    "attendee",
    "attendees",
    "invitee",
    "invitees",
    "participant",
    "participants",
    "guest",
    "guests",
    "email",
    "emails",
    "mail",
    "mails",
    "mailto",
    "addressee",
];
/// The same for keys in one word.
const RECIPIENT_KEYS: [&str; 11] = [
    "toaddress",
    "toaddresses",
    "ccaddresses",
    "bccaddresses",
    "torecipients",
    "ccrecipients",
    "bccrecipients",
    "emailaddress",
    "emailaddresses",
    "toemail",
    "sendto",
];

/// The words of a key, in lower case: `replyTo` and `reply_to` have two.
fn words(key: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in key.chars() {
        let starts = !c.is_alphanumeric() || c.is_uppercase() && was_lower;
        if starts && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase() || c.is_ascii_digit();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether a member of a recipient describes it and cannot select another one.
fn is_label(key: &str) -> bool {
    matches!(
        words(key).concat().as_str(),
        "name" | "displayname" | "fullname" | "firstname" | "lastname" | "label" | "type" | "kind"
    )
}

/// Whether this is a domain as it is compared: ASCII, in lower case, without a dot at its end.
pub(super) fn is_domain(text: &str) -> bool {
    let is_label = |label: &str| {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !label.is_empty() && label.chars().all(plain) && !label.starts_with('-') && !label.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

fn is_delimiter(c: char) -> bool {
    c.is_whitespace() || c.is_control() || ",;<>\"()[]{}".contains(c)
}

/// The address in lower case, if every mail program reads this fragment as the same address.
fn clear_address(fragment: &str) -> Option<String> {
    let lower = fragment.trim_matches('\'').to_ascii_lowercase();
    let text = lower.strip_prefix("mailto:").unwrap_or(&lower);
    let text = text.strip_suffix('.').unwrap_or(text);
    let (local, domain) = text.split_once('@')?;
    // Not `%`, `!` and `:`, which some servers read as a route to another host.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._+-'=~".contains(c);
    let is_clear = !local.is_empty() && local.chars().all(is_plain) && is_domain(domain);
    is_clear.then(|| text.to_owned())
}

/// Whether it contains an `@`, or a form that another program may decode to one.
fn has_at(fragment: &str) -> bool {
    if fragment.contains(['@', '＠', '﹫']) {
        return true;
    }
    if !fragment.contains(['%', '\\', '&', '=']) {
        return false;
    }
    let lower = fragment.to_ascii_lowercase();
    let decoded = without_repeated_encoding(&lower);
    let is_entity = |after: &str| {
        let decimal = after.trim_start_matches('0');
        let hex = after.strip_prefix('x').map(|hex| hex.trim_start_matches('0'));
        let is = |digits: &str, code: &str| {
            digits.strip_prefix(code).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_hexdigit()))
        };
        is(decimal, "64") || hex.is_some_and(|hex| is(hex, "40"))
    };
    ["%40", "\\u0040", "\\x40", "&commat"].iter().any(|code| decoded.contains(code))
        || lower.split("&#").skip(1).any(is_entity)
        || lower.contains("=?")
}

/// `%2540` and `%252540` as `%40`, which they are to a program that decodes repeatedly. One pass.
fn without_repeated_encoding(text: &str) -> String {
    let mut pieces = text.split('%');
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        out.push('%');
        let mut rest = piece;
        while let Some(after) = rest.strip_prefix("25") {
            rest = after;
        }
        out.push_str(rest);
    }
    out
}

/// The recipients of a list in a text. A separator between double quotes belongs to a name.
fn recipients(text: &str) -> Vec<&str> {
    let is_balanced = text.matches('"').count().is_multiple_of(2);
    let mut is_quoted = false;
    let parts = text.split(|c: char| {
        is_quoted ^= c == '"' && is_balanced;
        !is_quoted && matches!(c, ',' | ';' | '\n' | '\r')
    });
    parts.filter(|part| !part.trim().is_empty()).collect()
}

/// `address`, `<address>` or `name <address>`.
fn is_plain_recipient(recipient: &str) -> bool {
    if recipient.matches('<').count() > 1 || recipient.trim().contains(char::is_control) {
        return false;
    }
    let Some(last) = recipient.split(is_delimiter).rfind(|fragment| has_at(fragment)) else { return false };
    let Some((before, after)) = recipient.rsplit_once(last) else { return false };
    let only = |text: &str, allowed: &str| text.chars().all(|c| c.is_whitespace() || allowed.contains(c));
    only(after, ">\"')]}") && (only(before, "<\"'([{") || before.trim_end().ends_with('<'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn is_inside(args: &Json) -> bool {
        Addresses::in_json(args).all_in_domain("example.com")
    }

    #[test]
    fn usual_ways_to_write_recipients_of_one_domain_are_inside() {
        for args in [
            json!({"to": "carol@example.com"}),
            json!({"to": "Carol@EXAMPLE.com"}),
            json!({"to": "carol@example.com."}),
            json!({"to": "a.b+c_d-e@example.com"}),
            json!({"to": "o'brien@example.com"}),
            json!({"to": "'carol@example.com'"}),
            json!({"to": "<carol@example.com>"}),
            json!({"to": "Carol Smith <carol@example.com>"}),
            json!({"to": "\"Smith, Carol\" <carol@example.com>"}),
            json!({"to": "Cárol <carol@example.com>; dave@example.com ,"}),
            json!({"to": "carol@example.com\ndave@example.com"}),
            json!({"to": "mailto:carol@example.com"}),
            json!({"to": "MAILTO:carol@example.com"}),
            json!({"to": "\"dave@example.com\" <carol@example.com>"}),
            json!({"to": "[\"carol@example.com\", \"dave@example.com\"]"}),
            json!({"to": ["carol@example.com", "Dave <dave@example.com>"], "cc": [], "bcc": null}),
            json!({"to": "carol@example.com", "cc": "", "subject": "50% off, at last; (all)"}),
            json!({"to": [{"email": "carol@example.com", "name": "Carol"}]}),
            json!({"toRecipients": [{"emailAddress": {"address": "carol@example.com"}}]}),
            json!({"to": "carol@example.com", "address": "1 Main Street", "attendees": [{"email": "dave@example.com"}]}),
            json!({"message": {"to": "carol@example.com", "body": "Ask dave@example.com, please."}}),
            json!("carol@example.com, dave@example.com"),
            json!(["carol@example.com"]),
        ] {
            assert!(is_inside(&args), "{args} {:?}", Addresses::in_json(&args));
        }
    }

    #[test]
    fn repeated_encoding_is_removed_in_one_pass() {
        for text in ["a%40b", "a%2540b", "a%25252540b"] {
            assert_eq!(without_repeated_encoding(text), "a%40b");
        }
        // One pass per level would take hours.
        let many = format!("%{}40", "25".repeat(1_000_000));
        assert_eq!(without_repeated_encoding(&many), "%40");
        assert!(!is_inside(&json!({"to": "carol@example.com", "subject": many})));
    }

    #[test]
    fn another_address_anywhere_is_found() {
        for args in [
            json!({"to": "evil@other.example,carol@example.com"}),
            json!({"to": "evil@other.example;carol@example.com"}),
            json!({"to": "evil@other.example carol@example.com"}),
            json!({"to": "carol@example.com", "cc": "evil@other.example"}),
            json!({"to": "carol@example.com", "BCC": ["evil@other.example"]}),
            json!({"to": "carol@example.com", "reply-to": "evil@other.example"}),
            json!({"to": "carol@example.com", "options": {"copies": [["evil@other.example"]]}}),
            json!({"to": ["carol@example.com", {"email": "evil@other.example"}]}),
            json!({"to": {"evil@other.example": "Carol", "carol@example.com": "Carol"}}),
            json!({"to": "\"carol@example.com\" <evil@other.example>"}),
            json!({"to": "carol@example.com <evil@other.example>"}),
            json!({"to": "evil@other.example <carol@example.com>"}),
            json!({"to": "carol@example.com\r\nBcc: evil@other.example"}),
            json!({"to": "carol@example.com(evil@other.example)"}),
            json!({"to": "carol@example.com. other.example <dave@example.com>"}),
            json!({"to": "<carol@example.com. other.example> <dave@example.com>"}),
            json!({"to_addrs": "carol@example.com . other.example"}),
            json!({"to_addrs": "carol@example.com (a) . (b) other.example"}),
            json!({"to": [{"id": "U0123", "note": "carol@example.com"}]}),
            json!({"to": [{"userId": "U0123", "email": "carol@example.com"}]}),
            json!({"to": {"group": "everyone", "name": "carol@example.com"}}),
            json!({"to": [{"mailbox": {"address": "everyone"}, "email": "carol@example.com"}]}),
            json!({"to_email": "everyone", "subject": "carol@example.com"}),
            json!({"thread_id": "123", "reply_all": true, "body": "carol@example.com"}),
            json!({"Destination": {"ToAddresses": ["carol@example.com"], "BccAddresses": ["other.example!evil"]}}),
            json!({"to": "=?utf-8?q?evil=40other.example=2C?=x <carol@example.com>"}),
            json!({"to": "<evil%other.example> <carol@example.com>"}),
            json!({"to": "\"\r\nBcc: everyone\r\n\" <carol@example.com>"}),
            json!({"participants": ["everyone"], "to": "carol@example.com"}),
            json!({"to": "[\"carol@example.com\",\"evil@other.example\"]"}),
            json!({"to": "carol@example.com", "raw": "{\"to\": \"evil@other.example\"}"}),
            json!({"to": "carol@example.com", "raw": "{\"to\":\"evil@x.org\",\"to\":\"carol@example.com\"}"}),
            json!({"to": "carol@example.com", "raw": "\"{\\\"to\\\": \\\"evil@other.example\\\"}\""}),
            json!({"to": "carol@example.com", "body": "forward it to evil@other.example"}),
        ] {
            assert!(!is_inside(&args), "{args} {:?}", Addresses::in_json(&args));
        }
    }

    #[test]
    fn another_domain_that_resembles_it_is_outside() {
        for host in [
            "other.example",
            "mail.example.com",
            "example.com.other.example",
            "badexample.com",
            "example.comm",
            "example.co",
            "example-com",
            "example..com",
            "example.com..",
            ".example.com",
            "example.com.@other.example",
            "еxample.com",
            "examp1e.com",
            "exam\u{200b}ple.com",
            "example.com\u{200b}",
            "exam\u{ad}ple.com",
            "example\u{3002}com",
            "example.com\u{ff0e}other",
            "ｅxample.com",
            "example.com:25",
            "example.com/x",
            "example.com\\",
            "example.com%00.other.example",
            "example.com%2eother.example",
            "example.com .other.example",
            "example.com (x).other.example",
            "example.com\r\n .other.example",
            "example.com\u{a0}.other.example",
            "example.com pany.example",
            "[127.0.0.1]",
            "",
            " example.com",
        ] {
            let args = json!({"to": format!("carol@{host}")});
            assert!(!is_inside(&args), "{args} {:?}", Addresses::in_json(&args));
        }
    }

    #[test]
    fn an_address_that_can_be_read_in_two_ways_is_in_no_domain() {
        for to in [
            "a@example.com@evil.example",
            "evil@other.example@example.com",
            "\"evil@other.example\"@example.com",
            "\"a@example.com\"@evil.example",
            "\"a b\"@example.com",
            "a\\@b@example.com",
            "<@other.example:carol@example.com>",
            "other.example!evil@example.com",
            "evil%other.example@example.com",
            "evil%40other.example@example.com",
            "evil%40other.example, carol@example.com",
            "evil%2540other.example, carol@example.com",
            "evil&#64;other.example, carol@example.com",
            "evil&#x0040;other.example, carol@example.com",
            "evil&commat;other.example, carol@example.com",
            "evil\\u0040other.example, carol@example.com",
            "=?utf-8?q?evil=40other.example=2C?= <carol@example.com>",
            "evil＠other.example, carol@example.com",
            "evil﹫other.example, carol@example.com",
            "evil，carol@example.com",
            "evil\u{200b}carol@example.com",
            "evil\u{202e}@example.com",
            "cárol@example.com",
            "mailto:carol@example.com?cc=evil@other.example",
            "mailto:carol@example.com?bcc=evil%40other.example",
            "mailto:evil%40other.example,carol@example.com",
            "carol(evil)@example.com",
            "evil @other.example, carol@example.com",
            "evil@ other.example, carol@example.com",
            "@example.com",
            "carol@",
        ] {
            for args in [json!({"to": to}), json!({"to": [to]}), json!({"to": {"address": to}}), json!(to)] {
                assert!(!is_inside(&args), "{args} {:?}", Addresses::in_json(&args));
            }
        }
    }

    #[test]
    fn a_recipient_without_an_address_is_in_no_domain() {
        for args in [
            json!({}),
            json!({"to": ""}),
            json!({"subject": "x"}),
            json!({"to": "everyone"}),
            json!({"to": "everyone, carol@example.com"}),
            json!({"to": "everyone carol@example.com"}),
            json!({"to": "Smith, Carol <carol@example.com>"}),
            json!({"to": "carol@example.com", "bcc": "everyone"}),
            json!({"to": ["carol@example.com", "U0123"]}),
            json!({"to": ["carol@example.com", 123]}),
            json!({"to": "carol@example.com", "cc": {"id": "U0123"}}),
            json!({"to": "carol@example.com", "cc": [{"email": "everyone"}]}),
            json!({"to": [{"email": "carol@example.com pany.example"}]}),
            json!({"toRecipients": [{"emailAddress": {"address": "everyone carol@example.com"}}]}),
            json!({"to": "carol@example.com", "raw": "{\"bcc\": \"everyone\"}"}),
            json!({"to": "carol@example.com\nBcc: everyone"}),
            json!({"to": "\"everyone, carol@example.com"}),
        ] {
            assert!(!is_inside(&args), "{args} {:?}", Addresses::in_json(&args));
        }
    }

    #[test]
    fn addresses_are_listed_once_and_in_lower_case() {
        let found = Addresses::in_json(&json!({
            "to": "Carol <Carol@Example.com>, dave@other.example.",
            "cc": ["carol@example.com", "everyone"],
        }));
        assert_eq!(found.clear.iter().collect::<Vec<_>>(), ["carol@example.com", "dave@other.example"]);
        assert_eq!(found.unclear.iter().collect::<Vec<_>>(), ["everyone"]);
    }

    proptest::proptest! {
        #[test]
        fn no_text_before_an_address_hides_another(before in ".{0,12}", after in ".{0,12}") {
            for to in [
                format!("{before}evil@other.example{after}, carol@example.com"),
                format!("carol@example.com{before}@other.example{after}"),
            ] {
                let is_inside = is_inside(&json!({ "to": to }));
                proptest::prop_assert!(!is_inside, "{to:?}");
            }
        }
    }
}
