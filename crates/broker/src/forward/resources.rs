//! `resources/read`, `subscribe` and `unsubscribe`: routed to the upstream that listed the URI, else to one with a matching
//! template, else to the only one with resources, else to each in turn. Waits until every body that may have it has started.
//! The schemes of the mind and the broker never resolve to a body; the broker's own resource has the content of
//! `runtime_status`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use embody_wire::server::{code, failure_with};
use embody_wire::{Notification, Outcome};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::route::{HostRequest, ask, declares, first_not_started, is_done};
use super::{notification_queue, printable, read_gate};
use crate::BrokerConfig;
use crate::params;
use crate::pipeline::respond::raw;
use crate::policy::Kind;
use crate::session::Session;
use crate::upstream::Upstream;

const WATCH_TIMEOUT: Duration = Duration::from_secs(5);

/// Subscribes or unsubscribes resources for a stateless host, in the background.
pub(crate) fn watch(config: &Arc<BrokerConfig>, session: &Arc<Session>, uris: Vec<String>, on: bool) {
    let Some(runtime) = tokio::runtime::Handle::try_current().ok().filter(|_| !uris.is_empty()) else {
        return;
    };
    let (config, session) = (Arc::clone(config), Arc::clone(session));
    runtime.spawn(async move {
        for uri in uris {
            watch_one(&config, &session, uri, on).await;
        }
    });
}

async fn watch_one(config: &BrokerConfig, session: &Session, uri: String, on: bool) {
    if uri.len() > params::NAME_BYTES {
        return tracing::warn!(bytes = uri.len(), "a resource subscription is ignored: the URI is too long");
    }
    let known = &session.routes;
    if uri == STATUS {
        return known.watches_status.store(on, Ordering::Release);
    }
    let upstreams = || candidates(session, &uri).filter(|upstream| declares(upstream, "resources"));
    let owner = known.subscribed_upstream(upstreams(), &uri).or_else(|| known.owner_of_uri(upstreams, &uri));
    let (method, params) =
        (if on { "resources/subscribe" } else { "resources/unsubscribe" }, raw(&json!({ "uri": uri })));
    if owner.is_none() && on && Scheme::of(&uri).is_none() {
        let name = Kind::Resource.name(&uri);
        if let Some(body) = first_not_started(session, |_| Some(name.clone())).await {
            let body = &body.spec().name;
            return tracing::warn!(body, "a resource subscription is ignored: its body may not have started");
        }
        // The listener may have left meanwhile.
        if session.is_stateless() && !session.notifier.listeners.is_watched(&uri) {
            return;
        }
    }
    // The owner of an unlisted resource is unknown: the first server that accepts the subscription is used.
    let asked: Vec<&Arc<Upstream>> = owner.map_or_else(|| upstreams().collect(), |owner| vec![owner]);
    for upstream in asked {
        let is_open = if on {
            read_gate::may_watch(config, session, upstream, &uri).await
        } else {
            known.subscribed_upstream(std::iter::once(upstream), &uri).is_some()
        };
        let Some(link) = (if is_open { upstream.lease().await.ok() } else { None }) else { continue };
        let name = &upstream.spec().name;
        if ask(upstream, &link, method, Some(&params), WATCH_TIMEOUT)
            .await
            .is_some_and(|asked| is_done(&asked))
        {
            if on {
                known.subscribe(name, uri, params);
            } else {
                known.unsubscribe(name, &uri);
            }
            return known.update_keep_alive(upstream);
        }
    }
}

/// The upstreams that may have a resource: the mind's schemes belong to the mind only, the broker's to no server.
fn candidates<'a>(session: &'a Session, uri: &str) -> impl Iterator<Item = &'a Arc<Upstream>> + use<'a> {
    let scheme = Scheme::of(uri);
    session.upstreams().filter(move |upstream| match scheme {
        None => true,
        Some(Scheme::Mind) => upstream.spec().role.is_mind(),
        Some(Scheme::Broker) => false,
    })
}

pub(super) async fn answer(request: HostRequest<'_>) -> Outcome {
    let method = &*request.call.request.method;
    #[derive(Deserialize)]
    struct Params {
        uri: String,
    }
    let uri = match params::read(method, request.params()) {
        Ok(Params { uri }) => uri,
        Err(outcome) => return outcome,
    };
    if let Err(outcome) = params::check_length("the URI", &uri) {
        return outcome;
    }
    if uri == STATUS {
        return answer_status(request).await;
    }
    let known = &request.session.routes;
    let (outcome, from) = send(request, &uri, method != "resources/read").await;
    if let (Outcome::Result(_), Some(from)) = (&outcome, from) {
        let name = &from.spec().name;
        match method {
            "resources/subscribe" => {
                // Sent again to every new connection, without the members of this request.
                let params = raw(&json!({ "uri": uri }));
                known.subscribe(name, uri, params);
            }
            "resources/unsubscribe" => known.unsubscribe(name, &uri),
            _ => known.add_uri(name, uri),
        }
        known.update_keep_alive(from);
    }
    outcome
}

async fn send<'a>(
    request: HostRequest<'a>,
    uri: &str,
    is_subscription: bool,
) -> (Outcome, Option<&'a Arc<Upstream>>) {
    let (known, params, item) = (&request.session.routes, request.params(), Kind::Resource.name(uri));
    let upstreams = || candidates(request.session, uri);
    let watched = is_subscription.then(|| known.subscribed_upstream(upstreams(), uri)).flatten();
    if let Some(owner) = watched.or_else(|| known.owner_of_uri(upstreams, uri)) {
        return (request.read(owner, &item, params).await, Some(owner));
    }
    match Scheme::of(uri) {
        None => {
            if let Err(outcome) = request.wait_started(&item).await {
                return (outcome, None);
            }
        }
        Some(_) => request.wait_settled().await,
    }
    let with: Vec<&Arc<Upstream>> = upstreams().filter(|upstream| declares(upstream, "resources")).collect();
    match &*with {
        [only] => (request.read(only, &item, params).await, Some(*only)),
        several => match request.read_in_turn(several, &item, params).await {
            Some(read) => read,
            None => {
                let message = format!("unknown resource `{}`{}", printable(uri), request.absent().await);
                (failure_with(code::RESOURCE_NOT_FOUND, message, Some(json!({"uri": uri}))), None)
            }
        },
    }
}

pub(super) fn owner<'a>(request: HostRequest<'a>, uri: &str) -> Option<&'a Arc<Upstream>> {
    let mind = || candidates(request.session, uri).next().filter(|_| Scheme::of(uri) == Some(Scheme::Mind));
    request.session.routes.owner_of_uri(|| candidates(request.session, uri), uri).or_else(mind)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme {
    Mind,
    Broker,
}

impl Scheme {
    /// The owner of this URI or template; `None` if it may belong to any upstream. Schemes are case-insensitive.
    pub(super) fn of(uri: &str) -> Option<Self> {
        let (scheme, _) = uri.split_once(':')?;
        let is = |known: &str| scheme.eq_ignore_ascii_case(known);
        if is("memory") || is("instructions") {
            return Some(Self::Mind);
        }
        is("embody").then_some(Self::Broker)
    }
}

const STATUS: &str = "embody://runtime/status";

pub(super) fn status_resource() -> Box<RawValue> {
    raw(&json!({
        "uri": STATUS,
        "name": "runtime_status",
        "title": "Show the status",
        "description": "Whether this session is bootstrapped, what is degraded and why, which servers are connected, and which approvals wait.",
        "mimeType": "application/json",
    }))
}

async fn answer_status(request: HostRequest<'_>) -> Outcome {
    let known = &request.session.routes;
    match &*request.call.request.method {
        "resources/subscribe" => known.watches_status.store(true, Ordering::Release),
        "resources/unsubscribe" => known.watches_status.store(false, Ordering::Release),
        _ => {
            let status = crate::builtin_tools::status::of(&request.broker.config, request.session).await;
            let text = serde_json::to_string_pretty(&status).unwrap_or_default();
            let contents = json!([{"uri": STATUS, "mimeType": "application/json", "text": text}]);
            return Outcome::Result(raw(&json!({ "contents": contents })));
        }
    }
    Outcome::Result(raw(&json!({})))
}

pub(super) fn status_changed(session: &Arc<Session>) {
    if session.routes.watches_status.load(Ordering::Acquire) {
        let params = Some(raw(&json!({"uri": STATUS})));
        let updated = Notification { method: "notifications/resources/updated".to_owned(), params };
        // An empty name matches no upstream.
        notification_queue::to_host(session, "", updated);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheme_is_the_minds_or_the_brokers_however_it_is_written() {
        for (uri, whose) in [
            ("memory://1", Some(Scheme::Mind)),
            ("MEMORY:1", Some(Scheme::Mind)),
            ("instructions://current", Some(Scheme::Mind)),
            ("embody://runtime/status", Some(Scheme::Broker)),
            ("memory://{id}", Some(Scheme::Mind)),
            ("memory", None),
            ("file:///memory://1", None),
            ("{scheme}://x", None),
        ] {
            assert_eq!(Scheme::of(uri), whose, "{uri}");
        }
    }
}
