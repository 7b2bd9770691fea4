//! Sends messages from the store, part by part. A part is recorded before it is sent, and sent again only if it was
//! certainly not sent.

use std::sync::Arc;
use std::time::Duration;

use embody_store::outgoing::{Outgoing, OutgoingClaim, OutgoingEnd};
use embody_store::{ErrorKind, LeaseStatus, Result, Topic};
use embody_wire::server::CancellationToken;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::api::ApiError;
use super::api::NewText;
use super::format::{self, Part};
use super::leader::{MAX_BACKOFF, MIN_BACKOFF};
use super::update::ChatRef;
use super::{CHANNEL, Channel, approvals};

const MAX_CONCURRENT: usize = 8;
/// How often a message is tried; with the backoff, over most of an hour.
const MAX_ATTEMPTS: i64 = 60;
/// The store's clock may be slightly behind.
const CLOCK_MARGIN: Duration = Duration::from_millis(50);
/// How often recording the progress of a message is tried; with the backoff, about the duration of a lease.
const MAX_RECORD_ATTEMPTS: u32 = 5;
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// Delivers until shutdown, and then what is still waiting.
pub(super) async fn deliver(channel: &Arc<Channel>, over: CancellationToken) {
    let mut changes = channel.store.changes(Topic::Outgoing);
    let mut sending = JoinSet::new();
    let mut until: Option<Instant> = None;
    // A message with a later due time sends no notification.
    let mut due: Option<Instant> = None;
    loop {
        if over.is_cancelled() {
            until.get_or_insert_with(|| Instant::now() + SHUTDOWN_GRACE);
        }
        let free = u32::try_from(MAX_CONCURRENT.saturating_sub(sending.len())).unwrap_or(0);
        let mut next_poll = Instant::now() + channel.bot.times.store_poll;
        match channel.store.outgoing().claim(CHANNEL, &channel.lease(), free).await {
            Ok(claims) => {
                for claim in claims {
                    sending.spawn(send_with_lease(Arc::clone(channel), claim));
                }
            }
            Err(error) => {
                tracing::warn!(reason = %error, "messages to Telegram wait for the store");
                next_poll = Instant::now() + MIN_BACKOFF;
            }
        }
        if until.is_some_and(|until| sending.is_empty() || Instant::now() >= until) {
            break;
        }
        let next_poll = due.map_or(next_poll, |due| next_poll.min(due));
        tokio::select! {
            _ = changes.changed() => {}
            Some(ended) = sending.join_next() => {
                let wait: Option<Duration> = ended.ok().flatten();
                due = wait.map(|wait| Instant::now() + wait + CLOCK_MARGIN).into_iter().chain(due).min();
            }
            () = sleep_until(next_poll) => due = due.filter(|due| *due > Instant::now()),
            () = over.cancelled(), if until.is_none() => {}
        }
    }
    while sending.join_next().await.is_some() {}
}

/// Sends one message while its claim is renewed. Returns when to try again.
async fn send_with_lease(channel: Arc<Channel>, claim: OutgoingClaim) -> Option<Duration> {
    let sent = tokio::select! {
        sent = send(&channel, &claim) => sent,
        () = lease_lost(&channel, &claim) => return None,
    };
    match sent {
        Ok(again) => again,
        Err(error) => {
            // Its lease expires, and the outcome is then settled.
            tracing::warn!(reason = %error, message = claim.outgoing.id, "the progress of a message could not be stored");
            None
        }
    }
}

async fn lease_lost(channel: &Channel, claim: &OutgoingClaim) {
    loop {
        sleep(channel.bot.times.lease / 4).await;
        if let Ok(LeaseStatus::Lost) = channel.store.outgoing().renew(claim, channel.bot.times.lease).await {
            tracing::warn!(
                message = claim.outgoing.id,
                "another process closed a message that this process sends"
            );
            return;
        }
    }
}

async fn send(channel: &Channel, claim: &OutgoingClaim) -> Result<Option<Duration>> {
    let end = match prepare(channel, &claim.outgoing).await? {
        Ok(prepared) => match send_parts(channel, claim, &prepared).await? {
            Some(end) => end,
            None => return Ok(None),
        },
        Err(reason) => OutgoingEnd::Failed(reason),
    };
    match &end {
        OutgoingEnd::Failed(reason) | OutgoingEnd::Unknown(reason) => {
            tracing::warn!(
                reason,
                to = claim.outgoing.to,
                message = claim.outgoing.id,
                "a message to Telegram was not delivered, or its delivery is unknown"
            );
        }
        OutgoingEnd::Again { reason, .. } => {
            tracing::info!(
                reason,
                to = claim.outgoing.to,
                message = claim.outgoing.id,
                "a message to Telegram is retried"
            );
        }
        OutgoingEnd::Sent => {}
    }
    let wait = match &end {
        OutgoingEnd::Again { at, .. } => {
            Some(Duration::from_micros(u64::try_from(at - (channel.bot.clock)()).unwrap_or(0)))
        }
        _ => None,
    };
    record_step(channel, claim, &Step::End(end)).await?;
    Ok(wait)
}

enum Step {
    /// This part is about to be sent.
    Begin(i64),
    /// This part was sent, and another follows.
    Sent(i64),
    End(OutgoingEnd),
}

/// Records the progress of a message, with retries: a part that was sent must not end as unknown because of a store
/// error. If the claim is lost meanwhile, sending stops.
async fn record_step(channel: &Channel, claim: &OutgoingClaim, step: &Step) -> Result<LeaseStatus> {
    let mut pause = MIN_BACKOFF;
    let mut has_failed = false;
    for attempt in 1.. {
        let tried = match step {
            Step::Begin(part) => channel.store.outgoing().begin_part(claim, *part).await,
            Step::Sent(part) => channel.store.outgoing().finish_part(claim, *part).await,
            Step::End(end) => channel.store.outgoing().finish(claim, end.clone()).await,
        };
        match tried {
            // The claim is exclusive: the attempt that seemed to fail has recorded the part, and nothing was sent
            // since.
            Err(error) if has_failed && error.kind() == ErrorKind::Conflict => break,
            Err(error) if attempt < MAX_RECORD_ATTEMPTS && error.kind() != ErrorKind::Conflict => {
                tracing::warn!(reason = %error, "the progress of a message waits for the store");
            }
            tried => return tried,
        }
        has_failed = true;
        sleep(pause).await;
        pause *= 2;
    }
    Ok(LeaseStatus::Kept)
}

struct PreparedMessage {
    chat_ref: ChatRef,
    parts: Vec<Part>,
    reply_to: Option<i64>,
    buttons: Vec<(&'static str, String)>,
}

/// The message in Telegram's form; the inner error says why it can never be sent.
async fn prepare(
    channel: &Channel,
    outgoing: &Outgoing,
) -> Result<std::result::Result<PreparedMessage, String>> {
    let chat_ref = match outgoing.to.parse::<ChatRef>() {
        Ok(chat_ref) => chat_ref,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let mut prepared = PreparedMessage { chat_ref, parts: Vec::new(), reply_to: None, buttons: Vec::new() };
    if outgoing.kind == approvals::KIND {
        prepared.parts = format::verbatim(&outgoing.text);
        match approvals::buttons(channel, outgoing, &prepared.parts).await? {
            Some(buttons) => prepared.buttons = buttons,
            None => return Ok(Err("the approval is already decided".to_owned())),
        }
    } else {
        prepared.parts = format::parts(&outgoing.text);
    }
    if prepared.parts.is_empty() {
        return Ok(Err("the message has no visible text".to_owned()));
    }
    if chat_ref.is_shared() {
        // In a group, a reply refers to its message.
        let named = outgoing.about.as_deref().and_then(|about| about.splitn(3, ':').nth(2));
        prepared.reply_to = named.and_then(|id| id.split(':').next()?.parse().ok());
    }
    Ok(Ok(prepared))
}

/// Sends the remaining parts. Returns the outcome, unless the claim was lost.
async fn send_parts(
    channel: &Channel,
    claim: &OutgoingClaim,
    prepared: &PreparedMessage,
) -> Result<Option<OutgoingEnd>> {
    let first = usize::try_from(claim.outgoing.parts_sent).unwrap_or(0);
    for (number, part) in prepared.parts.iter().enumerate().skip(first) {
        let is_last = number + 1 == prepared.parts.len();
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        if record_step(channel, claim, &Step::Begin(number)).await? == LeaseStatus::Lost {
            return Ok(None);
        }
        let new = NewText {
            chat_ref: prepared.chat_ref,
            text: &part.html,
            is_html: true,
            reply_to: prepared.reply_to.filter(|_| number == 0),
            buttons: if is_last { &prepared.buttons } else { &[] },
        };
        let mut sent = channel.bot.api.send(new).await;
        if sent.as_ref().is_err_and(ApiError::is_about_formatting) {
            tracing::warn!(
                message = claim.outgoing.id,
                "Telegram rejected the formatting of a message; it is sent as plain text"
            );
            sent = channel.bot.api.send(NewText { text: &part.plain, is_html: false, ..new }).await;
        }
        match sent {
            Ok(message) if is_last && !prepared.buttons.is_empty() => {
                channel.shown.add(&claim.outgoing, prepared.chat_ref, message, &part.plain);
            }
            Ok(_) if is_last => {}
            Ok(_) => {
                // If the process dies before the next part, sending can continue, and no part is unknown.
                if record_step(channel, claim, &Step::Sent(number)).await? == LeaseStatus::Lost {
                    return Ok(None);
                }
            }
            Err(error) => return Ok(Some(end_for_error(channel, claim, &error))),
        }
    }
    Ok(Some(OutgoingEnd::Sent))
}

fn end_for_error(channel: &Channel, claim: &OutgoingClaim, error: &ApiError) -> OutgoingEnd {
    let reason = error.to_string();
    match error {
        ApiError::Lost(_) => OutgoingEnd::Unknown(reason),
        error if error.is_final() => OutgoingEnd::Failed(reason),
        _ if claim.outgoing.attempts >= MAX_ATTEMPTS => OutgoingEnd::Failed(reason),
        error => {
            let doubled = MIN_BACKOFF
                * 2_u32.saturating_pow(u32::try_from(claim.outgoing.attempts.clamp(0, 6)).unwrap_or(6));
            let wait = error.retry_after().unwrap_or(doubled.min(MAX_BACKOFF));
            let micros = i64::try_from(wait.as_micros()).unwrap_or(i64::MAX);
            OutgoingEnd::Again { at: (channel.bot.clock)().saturating_add(micros), reason }
        }
    }
}
