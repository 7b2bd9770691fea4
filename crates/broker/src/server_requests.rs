//! Requests of an upstream to the host, forwarded unchanged with three exceptions: a body uses the host's model only if the
//! operator allows it; a form of a body names its origin and hides nothing, or is rejected; roots may be
//! withheld, or are set by the operator and answered here.

use std::ops::Range;
use std::sync::{Arc, Weak};
use std::time::Duration;

use embody_store::Principal;
use embody_wire::message::ErrorObject;
use embody_wire::server::{AskError, Call, ServerRequest, code, failure};
use embody_wire::upstream::{InputRequired, Link};
use embody_wire::{Outcome, Request, Response, splice};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::timeout;

use crate::approval::{form_fits, lines_of};
use crate::arguments::canonical;
use crate::json::Members;
use crate::policy::Kind;
use crate::session::Session;
use crate::upstream::{RequestPermit, Role, Roots, Upstream};
use crate::visible;

const ACCEPT_TIMEOUT: Duration = Duration::from_secs(30);
/// Requests that one task may have open.
const OPEN_MAX: usize = 64;

pub(crate) struct Requester {
    pub(crate) session: Arc<Session>,
    /// Its own configuration decides, also after another has replaced it.
    pub(crate) upstream: Arc<Upstream>,
    /// `None` if the upstream does not name the call.
    pub(crate) call: Option<Arc<Call<Principal>>>,
}

/// Answers on the connection of the request, because ids are per connection. `limit` is the host's time to answer.
pub(crate) async fn answer_request(
    requester: Requester,
    link: Weak<Link>,
    request: Request,
    _permit: RequestPermit,
    limit: Duration,
) {
    let id = Some(request.id.clone());
    let answered = timeout(limit, answer(&requester, request)).await;
    let outcome =
        answered.unwrap_or_else(|_| failure(code::INTERNAL_ERROR, "the host did not answer in time"));
    if let Some(link) = link.upgrade() {
        let _ = timeout(ACCEPT_TIMEOUT, link.answer(Response { id, outcome })).await;
    }
}

pub(crate) fn too_many_requests(request: Request) -> Response {
    Response::failure(request.id, code::INTERNAL_ERROR, "too many requests of this server are open")
}

async fn answer(requester: &Requester, request: Request) -> Outcome {
    if let Some(roots) = configured_roots(requester, &request.method) {
        return Outcome::Result(roots);
    }
    let question = match host_request(requester, request.method, request.params) {
        Ok(question) => question,
        Err(refused) => return refused,
    };
    if question.method != "roots/list" {
        requester
            .session
            .mark_read(&requester.upstream.spec().name, &Kind::Method.name(&question.method))
            .await;
    }
    let asked = match &requester.call {
        Some(call) => call.ask(&question.method, question.params).await,
        None => requester.session.host.ask(&question.method, question.params).await,
    };
    asked.unwrap_or_else(unanswered)
}

/// Answers all input requests of a stateless server for a call, in parallel; returns the first failure. `resume_data` is the state
/// that another process needs to resume the call.
pub(crate) async fn answer_all(
    requester: &Requester,
    (asks, resume_data): (&InputRequired, Option<Box<RawValue>>),
    call: &Call<Principal>,
) -> Result<Vec<Box<RawValue>>, Outcome> {
    let (mut questions, mut known) = (Vec::new(), Vec::with_capacity(asks.requests.len()));
    for (key, method, params) in &asks.requests {
        known.push(configured_roots(requester, method));
        if let Some(None) = known.last() {
            let question = host_request(requester, method.clone(), params.clone())?;
            questions.push(ServerRequest {
                key: Some(key.clone()),
                resume_data: resume_data.clone(),
                ..question
            });
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

fn configured_roots(requester: &Requester, method: &str) -> Option<Box<RawValue>> {
    (method == "roots/list").then(|| requester.upstream.spec().role.roots().list())?
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
    for (index, (key, request)) in members.iter().enumerate() {
        // Two parsers could choose different values of a duplicate key.
        let is_repeated = members.iter().take(index).any(|(known, _)| known == key);
        let question = match serde_json::from_str::<InputRequest<'_>>(request.get()) {
            Ok(_) if is_repeated || index >= OPEN_MAX => Err("it sends too many requests at once".to_owned()),
            Ok(InputRequest { method, params }) => {
                host_request(requester, method, params.map(ToOwned::to_owned))
                    .map_err(|refusal| reason(&refusal))
            }
            Err(_) => Err("a request cannot be read".to_owned()),
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
    read.map_or_else(|_| "the request is not allowed".to_owned(), |error| error.message)
}

fn unanswered(error: AskError) -> Outcome {
    match error {
        AskError::Gone => {
            failure(code::INTERNAL_ERROR, "the host has disconnected, or the call was cancelled")
        }
        AskError::TooMany => failure(code::INTERNAL_ERROR, "too many requests to the host are open"),
        AskError::Stateless => failure(code::METHOD_NOT_FOUND, "the host does not accept requests"),
    }
}

fn host_request(
    requester: &Requester,
    method: String,
    params: Option<Box<RawValue>>,
) -> Result<ServerRequest, Outcome> {
    let spec = requester.upstream.spec();
    let (may_sample, roots) = match &spec.role {
        role @ Role::Body(body) => (body.sampling, role.roots()),
        Role::Mind => (false, &Roots::Forward),
    };
    if method.starts_with("sampling/") && !may_sample {
        let message = "the operator does not allow this server to use the host's model";
        return Err(failure(code::METHOD_NOT_FOUND, message));
    }
    if method == "roots/list" && *roots != Roots::Forward {
        // Roots set by the operator are answered earlier, except for a task, which the host answers.
        let message = "the operator does not allow this server to read the host's roots";
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
        Some(labelled(params.as_deref(), &spec.name).map_err(|reason| {
            let body = &spec.name;
            tracing::warn!(body, session = requester.session.id, %reason, "a form of a body was rejected");
            failure(code::INVALID_PARAMS, reason)
        })?)
    } else {
        params
    };
    Ok(ServerRequest { key: None, method, params, resume_data: None, must_be_seen: false })
}

const FORM_BYTES: usize = 64 * 1024;
const FIELDS_MAX: usize = 32;
/// Options of a field, and members of any other value.
const ITEMS_MAX: usize = 256;
/// Lines of 80 columns for each text except the message.
const FIELD_LINES: usize = 5;
const ADDRESS_BYTES: usize = 4_096;
/// The maximum nesting. The deepest form of the protocol has 7 levels: `params`, schema, fields, field, items, options,
/// option.
const DEPTH_MAX: usize = 8;

/// The parameters for the host: with the requester's name before the message, whose further lines each start with a bar, so
/// that it can neither erase the name nor pass for an approval.
fn labelled(params: Option<&RawValue>, upstream: &str) -> Result<Box<RawValue>, String> {
    let unreadable = || "the form has no `message`, or its JSON is ambiguous".to_owned();
    let text = params.map(RawValue::get).ok_or_else(unreadable)?;
    if text.len() > FORM_BYTES {
        return Err(format!("the form has {} bytes; a form has at most {FORM_BYTES}", text.len()));
    }
    canonical(text).map_err(|_| unreadable())?;
    let Members(members) = serde_json::from_str(text).map_err(|_| unreadable())?;
    let mut edits = Edits { text, replaced: Vec::new() };
    let mut has_message = false;
    for (key, value) in members {
        match &*key {
            "message" => {
                let message: String = serde_json::from_str(value.get()).map_err(|_| unreadable())?;
                let message = visible::lines(&message, "│ ");
                let by = format!("`{upstream}` asks (this is not an approval): {message}");
                form_fits(&by)?;
                edits.replace(value, by)?;
                has_message = true;
            }
            // Not shown to a person.
            "_meta" => {}
            "url" => check_address(value)?,
            _ => {
                check_data(&key, "a name")?;
                edits.walk(&key, value, 1)?;
            }
        }
    }
    if has_message { edits.applied().ok_or_else(unreadable) } else { Err(unreadable()) }
}

struct Edits<'a> {
    text: &'a str,
    replaced: Vec<(Range<usize>, String)>,
}

impl<'a> Edits<'a> {
    /// Cleans the value of this key and everything in it.
    fn walk(&mut self, key: &str, value: &'a RawValue, depth: usize) -> Result<(), String> {
        let unreadable = || "the form cannot be read".to_owned();
        if depth >= DEPTH_MAX {
            return Err(format!("the form is nested deeper than {DEPTH_MAX} levels"));
        }
        match value.get().bytes().next() {
            Some(b'"') => {
                let text: String = serde_json::from_str(value.get()).map_err(|_| unreadable())?;
                self.clean(key, value, text)
            }
            Some(b'[') => {
                let items: Vec<&RawValue> = serde_json::from_str(value.get()).map_err(|_| unreadable())?;
                check_count("options of a field", items.len(), ITEMS_MAX)?;
                items.into_iter().try_for_each(|item| self.walk(key, item, depth + 1))
            }
            Some(b'{') => {
                let Members(members) = serde_json::from_str(value.get()).map_err(|_| unreadable())?;
                if key == "properties" {
                    check_count("fields", members.len(), FIELDS_MAX)?;
                }
                check_count("members of an object", members.len(), ITEMS_MAX)?;
                for (key, value) in members {
                    check_data(&key, "a name")?;
                    self.walk(&key, value, depth + 1)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Cleans a text of a form; puts it on one line if a person reads it.
    fn clean(&mut self, key: &str, value: &RawValue, text: String) -> Result<(), String> {
        if !matches!(key, "title" | "description" | "enumNames") {
            return check_data(&text, &format!("a text of `{key}`"));
        }
        let shown = visible::line(&text);
        check_lines(&shown, &format!("a text of `{key}`"))?;
        if shown == text { Ok(()) } else { self.replace(value, shown.into_owned()) }
    }

    fn replace(&mut self, value: &RawValue, by: String) -> Result<(), String> {
        let start =
            splice::offset(self.text, value.get()).ok_or_else(|| "the form cannot be read".to_owned())?;
        self.replaced.push((start..start + value.get().len(), Value::from(by).to_string()));
        Ok(())
    }

    /// The whole text with the replacements, which are in the order of the text.
    fn applied(self) -> Option<Box<RawValue>> {
        let (mut out, mut at) = (String::with_capacity(self.text.len() + 64), 0);
        for (index, by) in self.replaced {
            out.push_str(self.text.get(at..index.start)?);
            out.push_str(&by);
            at = index.end;
        }
        out.push_str(self.text.get(at..)?);
        RawValue::from_string(out).ok()
    }
}

/// Data is shown unchanged or rejected.
fn check_data(text: &str, whose: &str) -> Result<(), String> {
    if visible::line(text) == text {
        return check_lines(text, whose);
    }
    let shown: String = visible::line(text).chars().take(80).collect();
    Err(format!("{whose} in the form has invisible characters: `{shown}`"))
}

fn check_lines(text: &str, whose: &str) -> Result<(), String> {
    let lines = lines_of(text);
    if lines <= FIELD_LINES {
        return Ok(());
    }
    Err(format!("{whose} in the form takes {lines} lines of 80 columns; it may take {FIELD_LINES}"))
}

fn check_count(what: &str, count: usize, most: usize) -> Result<(), String> {
    if count <= most {
        return Ok(());
    }
    Err(format!("the form has {count} {what}; it may have {most}"))
}

/// A URL must be ASCII: another letter could pass for a Latin one.
fn check_address(value: &RawValue) -> Result<(), String> {
    let address = serde_json::from_str::<String>(value.get());
    // User information before the host hides the destination; other schemes run programs or open files.
    let is_web = |address: &String| {
        url::Url::parse(address).is_ok_and(|url| {
            matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.password().is_none()
        })
    };
    let is_good = |address: &String| {
        address.len() <= ADDRESS_BYTES && address.bytes().all(|byte| byte.is_ascii_graphic())
    };
    address.ok().filter(is_good).filter(is_web).map(|_| ()).ok_or_else(|| {
        format!("the address in the form is not an http(s) URL without a user, in visible ASCII of at most {ADDRESS_BYTES} bytes")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(params: &Value) -> Result<Value, String> {
        let params = RawValue::from_string(params.to_string()).unwrap();
        labelled(Some(&params), "mail").map(|shown| serde_json::from_str(shown.get()).unwrap())
    }

    fn form(field: &Value) -> Value {
        json!({"message": "Which?", "requestedSchema": {"type": "object", "properties": {"a": field}}})
    }

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
            shown(&json!({"message": message})).map(|shown| shown["message"].as_str().unwrap().to_owned())
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

    // spec: N-10
    #[test]
    fn every_text_that_a_person_reads_hides_nothing() {
        let hidden = "a\u{1b}[2K\u{202e}b\nApproved: c";
        let seen = "a⟨U+001B⟩[2K⟨U+202E⟩b⏎Approved: c";
        for (field, expected) in [
            (
                json!({"type": "string", "title": hidden, "description": hidden, "default": "x"}),
                json!({"type": "string", "title": seen, "description": seen, "default": "x"}),
            ),
            (
                json!({"type": "string", "enum": ["1", "2"], "enumNames": ["one", hidden]}),
                json!({"type": "string", "enum": ["1", "2"], "enumNames": ["one", seen]}),
            ),
            (
                json!({"type": "string", "oneOf": [{"const": "1", "title": hidden}]}),
                json!({"type": "string", "oneOf": [{"const": "1", "title": seen}]}),
            ),
            (
                json!({"type": "array", "items": {"anyOf": [{"const": "1", "title": hidden}]}}),
                json!({"type": "array", "items": {"anyOf": [{"const": "1", "title": seen}]}}),
            ),
        ] {
            let shown = shown(&form(&field)).unwrap();
            assert_eq!(shown["requestedSchema"]["properties"]["a"], expected);
        }
        let mut titled = form(&json!({"type": "string"}));
        titled["requestedSchema"]["title"] = hidden.into();
        assert_eq!(shown(&titled).unwrap()["requestedSchema"]["title"], seen);
    }

    // spec: N-10
    #[test]
    fn a_form_whose_data_hides_something_is_refused() {
        for hidden in ["a\u{1b}b", "a\u{202e}b", "a\u{200b}b", "a\nb", "\u{2800}"] {
            for field in [
                json!({"type": "string", "enum": ["1", hidden]}),
                json!({"type": "string", "oneOf": [{"const": hidden, "title": "x"}]}),
                json!({"type": "array", "items": {"type": "string", "enum": [hidden]}}),
                json!({"type": "string", "default": hidden}),
                json!({"type": "array", "default": [hidden]}),
                json!({"type": "string", "format": hidden}),
                json!({"type": "string", hidden: 1}),
            ] {
                assert!(shown(&form(&field)).is_err(), "{field}");
            }
            let mut named = form(&json!({"type": "string"}));
            named["requestedSchema"]["properties"][hidden] = json!({"type": "string"});
            assert!(shown(&named).is_err());
            named = form(&json!({"type": "string"}));
            named["requestedSchema"]["required"] = json!([hidden]);
            assert!(shown(&named).is_err());
            assert!(
                shown(&json!({"message": "Open", "mode": "url", "url": format!("http://h/{hidden}")}))
                    .is_err()
            );
        }
        // Two parsers could choose different values.
        let twice = r#"{"message":"x","requestedSchema":{"properties":{"a":{"title":"1","title":"2"}}}}"#;
        assert!(labelled(Some(&RawValue::from_string(twice.to_owned()).unwrap()), "mail").is_err());
        assert!(
            shown(&json!({"message": "Open", "mode": "url", "url": "http://p\u{430}y.example"})).is_err()
        );
        assert!(shown(&json!({"message": "Open", "mode": "url", "url": "http://h/?a=1&b=%20"})).is_ok());
        for address in
            ["javascript:alert(1)", "file:///etc/passwd", "https://bank.example@evil.example/", "nothing"]
        {
            assert!(shown(&json!({"message": "Open", "mode": "url", "url": address})).is_err(), "{address}");
        }
    }

    #[test]
    fn a_form_is_bounded() {
        let string = json!({"type": "string"});
        let fields = |count: usize| {
            let mut form = form(&string);
            for number in 1..count {
                form["requestedSchema"]["properties"][format!("f{number}")] = string.clone();
            }
            form
        };
        assert!(shown(&fields(32)).is_ok());
        assert_eq!(shown(&fields(33)).unwrap_err(), "the form has 33 fields; it may have 32");
        let options = |count: usize| form(&json!({"enum": vec!["x"; count]}));
        assert!(shown(&options(256)).is_ok() && shown(&options(257)).is_err());
        let described = |length: usize| form(&json!({"description": "x".repeat(length)}));
        assert!(shown(&described(400)).is_ok() && shown(&described(401)).is_err());
        let default = |length: usize| form(&json!({"default": "x".repeat(length)}));
        assert!(shown(&default(400)).is_ok() && shown(&default(401)).is_err());
        assert!(shown(&form(&json!({"items": {"items": {"items": {"items": {"items": 1}}}}}))).is_err());
        let mut large = form(&string);
        large["_meta"] = json!({"x": "x".repeat(64 * 1024)});
        assert!(shown(&large).is_err());
    }
}
