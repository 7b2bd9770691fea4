//! Support for stateless servers: every request carries the client info and capabilities, this side keeps what a
//! session would store, and one open request listens for changes.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::OutgoingCall;
use crate::error::Error;
use crate::initialize::InitializeParams;
use crate::message::{Notification, Outcome, may_contain};
use crate::param_headers;
use crate::server::{MODERN, code, failure, named_by};
use crate::splice;

/// Maximum number of resources, and of tasks, that one connection watches.
const MOST_WATCHED: usize = 1024;
pub(super) const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// The long-lived request that listens for changes.
pub(super) const LISTEN: &str = "subscriptions/listen";
/// The notification with which a server acknowledges the listen request.
pub(super) const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// The client-side state of a stateless server.
pub(super) struct Stateless {
    /// The `_meta` members that every request carries.
    meta: String,
    /// The minimum log level that is requested.
    level: Mutex<Option<String>>,
    /// The schemas of tools whose arguments are also sent as headers.
    header_schemas: Mutex<HashMap<String, Value>>,
    watched: watch::Sender<Watched>,
}

/// The resources and tasks whose changes are reported.
#[derive(Debug, Default)]
pub(super) struct Watched {
    resources: BTreeSet<String>,
    tasks: BTreeSet<String>,
}

impl Watched {
    pub(super) fn resources(&self) -> impl Iterator<Item = &String> {
        self.resources.iter()
    }
}

impl Stateless {
    pub(super) fn new(params: &InitializeParams) -> Self {
        let capabilities = params.capabilities.as_deref().map_or("{}", RawValue::get);
        let client = params.client_info.as_deref().map_or("{}", RawValue::get);
        let meta = format!(
            r#""io.modelcontextprotocol/protocolVersion":"{MODERN}","io.modelcontextprotocol/clientCapabilities":{capabilities},"io.modelcontextprotocol/clientInfo":{client}"#
        );
        let level = Mutex::new(params.log_level.clone());
        Self { meta, level, header_schemas: Mutex::default(), watched: watch::Sender::default() }
    }

    /// Adds the era's `_meta` members to the parameters, and changes nothing else.
    pub(super) fn add_era_meta(&self, params: Option<&RawValue>) -> Result<Box<RawValue>, Error> {
        let wrong = |_| Error::Protocol("the parameters of a request are not an object");
        let text = params.map_or("{}", RawValue::get).trim();
        let members: HashMap<String, &RawValue> = serde_json::from_str(text).map_err(wrong)?;
        let mut messages = self.meta.clone();
        if let Some(level) = &*lock(&self.level) {
            messages
                .push_str(&format!(r#","io.modelcontextprotocol/logLevel":{}"#, Value::from(level.as_str())));
        }
        let not_an_object = || Error::Protocol("the parameters of a request are not an object");
        let comma = |after: &str| if after.trim_start().starts_with('}') { "" } else { "," };
        // Inserted after an opening brace, or replaces a `_meta` that is not an object.
        let spliced = match members.get("_meta").map(|meta| meta.get()) {
            Some(meta) if meta.starts_with('{') => {
                let (brace, rest) = meta.split_at(1);
                splice::replace(text, brace, &format!("{{{messages}{}", comma(rest)))
            }
            Some(other) => splice::replace(text, other, &format!("{{{messages}}}")),
            None => {
                let (brace, rest) = text.split_at_checked(1).ok_or_else(not_an_object)?;
                splice::replace(text, brace, &format!(r#"{{"_meta":{{{messages}}}{}"#, comma(rest)))
            }
        };
        RawValue::from_string(spliced.ok_or_else(not_an_object)?).map_err(wrong)
    }

    pub(super) fn headers(&self, call: OutgoingCall<'_>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let mut add = |name: &str, value: &str| {
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(encoded(value)))
            {
                headers.insert(name, value);
            }
        };
        add("mcp-method", call.method);
        if let Some(named) = named_by(call.method) {
            let params = call.params.map_or("{}", RawValue::get);
            let params: Value = serde_json::from_str(params).unwrap_or_default();
            let name = params.get(named).and_then(Value::as_str).unwrap_or_default();
            add("mcp-name", name);
            let schema =
                lock(&self.header_schemas).get(name).cloned().filter(|_| call.method == "tools/call");
            let arguments = params.get("arguments").unwrap_or(&Value::Null);
            for (header, value) in schema.iter().flat_map(|schema| param_headers::headers(schema, arguments))
            {
                add(&format!("mcp-param-{header}"), &value);
            }
        }
        headers
    }

    /// Records which arguments of a tool are also sent as headers.
    pub(super) fn register_tool(&self, tool: &str, definition: &RawValue) {
        if !may_contain(definition, "x-mcp-header") {
            return;
        }
        let schema = serde_json::from_str::<Value>(definition.get())
            .ok()
            .and_then(|mut tool| tool.get_mut("inputSchema").map(Value::take));
        if let Some(schema) = schema {
            lock(&self.header_schemas).insert(tool.to_owned(), schema);
        }
    }

    /// Answers methods that a stateless server does not have, from local state.
    pub(super) fn answer_locally(&self, call: OutgoingCall<'_>) -> Option<Outcome> {
        #[derive(Deserialize, Default)]
        struct Params {
            #[serde(default)]
            level: Option<String>,
            #[serde(default)]
            uri: Option<String>,
        }
        let read = || -> Params {
            call.params.and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or_default()
        };
        match call.method {
            "ping" => {}
            "logging/setLevel" => *lock(&self.level) = read().level,
            "resources/subscribe" => {
                let Some(uri) = read().uri else {
                    return Some(failure(code::INVALID_PARAMS, "`uri` is missing"));
                };
                self.watched.send_if_modified(|Watched { resources, .. }| {
                    resources.len() < MOST_WATCHED && resources.insert(uri)
                });
            }
            "resources/unsubscribe" => {
                let uri = read().uri.unwrap_or_default();
                self.watched.send_if_modified(|watched| watched.resources.remove(&uri));
            }
            _ => return None,
        }
        RawValue::from_string("{}".to_owned()).ok().map(Outcome::Result)
    }

    /// Replaces the set of watched tasks.
    pub(super) fn watch_tasks(&self, mut tasks: BTreeSet<String>) {
        while tasks.len() > MOST_WATCHED {
            tasks.pop_last();
        }
        self.watched.send_if_modified(|watched| {
            let is_news = watched.tasks != tasks;
            watched.tasks = tasks;
            is_news
        });
    }

    /// Notifies when the watched set changes.
    pub(super) fn watching(&self) -> watch::Receiver<Watched> {
        self.watched.subscribe()
    }
}

/// The input that a stateless server requests before it continues a call.
#[derive(Debug, Clone)]
pub struct InputRequired {
    /// Key for the answer, method and parameters of each request.
    pub requests: Vec<(String, String, Option<Box<RawValue>>)>,
    pub state: Option<Box<RawValue>>,
}

impl InputRequired {
    pub(super) fn read(result: &RawValue) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct InputRequiredResult<'a> {
            result_type: String,
            #[serde(borrow, default)]
            input_requests: Option<std::collections::BTreeMap<String, InputRequest<'a>>>,
            #[serde(borrow, default)]
            request_state: Option<&'a RawValue>,
        }
        #[derive(Deserialize)]
        struct InputRequest<'a> {
            method: String,
            #[serde(borrow, default)]
            params: Option<&'a RawValue>,
        }
        if !may_contain(result, "input_required") {
            return None;
        }
        let asks: InputRequiredResult<'_> = serde_json::from_str(result.get()).ok()?;
        if asks.result_type != "input_required" {
            return None;
        }
        let requests = asks.input_requests.unwrap_or_default().into_iter();
        let requests = requests.map(|(key, asked)| (key, asked.method, asked.params.map(ToOwned::to_owned)));
        Some(Self { requests: requests.collect(), state: asks.request_state.map(ToOwned::to_owned) })
    }

    /// The parameters for the retried call, with the answers in the order of the requests.
    #[must_use]
    pub fn params(&self, params: Option<&RawValue>, answers: &[Box<RawValue>]) -> Option<Box<RawValue>> {
        let text = params.map_or("{}", RawValue::get).trim();
        let open = text.strip_prefix('{')?;
        let keys = self.requests.iter().map(|(key, ..)| Value::from(key.as_str()));
        let messages: Vec<String> =
            keys.zip(answers).map(|(key, answer)| format!("{key}:{}", answer.get())).collect();
        let state = self.state.as_deref().map(|state| format!(r#","requestState":{}"#, state.get()));
        let comma = if open.trim_start().starts_with('}') { "" } else { "," };
        let added = format!(r#""inputResponses":{{{}}}{}"#, messages.join(","), state.unwrap_or_default());
        RawValue::from_string(format!("{{{added}{comma}{open}")).ok()
    }
}

/// The parameters of `subscriptions/listen` for everything that can change.
pub(super) fn listening(Watched { resources, tasks }: &Watched) -> Value {
    let mut wanted =
        json!({"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true});
    for (name, watched) in [("resourceSubscriptions", resources), ("taskIds", tasks)] {
        if let (false, Some(members)) = (watched.is_empty(), wanted.as_object_mut()) {
            members.insert(name.to_owned(), json!(watched));
        }
    }
    json!({ "notifications": wanted })
}

/// Converts a change to the notification that a session-era server would send; task changes and acknowledgements pass.
/// `None` for anything else.
pub(super) fn change(notification: Notification) -> Option<Notification> {
    let is_of_tasks = matches!(&*notification.method, "notifications/tasks" | ACKNOWLEDGED);
    if !is_of_tasks && !super::inbox::is_change(&notification.method) {
        return None;
    }
    let params = notification.params.as_deref().map_or("{}", RawValue::get);
    let mut params: serde_json::Map<String, Value> = serde_json::from_str(params).unwrap_or_default();
    // The task's state is dropped: a reader queries it when needed, and a large result must not wait in queues.
    if notification.method == "notifications/tasks" {
        params.retain(|name, _| name == "taskId");
    }
    if let Some(Value::Object(meta)) = params.get_mut("_meta") {
        meta.remove(SUBSCRIPTION_ID);
        if meta.is_empty() {
            params.remove("_meta");
        }
    }
    let params = (!params.is_empty()).then(|| serde_json::value::to_raw_value(&params).ok()).flatten();
    Some(Notification { method: notification.method, params })
}

/// Converts a `server/discover` result to an `initialize` result; `None` if the server does not support this revision.
pub(super) fn initialize_result(discovered: &RawValue) -> Option<Box<RawValue>> {
    let found: Value = serde_json::from_str(discovered.get()).ok()?;
    let versions = found.get("supportedVersions").and_then(Value::as_array)?;
    if !versions.iter().any(|version| version == MODERN) {
        return None;
    }
    let about = found.get("_meta").and_then(|meta| meta.get("io.modelcontextprotocol/serverInfo"));
    let about = about.or_else(|| found.get("serverInfo")).cloned();
    let initialize_result = json!({
        "protocolVersion": MODERN,
        "capabilities": found.get("capabilities").cloned().unwrap_or_else(|| json!({})),
        "serverInfo": about.unwrap_or_else(|| json!({"name": "", "version": ""})),
        "instructions": found.get("instructions").cloned().unwrap_or_default(),
    });
    serde_json::value::to_raw_value(&initialize_result).ok()
}

/// Encodes a value for a header: anything but plain visible ASCII becomes Base64.
fn encoded(value: &str) -> String {
    let is_plain = value.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
        && value.trim() == value
        && !value.starts_with("=?base64?");
    if is_plain { value.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(value)) }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    fn stateless() -> Stateless {
        let mut stateless = Stateless::new(&InitializeParams::default());
        stateless.meta = r#""v":1"#.to_owned();
        stateless
    }

    #[test]
    fn every_request_says_who_asks_and_nothing_else_of_it_changes() {
        for (params, with_meta) in [
            (None, r#"{"_meta":{"v":1}}"#),
            (Some("{}"), r#"{"_meta":{"v":1}}"#),
            (Some(r#" { "a":1.0 }"#), r#"{"_meta":{"v":1}, "a":1.0 }"#),
            (Some(r#"{"a":1,"_meta":{ }}"#), r#"{"a":1,"_meta":{"v":1 }}"#),
            (
                Some(r#"{"_meta":{"progressToken":7},"b":{"_meta":{}}}"#),
                r#"{"_meta":{"v":1,"progressToken":7},"b":{"_meta":{}}}"#,
            ),
            (Some(r#"{"_meta":null,"a":1}"#), r#"{"_meta":{"v":1},"a":1}"#),
        ] {
            let params = params.map(raw);
            assert_eq!(stateless().add_era_meta(params.as_deref()).unwrap().get(), with_meta);
        }
        assert!(stateless().add_era_meta(Some(&raw("[]"))).is_err());
    }

    #[test]
    fn what_a_session_would_remember_is_remembered_here() {
        let server = stateless();
        let own =
            |method, params: &str| server.answer_locally(OutgoingCall { method, params: Some(&raw(params)) });
        assert!(own("tools/call", "{}").is_none());
        assert!(own("ping", "{}").is_some());
        assert!(own("logging/setLevel", r#"{"level":"debug"}"#).is_some());
        assert_eq!(
            server.add_era_meta(None).unwrap().get(),
            r#"{"_meta":{"v":1,"io.modelcontextprotocol/logLevel":"debug"}}"#
        );
        own("resources/subscribe", r#"{"uri":"a"}"#);
        own("resources/subscribe", r#"{"uri":"b"}"#);
        own("resources/unsubscribe", r#"{"uri":"a"}"#);
        let wanted = || listening(&server.watching().borrow());
        assert_eq!(wanted()["notifications"]["resourceSubscriptions"], json!(["b"]));
        assert!(wanted()["notifications"].get("taskIds").is_none());
        server.watch_tasks(BTreeSet::from(["t".to_owned()]));
        assert_eq!(wanted()["notifications"]["taskIds"], json!(["t"]));
    }

    #[test]
    fn headers_mirror_what_is_asked_for() {
        let server = stateless();
        let definition =
            raw(r#"{"name":"t","inputSchema":{"properties":{"region":{"x-mcp-header":"Region"}}}}"#);
        server.register_tool("t", &definition);
        let params = raw(r#"{"name":"t","arguments":{"region":"grün"}}"#);
        let headers = server.headers(OutgoingCall { method: "tools/call", params: Some(&params) });
        assert_eq!(headers["mcp-method"], "tools/call");
        assert_eq!(headers["mcp-name"], "t");
        assert_eq!(headers["mcp-param-region"], "=?base64?Z3LDvG4=?=");
        let headers =
            server.headers(OutgoingCall { method: "tasks/get", params: Some(&raw(r#"{"taskId":"x"}"#)) });
        assert_eq!((&headers["mcp-name"], headers.len()), (&HeaderValue::from_static("x"), 2));
        let headers = server.headers(OutgoingCall { method: "tools/list", params: None });
        assert_eq!(headers.len(), 1);
    }

    #[test]
    fn what_a_server_asks_is_answered_by_the_call_again() {
        let asks = raw(
            r#"{"resultType":"input_required","inputRequests":{"name":{"method":"elicitation/create","params":{"message":"who?"}},"roots":{"method":"roots/list"}},"requestState":"s\u0041"}"#,
        );
        let asks = InputRequired::read(&asks).unwrap();
        assert_eq!((asks.requests.len(), asks.requests[0].0.as_str()), (2, "name"));
        let params = raw(r#"{ "name":"t","arguments":{"x":1.0}}"#);
        let again =
            asks.params(Some(&params), &[raw(r#"{"action":"accept"}"#), raw(r#"{"roots":[]}"#)]).unwrap();
        assert_eq!(
            again.get(),
            r#"{"inputResponses":{"name":{"action":"accept"},"roots":{"roots":[]}},"requestState":"s\u0041", "name":"t","arguments":{"x":1.0}}"#
        );
        for other in ["{}", r#"{"resultType":"complete","x":"input_required"}"#, r#"{"x":"input_required"}"#]
        {
            assert!(InputRequired::read(&raw(other)).is_none(), "{other}");
        }
    }

    #[test]
    fn of_a_task_only_its_name_is_passed_on() {
        let params = raw(r#"{"taskId":"t","status":"completed","result":{},"_meta":{"x":1}}"#);
        let method = "notifications/tasks".to_owned();
        let sent = change(Notification { method, params: Some(params) }).unwrap();
        assert_eq!(sent.params.unwrap().get(), r#"{"taskId":"t"}"#);
    }

    #[test]
    fn a_server_that_does_not_speak_the_revision_is_not_greeted() {
        assert!(
            initialize_result(&raw(r#"{"supportedVersions":["2025-11-25"],"capabilities":{}}"#)).is_none()
        );
        assert!(initialize_result(&raw("{}")).is_none());
        let found = raw(
            r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"x"}}}"#,
        );
        let initialize_result: Value =
            serde_json::from_str(initialize_result(&found).unwrap().get()).unwrap();
        assert_eq!(
            (&initialize_result["serverInfo"]["name"], &initialize_result["protocolVersion"]),
            (&json!("x"), &json!(MODERN))
        );
    }
}
