//! The wait for an answer: the host's own and whatever others write into the store, whichever comes first. The store
//! decides who was first; a call that comes again, also after a restart, finds what was decided meanwhile.

use std::future::pending;
use std::pin::{Pin, pin};
use std::time::Duration;

use embody_store::{
    Answer as Said, Approval, ApprovalStatus, AskApproval, Asked, DecideApproval, Error, Topic,
};
use embody_wire::Outcome;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep_until};

use super::bound::covers;
use super::{Answer, Approvals, Wanted, elicitation, words};

/// How often the store is looked at though nothing is heard from it: nobody tells when the time of a question is over.
const LOOK: Duration = Duration::from_secs(1);
/// Two equal calls at once may wait for one answer, which only one of them can use: the other asks again, so often.
const ROUNDS: u32 = 3;

impl Approvals {
    /// Asks a person about a call, unless one was asked before, and waits a while for the answer. `elicit` puts a
    /// question to the host, and gives its answer if there is one; dropping it takes the question back.
    ///
    /// # Errors
    /// When the store fails: then nothing is approved.
    pub async fn ask<F>(&self, wanted: Wanted<'_>, elicit: Option<F>) -> Result<Answer, Error>
    where
        F: AsyncFnOnce(Box<RawValue>) -> Option<Outcome>,
    {
        let message = match words(&wanted.subject()) {
            Ok(message) => message,
            Err(unshowable) => return Ok(Answer::Unshowable(unshowable.to_string())),
        };
        let ask = wanted.ask(self.ask_timeout);
        if let Some(lapsed) = self.store.lapse_approval(ask.clone()).await? {
            return Ok(over(lapsed));
        }
        let elicit = elicit.filter(|_| wanted.is_for_host());
        let patience = if wanted.is_parked && elicit.is_some() { self.ask_timeout } else { self.ask_wait };
        let deadline = Instant::now() + patience;
        let mut host = Host {
            is_done: elicit.is_none(),
            is_alone: !wanted.is_for_others(),
            asking: pin!(elicited(elicit, message)),
        };
        let mut last = None;
        for _ in 0..ROUNDS {
            let approval = match self.store.ask_approval(ask.clone()).await?.asked {
                Asked::New(approval) => approval,
                Asked::Same(approval) if covers(&approval.flags, &wanted.flags) => approval,
                // The mind points at more than the person was shown, or will be: that yes is for another call.
                Asked::Same(approval) => {
                    self.store.withdraw_approval(&approval.user, &approval.id).await?;
                    last = Some(approval.id);
                    continue;
                }
                Asked::Denied(approval) => return Ok(denied(approval)),
                Asked::Full => return Ok(Answer::Full),
            };
            if let Some(answer) = self.wait(&approval, &ask, deadline, &mut host).await? {
                return Ok(answer);
            }
            last = Some(approval.id);
        }
        Ok(last.map_or(Answer::Full, |id| Answer::Pending { id }))
    }

    /// The answer, or that nobody gave one in time; `None` if another call has used it.
    async fn wait<A>(
        &self,
        approval: &Approval,
        ask: &AskApproval,
        deadline: Instant,
        host: &mut Host<'_, A>,
    ) -> Result<Option<Answer>, Error>
    where
        A: Future<Output = Option<Said>>,
    {
        let mut changes = self.store.changes(Topic::Approvals);
        let id = approval.id.clone();
        loop {
            let Some(found) = self.store.approval(&approval.user, &id).await? else {
                return Ok(Some(Answer::TimedOut { id }));
            };
            match found.status {
                ApprovalStatus::Approved => return Ok(Some(Answer::Approved { id })),
                ApprovalStatus::Denied => return Ok(Some(denied(found))),
                ApprovalStatus::Expired => {
                    // Told here, so that the same call is not told again.
                    self.store.lapse_approval(ask.clone()).await?;
                    return Ok(Some(over(found)));
                }
                ApprovalStatus::Used => return Ok(None),
                ApprovalStatus::Pending => {}
            }
            let now = Instant::now();
            if now >= deadline || host.is_done && host.is_alone {
                return Ok(Some(Answer::Pending { id }));
            }
            tokio::select! {
                changed = changes.changed() => changed?,
                () = sleep_until(deadline.min(now + LOOK)) => {}
                said = host.answer() => if let Some(answer) = said {
                    self.decide(approval, answer).await?;
                },
            }
        }
    }

    /// Writes the host's answer down. One that came too late changes nothing: the next look says what was decided.
    async fn decide(&self, approval: &Approval, answer: Said) -> Result<(), Error> {
        let (user, id) = (approval.user.clone(), approval.id.clone());
        let by = elicitation::BY.to_owned();
        self.store.decide_approval(DecideApproval { user, id, answer, by }).await.map(drop)
    }
}

/// The host, as one of those who may answer.
struct Host<'a, A> {
    asking: Pin<&'a mut A>,
    /// It has answered, or cannot be asked.
    is_done: bool,
    /// Nobody else may answer.
    is_alone: bool,
}

impl<A: Future<Output = Option<Said>>> Host<'_, A> {
    /// Its answer, once; never, if it has none to give.
    async fn answer(&mut self) -> Option<Said> {
        if self.is_done {
            return pending().await;
        }
        let said = self.asking.as_mut().await;
        self.is_done = true;
        said
    }
}

async fn elicited<F>(elicit: Option<F>, message: String) -> Option<Said>
where
    F: AsyncFnOnce(Box<RawValue>) -> Option<Outcome>,
{
    let params = elicitation::params(&message)?;
    elicitation::answer(&elicit?(params).await?)
}

/// What is told of one whose time is over: whether it was given.
fn over(approval: Approval) -> Answer {
    match approval.decided_by {
        Some(by) => Answer::Lapsed { id: approval.id, by },
        None => Answer::TimedOut { id: approval.id },
    }
}

fn denied(approval: Approval) -> Answer {
    let by = approval.decided_by.unwrap_or_else(|| approval.user.clone());
    Answer::Denied { id: approval.id, by }
}
