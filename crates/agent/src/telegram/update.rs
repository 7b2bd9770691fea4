//! Parses one update of Telegram. Each is parsed separately: an update that is malformed or of an unknown kind is
//! skipped and does not block others.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Update {
    Message(Message),
    Edited(Message),
    Pressed(Press),
    /// Not relevant for the bot.
    Other,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Message {
    pub(super) id: i64,
    pub(super) chat_ref: ChatRef,
    pub(super) is_private: bool,
    pub(super) from: Person,
    pub(super) text: String,
    /// Whether it has content besides the text, such as a picture.
    pub(super) has_more: bool,
    pub(super) is_forward: bool,
    pub(super) marks: Vec<Mark>,
    pub(super) answers: Option<RepliedMessage>,
    pub(super) edited_at: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Person {
    pub(super) id: i64,
    #[serde(default)]
    pub(super) is_bot: bool,
    #[serde(default)]
    pub(super) first_name: String,
    pub(super) last_name: Option<String>,
    pub(super) language_code: Option<String>,
}

/// A part of the text that mentions a person or is a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mark {
    /// `@name`.
    Mention(String),
    /// A person without a user name.
    Person(i64),
    /// `/command` or `/command@name`.
    Command(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RepliedMessage {
    pub(super) from: Option<i64>,
    pub(super) text: Option<String>,
    pub(super) is_forward: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Press {
    pub(super) id: String,
    pub(super) from: i64,
    pub(super) data: String,
    /// The message of the button, and its text, unless it is too old.
    pub(super) message: Option<(ChatRef, i64, String)>,
}

/// Parses an update and returns its id, if it has one.
pub(super) fn read(update: &Value) -> (Option<i64>, Update) {
    let id = update.get("update_id").and_then(Value::as_i64);
    let message = |key: &str| RawMessage::deserialize(update.get(key)?).ok()?.message();
    let read = message("message")
        .map(Update::Message)
        .or_else(|| message("edited_message").map(Update::Edited))
        .or_else(|| RawPress::deserialize(update.get("callback_query")?).ok()?.press().map(Update::Pressed));
    (id, read.unwrap_or(Update::Other))
}

#[derive(Deserialize)]
struct RawMessage {
    message_id: i64,
    chat: RawChat,
    from: Option<Person>,
    text: Option<String>,
    caption: Option<String>,
    #[serde(default)]
    entities: Vec<Value>,
    #[serde(default)]
    caption_entities: Vec<Value>,
    reply_to_message: Option<Value>,
    edit_date: Option<i64>,
    message_thread_id: Option<i64>,
    #[serde(default)]
    is_topic_message: bool,
    #[serde(flatten)]
    rest: serde_json::Map<String, Value>,
}

#[derive(Deserialize)]
struct RawChat {
    id: i64,
    #[serde(rename = "type")]
    kind: Option<String>,
}

#[derive(Deserialize)]
struct RawEntity {
    #[serde(rename = "type")]
    kind: String,
    offset: usize,
    length: usize,
    user: Option<Person>,
}

#[derive(Deserialize)]
struct RawPress {
    id: String,
    from: Person,
    data: Option<String>,
    message: Option<Value>,
}

/// What a message may carry instead of text. Any other message without text is a service message.
const ATTACHMENTS: [&str; 13] = [
    "animation",
    "audio",
    "contact",
    "dice",
    "document",
    "location",
    "photo",
    "poll",
    "sticker",
    "venue",
    "video",
    "video_note",
    "voice",
];

/// The members that mark a forwarded message: the first is current, the others are older.
const FORWARDED: [&str; 5] =
    ["forward_origin", "forward_from", "forward_from_chat", "forward_sender_name", "forward_date"];

impl RawMessage {
    fn message(self) -> Option<Message> {
        let is_private = match self.chat.kind.as_deref() {
            Some("private") => true,
            Some("group" | "supergroup") => false,
            _ => return None,
        };
        let has_more = ATTACHMENTS.iter().any(|kind| self.rest.contains_key(*kind));
        let is_forward = FORWARDED.iter().any(|key| self.rest.contains_key(*key));
        let (text, entities) = match (self.text, self.caption) {
            (Some(text), _) => (text, self.entities),
            (None, Some(caption)) => (caption, self.caption_entities),
            (None, None) if has_more => (String::new(), Vec::new()),
            (None, None) => return None,
        };
        let units: Vec<u16> = text.encode_utf16().collect();
        let marks = entities.iter().filter_map(|entity| mark(entity, &units)).collect();
        Some(Message {
            id: self.message_id,
            chat_ref: ChatRef {
                chat: self.chat.id,
                topic: self.message_thread_id.filter(|_| self.is_topic_message),
            },
            is_private,
            from: self.from?,
            marks,
            text,
            has_more,
            is_forward,
            answers: self.reply_to_message.as_ref().map(replied_message),
            edited_at: self.edit_date,
        })
    }
}

fn mark(entity: &Value, units: &[u16]) -> Option<Mark> {
    let entity = RawEntity::deserialize(entity).ok()?;
    let end = entity.offset.checked_add(entity.length)?;
    let text = String::from_utf16_lossy(units.get(entity.offset..end)?);
    match entity.kind.as_str() {
        "mention" => Some(Mark::Mention(text)),
        "bot_command" if entity.offset == 0 => Some(Mark::Command(text)),
        "text_mention" => entity.user.map(|user| Mark::Person(user.id)),
        _ => None,
    }
}

fn replied_message(message: &Value) -> RepliedMessage {
    let text = |key: &str| message.get(key).and_then(Value::as_str).map(str::to_owned);
    RepliedMessage {
        from: message.pointer("/from/id").and_then(Value::as_i64),
        text: text("text").or_else(|| text("caption")),
        is_forward: FORWARDED.iter().any(|key| message.get(key).is_some()),
    }
}

impl RawPress {
    fn press(self) -> Option<Press> {
        let message = self.message.as_ref().and_then(|message| {
            let chat = message.pointer("/chat/id")?.as_i64()?;
            let text = message.get("text")?.as_str()?.to_owned();
            Some((ChatRef { chat, topic: None }, message.get("message_id")?.as_i64()?, text))
        });
        Some(Press { id: self.id, from: self.from.id, data: self.data?, message })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ChatRef {
    pub(super) chat: i64,
    pub(super) topic: Option<i64>,
}

impl ChatRef {
    /// The private chat with a person; it has the person's id.
    pub(super) fn private(person: i64) -> Self {
        Self { chat: person, topic: None }
    }

    /// Whether more than one person reads the chat. Such chats have negative ids.
    pub(super) fn is_shared(self) -> bool {
        self.chat < 0
    }
}

impl fmt::Display for ChatRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.topic {
            Some(topic) => write!(f, "{}/{topic}", self.chat),
            None => write!(f, "{}", self.chat),
        }
    }
}

/// The text that is not a chat reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a Telegram chat id")]
pub(super) struct InvalidChatRef(String);

impl FromStr for ChatRef {
    type Err = InvalidChatRef;

    fn from_str(text: &str) -> Result<Self, InvalidChatRef> {
        let wrong = || InvalidChatRef(text.chars().take(64).collect());
        let (chat, topic) = text.split_once('/').map_or((text, None), |(chat, topic)| (chat, Some(topic)));
        let chat = chat.parse().map_err(|_| wrong())?;
        let topic = topic.map(str::parse).transpose().map_err(|_| wrong())?;
        Ok(Self { chat, topic })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(extra: Value) -> Value {
        let mut message = json!({
            "message_id": 7, "chat": {"id": 5, "type": "private"}, "from": {"id": 5, "first_name": "Ann"}
        });
        for (key, value) in extra.as_object().unwrap() {
            message[key] = value.clone();
        }
        json!({"update_id": 1, "message": message})
    }

    #[test]
    fn what_nobody_knows_is_passed_over_with_its_number() {
        for update in [
            json!({"update_id": 9, "purchased_paid_media": {"x": 1}}),
            json!({"update_id": 9, "message": {"message_id": "seven"}}),
            json!({"update_id": 9, "message": {"message_id": 7, "chat": {"id": 1, "type": "galaxy"}, "text": "x"}}),
            json!({"update_id": 9, "message": {"message_id": 7, "chat": {"id": 1, "type": "channel"}, "text": "x"}}),
            json!({"update_id": 9, "message": 5}),
            json!({"update_id": 9}),
            json!({"update_id": 9, "callback_query": {"id": "1", "from": {"id": 5}}}),
        ] {
            assert_eq!(read(&update), (Some(9), Update::Other), "{update}");
        }
        assert_eq!(read(&json!("x")), (None, Update::Other));
        // A person joined.
        assert_eq!(read(&message(json!({"new_chat_members": []}))).1, Update::Other);
    }

    #[test]
    fn a_message_is_read_with_what_it_marks() {
        let update = message(json!({
            "text": "👍 @embody_bot and Bob",
            "entities": [
                {"type": "mention", "offset": 3, "length": 11},
                {"type": "text_mention", "offset": 19, "length": 3, "user": {"id": 8, "first_name": "Bob"}},
                {"type": "mention", "offset": 90, "length": 3},
                {"type": "new_kind", "offset": 0, "length": 1},
                {"type": "custom"},
            ],
            "reply_to_message": {"from": {"id": 42}, "text": "before"},
        }));
        let (id, Update::Message(message)) = read(&update) else { panic!("{update}") };
        assert_eq!(
            (id, message.is_private, message.text.as_str()),
            (Some(1), true, "👍 @embody_bot and Bob")
        );
        assert_eq!(message.marks, [Mark::Mention("@embody_bot".to_owned()), Mark::Person(8)]);
        assert_eq!(
            message.answers,
            Some(RepliedMessage { from: Some(42), text: Some("before".to_owned()), is_forward: false })
        );
    }

    #[test]
    fn a_forward_is_told_from_what_somebody_says() {
        for origin in [
            json!({"forward_origin": {"type": "hidden_user", "sender_user_name": "Eve", "date": 1}}),
            json!({"forward_from": {"id": 8, "first_name": "Eve"}}),
            json!({"forward_from_chat": {"id": -8, "type": "channel"}}),
            json!({"forward_sender_name": "Eve"}),
            json!({"forward_date": 1}),
            json!({}),
        ] {
            let mut update = message(origin.clone());
            update["message"]["text"] = "x".into();
            let (_, Update::Message(inbound_message)) = read(&update) else { panic!("{update}") };
            assert_eq!(inbound_message.is_forward, origin != json!({}), "{origin}");
        }
    }

    #[test]
    fn a_picture_is_a_message_with_or_without_words() {
        let (_, Update::Message(bare)) = read(&message(json!({"photo": []}))) else { panic!() };
        assert!(bare.has_more && bare.text.is_empty());
        let (_, Update::Message(inbound_message)) = read(&message(json!({"photo": [], "caption": "look"})))
        else {
            panic!()
        };
        assert_eq!((inbound_message.text.as_str(), inbound_message.has_more), ("look", true));
    }

    #[test]
    fn a_place_is_read_as_it_is_written() {
        for text in ["5", "-100123", "-100123/7"] {
            assert_eq!(text.parse::<ChatRef>().unwrap().to_string(), text);
        }
        for text in ["", "ann", "5/", "/5", "5/x", "5.0"] {
            assert_eq!(text.parse::<ChatRef>(), Err(InvalidChatRef(text.to_owned())));
        }
    }
}
