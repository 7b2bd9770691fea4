//! The requests of one call of the stateless era: each is answered with what came of the call or with what it asks, and the
//! next one goes on with it, in this process or in another.

use std::sync::Arc;

use serde_json::value::RawValue;
use tokio::time::Instant;

use super::conversation::{FAILED, Guard};
use super::refusal::{code, failure};
use super::relay::{Claim, Reply};
use super::rounds::{self, Owner, Parked, Rounds, Turn};
use super::service::{Call, Host, Service};
use crate::message::{Outcome, Request};

/// Lets the service work on a call for as long as that takes, whoever is connected meanwhile.
pub(super) fn begin_rounds<S: Service>(service: Arc<S>, call: Call<S::Principal>, rounds: Arc<Rounds>) {
    struct Ended(Arc<Rounds>, Option<Outcome>);
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

/// Answers one request of a call: with what came of it, or with what it asks.
pub(super) async fn attend<S: Service>(
    service: &S,
    parked: &Arc<Parked<S::Principal>>,
    (host, request): (&Host<S::Principal>, &Request),
    rounds: &Arc<Rounds>,
    mut guard: Guard,
) {
    let turn = tokio::select! {
        turn = rounds.turn() => turn,
        () = guard.cancel.wait() => {
            rounds.cancel.now();
            Turn::Over(failure(code::INTERNAL_ERROR, "the request was cancelled"))
        }
    };
    let (requests, anew) = match turn {
        Turn::Over(outcome) => {
            guard.written = rounds.written.clone();
            return guard.answer(outcome).await;
        }
        Turn::Asks { requests, anew } => (requests, anew),
    };
    let owner = Owner { principal: host.principal.clone(), bearer: host.bearer.clone() };
    let outcome = match park(service, parked, owner, (rounds, anew)).await {
        Ok(ticket) => asked(service, (host, request), &requests, &ticket).await,
        Err(refused) => refused,
    };
    // Nobody will come back with a state that nobody was given.
    if matches!(outcome, Outcome::Error(_)) || guard.cancel.is_cancelled() {
        rounds.cancel.now();
    }
    rounds.mark_sent();
    guard.answer(outcome).await;
}

/// Lets a call wait for its host; the ticket that it waits under.
async fn park<S: Service>(
    service: &S,
    parked: &Arc<Parked<S::Principal>>,
    owner: Owner<S::Principal>,
    (rounds, anew): (&Arc<Rounds>, Option<Box<RawValue>>),
) -> Result<Arc<str>, Outcome> {
    let ticket = super::new_session_id();
    let principal = owner.principal.clone();
    if !parked.park(&ticket, owner, rounds) {
        return Err(failure(code::INTERNAL_ERROR, "too many calls wait for their hosts"));
    }
    service.park(&principal, &ticket, anew.as_deref()).await?;
    Ok(ticket)
}

/// The answer that asks the host.
async fn asked<S: Service>(
    service: &S,
    (host, request): (&Host<S::Principal>, &Request),
    requests: &str,
    ticket: &str,
) -> Outcome {
    match service.seal(host, request, ticket).await {
        Ok(state) => rounds::input_required(requests, &state),
        Err(refused) => refused,
    }
}

/// How a call goes on for which its host has come back.
pub(super) enum GoesOn {
    /// With these answers.
    Here(Arc<Rounds>),
    /// From its beginning.
    Anew(Box<RawValue>),
    /// It has gone on elsewhere.
    Elsewhere(Outcome),
}

pub(super) async fn go_on<S: Service>(
    service: &S,
    parked: &Parked<S::Principal>,
    (host, request): (&Host<S::Principal>, &Request),
    state: &str,
) -> Result<GoesOn, Outcome> {
    let ticket = service.unseal(host, request, state).await?;
    match service.claim(host, request, &ticket).await? {
        Claim::Here => parked.take(&ticket, &host.principal).map(GoesOn::Here).ok_or_else(forgotten),
        Claim::Anew(anew) => Ok(GoesOn::Anew(anew)),
        Claim::Elsewhere(Reply::Over(outcome)) => Ok(GoesOn::Elsewhere(outcome)),
        Claim::Elsewhere(Reply::Asks { requests, ticket }) => {
            Ok(GoesOn::Elsewhere(asked(service, (host, request), &requests, &ticket).await))
        }
    }
}

/// Another process goes on with a call that waits here: it does not wait any longer.
pub(crate) fn give_up<S: Service>(parked: &Parked<S::Principal>, ticket: &str) {
    if let Some((_, rounds)) = parked.take_any(ticket) {
        rounds.cancel.now();
    }
}

/// Goes on with a call that waits here, for a host that has come back to another process; nothing, if it does not.
pub(crate) async fn go_on_for_another<S: Service>(
    service: &S,
    parked: &Arc<Parked<S::Principal>>,
    ticket: &str,
    request: &Request,
) -> Option<Reply> {
    let (owner, rounds) = parked.take_any(ticket)?;
    rounds.answer(request, Instant::now());
    let (requests, anew) = match rounds.turn().await {
        Turn::Over(outcome) => return Some(Reply::Over(outcome)),
        Turn::Asks { requests, anew } => (requests, anew),
    };
    Some(match park(service, parked, owner, (&rounds, anew)).await {
        Ok(ticket) => {
            rounds.mark_sent();
            Reply::Asks { requests, ticket: ticket.to_string() }
        }
        Err(refused) => {
            rounds.cancel.now();
            Reply::Over(refused)
        }
    })
}

/// Why nobody goes on with a call.
fn forgotten() -> Outcome {
    let message =
        "nothing waits for this `requestState`: it was used, or too much time has passed; make the call anew";
    failure(code::INVALID_PARAMS, message)
}
