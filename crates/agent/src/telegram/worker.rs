//! Runs turns for stored messages, several chats concurrently, one message of a chat at a time. The reply is queued in
//! the transaction that ends the message.

use std::sync::Arc;
use std::time::Duration;

use embody_prompt::{Audience, RequestFacts};
use embody_store::incoming::{Cursor, FinishIncoming, Incoming, IncomingClaim, IncomingState, NewIncoming};
use embody_store::threads::{NewThread, Thread};
use embody_store::{LeaseStatus, Result, Scope, Store, Topic};
use embody_wire::server::CancellationToken;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::api::NewText;
use super::inbound_message::{Content, InboundMessage};
use super::leader::MIN_BACKOFF;
use super::update::ChatRef;
use super::{CHANNEL, Channel, message, poller};
use crate::turn::{PromptRequest, TurnBody, TurnInput, thread_title};

const MAX_CONCURRENT: usize = 8;
/// How often recording the end of a turn is tried; with the backoff, over about half a minute.
const MAX_RECORD_ATTEMPTS: u32 = 6;

const HELLO: &str = "Hello! Write to me as you would to a person.\n\n- /new starts a new conversation\n- /retry tries again what failed\n- /help shows this";
const NEW: &str = "This is a new conversation.";
const NO_TEXT: &str = "I can only read text.";
pub(super) const INTERRUPTED: &str = "I was interrupted while I was working on your last message. I do not know which parts of it were done. Send it again if it still matters.";

/// Runs until shutdown; running turns then get a grace period.
pub(super) async fn run(channel: &Arc<Channel>, ending: CancellationToken) {
    let mut changes = channel.store.changes(Topic::Incoming);
    let mut turns = JoinSet::new();
    while !ending.is_cancelled() {
        let free = u32::try_from(MAX_CONCURRENT.saturating_sub(turns.len())).unwrap_or(0);
        let mut pause = channel.bot.times.store_poll;
        match channel.store.incoming().claim(CHANNEL, &channel.lease(), free).await {
            Ok(claims) => {
                for claim in claims {
                    turns.spawn(process(Arc::clone(channel), claim, ending.clone()));
                }
            }
            Err(error) => {
                tracing::warn!(reason = %error, "messages from Telegram wait for the store");
                pause = MIN_BACKOFF;
            }
        }
        tokio::select! {
            _ = changes.changed() => {}
            Some(_) = turns.join_next() => {}
            () = sleep(pause) => {}
            () = ending.cancelled() => {}
        }
    }
    while turns.join_next().await.is_some() {}
}

async fn process(channel: Arc<Channel>, claim: IncomingClaim, ending: CancellationToken) {
    let finish = tokio::select! {
        finish = process_message(&channel, &claim.incoming) => finish,
        () = lease_lost(&channel, &claim) => {
            tracing::warn!(message = claim.incoming.external, "another process closed a message that this process handles");
            return;
        }
        () = shutdown_deadline(ending, channel.bot.times.ending) => FinishIncoming {
            state: IncomingState::Unknown,
            reason: Some("the process ended before the turn did".to_owned()),
            replies: notice(&channel, &claim.incoming, INTERRUPTED),
        },
    };
    let mut pause = MIN_BACKOFF;
    for _ in 0..MAX_RECORD_ATTEMPTS {
        match channel.store.incoming().finish(&claim, finish.clone()).await {
            Ok(LeaseStatus::Kept) => return,
            Ok(LeaseStatus::Lost) => break,
            Err(error) => tracing::warn!(reason = %error, "the end of a turn could not be stored"),
        }
        sleep(pause).await;
        pause *= 2;
    }
    tracing::error!(
        message = claim.incoming.external,
        "a reply is lost: this process no longer owns its message"
    );
}

/// Renews the claim; returns when it is lost.
async fn lease_lost(channel: &Channel, claim: &IncomingClaim) {
    loop {
        sleep(channel.bot.times.lease / 4).await;
        match channel.store.incoming().renew(claim, channel.bot.times.lease).await {
            Ok(LeaseStatus::Kept) => {}
            Ok(LeaseStatus::Lost) => return,
            Err(error) => tracing::warn!(reason = %error, "the lease of a message could not be renewed"),
        }
    }
}

async fn shutdown_deadline(ending: CancellationToken, patience: Duration) {
    ending.cancelled().await;
    sleep(patience).await;
}

async fn process_message(channel: &Arc<Channel>, incoming: &Incoming) -> FinishIncoming {
    let replied = match read(incoming) {
        Ok((content, chat_ref)) if !is_allowed(channel, incoming, &content, chat_ref) => {
            // No reply: the operator may have removed them on purpose.
            let reason = Some("the sender is no longer in `allow_users`".to_owned());
            return FinishIncoming { state: IncomingState::Failed, reason, replies: Vec::new() };
        }
        Ok((content, chat_ref)) => reply(channel, incoming, content, chat_ref).await,
        Err(reason) => Err(reason),
    };
    match replied {
        Ok(Some(text)) => FinishIncoming {
            state: IncomingState::Done,
            reason: None,
            replies: replies(channel, incoming, "reply", text),
        },
        Ok(None) => FinishIncoming { state: IncomingState::Done, reason: None, replies: Vec::new() },
        Err(reason) => FinishIncoming {
            state: IncomingState::Failed,
            replies: notice(channel, incoming, &format!("I cannot answer: {reason}")),
            reason: Some(reason),
        },
    }
}

fn read(incoming: &Incoming) -> std::result::Result<(Content, ChatRef), String> {
    let content = serde_json::from_str(&incoming.content).map_err(|error| error.to_string())?;
    let chat_ref: ChatRef =
        incoming.conversation.parse().map_err(|error: super::update::InvalidChatRef| error.to_string())?;
    Ok((content, chat_ref))
}

/// Whether it may have a turn: the allowlist may have changed while it waited.
fn is_allowed(channel: &Channel, incoming: &Incoming, content: &Content, chat_ref: ChatRef) -> bool {
    let allowlist = &channel.bot.allowlist;
    match content {
        Content::Stranger { .. } => true,
        Content::Message(inbound_message) => allowlist.user(inbound_message.person).is_some(),
        Content::Resume { .. } if chat_ref.is_shared() => allowlist.has(&incoming.user),
        Content::Resume { .. } => allowlist.user(chat_ref.chat).is_some(),
    }
}

async fn reply(
    channel: &Arc<Channel>,
    incoming: &Incoming,
    content: Content,
    chat_ref: ChatRef,
) -> std::result::Result<Option<String>, String> {
    let inbound_message = match content {
        Content::Stranger { person } => return Ok(Some(refusal(person))),
        Content::Resume { text, thread } => {
            return run_turn(channel, incoming, chat_ref, (thread, TurnBody::Message(text), None)).await;
        }
        Content::Message(inbound_message) => inbound_message,
    };
    let stored = |error: embody_store::Error| error.to_string();
    let scope = channel.scope(&incoming.user).map_err(stored)?;
    let inbound_message = match inbound_message.command() {
        Some((name, "")) if name == "start" || name == "help" => return Ok(Some(HELLO.to_owned())),
        Some((name, "")) if name == "retry" => {
            let thread = current_thread(&channel.store, &scope, chat_ref, None).await.map_err(stored)?;
            let again = (thread.id, TurnBody::Retry, inbound_message.language);
            return run_turn(channel, incoming, chat_ref, again).await;
        }
        Some((name, rest)) if name == "new" => {
            start_new_thread(&channel.store, &scope, chat_ref).await.map_err(stored)?;
            if rest.is_empty() {
                return Ok(Some(NEW.to_owned()));
            }
            InboundMessage { text: rest.to_owned(), ..inbound_message.clone() }
        }
        _ if inbound_message.text.is_empty() => {
            return Ok((!chat_ref.is_shared()).then(|| NO_TEXT.to_owned()));
        }
        _ => inbound_message,
    };
    let thread = current_thread(&channel.store, &scope, chat_ref, thread_title(&inbound_message.text))
        .await
        .map_err(stored)?;
    let origins = inbound_message.origins();
    if !origins.is_empty() {
        record_untrusted_read(&channel.store, &scope, &origins).await.map_err(stored)?;
    }
    let body = TurnBody::Message(inbound_message.prompt_text(chat_ref));
    run_turn(channel, incoming, chat_ref, (thread.id, body, inbound_message.language)).await
}

/// Stores, before the model reads it, that the agent reads text that the user did not write.
async fn record_untrusted_read(store: &Store, scope: &Scope, origins: &[&str]) -> Result<()> {
    store.untrusted_reads().record(scope, &scope.writer(), origins, store.clock().await?).await
}

async fn run_turn(
    channel: &Arc<Channel>,
    incoming: &Incoming,
    chat_ref: ChatRef,
    (thread, body, language): (String, TurnBody, Option<String>),
) -> std::result::Result<Option<String>, String> {
    let audience = match &incoming.user {
        _ if chat_ref.is_shared() => Audience::Group,
        user if channel.bot.allowlist.is_owner(user) => Audience::Owner,
        _ => Audience::User,
    };
    let scope = channel.scope(&incoming.user).map_err(|error| error.to_string())?;
    let prompt = PromptRequest {
        channel: Some(CHANNEL.to_owned()),
        audience,
        facts: RequestFacts { accept_language: language, ..RequestFacts::default() },
        ..PromptRequest::new(scope)
    };
    let input = TurnInput { prompt, thread, body };
    let (sender, status) = watch::channel(None);
    // A task of its own: if this turn is interrupted, a message that is being sent must be removed too.
    let shown = tokio::spawn(show_status(Arc::clone(channel), chat_ref, status));
    let replied = tokio::select! {
        replied = channel.turns.call((input, sender)) => replied,
        () = show_typing(channel, chat_ref) => Ok(None),
    };
    // The turn has dropped the sender.
    if let Err(error) = shown.await {
        tracing::error!(reason = %error, "the status of a turn may remain in the chat");
    }
    replied
}

/// Shows what the turn waits for in one message, which it edits, and removes it when the turn waits no more or its sender is dropped.
async fn show_status(channel: Arc<Channel>, chat_ref: ChatRef, mut status: watch::Receiver<Option<String>>) {
    let mut message = None;
    while status.changed().await.is_ok() {
        let text = status.borrow_and_update().clone();
        if let Some(pause) = update_status(&channel, chat_ref, text.as_deref(), &mut message).await {
            // The end of the turn does not wait.
            let mut open = status.clone();
            let _ = timeout(pause, open.wait_for(|_| false)).await;
        }
    }
    update_status(&channel, chat_ref, None, &mut message).await;
}

/// Returns how long to pause if Telegram rejects it.
async fn update_status(
    channel: &Channel,
    chat_ref: ChatRef,
    text: Option<&str>,
    message: &mut Option<i64>,
) -> Option<Duration> {
    let api = &channel.bot.api;
    let updated = match (text, *message) {
        (Some(text), Some(shown)) => api.edit(chat_ref, shown, text, &[]).await.map(|()| Some(shown)),
        (Some(text), None) => {
            let new = NewText { chat_ref, text, is_html: false, reply_to: None, buttons: &[] };
            api.send(new).await.map(Some)
        }
        (None, Some(shown)) => api.delete(chat_ref, shown).await.map(|()| None),
        (None, None) => Ok(None),
    };
    match updated {
        Ok(shown) => {
            *message = shown;
            None
        }
        Err(error) => {
            tracing::debug!(reason = %error, "the status of a turn could not be shown or removed");
            error.retry_after()
        }
    }
}

/// Shows the typing indicator until it is dropped.
async fn show_typing(channel: &Channel, chat_ref: ChatRef) {
    loop {
        if let Err(error) = channel.bot.api.typing(chat_ref).await {
            tracing::debug!(reason = %error, "the typing indicator could not be sent");
            sleep(error.retry_after().unwrap_or_default()).await;
        }
        sleep(channel.bot.times.typing).await;
    }
}

fn refusal(person: i64) -> String {
    format!("Sorry, I only answer people on my list. Your Telegram id is `{person}`; my owner can add it.")
}

fn notice(channel: &Channel, incoming: &Incoming, text: &str) -> Vec<embody_store::outgoing::NewOutgoing> {
    replies(channel, incoming, "notice", text.to_owned())
}

/// A reply as the store takes it. No model writes more than the store's limit.
fn replies(
    channel: &Channel,
    incoming: &Incoming,
    kind: &str,
    text: String,
) -> Vec<embody_store::outgoing::NewOutgoing> {
    const LONGEST: usize = 256 * 1024;
    let end = text.floor_char_boundary(LONGEST);
    let text = text.get(..end).unwrap_or_default().replace('\0', " ");
    let scope = channel.scope(&incoming.user).ok().filter(|_| !text.is_empty());
    let reply = |scope| embody_store::outgoing::NewOutgoing {
        about: Some(incoming.external.clone()),
        ..message(scope, &incoming.conversation, kind, text)
    };
    scope.map(reply).into_iter().collect()
}

/// The current thread of a chat: the first, `CHAT`, or the one that the last `/new` started, `CHAT#NUMBER`. Activity in
/// an older thread does not change this.
async fn current_thread(
    store: &Store,
    scope: &Scope,
    chat_ref: ChatRef,
    title: Option<String>,
) -> Result<Thread> {
    let first = find_or_open(store, scope, chat_ref.to_string(), title.clone()).await?;
    match store.incoming().cursor(&counter_name(&first)).await? {
        Some(number) => find_or_open(store, scope, format!("{chat_ref}#{number}"), title).await,
        None => Ok(first),
    }
}

/// Starts a new current thread for a chat. Messages of a chat are processed one at a time, so there is no concurrent
/// count.
async fn start_new_thread(store: &Store, scope: &Scope, chat_ref: ChatRef) -> Result<()> {
    let name = counter_name(&find_or_open(store, scope, chat_ref.to_string(), None).await?);
    let value = store.incoming().cursor(&name).await?.unwrap_or(0).saturating_add(1);
    store.incoming().insert(Vec::new(), Some(Cursor { name: &name, value })).await.map(drop)
}

/// The name of the counter of a chat's threads: based on its first thread, which belongs to one user and one agent.
fn counter_name(first: &Thread) -> String {
    format!("{CHANNEL}:new:{}", first.id)
}

fn chat_ref_of(thread: &Thread) -> Option<ChatRef> {
    let external = thread.external.as_deref()?;
    external.split_once('#').map_or(external, |(chat_ref, _)| chat_ref).parse().ok()
}

/// The thread with this key; `title` applies if it is new.
async fn find_or_open(
    store: &Store,
    scope: &Scope,
    external: String,
    title: Option<String>,
) -> Result<Thread> {
    let new = NewThread { channel: CHANNEL.to_owned(), external: Some(external), title };
    store.threads().open(scope, new).await
}

/// Queues the continuation of a conversation of this channel, for example after an approval. It is durable, runs in
/// order, and its reply goes to the chat. A thread that belongs to no chat is ignored.
pub async fn resume_conversation(store: &Store, input: &TurnInput) -> Result<()> {
    let thread = store.threads().get(input.scope().user(), &input.thread).await?;
    let Some(chat_ref) = thread.as_ref().filter(|thread| thread.channel == CHANNEL).and_then(chat_ref_of)
    else {
        return Ok(());
    };
    let Some(text) = input.message().map(str::to_owned) else { return Ok(()) };
    let content = Content::Resume { text, thread: input.thread.clone() };
    let new = NewIncoming {
        scope: input.scope().clone(),
        channel: CHANNEL.to_owned(),
        conversation: chat_ref.to_string(),
        external: format!("go-on:{}", uuid::Uuid::now_v7()),
        content: poller::to_json(&content),
    };
    store.incoming().insert(vec![new], None).await.map(drop)
}
