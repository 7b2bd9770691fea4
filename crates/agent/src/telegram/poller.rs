//! Stores updates. Updates and the new offset are stored in one transaction; only the next poll confirms them to
//! Telegram. After a failure in between they arrive again and are recognized.

use std::time::Duration;

use embody_store::Result;
use embody_store::incoming::{Cursor, IncomingChange, IncomingState, NewIncoming};
use embody_wire::server::CancellationToken;
use serde_json::Value;

use super::api::ApiError;
use super::inbound_message::{Content, InboundMessage, is_for_bot};
use super::leader::{MAX_BACKOFF, MIN_BACKOFF, wait_or_end};
use super::unnamed;
use super::update::{Message, Update, read};
use super::{CHANNEL, Channel, approvals, message};

const OTHER_POLLER_DELAY: Duration = Duration::from_secs(20);

pub(super) async fn poll(channel: &Channel, ending: CancellationToken) {
    let mut offset: Option<i64> = None;
    let mut pause = MIN_BACKOFF;
    while !ending.is_cancelled() {
        let polled = tokio::select! {
            polled = poll_once(channel, &mut offset) => polled,
            () = ending.cancelled() => return,
        };
        match polled {
            Ok(()) => pause = MIN_BACKOFF,
            Err(reason) => {
                wait_or_end(pause.max(reason.pause()), &ending).await;
                pause = (pause * 2).min(MAX_BACKOFF);
            }
        }
    }
}

enum PollError {
    Telegram(ApiError),
    Store,
}

impl PollError {
    fn pause(&self) -> Duration {
        match self {
            Self::Telegram(error) if error.is_about_webhook() => Duration::ZERO,
            Self::Telegram(error) if error.is_about_another_poller() => OTHER_POLLER_DELAY,
            Self::Telegram(error) => error.retry_after().unwrap_or_default(),
            Self::Store => Duration::ZERO,
        }
    }
}

/// One poll. The offset in memory follows Telegram even if its ids restart; the stored one never decreases.
async fn poll_once(channel: &Channel, offset: &mut Option<i64>) -> std::result::Result<(), PollError> {
    let stored = |error: embody_store::Error| {
        tracing::warn!(reason = %error, "updates from Telegram wait for the store");
        PollError::Store
    };
    let from = match *offset {
        Some(from) => from,
        None => channel
            .store
            .incoming()
            .cursor(&cursor_name(channel))
            .await
            .map_err(stored)?
            .map_or(0, |last| last + 1),
    };
    let updates = match channel.bot.api.updates(from, channel.bot.times.poll).await {
        Ok(updates) => updates,
        Err(error) => return Err(log_api_error(channel, error).await),
    };
    *offset = Some(from);
    if let Some(last) = store_updates(channel, &updates).await.map_err(stored)? {
        *offset = Some(last + 1);
    }
    Ok(())
}

async fn log_api_error(channel: &Channel, error: ApiError) -> PollError {
    if error.is_about_webhook() {
        tracing::warn!("the bot has a webhook, which blocks polling; it is removed");
        if let Err(error) = channel.bot.api.delete_webhook().await {
            tracing::warn!(reason = %error, "the webhook could not be removed");
        }
    } else if error.is_about_another_poller() {
        tracing::error!("another program reads the updates of this bot: only one program may use its token");
    } else if error.is_about_token() {
        tracing::error!("Telegram no longer accepts the bot's token");
    } else {
        tracing::warn!(reason = %error, "updates cannot be fetched from Telegram");
    }
    PollError::Telegram(error)
}

fn cursor_name(channel: &Channel) -> String {
    format!("{CHANNEL}:{}", channel.me.id)
}

/// Stores these updates in order and returns the id of the last.
async fn store_updates(channel: &Channel, updates: &[Value]) -> Result<Option<i64>> {
    let mut last = None;
    let mut new = Vec::new();
    for update in updates {
        let (id, update) = read(update);
        last = last.max(id);
        match update {
            Update::Message(message) => new.extend(to_incoming(channel, &message)),
            Update::Edited(message) => {
                // The edited message may be among those that are not stored yet.
                store_incoming(channel, std::mem::take(&mut new), None).await?;
                new.extend(apply_edit(channel, &message).await?);
            }
            Update::Pressed(press) => approvals::handle_press(channel, &press).await?,
            Update::Other => {}
        }
    }
    let name = cursor_name(channel);
    if let Some(value) = last {
        store_incoming(channel, new, Some(Cursor { name: &name, value })).await?;
    }
    Ok(last)
}

async fn store_incoming(channel: &Channel, new: Vec<NewIncoming>, cursor: Option<Cursor<'_>>) -> Result<()> {
    for taken in channel.store.incoming().insert(new, cursor).await? {
        if taken.state == IncomingState::Failed {
            tracing::warn!(user = taken.user, "too many messages of one user are queued; one was rejected");
            let text = "Too many of your messages are waiting; I did not accept this one.".to_owned();
            let scope = channel.scope(&taken.user)?;
            channel.notify(message(scope, &taken.conversation, "notice", text)).await;
        }
    }
    Ok(())
}

/// A message as the store takes it, if it is for the bot.
fn to_incoming(channel: &Channel, message: &Message) -> Option<NewIncoming> {
    if message.from.is_bot {
        return None;
    }
    let Some(user) = channel.bot.allowlist.user(message.from.id) else {
        return stranger_notice(channel, message);
    };
    if !is_for_bot(message, &channel.me) {
        return None;
    }
    let inbound_message = Content::Message(InboundMessage::new(message, &channel.me));
    new_incoming(
        channel,
        user,
        &message.chat_ref.to_string(),
        external_id(channel, message),
        &inbound_message,
    )
}

/// A person who is not on the list gets one notice, and only in private.
fn stranger_notice(channel: &Channel, message: &Message) -> Option<NewIncoming> {
    if !message.is_private {
        return None;
    }
    let person = message.from.id;
    let external = format!("{}:stranger:{person}", channel.me.id);
    new_incoming(
        channel,
        &unnamed(person),
        &message.chat_ref.to_string(),
        external,
        &Content::Stranger { person },
    )
}

/// The message for an edit: `None` if the original still waits and was updated, or if the text is unchanged.
async fn apply_edit(channel: &Channel, message: &Message) -> Result<Option<NewIncoming>> {
    let Some(user) = channel.bot.allowlist.user(message.from.id) else { return Ok(None) };
    if message.from.is_bot || !is_for_bot(message, &channel.me) {
        return Ok(None);
    }
    let mut inbound_message = InboundMessage::new(message, &channel.me);
    let name = external_id(channel, message);
    let changed = channel
        .store
        .incoming()
        .replace(CHANNEL, &name, &to_json(&Content::Message(inbound_message.clone())))
        .await?;
    match changed {
        IncomingChange::Changed => return Ok(None),
        IncomingChange::TooLate(known) => {
            let is_known = |before: &InboundMessage| {
                before.text == inbound_message.text || before.edited_at >= inbound_message.edited_at
            };
            if matches!(serde_json::from_str(&known.content), Ok(Content::Message(before)) if is_known(&before))
            {
                return Ok(None);
            }
            inbound_message.is_edit = true;
        }
        IncomingChange::Missing => {}
    }
    let external = format!("{name}:{}", message.edited_at.unwrap_or_default());
    Ok(new_incoming(
        channel,
        user,
        &message.chat_ref.to_string(),
        external,
        &Content::Message(inbound_message),
    ))
}

/// The permanent id of a message. It includes the bot, because two bots number their private chats alike.
fn external_id(channel: &Channel, message: &Message) -> String {
    format!("{}:{}:{}", channel.me.id, message.chat_ref.chat, message.id)
}

fn new_incoming(
    channel: &Channel,
    user: &str,
    conversation: &str,
    external: String,
    content: &Content,
) -> Option<NewIncoming> {
    let scope = match channel.scope(user) {
        Ok(scope) => scope,
        Err(error) => {
            tracing::error!(reason = %error, user, "a message from Telegram has no valid user");
            return None;
        }
    };
    Some(NewIncoming {
        scope,
        channel: CHANNEL.to_owned(),
        conversation: conversation.to_owned(),
        external,
        content: to_json(content),
    })
}

pub(super) fn to_json(content: &Content) -> String {
    serde_json::to_string(content).unwrap_or_default()
}
