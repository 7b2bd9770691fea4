//! Sends a host's request to one upstream, or to each in turn, and builds the error messages for failures on the way.

use std::sync::Arc;
use std::time::Duration;

use embody_store::Principal;
use embody_wire::Outcome;
use embody_wire::message::ErrorObject;
use embody_wire::server::{Call, code, failure};
use embody_wire::upstream::{Link, OutgoingCall};
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::{printable, read_gate};
use crate::Broker;
use crate::pipeline::send::{CallResult, UpstreamCall, call_upstream};
use crate::policy::Kind;
use crate::session::untrusted_reads::ERRORS;
use crate::session::{CONNECTING, Session};
use crate::upstream::{Health, Role, Upstream};

#[derive(Clone, Copy)]
pub(super) struct HostRequest<'a> {
    pub(super) broker: &'a Broker,
    pub(super) session: &'a Arc<Session>,
    pub(super) call: &'a Arc<Call<Principal>>,
}

impl<'a> HostRequest<'a> {
    pub(super) fn params(self) -> Option<&'a RawValue> {
        self.call.request.params.as_deref()
    }

    /// Sends it to this upstream as a read of this item, if the gate permits it.
    pub(super) async fn read(
        self,
        upstream: &Arc<Upstream>,
        item: &str,
        params: Option<&RawValue>,
    ) -> Outcome {
        let sent = read_gate::send(self, upstream, item, params).await;
        self.outcome(upstream, item, sent).await
    }

    /// Sends it to each of these in order, until one does not respond with "not found"; otherwise returns the first outcome.
    /// Skips unavailable upstreams. `None` if none was asked.
    pub(super) async fn read_in_turn(
        self,
        upstreams: &[&Arc<Upstream>],
        item: &str,
        params: Option<&RawValue>,
    ) -> Option<(Outcome, Option<&'a Arc<Upstream>>)> {
        let session: &'a Arc<Session> = self.session;
        let mut first = None;
        for upstream in upstreams.iter().filter(|upstream| is_reachable(upstream)) {
            let sent = read_gate::send(self, upstream, item, params).await;
            let is_last = match &sent {
                Ok(CallResult::Answered(outcome)) => !is_not_found(outcome),
                Ok(CallResult::CancelledUnsent | CallResult::Cancelled) => true,
                // A failing server does not hide the others.
                Ok(_) => false,
                // Nor does a denied one; a pending approval ends the search.
                Err(_) => !read_gate::is_denied(self, upstream, item, params),
            };
            if is_last {
                let outcome = self.outcome(upstream, item, sent).await;
                return Some((outcome, session.upstream(&upstream.spec().name)));
            }
            first.get_or_insert((upstream, sent));
        }
        let (upstream, sent) = first?;
        Some((self.outcome(upstream, item, sent).await, None))
    }

    pub(super) async fn outcome(
        self,
        upstream: &Upstream,
        item: &str,
        sent: Result<CallResult, Outcome>,
    ) -> Outcome {
        match sent {
            Ok(result) => outcome_for_host(self.session, upstream, item, result).await,
            Err(refused) => refused,
        }
    }

    /// Sends a request about a task or a list, which is not recorded, with these parameters.
    pub(super) async fn ask(
        self,
        upstream: &Arc<Upstream>,
        params: Option<&RawValue>,
    ) -> Result<CallResult, Outcome> {
        let (spec, method) = (upstream.spec(), &self.call.request.method);
        let permit = read_gate::permit(&self.broker.config, self.session, upstream, method)
            .ok_or_else(|| read_gate::denied(upstream, method))?;
        let link = match upstream.lease().await {
            Ok(link) => link,
            Err(away) => return Ok(CallResult::Unavailable(away.to_string())),
        };
        let call = UpstreamCall {
            session: self.session,
            upstream,
            item: &Kind::Method.name(method),
            link: &link,
            call: self.call,
            limit: spec.call_timeout,
            permit: &permit,
        };
        Ok(call_upstream(call, OutgoingCall { method, params }).await)
    }

    /// Waits for servers that are still starting and may have this item. If one has not started, its items are unknown and
    /// the others must not answer for it.
    pub(super) async fn wait_started(self, item: &str) -> Result<(), Outcome> {
        let body = first_not_started(self.session, |_| Some(item.to_owned())).await;
        body.map_or(Ok(()), |body| Err(not_started(body, item)))
    }

    /// Waits until every upstream is connected or has failed, at most as long as a list may take.
    pub(super) async fn wait_settled(self) {
        let all = async {
            for upstream in self.session.upstreams() {
                upstream.wait_settled().await;
            }
        };
        let _ = timeout(self.broker.config.settings().times.list, all).await;
    }

    pub(super) fn with(self, capability: &str) -> Vec<&'a Arc<Upstream>> {
        self.session.upstreams().filter(|upstream| declares(upstream, capability)).collect()
    }

    /// Lists the upstreams that were not asked, with reasons; empty if all were asked. May quote an upstream.
    pub(super) async fn absent(self) -> String {
        let mut text = String::new();
        for upstream in self.session.upstreams().filter(|upstream| !is_reachable(upstream)) {
            let name = &upstream.spec().name;
            let reason = match upstream.status().reason {
                Some(reason) => {
                    self.session.mark_read(name, ERRORS).await;
                    reason
                }
                None => CONNECTING.to_owned(),
            };
            text += &format!("; `{name}` is unavailable: {reason}");
        }
        text
    }
}

/// Waits, at most for their start timeouts, for the mind and the bodies that may have an item: `name_at` returns its name in
/// the rules of a body. Returns the first body that was never connected.
pub(super) async fn first_not_started(
    session: &Session,
    name_at: impl Fn(&Upstream) -> Option<String>,
) -> Option<&Arc<Upstream>> {
    let may_own = |upstream: &&Arc<Upstream>| match &upstream.spec().role {
        Role::Mind => true,
        Role::Body(body) => name_at(upstream).is_some_and(|name| body.exposes(&upstream.spec().name, &name)),
    };
    // The servers start in parallel, so the waits do not add up.
    for upstream in session.upstreams().filter(may_own) {
        upstream.wait_started().await;
    }
    session.bodies.iter().filter(may_own).find(|body| body.never_connected())
}

pub(super) fn not_started(body: &Upstream, item: &str) -> Outcome {
    let (name, item) = (&body.spec().name, printable(item));
    // Without the reason, which may quote the server; `runtime_status` has it.
    let message = format!(
        "`{name}` has not started yet, and `{item}` may belong to it; try again later, or see runtime_status"
    );
    failure(code::INTERNAL_ERROR, message)
}

pub(super) fn is_connected(upstream: &Upstream) -> bool {
    upstream.status().health == Health::Connected
}

/// Whether it can be asked: it is connected, or idle and started on demand.
pub(super) fn is_reachable(upstream: &Upstream) -> bool {
    upstream.health().is_fine()
}

pub(super) fn declares(upstream: &Upstream, capability: &str) -> bool {
    upstream.capabilities().is_some_and(|known| known.get(capability).is_some_and(|value| !value.is_null()))
}

/// Converts an upstream's response or error for the host; every one passes through here. Marks untrusted text as read first.
pub(crate) async fn outcome_for_host(
    session: &Session,
    upstream: &Upstream,
    item: &str,
    result: CallResult,
) -> Outcome {
    let name = &upstream.spec().name;
    // Errors may quote the upstream.
    let item = match &result {
        CallResult::Answered(_) => Some(item),
        CallResult::Unavailable(_) | CallResult::NotSent(_) | CallResult::Lost(_) => Some(ERRORS),
        CallResult::TimedOut | CallResult::CancelledUnsent | CallResult::Cancelled => None,
    };
    if let Some(item) = item {
        session.mark_read(name, item).await;
    }
    let reason = match result {
        CallResult::Answered(outcome) => return outcome,
        CallResult::Unavailable(reason) => format!("`{name}` is unavailable: {reason}"),
        CallResult::NotSent(error) => format!("it could not be sent to `{name}`: {error}"),
        CallResult::Lost(error) => format!("the connection to `{name}` was lost before it answered: {error}"),
        CallResult::TimedOut => format!("`{name}` did not answer in time"),
        CallResult::CancelledUnsent | CallResult::Cancelled => "the host cancelled it".to_owned(),
    };
    failure(code::INTERNAL_ERROR, reason)
}

/// Sends a request on the broker's own behalf. Notifications go to the listeners of the connection; the response must reach a
/// host through [`outcome_for_host`] only.
pub(super) async fn ask(
    upstream: &Upstream,
    link: &Arc<Link>,
    method: &str,
    params: Option<&RawValue>,
    limit: Duration,
) -> Option<CallResult> {
    upstream.request(link, OutgoingCall { method, params }, limit).await.ok().map(CallResult::Answered)
}

pub(super) fn is_done(result: &CallResult) -> bool {
    matches!(result, CallResult::Answered(Outcome::Result(_)))
}

/// Whether an upstream responds that it does not have the item. Besides the code for that, servers use "invalid params",
/// "method not found" and 0.
fn is_not_found(outcome: &Outcome) -> bool {
    let Outcome::Error(error) = outcome else { return false };
    let read: Result<ErrorObject, _> = serde_json::from_str(error.get());
    read.is_ok_and(|error| {
        matches!(error.code, code::RESOURCE_NOT_FOUND | code::INVALID_PARAMS | code::METHOD_NOT_FOUND | 0)
    })
}
