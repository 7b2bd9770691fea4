//! A chat of Telegram as a recipient's name: `CHAT`, or `CHAT/TOPIC` for a topic in it. One chat has one name, which is what
//! rules are matched against; any other way of writing it is refused.

use std::fmt;
use std::str::FromStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chat {
    chat: i64,
    topic: Option<i64>,
}

impl Chat {
    /// The chat of a conversation as the channel names it: `/new` begins others of the same chat, `CHAT#NUMBER`.
    pub(crate) fn of(conversation: &str) -> Option<Self> {
        let (chat, _) = conversation.split_once('#').unwrap_or((conversation, ""));
        chat.parse().ok()
    }

    /// Whether the user is alone with the agent there. Groups have negative numbers.
    pub(crate) fn is_private(self) -> bool {
        self.chat > 0
    }
}

impl fmt::Display for Chat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.topic {
            Some(topic) => write!(f, "{}/{topic}", self.chat),
            None => write!(f, "{}", self.chat),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InvalidChat;

impl FromStr for Chat {
    type Err = InvalidChat;

    fn from_str(text: &str) -> Result<Self, InvalidChat> {
        let (chat, topic) = text.split_once('/').map_or((text, None), |(chat, topic)| (chat, Some(topic)));
        let number = |digits: &str| digits.parse::<i64>().map_err(|_| InvalidChat);
        let read = Self { chat: number(chat)?, topic: topic.map(number).transpose()? };
        if read.to_string() == text { Ok(read) } else { Err(InvalidChat) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chat_has_one_name() {
        for text in ["5", "-100123", "-100123/7"] {
            assert_eq!(text.parse::<Chat>().map(|chat| chat.to_string()).as_deref(), Ok(text));
        }
        for text in
            ["", "+5", "05", "-0", "-05", " 5", "5 ", "5/", "5/+7", "5/07", "5/7/9", "@ann", "5#1", "٥"]
        {
            assert_eq!(text.parse::<Chat>(), Err(InvalidChat), "{text}");
        }
    }

    #[test]
    fn a_conversation_is_of_a_chat() {
        let of = |text: &str| Chat::of(text).map(|chat| (chat.to_string(), chat.is_private()));
        assert_eq!(of("11"), Some(("11".to_owned(), true)));
        assert_eq!(of("11#2"), Some(("11".to_owned(), true)));
        assert_eq!(of("-55/9#2"), Some(("-55/9".to_owned(), false)));
        assert_eq!(of("019a8c6e-1f2b-7c3d-8e4f-5a6b7c8d9e0f"), None);
    }
}
