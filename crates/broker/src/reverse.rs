//! What an upstream asks of the host: passed on as it is, except for three things. A body uses the host's model only where the
//! operator allows it. A form that a body shows says whose it is and hides nothing, or is not shown (`body_form`). Roots may be
//! withheld, or are the operator's and answered here.

use std::sync::{Arc, Weak};
use std::time::Duration;

use embody_wire::message::ErrorObject;
use embody_wire::serve::{AskError, Call, Question, code, failure};
use embody_wire::upstream::{InputRequired, Link};
use embody_wire::{Outcome, Request, Response};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::timeout;

use crate::Principal;
use crate::arguments::Members;
use crate::body_form::labelled;
use crate::policy::Kind;
use crate::session::Session;
use crate::upstream::{Place, Role, Roots};

/// How long a server has to take an answer that it asked for.
const TAKING: Duration = Duration::from_secs(30);
/// Questions that one task may have open.
const MOST_ASKED: usize = 64;

/// Who asks, and for which call.
pub(crate) struct Asker {
    pub(crate) session: Arc<Session>,
    pub(crate) upstream: String,
    /// None if it cannot be told.
    pub(crate) call: Option<Arc<Call<Principal>>>,
}

/// Gives an upstream the answer to its question, on the connection that it asked on: on another one the same id would be
/// another question's. The host has this long for it.
pub(crate) async fn give(asker: Asker, link: Weak<Link>, request: Request, _place: Place, limit: Duration) {
    let id = Some(request.id.clone());
    let answered = timeout(limit, answer(&asker, request)).await;
    let outcome =
        answered.unwrap_or_else(|_| failure(code::INTERNAL_ERROR, "the host gave no answer in time"));
    if let Some(link) = link.upgrade() {
        let _ = timeout(TAKING, link.answer(Response { id, outcome })).await;
    }
}

/// The answer to one question too many.
pub(crate) fn too_many(request: Request) -> Response {
    Response::failure(request.id, code::INTERNAL_ERROR, "too many questions of this server are open")
}

/// Answers a question of an upstream.
async fn answer(asker: &Asker, request: Request) -> Outcome {
    if let Some(roots) = own_roots(asker, &request.method) {
        return Outcome::Result(roots);
    }
    let question = match put(asker, request.method, request.params) {
        Ok(question) => question,
        Err(refused) => return refused,
    };
    if question.method != "roots/list" {
        asker.session.mark_read(&asker.upstream, &Kind::Method.name(&question.method)).await;
    }
    let asked = match &asker.call {
        Some(call) => call.ask(&question.method, question.params).await,
        None => asker.session.host.ask(&question.method, question.params).await,
    };
    asked.unwrap_or_else(unanswered)
}

/// Answers everything that a server without sessions asks for a call, at once. The first that has no answer says why.
/// `anew` is what another process needs to go on with the call.
pub(crate) async fn answer_all(
    asker: &Asker,
    (asks, anew): (&InputRequired, Option<Box<RawValue>>),
    call: &Call<Principal>,
) -> Result<Vec<Box<RawValue>>, Outcome> {
    let (mut questions, mut known) = (Vec::new(), Vec::with_capacity(asks.requests.len()));
    for (key, method, params) in &asks.requests {
        known.push(own_roots(asker, method));
        if let Some(None) = known.last() {
            let question = put(asker, method.clone(), params.clone())?;
            questions.push(Question { key: Some(key.clone()), anew: anew.clone(), ..question });
        }
    }
    let asked = if questions.is_empty() { Vec::new() } else { call.ask_all(questions).await };
    let mut asked = asked.into_iter();
    let answers = known.into_iter().map(|known| match known {
        Some(answer) => Ok(answer),
        None => match asked
            .next()
            .unwrap_or(Err(AskError::Gone))
            .map_or_else(unanswered, |answered| answered.outcome)
        {
            Outcome::Result(result) => Ok(result),
            error @ Outcome::Error(_) => Err(error),
        },
    });
    answers.collect()
}

/// The result of `roots/list` for a body whose roots are the operator's.
fn own_roots(asker: &Asker, method: &str) -> Option<Box<RawValue>> {
    let upstream = asker.session.upstream(&asker.upstream).filter(|_| method == "roots/list")?;
    upstream.spec().role.roots().list()
}

/// What a task of an upstream asks, as `inputRequests` for the host; and why something of it may not be asked.
pub(crate) fn put_all(asker: &Asker, requests: &RawValue) -> (String, Vec<String>) {
    #[derive(Deserialize)]
    struct Asked<'a> {
        method: String,
        #[serde(borrow, default)]
        params: Option<&'a RawValue>,
    }
    let (mut asked, mut refused) = (Vec::new(), Vec::new());
    let read = serde_json::from_str::<Members<'_>>(requests.get());
    let members = read.map(|Members(members)| members).unwrap_or_default();
    for (place, (key, request)) in members.iter().enumerate() {
        // Of a key that stands there twice two readers could take different ones.
        let is_again = members.iter().take(place).any(|(known, _)| known == key);
        let question = match serde_json::from_str::<Asked<'_>>(request.get()) {
            Ok(_) if is_again || place >= MOST_ASKED => Err("it asks too much at once".to_owned()),
            Ok(Asked { method, params }) => {
                put(asker, method, params.map(ToOwned::to_owned)).map_err(|refusal| reason(&refusal))
            }
            Err(_) => Err("a question cannot be read".to_owned()),
        };
        match question {
            Ok(Question { method, params, .. }) => {
                let (key, method) = (Value::from(key.as_str()), Value::from(method));
                let params = params.as_deref().map_or("{}", RawValue::get);
                asked.push(format!(r#"{key}:{{"method":{method},"params":{params}}}"#));
            }
            Err(reason) if refused.contains(&reason) => {}
            Err(reason) => refused.push(reason),
        }
    }
    (format!("{{{}}}", asked.join(",")), refused)
}

/// Why it is refused, in words.
fn reason(refusal: &Outcome) -> String {
    let (Outcome::Error(raw) | Outcome::Result(raw)) = refusal;
    let read = serde_json::from_str::<ErrorObject>(raw.get());
    read.map_or_else(|_| "it may not be asked".to_owned(), |error| error.message)
}

fn unanswered(error: AskError) -> Outcome {
    match error {
        AskError::Gone => failure(code::INTERNAL_ERROR, "the host is gone, or the call was cancelled"),
        AskError::TooMany => failure(code::INTERNAL_ERROR, "the host is asked too much at once"),
        AskError::Stateless => failure(code::METHOD_NOT_FOUND, "the host cannot be asked"),
    }
}

/// The question as the host is asked it, if it may be.
fn put(asker: &Asker, method: String, params: Option<Box<RawValue>>) -> Result<Question, Outcome> {
    let (may_sample, roots) =
        match asker.session.upstream(&asker.upstream).map(|upstream| &upstream.spec().role) {
            Some(role @ Role::Body(body)) => (body.sampling, role.roots()),
            _ => (false, &Roots::Forward),
        };
    if method.starts_with("sampling/") && !may_sample {
        let message = "the operator does not let this server use the host's model";
        return Err(failure(code::METHOD_NOT_FOUND, message));
    }
    if method == "roots/list" && *roots != Roots::Forward {
        // Those of the operator are answered before this, but not to a task, which the host answers.
        let message = "the operator does not let this server ask for the host's roots";
        return Err(failure(code::METHOD_NOT_FOUND, message));
    }
    let needed = match &*method {
        "elicitation/create" => Some("elicitation"),
        "roots/list" => Some("roots"),
        method if method.starts_with("sampling/") => Some("sampling"),
        _ => None,
    };
    let host = asker.call.as_ref().map_or(&asker.session.host, |call| &call.host);
    if let Some(needed) = needed.filter(|needed| !host.hello().can(needed)) {
        return Err(failure(code::METHOD_NOT_FOUND, format!("the host did not declare `{needed}`")));
    }
    let params = if method == "elicitation/create" {
        Some(labelled(params.as_deref(), &asker.upstream).map_err(|reason| {
            let body = &asker.upstream;
            tracing::warn!(body, session = asker.session.id, %reason, "a form of a body is not shown");
            failure(code::INVALID_PARAMS, reason)
        })?)
    } else {
        params
    };
    Ok(Question { key: None, method, params, anew: None, must_be_seen: false })
}
