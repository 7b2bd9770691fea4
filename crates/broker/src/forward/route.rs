//! A host's request on its way to one upstream, or to each in turn. Owns the words for what went wrong on the way.

use std::sync::Arc;
use std::time::Duration;

use embody_wire::Outcome;
use embody_wire::message::ErrorObject;
use embody_wire::serve::{Call, code, failure};
use embody_wire::upstream::{Calling, Link};
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::{gated, printable};
use crate::carry::{Carried, Trip, carry};
use crate::session::Session;
use crate::upstream::{Health, Role, Upstream};
use crate::{Broker, Principal};

/// A request of a host that is being answered.
#[derive(Clone, Copy)]
pub(super) struct Asking<'a> {
    pub(super) broker: &'a Broker,
    pub(super) session: &'a Arc<Session>,
    pub(super) call: &'a Arc<Call<Principal>>,
}

impl<'a> Asking<'a> {
    /// Its parameters as they came.
    pub(super) fn params(self) -> Option<&'a RawValue> {
        self.call.request.params.as_deref()
    }

    /// Sends it to this upstream as a read of this, if the gate lets it pass.
    pub(super) async fn read(
        self,
        upstream: &Arc<Upstream>,
        what: &str,
        params: Option<&RawValue>,
    ) -> Outcome {
        let sent = gated::send(self, upstream, what, params).await;
        sent.map_or_else(|refused| refused, |carried| words(upstream, carried))
    }

    /// Sends it to each of these in their order, until one answers that does not say that it is not theirs; if none does,
    /// what came of the first. Those that are away are passed over. `None` if nobody was asked.
    pub(super) async fn read_in_turn(
        self,
        upstreams: &[&Arc<Upstream>],
        what: &str,
        params: Option<&RawValue>,
    ) -> Option<(Outcome, Option<&'a Arc<Upstream>>)> {
        let session: &'a Arc<Session> = self.session;
        let mut first = None;
        for upstream in upstreams.iter().filter(|upstream| is_reachable(upstream)) {
            let sent = gated::send(self, upstream, what, params).await;
            let is_last = match &sent {
                Ok(Carried::Answered(outcome)) => !is_not_theirs(outcome),
                Ok(Carried::Withdrawn | Carried::Unwanted) => true,
                // One that fails does not stand between the host and the others.
                Ok(_) => false,
                // Nor does one that is denied; one that waits for an approval ends the search.
                Err(_) => !gated::is_denied(self, upstream, what, params),
            };
            let outcome = sent.map_or_else(|refused| refused, |carried| words(upstream, carried));
            if is_last {
                return Some((outcome, session.upstream(&upstream.spec().name)));
            }
            first.get_or_insert(outcome);
        }
        first.map(|outcome| (outcome, None))
    }

    /// Sends what is about a task or a list, which is not recorded, with these parameters.
    pub(super) async fn ask(
        self,
        upstream: &Upstream,
        params: Option<&RawValue>,
    ) -> Result<Carried, Outcome> {
        let (spec, method) = (upstream.spec(), &self.call.request.method);
        let permit = gated::permit(&self.broker.setup, self.session, upstream, method)
            .ok_or_else(|| gated::denied(upstream, method))?;
        let link = match upstream.link().await {
            Ok(link) => link,
            Err(away) => return Ok(Carried::Away(away.to_string())),
        };
        let trip = Trip {
            session: self.session,
            upstream: &spec.name,
            link: &link,
            call: self.call,
            limit: spec.call_timeout,
            permit: &permit,
        };
        Ok(carry(trip, Calling { method, params }).await)
    }

    /// Waits for the servers that are still starting and may have this. Nothing is known of what a body has that has not
    /// started: none of the others answers for it.
    pub(super) async fn started(self, what: &str) -> Result<(), Outcome> {
        unheard(self.session, what, |_| true).await.map_or(Ok(()), |body| Err(not_started(body, what)))
    }

    /// Waits until every upstream has said what it is or has failed, for as long as a list may take.
    pub(super) async fn settled(self) {
        let all = async {
            for upstream in self.session.upstreams() {
                upstream.settled().await;
            }
        };
        let _ = timeout(self.broker.setup.times.list, all).await;
    }

    /// The upstreams that say that they have this, in their order.
    pub(super) fn with(self, capability: &str) -> Vec<&'a Arc<Upstream>> {
        self.session.upstreams().filter(|upstream| declares(upstream, capability)).collect()
    }

    /// Why not every upstream was asked; empty if all were.
    pub(super) fn absent(self) -> String {
        let absent = self.session.upstreams().filter(|upstream| !is_reachable(upstream));
        let words = absent.map(|upstream| {
            let reason = upstream.state().reason.unwrap_or_else(|| "it is being connected".to_owned());
            format!("; `{}` is unavailable: {reason}", upstream.spec().name)
        });
        words.collect()
    }
}

/// Waits, for as long as their starts may take, until those that may have this have started: as rules call it, and if `is_meant`
/// holds. The first body of which nothing is known afterwards.
pub(super) async fn unheard<'a>(
    session: &'a Session,
    what: &str,
    is_meant: impl Fn(&Upstream) -> bool,
) -> Option<&'a Arc<Upstream>> {
    let may_have = |upstream: &&Arc<Upstream>| match &upstream.spec().role {
        Role::Mind => true,
        Role::Body(body) => is_meant(upstream) && body.exposes(&upstream.spec().name, what),
    };
    // They start at the same time, so the waits do not add up.
    for upstream in session.upstreams().filter(may_have) {
        upstream.started().await;
    }
    session.bodies.iter().filter(may_have).find(|body| body.is_unheard())
}

/// The answer to a request for what may belong to a body that has not started.
pub(super) fn not_started(body: &Upstream, what: &str) -> Outcome {
    let name = &body.spec().name;
    let why = body.state().reason.map_or_else(String::new, |reason| format!(" ({reason})"));
    let words =
        format!("`{name}` is still starting{why}, and `{}` may be its own; try again later", printable(what));
    failure(code::INTERNAL_ERROR, words)
}

/// Whether it is connected now.
pub(super) fn is_there(upstream: &Upstream) -> bool {
    upstream.state().health == Health::Connected
}

/// Whether it can be asked: it is connected, or it does not run and is started by being asked.
pub(super) fn is_reachable(upstream: &Upstream) -> bool {
    upstream.health().is_fine()
}

/// Whether its greeting has this capability.
pub(super) fn declares(upstream: &Upstream, capability: &str) -> bool {
    upstream.capabilities().is_some_and(|known| known.get(capability).is_some_and(|value| !value.is_null()))
}

/// What the host hears of it.
pub(crate) fn words(upstream: &Upstream, carried: Carried) -> Outcome {
    let name = &upstream.spec().name;
    let reason = match carried {
        Carried::Answered(outcome) => return outcome,
        Carried::Away(reason) => format!("`{name}` is unavailable: {reason}"),
        Carried::NotSent(error) => format!("it could not be sent to `{name}`: {error}"),
        Carried::Lost(error) => format!("`{name}` went away before it answered: {error}"),
        Carried::TimedOut => format!("`{name}` gave no answer in time"),
        Carried::Withdrawn | Carried::Unwanted => "the host has cancelled it".to_owned(),
    };
    failure(code::INTERNAL_ERROR, reason)
}

/// Asks on the broker's own behalf. What is said on the way is for whoever listens to the connection.
pub(super) async fn ask(
    upstream: &Upstream,
    link: &Arc<Link>,
    method: &str,
    params: Option<&RawValue>,
    limit: Duration,
) -> Option<Outcome> {
    upstream.ask(link, Calling { method, params }, limit).await.ok()
}

/// Whether somebody says that they do not have what is asked for. Besides the code that is meant for it, servers use that
/// of wrong parameters, and one that means nothing.
fn is_not_theirs(outcome: &Outcome) -> bool {
    let Outcome::Error(error) = outcome else { return false };
    let read: Result<ErrorObject, _> = serde_json::from_str(error.get());
    read.is_ok_and(|error| {
        matches!(error.code, code::RESOURCE_NOT_FOUND | code::INVALID_PARAMS | code::METHOD_NOT_FOUND | 0)
    })
}
