//! Notices to the user: entries of their own, which the console lists. One goes out as a message too if the user was last active on a
//! channel that reaches them alone.

use embody_store::Scope;
use embody_store::notices::{NewNotice, NoticeOrigin};
use embody_store::outgoing::NewOutgoing;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::outgoing::{Chat, TELEGRAM, check_text};
use crate::{Body, Caller, Result, Tool};

/// How many conversations are searched for a private one, newest first.
const MAX_THREADS: u32 = 200;
/// Where every user finds their notices.
const WEB: &str = "web";

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

/// A notice that is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StoredNotice {
    /// Its id.
    pub id: String,
    /// Where the user sees it first: `web` is the console alone, another channel gets a message too.
    pub channel: String,
    /// `unread`
    pub state: String,
}

impl Body {
    /// Stores a notice to the user, and queues it as a message on the channel that they last used.
    pub async fn notify_user(&self, caller: &Caller, args: NotifyUser) -> Result<StoredNotice> {
        check_text(Tool::NotifyUser, &args.text)?;
        let scope = &caller.scope;
        let origin = self.origin(caller).await?;
        let urgency = args.urgency.unwrap_or_default().name().to_owned();
        let target = self.private_conversation(scope).await?;
        let channel = target.as_ref().map_or(WEB, |(channel, _)| channel).to_owned();
        let message = target.map(|(channel, to)| NewOutgoing {
            scope: scope.clone(),
            channel,
            to,
            text: format!("{}\n\n{}", self.mark(scope, &origin), args.text),
            kind: "notice".to_owned(),
            urgency: urgency.clone(),
            about: None,
        });
        let new = NewNotice { scope: scope.clone(), text: args.text, urgency, origin };
        let id = self.store.notices().add(new, message).await?;
        Ok(StoredNotice { id, channel, state: "unread".to_owned() })
    }

    /// The conversation or run that writes the notice. The runs of a schedule share a thread with the schedule's id.
    async fn origin(&self, caller: &Caller) -> Result<NoticeOrigin> {
        let Caller { scope, channel, thread, .. } = caller;
        let mut origin = NoticeOrigin { channel: channel.clone(), thread: thread.clone(), schedule: None };
        let Some(thread) = thread else { return Ok(origin) };
        let external =
            self.store.threads().get(scope.user(), thread).await?.and_then(|thread| thread.external);
        if let Some(id) = external {
            let schedule = self.store.schedules().get(scope.user(), &id).await?;
            origin.schedule = schedule.map(|schedule| schedule.id);
        }
        Ok(origin)
    }

    /// The first line of a message, which tells a notice from a reply.
    fn mark(&self, scope: &Scope, origin: &NoticeOrigin) -> String {
        let zone = (self.config.zone)(scope).ok().and_then(|name| TimeZone::get(&name).ok());
        let at = Timestamp::from_microsecond((self.config.clock)()).unwrap_or_default();
        let at = at.to_zoned(zone.unwrap_or(TimeZone::UTC)).strftime("%-d %b %H:%M").to_string();
        let writer = if origin.schedule.is_some() { " · scheduled run" } else { "" };
        format!("Notice · {at}{writer}")
    }

    /// Channel and recipient of the conversation that the user last used, unless others read it; else of one that only the user
    /// reads. `None` if the console alone reaches them.
    async fn private_conversation(&self, scope: &Scope) -> Result<Option<(String, String)>> {
        let last = self.store.incoming().last_seen_channel(scope.user(), scope.agent()).await?;
        let Some(last) = last.filter(|last| self.config.channels.contains(&last.channel)) else {
            return Ok(None);
        };
        if let Some(to) = private(&last.channel, &last.conversation) {
            return Ok(Some((last.channel, to)));
        }
        let threads = self.store.threads().list(scope, MAX_THREADS).await?;
        let recipient = threads.into_iter().find_map(|thread| {
            let conversation = thread.external.filter(|_| thread.channel == last.channel)?;
            private(&last.channel, &conversation)
        });
        Ok(recipient.map(|to| (last.channel, to)))
    }
}

/// The recipient of a conversation that only the user and the agent read.
fn private(channel: &str, conversation: &str) -> Option<String> {
    if channel == TELEGRAM {
        return Chat::of(conversation).filter(|chat| chat.is_private()).map(|chat| chat.to_string());
    }
    Some(conversation.to_owned())
}
