//! `resources/read`, `subscribe` and `unsubscribe`: to whoever listed the URI, else to whoever has a template for it, else
//! to the only one with resources, else to each in turn until one knows it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use embody_wire::Outcome;
use embody_wire::serve::{code, failure_with};
use serde::Deserialize;
use serde_json::json;

use super::route::{Asking, ask, declares};
use super::{own, params, printable};
use crate::results::raw;
use crate::session::Session;
use crate::upstream::Upstream;

#[derive(Deserialize)]
struct Given {
    uri: String,
}

/// How long a server may take to watch a resource.
const WATCH: Duration = Duration::from_secs(5);

/// Has these resources watched for a stateless host, or no longer. Nobody waits for it.
pub(crate) fn watch(session: &Arc<Session>, uris: Vec<String>, on: bool) {
    let Some(runtime) = tokio::runtime::Handle::try_current().ok().filter(|_| !uris.is_empty()) else {
        return;
    };
    let session = Arc::clone(session);
    runtime.spawn(async move {
        for uri in uris {
            watch_one(&session, uri, on).await;
        }
    });
}

async fn watch_one(session: &Session, uri: String, on: bool) {
    let known = &session.known;
    if uri == own::STATUS {
        return known.watches_status.store(on, Ordering::Release);
    }
    let upstreams = || session.upstreams().filter(|upstream| declares(upstream, "resources"));
    let owner = known.watched(upstreams(), &uri).or_else(|| known.owner(upstreams, &uri));
    let (method, params) =
        (if on { "resources/subscribe" } else { "resources/unsubscribe" }, raw(&json!({ "uri": uri })));
    // Of one that nobody has listed nobody knows whose it is: the first that takes it has it.
    let asked: Vec<&Arc<Upstream>> = owner.map_or_else(|| upstreams().collect(), |owner| vec![owner]);
    for upstream in asked {
        let Ok(link) = upstream.link().await else { continue };
        let name = &upstream.spec().name;
        if let Some(Outcome::Result(_)) = ask(upstream, &link, method, Some(&params), WATCH).await {
            if on {
                known.subscribe(name, uri, params);
            } else {
                known.unsubscribe(name, &uri);
            }
            return known.keep(upstream);
        }
    }
}

/// Answers it.
pub(super) async fn answer(asking: Asking<'_>) -> Outcome {
    let method = &*asking.call.request.method;
    let uri = match params::read(method, asking.params()) {
        Ok(Given { uri }) => uri,
        Err(outcome) => return outcome,
    };
    if uri == own::STATUS {
        return own::answer(asking).await;
    }
    let known = &asking.session.known;
    let upstreams = || asking.session.upstreams();
    let watched = (method != "resources/read").then(|| known.watched(upstreams(), &uri)).flatten();
    let (outcome, from) = match watched.or_else(|| known.owner(upstreams, &uri)) {
        Some(owner) => (asking.send(owner, asking.params()).await, Some(owner)),
        None => {
            asking.settled().await;
            match &*asking.with("resources") {
                [only] => (asking.send(only, asking.params()).await, Some(*only)),
                several => asking.send_in_turn(several, asking.params()).await.unwrap_or_else(|| {
                    let words = format!("there is no resource `{}`{}", printable(&uri), asking.absent());
                    (failure_with(code::RESOURCE_NOT_FOUND, words, Some(json!({"uri": uri}))), None)
                }),
            }
        }
    };
    if let (Outcome::Result(_), Some(from)) = (&outcome, from) {
        let name = &from.spec().name;
        match method {
            "resources/subscribe" => {
                let params = asking.params().map_or_else(|| raw(&json!({"uri": uri})), ToOwned::to_owned);
                known.subscribe(name, uri, params);
            }
            "resources/unsubscribe" => known.unsubscribe(name, &uri),
            _ => known.learn_uri(name, uri),
        }
        known.keep(from);
    }
    outcome
}
