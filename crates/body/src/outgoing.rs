//! What is to be said, to the user or to others: rows that whoever has the channel delivers.

use embody_store::Scope;
use embody_store::outgoing::{NewOutgoing, Outgoing};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::chat::Chat;
use crate::{Body, Caller, Error, Result, Tool};

const MAX_MESSAGE_BYTES: usize = 64 * 1024;
/// Conversations that are looked through for one with the user alone, the latest first.
const MAX_THREADS: u32 = 200;
/// Where everybody can be told something: it waits there until they look.
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
    /// Queues a message to somebody else.
    pub async fn send_message(&self, caller: &Caller, args: SendMessage) -> Result<QueuedMessage> {
        if !self.config.channels.contains(&args.channel) {
            let channels = self.config.channels.clone();
            return Err(Error::Channel { channel: excerpt(&args.channel), channels });
        }
        check_recipient(&args.channel, &args.to)?;
        check(Tool::SendMessage, &args.text)?;
        let urgency = Urgency::Normal.name().to_owned();
        let new = NewOutgoing {
            scope: caller.scope.clone(),
            channel: args.channel,
            to: args.to,
            text: args.text,
            kind: "message".to_owned(),
            urgency,
            about: None,
        };
        Ok(queued(&self.store.outgoing().enqueue(new).await?))
    }

    /// Queues a notice to the user, for where they were last heard.
    pub async fn notify_user(&self, caller: &Caller, args: NotifyUser) -> Result<QueuedMessage> {
        check(Tool::NotifyUser, &args.text)?;
        let (channel, to) = self.notification_target(&caller.scope).await?;
        let new = NewOutgoing {
            scope: caller.scope.clone(),
            channel,
            to,
            text: args.text,
            kind: "notice".to_owned(),
            urgency: args.urgency.unwrap_or_default().name().to_owned(),
            about: None,
        };
        Ok(queued(&self.store.outgoing().enqueue(new).await?))
    }

    /// Where the user alone will see it: where they were last heard, unless others listen there.
    async fn notification_target(&self, scope: &Scope) -> Result<(String, String)> {
        let web = (WEB.to_owned(), scope.user().to_owned());
        let Some(heard) = self.store.incoming().last_seen_channel(scope.user(), scope.agent()).await? else {
            return Ok(web);
        };
        if !self.config.channels.contains(&heard.channel) {
            return Ok(web);
        }
        if let Some(to) = private(&heard.channel, &heard.conversation) {
            return Ok((heard.channel, to));
        }
        let threads = self.store.threads().list(scope, MAX_THREADS).await?;
        let alone = threads.into_iter().find_map(|thread| {
            let conversation = thread.external.filter(|_| thread.channel == heard.channel)?;
            private(&heard.channel, &conversation)
        });
        Ok(alone.map_or(web, |to| (heard.channel, to)))
    }
}

/// Who is reached in a conversation, if the user is alone with the agent there.
fn private(channel: &str, conversation: &str) -> Option<String> {
    if channel == TELEGRAM {
        return Chat::of(conversation).filter(|chat| chat.is_private()).map(|chat| chat.to_string());
    }
    Some(conversation.to_owned())
}

/// Rules match a recipient literally, so nobody has two names here.
fn check_recipient(channel: &str, to: &str) -> Result<()> {
    let problem =
        if to.trim().is_empty() || to.trim() != to || to.len() > 256 || to.chars().any(char::is_control) {
            "name one recipient, on one line, without blanks around it"
        } else if channel == TELEGRAM && to.parse::<Chat>().is_err() {
            "name a chat by its number, as in `123456`, or a topic in it, as in `-100123/7`"
        } else {
            return Ok(());
        };
    Err(Error::arguments(Tool::SendMessage, format!("`to` is `{}`; {problem}", excerpt(to))))
}

fn check(tool: Tool, text: &str) -> Result<()> {
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

fn queued(outgoing: &Outgoing) -> QueuedMessage {
    QueuedMessage { id: outgoing.id.clone(), channel: outgoing.channel.clone(), state: "waiting".to_owned() }
}

fn excerpt(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(64).collect()
}
