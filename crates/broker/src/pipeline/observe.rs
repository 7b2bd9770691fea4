//! Observe: asks the mind about a call before it is sent. Waits for the answer if the class requires it; otherwise queues the
//! observation, which is dropped and counted when the queue is full. Observations after a call go through `post_call` and the
//! outbox.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use embody_wire::Outcome;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::gate::{Mind, SURPRISE_LIMIT};
use super::respond::raw;
use super::{ToolCall, send};
use crate::arguments::Arguments;
use crate::session::bootstrap::object;
use crate::session::{Session, observes_itself};
use crate::upstream::{Health, Role};
use crate::{Broker, BrokerConfig};

/// How many flags are shown, and how much of each.
const FLAGS_MAX: usize = 16;
const FLAG_CHARS: usize = 600;
/// Prefixes of the flags for an unusual call and for a mind that returned no number.
pub(crate) const UNUSUAL: &str = "this call is unusual";
pub(crate) const NO_NUMBER: &str = "the mind returned no number for it";
/// The longest result text that is sent to the mind.
const RESULT_BYTES: usize = 64 * 1024;
const QUEUE_LENGTH: usize = 64;
/// Calls with longer arguments are not queued.
const QUEUED_BYTES: usize = 64 * 1024;
/// After an observation the queue pauses for this multiple of its duration, to leave the processor to running calls.
const PAUSE_FACTOR: u32 = 9;
const PAUSE_MAX: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MindView {
    pub(crate) mind: Mind,
    pub(crate) flags: Vec<String>,
}

impl MindView {
    const fn unflagged(mind: Mind) -> Self {
        Self { mind, flags: Vec::new() }
    }

    pub(crate) fn unasked(session: &Session) -> Self {
        let is_there = session.mind.health() == Health::Connected;
        Self::unflagged(if is_there { Mind::Calm } else { Mind::Away })
    }
}

#[derive(serde::Serialize)]
pub(crate) struct Observation<'a> {
    pub(crate) tool_name: &'a str,
    pub(crate) args: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<Value>,
}

/// Waits for the mind's view of a human-visible or destructive write; queues the observation of any other call.
pub(super) async fn before(broker: &Broker, call: &ToolCall<'_>) -> MindView {
    if !matches!(call.upstream.spec().role, Role::Body(_)) {
        return MindView::unflagged(Mind::Calm);
    }
    let is_observed = !observes_itself(call.upstream);
    if !is_observed || !call.ruling.class.is_observed_first() {
        if is_observed {
            broker.observations.add(call.session, &call.tool.tool, &call.arguments);
        }
        return MindView::unasked(call.session);
    }
    let limit = call.settings.times.observe;
    let asking = ask_mind(&broker.config, limit, call.session, &call.tool.tool, &call.arguments);
    call.timing.exclude_wait(Box::pin(asking)).await
}

async fn ask_mind(
    config: &BrokerConfig,
    limit: Duration,
    session: &Session,
    tool: &str,
    args: &Arguments,
) -> MindView {
    let now = (config.clock)();
    if session.mind.health() == Health::Unavailable {
        return MindView::unflagged(Mind::Away);
    }
    let Ok(Ok(link)) = tokio::time::timeout(limit, session.mind.lease()).await else {
        return MindView::unflagged(Mind::Away);
    };
    let arguments = raw(&Observation { tool_name: tool, args: args.raw(), result: None });
    let began = Instant::now();
    let asked = send::call_mind(&link, "observe", &arguments, None, limit).await;
    match asked.and_then(object) {
        Ok(answer) => {
            session.note_observe_before(tool, now, began, None);
            view(&answer)
        }
        Err(reason) => {
            session.note_observe_before(tool, now, began, Some(reason));
            MindView::unflagged(Mind::Silent)
        }
    }
}

fn view(answer: &serde_json::Map<String, Value>) -> MindView {
    let mut flags: Vec<String> = answer
        .get("cautionary_flags")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .take(FLAGS_MAX)
        .map(|flag| flag.as_str().map_or_else(|| flag.to_string(), str::to_owned))
        .map(|flag| flag.chars().take(FLAG_CHARS).collect())
        .collect();
    let error = answer.get("prediction_error").and_then(Value::as_f64);
    // A missing number or NaN counts as an alarm.
    let is_surprised = error.is_none_or(|error| error > SURPRISE_LIMIT || error.is_nan());
    if is_surprised {
        let reasons = answer.get("reasons").and_then(Value::as_array).into_iter().flatten();
        let why: Vec<String> = reasons.filter_map(Value::as_str).take(4).map(str::to_owned).collect();
        let why = if why.is_empty() { String::new() } else { format!(": {}", why.join("; ")) };
        let how = error.map_or(NO_NUMBER.to_owned(), |error| format!("{UNUSUAL} ({error:.2} of 1)"));
        flags.push(format!("{how}{why}").chars().take(FLAG_CHARS).collect());
    }
    MindView { mind: if flags.is_empty() { Mind::Calm } else { Mind::Alarmed }, flags }
}

/// The form of a result that is sent to the mind: structured content, else JSON in the text, else the text.
pub(crate) fn result_for_mind(outcome: &Outcome) -> Value {
    let result = match outcome {
        Outcome::Error(error) => {
            let error: Value = serde_json::from_str(error.get()).unwrap_or_default();
            let message =
                error.get("message").and_then(Value::as_str).unwrap_or("an error without a message");
            return json!({"error": cut(message), "error_type": "json_rpc"});
        }
        Outcome::Result(result) => result,
    };
    if result.get().len() > 4 * RESULT_BYTES {
        return json!({"value": cut(result.get()), "is_cut": true});
    }
    let result: Value = serde_json::from_str(result.get()).unwrap_or_default();
    let texts: Vec<&str> = result
        .get("content")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|block| block.get("text").and_then(Value::as_str))
        .collect();
    let text = texts.join("\n");
    if result.get("isError").and_then(Value::as_bool) == Some(true) {
        return json!({"error": cut(&text), "error_type": "tool"});
    }
    if let Some(structured) = result.get("structuredContent").filter(|value| !value.is_null()) {
        return bounded(structured.clone());
    }
    match serde_json::from_str::<Value>(&text) {
        Ok(value @ Value::Object(_)) => bounded(value),
        Ok(value @ (Value::Array(_) | Value::Number(_) | Value::Bool(_))) => {
            bounded(json!({ "value": value }))
        }
        _ => json!({"value": cut(&text)}),
    }
}

fn bounded(value: Value) -> Value {
    let text = value.to_string();
    if text.len() > RESULT_BYTES { json!({"value": cut(&text), "is_cut": true}) } else { value }
}

fn cut(text: &str) -> &str {
    text.get(..text.floor_char_boundary(RESULT_BYTES)).unwrap_or(text)
}

struct QueuedObservation {
    /// Weak, because a session keeps the connection to its host open.
    session: Weak<Session>,
    tool: String,
    arguments: Arc<Arguments>,
}

/// Observations that no call waits for.
pub(crate) struct ObservationQueue {
    queue: mpsc::Sender<QueuedObservation>,
    config: Arc<BrokerConfig>,
    worker: JoinHandle<()>,
}

impl ObservationQueue {
    pub(crate) fn start(config: &Arc<BrokerConfig>) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE_LENGTH);
        let worker = tokio::spawn(send_all(Arc::clone(config), waiting));
        Self { queue, config: Arc::clone(config), worker }
    }

    fn add(&self, session: &Arc<Session>, tool: &str, arguments: &Arc<Arguments>) {
        let is_sent = arguments.canonical().len() <= QUEUED_BYTES
            && self.queue.try_reserve().is_ok_and(|permit| {
                let (session, tool) = (Arc::downgrade(session), tool.to_owned());
                permit.send(QueuedObservation { session, tool, arguments: Arc::clone(arguments) });
                true
            });
        if !is_sent {
            self.config.meter.unobserved.add(1);
        }
    }
}

impl Drop for ObservationQueue {
    fn drop(&mut self) {
        self.worker.abort();
    }
}

async fn send_all(config: Arc<BrokerConfig>, mut waiting: mpsc::Receiver<QueuedObservation>) {
    while let Some(QueuedObservation { session, tool, arguments }) = waiting.recv().await {
        let Some(session) = session.upgrade() else { continue };
        let began = Instant::now();
        ask_mind(&config, config.settings().times.observe, &session, &tool, &arguments).await;
        drop(session);
        sleep((began.elapsed() * PAUSE_FACTOR).min(PAUSE_MAX)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(result: &Value) -> Value {
        result_for_mind(&Outcome::Result(raw(result)))
    }

    // spec: N-06
    #[test]
    fn the_mind_hears_the_result_in_its_best_form() {
        let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
        assert_eq!(of(&json!({"structuredContent": {"a": 1}, "content": []})), json!({"a": 1}));
        assert_eq!(of(&text(r#"{"b":2}"#)), json!({"b": 2}));
        assert_eq!(of(&text("[1]")), json!({"value": [1]}));
        assert_eq!(of(&text("hello")), json!({"value": "hello"}));
        assert_eq!(
            of(&json!({"content": [{"type": "text", "text": "no"}], "isError": true})),
            json!({"error": "no", "error_type": "tool"})
        );
        let error = Outcome::Error(raw(&json!({"code": -1, "message": "bad"})));
        assert_eq!(result_for_mind(&error), json!({"error": "bad", "error_type": "json_rpc"}));
        assert_eq!(of(&text(&"x".repeat(300_000)))["is_cut"], true);
    }

    // spec: N-07
    #[test]
    fn surprise_and_flags_alarm_and_a_mind_without_a_number_does_too() {
        let view = |answer: Value| super::view(answer.as_object().unwrap());
        assert_eq!(view(json!({"prediction_error": 0.7, "cautionary_flags": []})).mind, Mind::Calm);
        assert_eq!(view(json!({"prediction_error": 0.71})).mind, Mind::Alarmed);
        let flagged = view(json!({"prediction_error": 0.1, "cautionary_flags": ["never mail Bob"]}));
        assert_eq!((flagged.mind, flagged.flags), (Mind::Alarmed, vec!["never mail Bob".to_owned()]));
        assert_eq!(view(json!({"cautionary_flags": []})).mind, Mind::Alarmed);
        assert_eq!(view(json!({"prediction_error": "high"})).mind, Mind::Alarmed);
        let odd = view(json!({"prediction_error": 0.9, "reasons": ["a new recipient"]}));
        assert!(odd.flags[0].contains("a new recipient"));
    }
}
