//! Waits for an answer from the host's form or, through the store, from another channel. The store decides which came first;
//! a repeated call, also after a restart, finds the decision.
//!
//! A call returns `Pending` after `ask_wait` at the latest, and at once when the host answers the form without deciding: the
//! approval stays open on the other channels. It waits longer, up to `ask_timeout`, only while a form of the stateless era is
//! open: the host then already has its result (`input_required`), and no request waits.

use std::future::pending;
use std::pin::{Pin, pin};
use std::time::Duration;

use embody_store::approvals::{
    Answer as StoredAnswer, Approval, ApprovalRequest, ApprovalStatus, AskOutcome, AskResult, DecideApproval,
};
use embody_store::{Error, Topic};
use embody_wire::server::HostResponse;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep_until};

use super::{Answer, ApprovalPrompt, Approvals, bound_version, covers, form};

/// How often the store is polled, because an expiry sends no notification.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How often a call asks again after an equal call has used the approval that both waited for.
const ROUNDS_MAX: u32 = 3;

impl Approvals {
    /// Asks the owner, unless the same call already has an approval, and waits for the answer. `elicit` shows a form in the
    /// host and returns its answer, or `None` if the host could not be asked; dropping it withdraws the form.
    pub async fn ask<F>(&self, prompt: ApprovalPrompt<'_>, elicit: Option<F>) -> Result<Answer, Error>
    where
        F: AsyncFnOnce(Box<RawValue>) -> Option<HostResponse>,
    {
        let message = match prompt.text() {
            Ok(message) => message,
            Err(unshowable) => return Ok(Answer::Unshowable(unshowable.to_string())),
        };
        let channels = prompt.other_channels();
        if channels.is_empty() && elicit.is_none() {
            return Ok(Answer::Unshowable(form::NO_FORMS.to_owned()));
        }
        let lines = form::lines(&message);
        if prompt.is_for_host() && channels.is_empty() && lines > form::LINES {
            return Ok(Answer::Unshowable(form::too_long(lines)));
        }
        let ask = &prompt.request;
        if let Some(lapsed) = self.store.approvals().take_expired(ask.clone()).await? {
            return Ok(expired(lapsed));
        }
        let elicit = elicit.filter(|_| prompt.is_for_host() && lines <= form::LINES);
        let now = Instant::now();
        let mut host = Host {
            form: if elicit.is_some() { Form::Open } else { Form::NotShown },
            is_only_channel: channels.is_empty(),
            deadline: now + self.ask_wait,
            form_deadline: now + self.ask_wait,
            asking: pin!(elicited(elicit, message)),
        };
        let (mut last, mut after_other_rules) = (None, false);
        for _ in 0..ROUNDS_MAX {
            let AskResult { asked, other_policies, .. } = self.store.approvals().ask(ask.clone()).await?;
            let version = bound_version(&ask.policy);
            after_other_rules |= other_policies.iter().any(|policy| bound_version(policy) != version);
            let pending = |id| Answer::Pending { id, channels: channels.clone(), after_other_rules };
            let approval = match asked {
                AskOutcome::New(approval) => approval,
                AskOutcome::Same(approval) if covers(&approval.flags, &ask.flags) => approval,
                // The mind flags more than the owner was shown: that approval does not cover this call.
                AskOutcome::Same(approval) => {
                    self.store.approvals().withdraw(&approval.user, &approval.id).await?;
                    last = Some(approval.id);
                    continue;
                }
                AskOutcome::Denied(approval) => return Ok(denied(approval)),
                AskOutcome::Full => return Ok(Answer::Full),
            };
            if prompt.is_suspended {
                // Counted from here, so that it is not before the stored approval expires.
                host.form_deadline = Instant::now() + prompt.request.timeout;
            }
            match self.wait(&approval, ask, &mut host).await? {
                Waited::Answer(answer) => return Ok(answer),
                Waited::Undecided => return Ok(pending(approval.id)),
                Waited::UsedElsewhere => last = Some(approval.id),
            }
        }
        Ok(last.map_or(Answer::Full, |id| Answer::Pending { id, channels, after_other_rules }))
    }

    async fn wait<A>(
        &self,
        approval: &Approval,
        ask: &ApprovalRequest,
        host: &mut Host<'_, A>,
    ) -> Result<Waited, Error>
    where
        A: Future<Output = Option<HostResponse>>,
    {
        let mut changes = self.store.changes(Topic::Approvals);
        let id = approval.id.clone();
        loop {
            let Some(found) = self.store.approvals().get(&approval.user, &id).await? else {
                return Ok(Waited::Answer(Answer::TimedOut { id }));
            };
            match found.status {
                ApprovalStatus::Approved => return Ok(Waited::Answer(Answer::Approved { id })),
                ApprovalStatus::Denied => return Ok(Waited::Answer(denied(found))),
                ApprovalStatus::Expired => {
                    // Reported now, so that the same call does not report it again.
                    self.store.approvals().take_expired(ask.clone()).await?;
                    return Ok(Waited::Answer(expired(found)));
                }
                ApprovalStatus::Used => return Ok(Waited::UsedElsewhere),
                ApprovalStatus::Pending => {}
            }
            let now = Instant::now();
            let Some(deadline) = host.waits_until().filter(|deadline| now < *deadline) else {
                return Ok(Waited::Undecided);
            };
            tokio::select! {
                changed = changes.changed() => changed?,
                () = sleep_until(deadline.min(now + POLL_INTERVAL)) => {}
                decision = host.answer() => if let Some(answer) = decision {
                    self.decide(approval, answer).await?;
                },
            }
        }
    }

    /// Stores the host's answer. A late one has no effect: the next poll returns the earlier decision.
    async fn decide(&self, approval: &Approval, answer: StoredAnswer) -> Result<(), Error> {
        let (user, id) = (approval.user.clone(), approval.id.clone());
        let by = form::BY.to_owned();
        self.store.approvals().decide(DecideApproval { user, id, answer, by }).await.map(drop)
    }
}

enum Waited {
    Answer(Answer),
    Undecided,
    /// Another call has used the answer.
    UsedElsewhere,
}

struct Host<'a, A> {
    asking: Pin<&'a mut A>,
    form: Form,
    is_only_channel: bool,
    deadline: Instant,
    form_deadline: Instant,
}

#[derive(Clone, Copy)]
enum Form {
    /// The form is too long or not allowed, or the host cannot show it.
    NotShown,
    Open,
    Answered,
}

impl<A: Future<Output = Option<HostResponse>>> Host<'_, A> {
    fn waits_until(&self) -> Option<Instant> {
        match self.form {
            Form::Open => Some(self.form_deadline),
            Form::NotShown if !self.is_only_channel => Some(self.deadline),
            Form::NotShown | Form::Answered => None,
        }
    }

    /// The host's decision, once; pending for ever without an open form.
    async fn answer(&mut self) -> Option<StoredAnswer> {
        if !matches!(self.form, Form::Open) {
            return pending().await;
        }
        let answered = self.asking.as_mut().await;
        self.form = if answered.is_some() { Form::Answered } else { Form::NotShown };
        form::decision(&answered?, self.is_only_channel)
    }
}

async fn elicited<F>(elicit: Option<F>, message: String) -> Option<HostResponse>
where
    F: AsyncFnOnce(Box<RawValue>) -> Option<HostResponse>,
{
    let params = form::params(&message)?;
    elicit?(params).await
}

fn expired(approval: Approval) -> Answer {
    match approval.decided_by {
        Some(by) => Answer::Lapsed { id: approval.id, by },
        None => Answer::TimedOut { id: approval.id },
    }
}

fn denied(approval: Approval) -> Answer {
    let by = approval.decided_by.unwrap_or_else(|| approval.user.clone());
    Answer::Denied { id: approval.id, by }
}
