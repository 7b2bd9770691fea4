//! Messages to the user or to others: rows that the owner of the channel delivers.

use std::fmt;
use std::str::FromStr;

use embody_store::Scope;
use embody_store::outgoing::{NewOutgoing, Outgoing};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Body, Caller, Error, Result, Tool, excerpt};

const MAX_MESSAGE_BYTES: usize = 64 * 1024;
/// How many conversations are searched for a private one, newest first.
const MAX_THREADS: u32 = 200;
/// The channel that reaches every user: a message waits there.
const WEB: &str = "web";
const TELEGRAM: &str = "telegram";

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

/// How soon the user should look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Urgency {
    /// Whenever they like.
    Low,
    /// Today.
    #[default]
    Normal,
    /// Now.
    High,
}

impl Urgency {
    const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Normal => "normal",
            Self::High => "high",
        }
    }
}

/// The arguments of `notify_user`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NotifyUser {
    /// The notice.
    #[schemars(description = "")]
    pub text: String,
    /// low, normal (default) or high.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub urgency: Option<Urgency>,
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
        self.queue(caller, "message", (args.channel, args.to), args.text, Urgency::Normal).await
    }

    pub(crate) fn check_message(&self, args: &SendMessage) -> Result<()> {
        if !self.config.channels.contains(&args.channel) {
            let channels = self.config.channels.clone();
            return Err(Error::Channel { channel: excerpt(&args.channel), channels });
        }
        check_recipient(&args.channel, &args.to)?;
        check_text(Tool::SendMessage, &args.text)
    }

    /// Queues a notice to the user, on the channel that they last used.
    pub async fn notify_user(&self, caller: &Caller, args: NotifyUser) -> Result<QueuedMessage> {
        check_text(Tool::NotifyUser, &args.text)?;
        let target = self.notification_target(&caller.scope).await?;
        self.queue(caller, "notice", target, args.text, args.urgency.unwrap_or_default()).await
    }

    async fn queue(
        &self,
        caller: &Caller,
        kind: &str,
        (channel, to): (String, String),
        text: String,
        urgency: Urgency,
    ) -> Result<QueuedMessage> {
        let new = NewOutgoing {
            scope: caller.scope.clone(),
            channel,
            to,
            text,
            kind: kind.to_owned(),
            urgency: urgency.name().to_owned(),
            about: None,
        };
        let Outgoing { id, channel, .. } = self.store.outgoing().enqueue(new).await?;
        Ok(QueuedMessage { id, channel, state: "waiting".to_owned() })
    }

    /// The conversation that the user last used, unless others read it; else one that only the user reads.
    async fn notification_target(&self, scope: &Scope) -> Result<(String, String)> {
        let web = (WEB.to_owned(), scope.user().to_owned());
        let Some(last) = self.store.incoming().last_seen_channel(scope.user(), scope.agent()).await? else {
            return Ok(web);
        };
        if !self.config.channels.contains(&last.channel) {
            return Ok(web);
        }
        if let Some(to) = private(&last.channel, &last.conversation) {
            return Ok((last.channel, to));
        }
        let threads = self.store.threads().list(scope, MAX_THREADS).await?;
        let recipient = threads.into_iter().find_map(|thread| {
            let conversation = thread.external.filter(|_| thread.channel == last.channel)?;
            private(&last.channel, &conversation)
        });
        Ok(recipient.map_or(web, |to| (last.channel, to)))
    }
}

/// The recipient of a conversation that only the user and the agent read.
fn private(channel: &str, conversation: &str) -> Option<String> {
    if channel == TELEGRAM {
        return Chat::of(conversation).filter(|chat| chat.is_private()).map(|chat| chat.to_string());
    }
    Some(conversation.to_owned())
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
struct Chat {
    chat: i64,
    topic: Option<i64>,
}

impl Chat {
    /// The chat of a conversation: `/new` starts another one in the same chat, `CHAT#NUMBER`.
    fn of(conversation: &str) -> Option<Self> {
        let (chat, _) = conversation.split_once('#').unwrap_or((conversation, ""));
        chat.parse().ok()
    }

    /// Groups have negative numbers.
    fn is_private(self) -> bool {
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
struct InvalidChat;

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
