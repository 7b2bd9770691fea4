//! The requests of one multi-round call: each is answered with the call's result or with its server requests, and the
//! next one resumes the call, in this process or in another.

use std::sync::Arc;

use serde_json::value::RawValue;
use tokio::time::Instant;

use super::connection::{CallGuard, FAILED};
use super::errors::{code, failure};
use super::multi_round::{self, MultiRoundCall, Owner, Round, SuspendedCalls};
use super::replica::{Claim, ResumeResult};
use super::service::{Call, Host, Service};
use crate::message::{Outcome, Request};

/// Runs a call to its end, independently of the host's connections.
pub(super) fn spawn_call<S: Service>(service: Arc<S>, call: Call<S::Principal>, rounds: Arc<MultiRoundCall>) {
    struct Ended(Arc<MultiRoundCall>, Option<Outcome>);
    impl Drop for Ended {
        fn drop(&mut self) {
            let failed = || failure(code::INTERNAL_ERROR, FAILED);
            self.0.finish(self.1.take().unwrap_or_else(failed));
        }
    }
    tokio::spawn(Box::pin(async move {
        let mut ended = Ended(rounds, None);
        ended.1 = Some(service.call(call).await);
    }));
}

/// Answers one request of a call: with its result, or with its server requests.
pub(super) async fn answer_round<S: Service>(
    service: &S,
    suspended: &Arc<SuspendedCalls<S::Principal>>,
    (host, request): (&Host<S::Principal>, &Request),
    rounds: &Arc<MultiRoundCall>,
    mut guard: CallGuard,
) {
    let turn = tokio::select! {
        turn = rounds.turn() => turn,
        () = guard.cancel.token.cancelled() => {
            rounds.cancel.cancel();
            Round::Done(failure(code::INTERNAL_ERROR, "the request was cancelled"))
        }
    };
    let (requests, resume_data) = match turn {
        Round::Done(outcome) => {
            guard.on_flushed = rounds.on_flushed.clone();
            return guard.answer(outcome).await;
        }
        Round::InputRequired { requests, resume_data } => (requests, resume_data),
    };
    let owner = Owner { principal: host.principal.clone(), bearer: host.bearer.clone() };
    let outcome = match suspend(service, suspended, owner, (rounds, resume_data)).await {
        Ok(ticket) => asked(service, (host, request), &requests, &ticket).await,
        Err(refused) => refused,
    };
    // The host was not given a state, so it cannot resume the call.
    if matches!(outcome, Outcome::Error(_)) || guard.cancel.token.is_cancelled() {
        rounds.cancel.cancel();
    }
    rounds.mark_sent();
    guard.answer(outcome).await;
}

/// Suspends a call and returns its ticket.
async fn suspend<S: Service>(
    service: &S,
    suspended: &Arc<SuspendedCalls<S::Principal>>,
    owner: Owner<S::Principal>,
    (rounds, resume_data): (&Arc<MultiRoundCall>, Option<Box<RawValue>>),
) -> Result<Arc<str>, Outcome> {
    let ticket = super::new_session_id();
    let principal = owner.principal.clone();
    if !suspended.suspend(&ticket, owner, rounds) {
        return Err(failure(code::INTERNAL_ERROR, "too many calls wait for their hosts"));
    }
    service.suspend(&principal, &ticket, resume_data.as_deref()).await?;
    Ok(ticket)
}

async fn asked<S: Service>(
    service: &S,
    (host, request): (&Host<S::Principal>, &Request),
    requests: &str,
    ticket: &str,
) -> Outcome {
    match service.seal(host, request, ticket).await {
        Ok(state) => multi_round::input_required(requests, &state),
        Err(refused) => refused,
    }
}

/// How a call continues when its host resumes it.
pub(super) enum Resumption {
    Here(Arc<MultiRoundCall>),
    Restart(Box<RawValue>),
    Elsewhere(Outcome),
}

pub(super) async fn resume<S: Service>(
    service: &S,
    suspended: &SuspendedCalls<S::Principal>,
    (host, request): (&Host<S::Principal>, &Request),
    state: &str,
) -> Result<Resumption, Outcome> {
    let ticket = service.unseal(host, request, state).await?;
    match service.claim(host, request, &ticket).await? {
        Claim::Here => suspended.take(&ticket, &host.principal).map(Resumption::Here).ok_or_else(forgotten),
        Claim::Restart(resume_data) => Ok(Resumption::Restart(resume_data)),
        Claim::Elsewhere(ResumeResult::Done(outcome)) => Ok(Resumption::Elsewhere(outcome)),
        Claim::Elsewhere(ResumeResult::InputRequired { requests, ticket }) => {
            Ok(Resumption::Elsewhere(asked(service, (host, request), &requests, &ticket).await))
        }
    }
}

/// Removes a suspended call that another process resumes.
pub(crate) fn cancel_suspended<S: Service>(suspended: &SuspendedCalls<S::Principal>, ticket: &str) {
    if let Some((_, rounds)) = suspended.take_any(ticket) {
        rounds.cancel.cancel();
    }
}

/// Resumes a call that is suspended here, for a host that sent its answers to another process; `None` if it is not
/// suspended here.
pub(crate) async fn resume_for_replica<S: Service>(
    service: &S,
    suspended: &Arc<SuspendedCalls<S::Principal>>,
    ticket: &str,
    request: &Request,
) -> Option<ResumeResult> {
    let (owner, rounds) = suspended.take_any(ticket)?;
    rounds.answer(request, Instant::now());
    let (requests, resume_data) = match rounds.turn().await {
        Round::Done(outcome) => return Some(ResumeResult::Done(outcome)),
        Round::InputRequired { requests, resume_data } => (requests, resume_data),
    };
    Some(match suspend(service, suspended, owner, (&rounds, resume_data)).await {
        Ok(ticket) => {
            rounds.mark_sent();
            ResumeResult::InputRequired { requests, ticket: ticket.to_string() }
        }
        Err(refused) => {
            rounds.cancel.cancel();
            ResumeResult::Done(refused)
        }
    })
}

/// The error for a call that no process can resume.
fn forgotten() -> Outcome {
    let message =
        "nothing waits for this `requestState`: it was used, or too much time has passed; make the call anew";
    failure(code::INVALID_PARAMS, message)
}
