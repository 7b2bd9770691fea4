//! Requests of the stateless era. Those of one multi-round call are each answered with its result or with its server requests,
//! and the next one resumes the call, in this process or in another.

use std::pin::Pin;
use std::sync::Arc;

use serde_json::value::RawValue;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::connection::{CallGuard, Cancellation, Connection, FAILED, IncomingRequest, PendingResponses};
use super::era::RequestMeta;
use super::errors::{code, failure};
use super::multi_round::{self, MultiRoundCall, Owner, Round, SuspendedCalls};
use super::outbound::Outbound;
use super::replica::{Claim, ResumeResult};
use super::service::{Call, Host, Service};
use crate::message::{Outcome, Request};

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A service whose calls may ask hosts of the stateless era as they ask others: a call waits while its host answers, and
/// continues with the request that carries the answers.
pub trait MultiRoundService<P>: Send + Sync {
    /// A call is suspended under this ticket, which cannot be guessed. The resume data is what another process needs to
    /// restart the call.
    fn suspend<'a>(
        &'a self,
        principal: &'a P,
        ticket: &'a str,
        resume_data: Option<&'a RawValue>,
    ) -> BoxFuture<'a, Result<(), Outcome>>;

    /// A host resumes the call with this ticket, here or in another process. A ticket is valid once; a second claim
    /// fails.
    fn claim<'a>(
        &'a self,
        host: &'a Host<P>,
        request: &'a Request,
        ticket: &'a str,
    ) -> BoxFuture<'a, Result<Claim, Outcome>>;

    /// Signs a ticket into the state that a host is given with a server request. [`MultiRoundService::verify_state`] must
    /// return the ticket only for the same principal and the same request.
    fn sign_state<'a>(
        &'a self,
        host: &'a Host<P>,
        request: &'a Request,
        ticket: &'a str,
    ) -> BoxFuture<'a, Result<String, Outcome>>;

    /// Returns the ticket in a state that a request brings back.
    fn verify_state<'a>(
        &'a self,
        host: &'a Host<P>,
        request: &'a Request,
        state: &'a str,
    ) -> BoxFuture<'a, Result<String, Outcome>>;
}

impl<S: Service> Connection<S> {
    /// Runs a request of the stateless era, where the request alone describes its host.
    pub(crate) fn begin_stateless(
        &self,
        arrived: IncomingRequest,
        meta: RequestMeta,
        outbound: Outbound,
        done: Option<Arc<PendingResponses>>,
    ) -> Option<JoinHandle<()>> {
        let host = Arc::new(self.host.stateless_request(meta.into_params()));
        if self.service.multi_round().is_some() && multi_round::may_ask(&arrived.request.method) {
            return self.run_in_rounds(arrived, host, outbound, done);
        }
        self.run(arrived, host, outbound, done)
    }

    /// Runs a call that may ask its host for input, or resumes a suspended one.
    fn run_in_rounds(
        &self,
        IncomingRequest { request, param_headers }: IncomingRequest,
        host: Arc<Host<S::Principal>>,
        outbound: Outbound,
        done: Option<Arc<PendingResponses>>,
    ) -> Option<JoinHandle<()>> {
        let (number, arrived) = (host.arrives(), Instant::now());
        let share = done.as_ref().map(|done| Arc::clone(&done.share));
        let guard = self.register(&request.id, outbound.clone(), done)?;
        let (service, suspended) = (Arc::clone(&self.service), Arc::clone(&self.suspended));
        let shutdown = self.shutdown.clone();
        Some(tokio::spawn(async move {
            let Some(rounds_service) = service.multi_round() else { return };
            let begun = match multi_round::request_state(&request) {
                Ok(None) => Ok(None),
                Ok(Some(state)) => {
                    resume(rounds_service, &suspended, (&host, &request), &state).await.map(Some)
                }
                Err(unreadable) => Err(unreadable),
            };
            let resume_data = match begun {
                Ok(None) => None,
                Ok(Some(Resumption::Restart(resume_data))) => Some(resume_data),
                Ok(Some(Resumption::Here(rounds))) => {
                    rounds.attach(outbound);
                    rounds.answer(&request, arrived);
                    return answer_round(rounds_service, &suspended, (&host, &request), &rounds, guard).await;
                }
                Ok(Some(Resumption::Elsewhere(outcome))) | Err(outcome) => {
                    return guard.answer(outcome).await;
                }
            };
            let rounds = Arc::new(MultiRoundCall::new(&request, outbound, resume_data));
            let call = Call {
                request: request.clone(),
                host: Arc::clone(&host),
                param_headers,
                number,
                outbound: Outbound::MultiRound(Arc::clone(&rounds)),
                cancel: Cancellation { token: rounds.cancel.clone(), ..Cancellation::default() },
                on_flushed: rounds.on_flushed.clone(),
                shutdown,
                _share: share,
            };
            spawn_call(Arc::clone(&service), call, Arc::clone(&rounds));
            answer_round(rounds_service, &suspended, (&host, &request), &rounds, guard).await;
        }))
    }
}

/// Runs a call to its end, independently of the host's connections.
fn spawn_call<S: Service>(service: Arc<S>, call: Call<S::Principal>, rounds: Arc<MultiRoundCall>) {
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
async fn answer_round<P: Clone + PartialEq + Send + 'static>(
    service: &dyn MultiRoundService<P>,
    suspended: &Arc<SuspendedCalls<P>>,
    (host, request): (&Host<P>, &Request),
    rounds: &Arc<MultiRoundCall>,
    mut guard: CallGuard,
) {
    let round = tokio::select! {
        round = rounds.next_round() => round,
        () = guard.cancel.token.cancelled() => {
            rounds.cancel.cancel();
            Round::Done(failure(code::INTERNAL_ERROR, "the request was cancelled"))
        }
    };
    let (requests, resume_data) = match round {
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
async fn suspend<P: Clone + PartialEq + Send + 'static>(
    service: &dyn MultiRoundService<P>,
    suspended: &Arc<SuspendedCalls<P>>,
    owner: Owner<P>,
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

async fn asked<P>(
    service: &dyn MultiRoundService<P>,
    (host, request): (&Host<P>, &Request),
    requests: &str,
    ticket: &str,
) -> Outcome {
    match service.sign_state(host, request, ticket).await {
        Ok(state) => multi_round::input_required(requests, &state),
        Err(refused) => refused,
    }
}

/// How a call continues when its host resumes it.
enum Resumption {
    Here(Arc<MultiRoundCall>),
    Restart(Box<RawValue>),
    Elsewhere(Outcome),
}

async fn resume<P: PartialEq + Send + 'static>(
    service: &dyn MultiRoundService<P>,
    suspended: &SuspendedCalls<P>,
    (host, request): (&Host<P>, &Request),
    state: &str,
) -> Result<Resumption, Outcome> {
    let ticket = service.verify_state(host, request, state).await?;
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
pub(crate) fn cancel_suspended<P: Clone + PartialEq + Send + 'static>(
    suspended: &SuspendedCalls<P>,
    ticket: &str,
) {
    if let Some((_, rounds)) = suspended.take_any(ticket) {
        rounds.cancel.cancel();
    }
}

/// Resumes a call that is suspended here, for a host that sent its answers to another process; `None` if it is not
/// suspended here.
pub(crate) async fn resume_for_replica<P: Clone + PartialEq + Send + 'static>(
    service: &dyn MultiRoundService<P>,
    suspended: &Arc<SuspendedCalls<P>>,
    ticket: &str,
    request: &Request,
) -> Option<ResumeResult> {
    let (owner, rounds) = suspended.take_any(ticket)?;
    rounds.answer(request, Instant::now());
    let (requests, resume_data) = match rounds.next_round().await {
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
    let message = "unknown `requestState`: it was used or has expired; make the call again without it";
    failure(code::INVALID_PARAMS, message)
}
