//! `resources/read`, `subscribe` and `unsubscribe`: to whoever listed the URI, else to whoever has a template for it, else
//! to the only one with resources, else to each in turn until one knows it.

use embody_wire::Outcome;
use embody_wire::serve::{code, failure_with};
use serde::Deserialize;
use serde_json::json;

use super::route::Asking;
use super::{own, params, printable};
use crate::results::raw;

#[derive(Deserialize)]
struct Given {
    uri: String,
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
    }
    outcome
}
