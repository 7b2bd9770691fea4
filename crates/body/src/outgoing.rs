//! Messages to other people: rows that the owner of the channel delivers.

use std::fmt;
use std::str::FromStr;

use embody_store::outgoing::{NewOutgoing, Outgoing};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Body, Caller, Error, Result, Tool, excerpt};

const MAX_MESSAGE_BYTES: usize = 64 * 1024;
pub(crate) const TELEGRAM: &str = "telegram";

/// The arguments of `send_message`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SendMessage {
    /// Such as telegram.
    pub channel: String,
    /// The recipient; on telegram a chat's number, or CHAT/TOPIC.
    pub to: String,
    /// The message.
    #[schemars(description = "")]
    pub text: String,
}

/// A message that is on its way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct QueuedMessage {
    /// Its id.
    pub id: String,
    /// The channel that it leaves by.
    pub channel: String,
    /// `waiting`: it is kept, and leaves as soon as the channel takes it.
    pub state: String,
}

impl Body {
    pub async fn send_message(&self, caller: &Caller, args: SendMessage) -> Result<QueuedMessage> {
        self.check_message(&args)?;
        let new = NewOutgoing {
            scope: caller.scope.clone(),
            channel: args.channel,
            to: args.to,
            text: args.text,
            kind: "message".to_owned(),
            urgency: "normal".to_owned(),
            about: None,
        };
        let Outgoing { id, channel, .. } = self.store.outgoing().enqueue(new).await?;
        Ok(QueuedMessage { id, channel, state: "waiting".to_owned() })
    }

    pub(crate) fn check_message(&self, args: &SendMessage) -> Result<()> {
        if !self.config.channels.contains(&args.channel) {
            let channels = self.config.channels.clone();
            return Err(Error::Channel { channel: excerpt(&args.channel), channels });
        }
        check_recipient(&args.channel, &args.to)?;
        check_text(Tool::SendMessage, &args.text)
    }
}

/// Rules match a recipient literally, so each has one spelling.
fn check_recipient(channel: &str, to: &str) -> Result<()> {
    let problem =
        if to.trim().is_empty() || to.trim() != to || to.len() > 256 || to.chars().any(char::is_control) {
            "name one recipient, on one line, without spaces around it"
        } else if channel == TELEGRAM && to.parse::<Chat>().is_err() {
            "name a chat by its number, as in `123456`, or a topic in it, as in `-100123/7`"
        } else {
            return Ok(());
        };
    Err(Error::arguments(Tool::SendMessage, format!("`to` is `{}`; {problem}", excerpt(to))))
}

pub(crate) fn check_text(tool: Tool, text: &str) -> Result<()> {
    if text.trim().is_empty() {
        return Err(Error::arguments(tool, "`text` is empty"));
    }
    if text.len() > MAX_MESSAGE_BYTES {
        return Err(Error::arguments(
            tool,
            format!("`text` has {} bytes; {MAX_MESSAGE_BYTES} are allowed", text.len()),
        ));
    }
    Ok(())
}

/// A chat of Telegram as a recipient: `CHAT`, or `CHAT/TOPIC` for a topic in it. Rules match this name literally, so any other
/// spelling is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chat {
    chat: i64,
    topic: Option<i64>,
}

impl Chat {
    /// The chat of a conversation: `/new` starts another one in the same chat, `CHAT#NUMBER`.
    pub(crate) fn of(conversation: &str) -> Option<Self> {
        let (chat, _) = conversation.split_once('#').unwrap_or((conversation, ""));
        chat.parse().ok()
    }

    /// Groups have negative numbers.
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

    fn from_str(text: &str) -> std::result::Result<Self, InvalidChat> {
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
