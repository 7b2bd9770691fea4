//! A chat, or a topic in it. Written `CHAT` or `CHAT/TOPIC`, as in the store.

use std::fmt;
use std::str::FromStr;

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
#[error("`{0}` is not the number of a Telegram chat")]
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
    use super::*;

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
