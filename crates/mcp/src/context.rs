//! What an answer may do on its way: report progress, log, ask the host.

use std::sync::Arc;

use embody_wire::message::{Notification, Outcome};
use embody_wire::server::{AskError, Call, Era, Host};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::era::raw;
use crate::handler::RequestError;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

pub struct RequestContext<P> {
    call: Call<P>,
    meta: Map<String, Value>,
    inputs: Map<String, Value>,
    state: Option<String>,
    level: Option<LogLevel>,
}

/// The outcome of a request to the host.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitOutcome {
    /// The host's response: `action`, and `content` if it was accepted.
    Answer(Value),
    /// The call must return this result; the host then calls again with the answer.
    InputRequired(Map<String, Value>),
}

impl<P> RequestContext<P> {
    pub(crate) fn new(call: Call<P>, params: &Map<String, Value>, level: Option<LogLevel>) -> Self {
        let object = |name: &str| params.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
        let state = params.get("requestState").and_then(Value::as_str).map(str::to_owned);
        Self { meta: object("_meta"), inputs: object("inputResponses"), state, level, call }
    }

    #[must_use]
    pub fn principal(&self) -> &P {
        &self.call.host.principal
    }

    #[must_use]
    pub fn host(&self) -> &Arc<Host<P>> {
        &self.call.host
    }

    #[must_use]
    pub fn call(&self) -> &Call<P> {
        &self.call
    }

    /// The value under this key of the caller's `_meta`, which is not verified.
    #[must_use]
    pub fn meta(&self, key: &str) -> Option<&Value> {
        self.meta.get(key)
    }

    /// The host's answer to an `input_required` result, by its key (stateless era).
    #[must_use]
    pub fn input(&self, key: &str) -> Option<&Value> {
        self.inputs.get(key)
    }

    /// The state that the host returned. It is not verified.
    #[must_use]
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    #[must_use]
    pub fn can(&self, capability: &str) -> bool {
        self.call.host.initialize_params().can(capability)
    }

    #[must_use]
    pub fn can_show_forms(&self) -> bool {
        self.call.host.initialize_params().can_show_forms()
    }

    /// Reports progress, if the host asked for it.
    pub async fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let Some(token) = self.meta.get("progressToken") else { return };
        let mut params = json!({"progressToken": token, "progress": whole(progress)});
        if let (Some(members), Some(total)) = (params.as_object_mut(), total) {
            members.insert("total".into(), whole(total));
        }
        if let (Some(members), Some(message)) = (params.as_object_mut(), message) {
            members.insert("message".into(), message.into());
        }
        self.notify("notifications/progress", &params).await;
    }

    /// Sends a log message, if the host's level includes it.
    pub async fn log(&self, level: LogLevel, data: Value) {
        if self.level.is_some_and(|least| level >= least) {
            self.notify("notifications/message", &json!({"level": level, "data": data})).await;
        }
    }

    pub async fn notify(&self, method: &str, params: &Value) {
        self.call.notify(Notification { method: method.to_owned(), params: Some(raw(params)) }).await;
    }

    /// Asks the host as its era requires: with a request, or with a result after which it calls again. `key` distinguishes
    /// several requests of one call.
    pub async fn ask(&self, key: &str, method: &str, params: Value) -> Result<ElicitOutcome, RequestError> {
        let capability = match method {
            "sampling/createMessage" => "sampling",
            "roots/list" => "roots",
            _ => "elicitation",
        };
        let era = self.call.host.era();
        if let (Era::Stateless, Some(answer)) = (era, self.input(key)) {
            if !answer.is_object() {
                return Err(RequestError::InvalidParams(format!("the answer to `{key}` is not an object")));
            }
            return Ok(ElicitOutcome::Answer(answer.clone()));
        }
        let can = if capability == "elicitation" { self.can_show_forms() } else { self.can(capability) };
        if !can {
            return Err(RequestError::MissingCapability(capability));
        }
        if era == Era::Stateless {
            let mut result = Map::new();
            result.insert("resultType".into(), "input_required".into());
            result.insert("inputRequests".into(), json!({key: {"method": method, "params": params}}));
            return Ok(ElicitOutcome::InputRequired(result));
        }
        match self.call.ask(method, Some(raw(&params))).await {
            Ok(Outcome::Result(answer)) => serde_json::from_str(answer.get())
                .map(ElicitOutcome::Answer)
                .map_err(|_| RequestError::Internal("the host's answer cannot be read".to_owned())),
            Ok(Outcome::Error(error)) => {
                Err(RequestError::Internal(format!("the host refused: {}", error.get())))
            }
            Err(error @ (AskError::Gone | AskError::TooMany | AskError::Stateless)) => {
                Err(RequestError::Internal(error.to_string()))
            }
        }
    }
}

/// A number without a fraction is written as one.
fn whole(number: f64) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "checked before")]
    if number.fract() == 0.0 && number.abs() < 9e15 { (number as i64).into() } else { number.into() }
}
