//! `completion/complete`: forwarded to the owner of the prompt or resource.

use embody_wire::Outcome;
use embody_wire::server::{code, failure};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::reserved::Scheme;
use super::route::HostRequest;
use super::{params, prompts, resources};
use crate::policy::Kind;

#[derive(Deserialize)]
struct Params<'a> {
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

pub(super) async fn complete(request: HostRequest<'_>) -> Outcome {
    let given: Params<'_> = match params::read(&request.call.request.method, request.params()) {
        Ok(given) => given,
        Err(outcome) => return outcome,
    };
    match (&*given.reference.kind, given.reference.name, given.reference.uri) {
        ("ref/prompt", Some(name), None) => prompts::send(request, name).await,
        ("ref/resource", None, Some(uri)) => {
            if let Err(outcome) = params::check_length("the URI", &uri) {
                return outcome;
            }
            let what = Kind::Resource.name(&uri);
            match (resources::owner(request, &uri), Scheme::of(&uri)) {
                (Some(owner), _) => request.read(owner, &what, request.params()).await,
                (None, None) => to_any(request, &what).await,
                (None, Some(_)) => not_completed(request).await,
            }
        }
        // A server might read another member than the one that was checked.
        _ => failure(
            code::INVALID_PARAMS,
            "`ref` is neither `ref/prompt` with a `name` nor `ref/resource` with a `uri` alone",
        ),
    }
}

async fn to_any(request: HostRequest<'_>, what: &str) -> Outcome {
    if let Err(outcome) = request.wait_started(what).await {
        return outcome;
    }
    match &*request.with("completions") {
        [only] => request.read(only, what, request.params()).await,
        several => match request.read_in_turn(several, what, request.params()).await {
            Some((outcome, _)) => outcome,
            None => not_completed(request).await,
        },
    }
}

async fn not_completed(request: HostRequest<'_>) -> Outcome {
    failure(code::INVALID_PARAMS, format!("no server completes this{}", request.absent().await))
}
