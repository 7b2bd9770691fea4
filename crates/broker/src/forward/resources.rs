//! `resources/read`, `subscribe` and `unsubscribe`: to whoever listed the URI, else to whoever has a template for it, else
//! to the only one with resources, else to each in turn until one knows it; but not before every body has started that may have
//! it. What is the mind's by its scheme goes to the mind and nowhere else.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use embody_wire::Outcome;
use embody_wire::server::{code, failure_with};
use serde::Deserialize;
use serde_json::json;

use super::reserved::Scheme;
use super::route::{Asking, ask, declares, first_not_started, is_done};
use super::{gated, own, params, printable};
use crate::BrokerConfig;
use crate::pipeline::respond::raw;
use crate::policy::Kind;
use crate::session::Session;
use crate::upstream::Upstream;

#[derive(Deserialize)]
struct Given {
    uri: String,
}

/// How long a server may take to watch a resource.
const WATCH: Duration = Duration::from_secs(5);

/// Has these resources watched for a stateless host, or no longer. Nobody waits for it.
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
        return tracing::warn!(bytes = uri.len(), "a resource is not watched: its URI is too long");
    }
    let known = &session.known;
    if uri == own::STATUS {
        return known.watches_status.store(on, Ordering::Release);
    }
    let upstreams = || candidates(session, &uri).filter(|upstream| declares(upstream, "resources"));
    let owner = known.watched(upstreams(), &uri).or_else(|| known.owner(upstreams, &uri));
    let (method, params) =
        (if on { "resources/subscribe" } else { "resources/unsubscribe" }, raw(&json!({ "uri": uri })));
    if owner.is_none() && on && Scheme::of(&uri).is_none() {
        let name = Kind::Resource.name(&uri);
        if let Some(body) = first_not_started(session, |_| Some(name.clone())).await {
            let body = &body.spec().name;
            return tracing::warn!(
                body,
                "a resource is not watched: it may be of a body that has not started"
            );
        }
        // The listener may have left meanwhile.
        if session.is_alone() && !session.ear.listeners.is_watched(&uri) {
            return;
        }
    }
    // Of one that no server has listed it is not known whose it is: the first that takes it has it.
    let asked: Vec<&Arc<Upstream>> = owner.map_or_else(|| upstreams().collect(), |owner| vec![owner]);
    for upstream in asked {
        let is_open = if on {
            gated::may_watch(config, session, upstream, &uri).await
        } else {
            known.watched(std::iter::once(upstream), &uri).is_some()
        };
        let Some(link) = (if is_open { upstream.link().await.ok() } else { None }) else { continue };
        let name = &upstream.spec().name;
        if ask(upstream, &link, method, Some(&params), WATCH).await.is_some_and(|asked| is_done(&asked)) {
            if on {
                known.subscribe(name, uri, params);
            } else {
                known.unsubscribe(name, &uri);
            }
            return known.keep(upstream);
        }
    }
}

/// Who may have a resource: of the mind's schemes only the mind, of the broker's no server.
fn candidates<'a>(session: &'a Session, uri: &str) -> impl Iterator<Item = &'a Arc<Upstream>> + use<'a> {
    let scheme = Scheme::of(uri);
    session.upstreams().filter(move |upstream| match scheme {
        None => true,
        Some(Scheme::Mind) => upstream.spec().role.is_mind(),
        Some(Scheme::Broker) => false,
    })
}

/// Answers it.
pub(super) async fn answer(asking: Asking<'_>) -> Outcome {
    let method = &*asking.call.request.method;
    let uri = match params::read(method, asking.params()) {
        Ok(Given { uri }) => uri,
        Err(outcome) => return outcome,
    };
    if let Err(outcome) = params::check_length("the URI", &uri) {
        return outcome;
    }
    if uri == own::STATUS {
        return own::answer(asking).await;
    }
    let known = &asking.session.known;
    let (outcome, from) = send(asking, &uri, method != "resources/read").await;
    if let (Outcome::Result(_), Some(from)) = (&outcome, from) {
        let name = &from.spec().name;
        match method {
            "resources/subscribe" => {
                // Said again to every new connection: without what belongs to this request.
                let params = raw(&json!({ "uri": uri }));
                known.subscribe(name, uri, params);
            }
            "resources/unsubscribe" => known.unsubscribe(name, &uri),
            _ => known.learn_uri(name, uri),
        }
        known.keep(from);
    }
    outcome
}

/// Sends a request about a resource to the server that has it; its outcome, and which server it was.
async fn send<'a>(asking: Asking<'a>, uri: &str, is_watched: bool) -> (Outcome, Option<&'a Arc<Upstream>>) {
    let (known, params, what) = (&asking.session.known, asking.params(), Kind::Resource.name(uri));
    let upstreams = || candidates(asking.session, uri);
    let watched = is_watched.then(|| known.watched(upstreams(), uri)).flatten();
    if let Some(owner) = watched.or_else(|| known.owner(upstreams, uri)) {
        return (asking.read(owner, &what, params).await, Some(owner));
    }
    match Scheme::of(uri) {
        None => {
            if let Err(outcome) = asking.started(&what).await {
                return (outcome, None);
            }
        }
        Some(_) => asking.settled().await,
    }
    let with: Vec<&Arc<Upstream>> = upstreams().filter(|upstream| declares(upstream, "resources")).collect();
    match &*with {
        [only] => (asking.read(only, &what, params).await, Some(*only)),
        several => match asking.read_in_turn(several, &what, params).await {
            Some(read) => read,
            None => {
                let words = format!("there is no resource `{}`{}", printable(uri), asking.absent().await);
                (failure_with(code::RESOURCE_NOT_FOUND, words, Some(json!({"uri": uri}))), None)
            }
        },
    }
}

/// Completes an argument of a template of this URI, if it is known whose it is.
pub(super) fn owner<'a>(asking: Asking<'a>, uri: &str) -> Option<&'a Arc<Upstream>> {
    let mind = || candidates(asking.session, uri).next().filter(|_| Scheme::of(uri) == Some(Scheme::Mind));
    asking.session.known.owner(|| candidates(asking.session, uri), uri).or_else(mind)
}
