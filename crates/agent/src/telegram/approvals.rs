//! Calls that wait for approval, shown with two buttons in the private chat of the owner. The text is the same as on every
//! other channel. A call that cannot be shown whole, or that the rules do not allow to be approved on Telegram, has no
//! buttons. A press counts only from a decider in their private chat; the store decides its effect.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use embody_broker::approval::{ApprovalView, approval_text, bound_channels, bound_version};
use embody_broker::policy::Via;
use embody_store::approvals::{
    Answer, Approval, ApprovalFilter, ApprovalStatus, DecideApproval, DecideOutcome,
};
use embody_store::outgoing::Outgoing;
use embody_store::{Result, Topic};
use embody_wire::server::CancellationToken;
use tokio::time::sleep;

use super::format::{self, PART_UNITS, Part};
use super::leader::MIN_BACKOFF;
use super::update::ChatRef;
use super::update::Press;
use super::{CHANNEL, Channel, message};

pub(super) const KIND: &str = "approval";
const MAX_PENDING: u32 = 500;
const MAX_MESSAGES_SEARCHED: u32 = 200;
const MAX_SHOWN: usize = 1000;
/// Names no command, because a model may read it in a quote.
const ELSEWHERE: &str = "A call waits for your approval. It is too long to show here in full, so it cannot be approved here: use the console or the terminal.";

/// The messages with buttons that this process has sent, by approval.
#[derive(Debug, Default)]
pub(super) struct ApprovalMessages(Mutex<HashMap<String, Vec<ApprovalMessage>>>);

#[derive(Debug, Clone)]
struct ApprovalMessage {
    user: String,
    chat_ref: ChatRef,
    message: i64,
    text: String,
}

impl ApprovalMessages {
    pub(super) fn add(&self, outgoing: &Outgoing, chat_ref: ChatRef, message: i64, text: &str) {
        let Some(approval) = outgoing.about.clone() else { return };
        let mut shown = self.lock();
        if shown.len() < MAX_SHOWN {
            let sent =
                ApprovalMessage { user: outgoing.user.clone(), chat_ref, message, text: text.to_owned() };
            shown.entry(approval).or_default().push(sent);
        }
    }

    fn all(&self) -> Vec<(String, String)> {
        let user =
            |sent: &Vec<ApprovalMessage>| sent.first().map(|sent| sent.user.clone()).unwrap_or_default();
        self.lock().iter().map(|(approval, sent)| (approval.clone(), user(sent))).collect()
    }

    fn take(&self, approval: &str) -> Vec<ApprovalMessage> {
        self.lock().remove(approval).unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Vec<ApprovalMessage>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Asks for pending approvals, and shows decisions, until shutdown.
pub(super) async fn watch(channel: &Channel, ending: CancellationToken) {
    let mut changes = channel.store.changes(Topic::Approvals);
    let mut queued = HashSet::new();
    while !ending.is_cancelled() {
        let mut pause = channel.bot.times.store_poll;
        if let Err(error) = queue_pending(channel, &mut queued).await {
            tracing::warn!(reason = %error, "approvals wait for the store");
            pause = MIN_BACKOFF;
        }
        close_decided(channel).await;
        tokio::select! {
            _ = changes.changed() => {}
            () = sleep(pause) => {}
            () = ending.cancelled() => {}
        }
    }
}

/// Queues a message for each pending approval that has none yet. A failure does not affect the others and is retried.
async fn queue_pending(channel: &Channel, queued: &mut HashSet<String>) -> Result<()> {
    let pending = channel.store.approvals().list_all(ApprovalFilter::Pending, MAX_PENDING).await?;
    queued.retain(|id| pending.iter().any(|approval| approval.id == *id));
    for approval in pending {
        if queued.contains(&approval.id) || !bound_channels(&approval.policy).contains(&Via::Telegram) {
            continue;
        }
        match queue_approval(channel, &approval).await {
            Ok(()) => {
                queued.insert(approval.id);
            }
            Err(error) => {
                tracing::warn!(reason = %error, approval = approval.id, user = approval.user, "an approval could not be requested on Telegram");
            }
        }
    }
    Ok(())
}

async fn queue_approval(channel: &Channel, approval: &Approval) -> Result<()> {
    if channel.bot.allowlist.deciders().is_empty() || is_queued(channel, approval).await? {
        return Ok(());
    }
    let text = full_text(approval).unwrap_or_else(|| ELSEWHERE.to_owned());
    for person in channel.bot.allowlist.deciders() {
        let scope = channel.scope(&approval.user)?;
        let new = embody_store::outgoing::NewOutgoing {
            about: Some(approval.id.clone()),
            urgency: "high".to_owned(),
            ..message(scope, &ChatRef::private(*person).to_string(), KIND, text.clone())
        };
        channel.store.outgoing().enqueue(new).await?;
    }
    Ok(())
}

/// Whether an earlier process has asked.
async fn is_queued(channel: &Channel, approval: &Approval) -> Result<bool> {
    let known = channel.store.outgoing().list(&approval.user, MAX_MESSAGES_SEARCHED).await?;
    let is_about = |one: &Outgoing| {
        one.channel == CHANNEL && one.kind == KIND && one.about.as_deref() == Some(approval.id.as_str())
    };
    Ok(known.iter().any(is_about))
}

/// The text of an approval, if Telegram shows all of it.
fn full_text(approval: &Approval) -> Option<String> {
    let text = approval_text(&ApprovalView::from(approval)).ok()?;
    let parts = format::verbatim(&text);
    (parts.iter().map(|part| part.plain.as_str()).collect::<String>() == text).then_some(text)
}

/// The buttons of a message; empty if a press would not count, `None` if the approval is no longer pending.
pub(super) async fn buttons(
    channel: &Channel,
    outgoing: &Outgoing,
    parts: &[Part],
) -> Result<Option<Vec<(&'static str, String)>>> {
    let id = outgoing.about.as_deref().unwrap_or_default();
    let found = channel.store.approvals().get(&outgoing.user, id).await?;
    let Some(approval) = found.filter(|approval| approval.status == ApprovalStatus::Pending) else {
        return Ok(None);
    };
    let shown: String = parts.iter().map(|part| part.plain.as_str()).collect();
    if full_text(&approval).is_none_or(|text| text != shown) {
        return Ok(Some(Vec::new()));
    }
    Ok(Some(vec![("✅ Approve", format!("approve:{id}")), ("⛔ Deny", format!("deny:{id}"))]))
}

/// Shows the decisions on the messages that asked.
async fn close_decided(channel: &Channel) {
    for (id, user) in channel.shown.all() {
        let approval = match channel.store.approvals().get(&user, &id).await {
            Ok(approval) => approval,
            Err(error) => {
                tracing::warn!(reason = %error, approval = id, "the state of an approval could not be read");
                continue;
            }
        };
        if approval.as_ref().is_some_and(|approval| approval.status == ApprovalStatus::Pending) {
            continue;
        }
        let outcome = approval.as_ref().map_or_else(ClosingText::missing, ClosingText::of);
        for sent in channel.shown.take(&id) {
            close(channel, (sent.chat_ref, sent.message, &sent.text), &outcome).await;
        }
    }
}

/// Shows the outcome, with its button in place of those that asked.
async fn close(channel: &Channel, (chat_ref, message, text): (ChatRef, i64, &str), outcome: &ClosingText) {
    let text = format!("{}\n\n{}", text.trim_end(), outcome.text);
    let closed = if text.encode_utf16().count() <= PART_UNITS {
        channel.bot.api.edit(chat_ref, message, &text, outcome.button.as_slice()).await
    } else {
        channel.bot.api.remove_buttons(chat_ref, message).await
    };
    match closed {
        Err(error) if !error.is_same_already() => {
            tracing::warn!(reason = %error, "the result of an approval could not be shown on Telegram");
        }
        _ => {}
    }
}

/// What became of an approval, as its message shows it.
struct ClosingText {
    text: String,
    button: Option<(&'static str, String)>,
}

impl ClosingText {
    fn of(approval: &Approval) -> Self {
        let by = approval.decided_by.as_deref().map(|by| format!(" by {by}")).unwrap_or_default();
        let text = match approval.status {
            ApprovalStatus::Pending => "It waits.".to_owned(),
            ApprovalStatus::Approved => format!("✅ Approved{by}."),
            ApprovalStatus::Used => format!("✅ Approved{by}, and done."),
            ApprovalStatus::Denied => format!("⛔ Denied{by}."),
            ApprovalStatus::Expired if approval.decided_by.is_some() => {
                format!("⌛ Approved{by}, but not made in time.")
            }
            ApprovalStatus::Expired => "⌛ Expired without an answer.".to_owned(),
        };
        let is_denied = approval.status == ApprovalStatus::Denied;
        Self { text, button: is_denied.then(|| ("↩ Ask me again", format!("again:{}", approval.id))) }
    }

    fn taken_back() -> Self {
        let text = "↩ Taken back: you are asked when the agent makes the call again.".to_owned();
        Self { text, button: None }
    }

    fn missing() -> Self {
        Self { text: MISSING.to_owned(), button: None }
    }
}

pub(super) async fn handle_press(channel: &Channel, press: &Press) -> Result<()> {
    let outcome = decide(channel, press).await?;
    let text = outcome.as_ref().map_or_else(|why| *why, |outcome| &outcome.text);
    if let Err(error) = channel.bot.api.answer_press(&press.id, text).await {
        tracing::debug!(reason = %error, "the answer to a pressed button could not be sent");
    }
    if let (Ok(outcome), Some((chat_ref, message, shown))) = (&outcome, &press.message) {
        close(channel, (*chat_ref, *message, shown), outcome).await;
    }
    Ok(())
}

const MISSING: &str = "This approval no longer exists.";
const NOT_DENIED: &str = "No denial stands any more: you are asked when the agent makes the call again.";
const RULES_CHANGED: &str = "Asked under rules that have changed since; approve the new question instead.";

/// Applies a press; the inner error says why it has no effect.
async fn decide(channel: &Channel, press: &Press) -> Result<std::result::Result<ClosingText, &'static str>> {
    // Without an answer, a denial is taken back.
    let answer = match press.data.split_once(':') {
        Some(("approve", id)) => Some((Some(Answer::Approve), id)),
        Some(("deny", id)) => Some((Some(Answer::Deny), id)),
        Some(("again", id)) => Some((None, id)),
        _ => None,
    };
    let is_private =
        press.message.as_ref().is_some_and(|(chat_ref, ..)| *chat_ref == ChatRef::private(press.from));
    let Some((answer, id)) = answer.filter(|_| is_private) else {
        return Ok(Err("You cannot decide about this call."));
    };
    let Some(approval) = channel.store.approvals().find(id).await? else {
        return Ok(Err(MISSING));
    };
    if !channel.bot.allowlist.deciders().contains(&press.from) {
        return Ok(Err("You cannot decide about this call."));
    }
    let by = format!("{}:{}", Via::Telegram.name(), press.from);
    let Some(answer) = answer else {
        let ended = channel.store.approvals().ask_again(&approval.user, &approval.id, &by).await?;
        return Ok(ended.map(|_| ClosingText::taken_back()).ok_or(NOT_DENIED));
    };
    let is_pending = approval.status == ApprovalStatus::Pending;
    if answer == Answer::Approve
        && is_pending
        && !channel.bot.policy.has_version(bound_version(&approval.policy))
    {
        return Ok(Err(RULES_CHANGED));
    }
    let may_be_approved =
        bound_channels(&approval.policy).contains(&Via::Telegram) && full_text(&approval).is_some();
    if answer == Answer::Approve && !may_be_approved {
        return Ok(Err("This call cannot be approved here."));
    }
    let decision = DecideApproval { user: approval.user, id: approval.id, answer, by };
    Ok(match channel.store.approvals().decide(decision).await? {
        DecideOutcome::Decided(approval) | DecideOutcome::NotPending(approval) => {
            channel.shown.take(&approval.id);
            Ok(ClosingText::of(&approval))
        }
        DecideOutcome::Missing => Err(MISSING),
    })
}
