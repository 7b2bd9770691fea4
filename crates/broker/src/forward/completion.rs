//! `completion/complete`: to whoever has the prompt or the resource that it is for.

use embody_wire::Outcome;
use embody_wire::serve::{code, failure};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::route::Asking;
use super::{params, prompts};

#[derive(Deserialize)]
struct Given<'a> {
    #[serde(borrow, rename = "ref")]
    reference: Reference<'a>,
}

#[derive(Deserialize)]
struct Reference<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(default)]
    uri: Option<String>,
}

/// Answers it.
pub(super) async fn complete(asking: Asking<'_>) -> Outcome {
    let given: Given<'_> = match params::read(&asking.call.request.method, asking.params()) {
        Ok(given) => given,
        Err(outcome) => return outcome,
    };
    match (&*given.reference.kind, given.reference.name, given.reference.uri) {
        ("ref/prompt", Some(name), _) => prompts::send(asking, name).await,
        (_, _, Some(uri)) => match asking.session.known.owner(|| asking.session.upstreams(), &uri) {
            Some(owner) => asking.send(owner, asking.params()).await,
            None => to_any(asking).await,
        },
        _ => to_any(asking).await,
    }
}

/// Nobody is known to have it.
async fn to_any(asking: Asking<'_>) -> Outcome {
    asking.settled().await;
    match &*asking.with("completions") {
        [only] => asking.send(only, asking.params()).await,
        several => match asking.send_in_turn(several, asking.params()).await {
            Some((outcome, _)) => outcome,
            None => failure(code::INVALID_PARAMS, format!("no server completes this{}", asking.absent())),
        },
    }
}
