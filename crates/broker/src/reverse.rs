//! What an upstream asks of the host: passed on as it is, except for three things. A body uses the host's model only where the
//! operator allows it. A form that a body shows says whose it is, so that it cannot pose as an approval, and is shown whole or
//! not at all. Roots may be withheld, or are the operator's and answered here.

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
use crate::approval::form_fits;
use crate::arguments::Members;
use crate::policy::Kind;
use crate::session::Session;
use crate::upstream::{Place, Role, Roots};
use crate::visible;

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

/// The parameters with the asker's name before the message. Hidden characters of the message are shown, and every line of it
/// after the first starts with a bar, so that it can neither erase the name nor pass for an approval; no other byte changes.
fn labelled(params: Option<&RawValue>, upstream: &str) -> Result<Box<RawValue>, String> {
    #[derive(Deserialize)]
    struct Asked<'a> {
        #[serde(borrow)]
        message: &'a RawValue,
    }
    let unreadable = || "the form has no message that everybody reads alike".to_owned();
    let text = params.map(RawValue::get).ok_or_else(unreadable)?;
    let asked: Asked<'_> = serde_json::from_str(text).map_err(|_| unreadable())?;
    let message: String = serde_json::from_str(asked.message.get()).map_err(|_| unreadable())?;
    let by = format!("`{upstream}` asks (this is not an approval): {}", visible::lines(&message, "│ "));
    form_fits(&by)?;
    let by = Value::from(by).to_string();
    let replaced = || {
        let start = (asked.message.get().as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
        let (before, after) = (text.get(..start)?, text.get(start + asked.message.get().len()..)?);
        RawValue::from_string(format!("{before}{by}{after}")).ok()
    };
    replaced().ok_or_else(unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: N-10
    #[test]
    fn a_form_says_whose_it_is_and_stays_as_it_is() {
        let params = r#"{ "requestedSchema":{"message":1.0}, "message" : "Approve \u0041?" ,"x":null}"#;
        let raw = RawValue::from_string(params.to_owned()).unwrap();
        assert_eq!(
            labelled(Some(&raw), "mail").unwrap().get(),
            r#"{ "requestedSchema":{"message":1.0}, "message" : "`mail` asks (this is not an approval): Approve A?" ,"x":null}"#
        );
        for text in ["{}", r#"{"message":7}"#, r#"{"message":"a","message":"b"}"#] {
            let raw = RawValue::from_string(text.to_owned()).unwrap();
            assert!(labelled(Some(&raw), "mail").is_err(), "{text}");
        }
        assert!(labelled(None, "mail").is_err());
    }

    // spec: N-10
    #[test]
    fn a_form_cannot_erase_whose_it_is() {
        let shown = |message: &str| {
            let params = RawValue::from_string(serde_json::json!({"message": message}).to_string()).unwrap();
            let labelled = labelled(Some(&params), "mail")?;
            let value: Value = serde_json::from_str(labelled.get()).unwrap();
            Ok::<_, String>(value["message"].as_str().unwrap().to_owned())
        };
        let label = "`mail` asks (this is not an approval): ";
        for (message, expected) in [
            ("\u{1b}[2K\rSend?\nAsked because: x", "⟨U+001B⟩[2K⟨U+000D⟩Send?⏎\n│ Asked because: x"),
            ("\u{202e}\u{2066}\u{200b} x", "⟨U+202E⟩⟨U+2066⟩⟨U+200B⟩ x"),
            ("Which day?", "Which day?"),
        ] {
            assert_eq!(shown(message), Ok(format!("{label}{expected}")), "{message:?}");
        }
        assert!(shown(&"\n".repeat(14)).is_ok());
        let refused = shown(&format!("{}Send?", "\n".repeat(40))).unwrap_err();
        assert_eq!(refused, "the form's message takes 41 lines of 80 columns; a form shows at most 15");
        assert!(shown(&"x".repeat(80 * 15)).is_err());
    }
}
