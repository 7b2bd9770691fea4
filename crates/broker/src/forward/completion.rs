//! `completion/complete`: to whoever has the prompt or the resource that it is for.

use embody_wire::Outcome;
use embody_wire::server::{code, failure};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::reserved::Scheme;
use super::route::Asking;
use super::{params, prompts, resources};
use crate::policy::Kind;

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
        ("ref/prompt", Some(name), None) => prompts::send(asking, name).await,
        ("ref/resource", None, Some(uri)) => {
            if let Err(outcome) = params::check_length("the URI", &uri) {
                return outcome;
            }
            let what = Kind::Resource.name(&uri);
            match (resources::owner(asking, &uri), Scheme::of(&uri)) {
                (Some(owner), _) => asking.read(owner, &what, asking.params()).await,
                (None, None) => to_any(asking, &what).await,
                (None, Some(_)) => not_completed(asking).await,
            }
        }
        // A server may read another member than the one that was judged.
        _ => failure(
            code::INVALID_PARAMS,
            "`ref` is neither `ref/prompt` with a `name` nor `ref/resource` with a `uri` alone",
        ),
    }
}

/// Nobody is known to have it.
async fn to_any(asking: Asking<'_>, what: &str) -> Outcome {
    if let Err(outcome) = asking.started(what).await {
        return outcome;
    }
    match &*asking.with("completions") {
        [only] => asking.read(only, what, asking.params()).await,
        several => match asking.read_in_turn(several, what, asking.params()).await {
            Some((outcome, _)) => outcome,
            None => not_completed(asking).await,
        },
    }
}

async fn not_completed(asking: Asking<'_>) -> Outcome {
    failure(code::INVALID_PARAMS, format!("no server completes this{}", asking.absent().await))
}
