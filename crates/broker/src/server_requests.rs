//! Requests of an upstream to the host, forwarded unchanged with three exceptions: a body uses the host's model only if the
//! operator allows it; a form of a body names its origin and hides nothing, or is rejected (`body_form`); roots may be
//! withheld, or are set by the operator and answered here.

use std::sync::{Arc, Weak};
use std::time::Duration;

use embody_wire::message::ErrorObject;
use embody_wire::server::{AskError, Call, ServerRequest, code, failure};
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
use crate::upstream::{RequestPermit, Role, Roots};

/// How long a server has to accept a response.
const ACCEPT: Duration = Duration::from_secs(30);
/// Requests that one task may have open.
const OPEN_MAX: usize = 64;

pub(crate) struct Requester {
    pub(crate) session: Arc<Session>,
    pub(crate) upstream: String,
    /// `None` if the upstream does not name the call.
    pub(crate) call: Option<Arc<Call<Principal>>>,
}

/// Answers on the connection of the request, because ids are per connection. `limit` is the host's time to answer.
pub(crate) async fn answer_request(
    requester: Requester,
    link: Weak<Link>,
    request: Request,
    _place: RequestPermit,
    limit: Duration,
) {
    let id = Some(request.id.clone());
    let answered = timeout(limit, answer(&requester, request)).await;
    let outcome =
        answered.unwrap_or_else(|_| failure(code::INTERNAL_ERROR, "the host gave no answer in time"));
    if let Some(link) = link.upgrade() {
        let _ = timeout(ACCEPT, link.answer(Response { id, outcome })).await;
    }
}

pub(crate) fn too_many_requests(request: Request) -> Response {
    Response::failure(request.id, code::INTERNAL_ERROR, "too many questions of this server are open")
}

async fn answer(requester: &Requester, request: Request) -> Outcome {
    if let Some(roots) = own_roots(requester, &request.method) {
        return Outcome::Result(roots);
    }
    let question = match host_question(requester, request.method, request.params) {
        Ok(question) => question,
        Err(refused) => return refused,
    };
    if question.method != "roots/list" {
        requester.session.mark_read(&requester.upstream, &Kind::Method.name(&question.method)).await;
    }
    let asked = match &requester.call {
        Some(call) => call.ask(&question.method, question.params).await,
        None => requester.session.host.ask(&question.method, question.params).await,
    };
    asked.unwrap_or_else(unanswered)
}

/// Answers all input requests of a stateless server for a call, in parallel; returns the first failure. `anew` is the state
/// that another process needs to resume the call.
pub(crate) async fn answer_all(
    requester: &Requester,
    (asks, anew): (&InputRequired, Option<Box<RawValue>>),
    call: &Call<Principal>,
) -> Result<Vec<Box<RawValue>>, Outcome> {
    let (mut questions, mut known) = (Vec::new(), Vec::with_capacity(asks.requests.len()));
    for (key, method, params) in &asks.requests {
        known.push(own_roots(requester, method));
        if let Some(None) = known.last() {
            let question = host_question(requester, method.clone(), params.clone())?;
            questions.push(ServerRequest { key: Some(key.clone()), resume_data: anew.clone(), ..question });
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

/// The result of `roots/list` for a body whose roots the operator has set.
fn own_roots(requester: &Requester, method: &str) -> Option<Box<RawValue>> {
    let upstream = requester.session.upstream(&requester.upstream).filter(|_| method == "roots/list")?;
    upstream.spec().role.roots().list()
}

/// The `inputRequests` of a task for the host, and the reasons for those that are omitted.
pub(crate) fn host_requests(requester: &Requester, requests: &RawValue) -> (String, Vec<String>) {
    #[derive(Deserialize)]
    struct InputRequest<'a> {
        method: String,
        #[serde(borrow, default)]
        params: Option<&'a RawValue>,
    }
    let (mut asked, mut refused) = (Vec::new(), Vec::new());
    let read = serde_json::from_str::<Members<'_>>(requests.get());
    let members = read.map(|Members(members)| members).unwrap_or_default();
    for (place, (key, request)) in members.iter().enumerate() {
        // Two parsers could choose different values of a duplicate key.
        let is_again = members.iter().take(place).any(|(known, _)| known == key);
        let question = match serde_json::from_str::<InputRequest<'_>>(request.get()) {
            Ok(_) if is_again || place >= OPEN_MAX => Err("it asks too much at once".to_owned()),
            Ok(InputRequest { method, params }) => {
                host_question(requester, method, params.map(ToOwned::to_owned))
                    .map_err(|refusal| reason(&refusal))
            }
            Err(_) => Err("a question cannot be read".to_owned()),
        };
        match question {
            Ok(ServerRequest { method, params, .. }) => {
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

/// The request for the host, or the refusal.
fn host_question(
    requester: &Requester,
    method: String,
    params: Option<Box<RawValue>>,
) -> Result<ServerRequest, Outcome> {
    let (may_sample, roots) =
        match requester.session.upstream(&requester.upstream).map(|upstream| &upstream.spec().role) {
            Some(role @ Role::Body(body)) => (body.sampling, role.roots()),
            _ => (false, &Roots::Forward),
        };
    if method.starts_with("sampling/") && !may_sample {
        let message = "the operator does not let this server use the host's model";
        return Err(failure(code::METHOD_NOT_FOUND, message));
    }
    if method == "roots/list" && *roots != Roots::Forward {
        // Roots set by the operator are answered earlier, except for a task, which the host answers.
        let message = "the operator does not let this server ask for the host's roots";
        return Err(failure(code::METHOD_NOT_FOUND, message));
    }
    let needed = match &*method {
        "elicitation/create" => Some("elicitation"),
        "roots/list" => Some("roots"),
        method if method.starts_with("sampling/") => Some("sampling"),
        _ => None,
    };
    let host = requester.call.as_ref().map_or(&requester.session.host, |call| &call.host);
    if let Some(needed) = needed.filter(|needed| !host.initialize_params().can(needed)) {
        return Err(failure(code::METHOD_NOT_FOUND, format!("the host did not declare `{needed}`")));
    }
    let params = if method == "elicitation/create" {
        Some(labelled(params.as_deref(), &requester.upstream).map_err(|reason| {
            let body = &requester.upstream;
            tracing::warn!(body, session = requester.session.id, %reason, "a form of a body is not shown");
            failure(code::INVALID_PARAMS, reason)
        })?)
    } else {
        params
    };
    Ok(ServerRequest { key: None, method, params, resume_data: None, must_be_seen: false })
}
