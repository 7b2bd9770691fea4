//! What the mind learns of calls: before each (awaited if others will see it), and after each through the outbox.

pub(crate) mod after;
pub(crate) mod outbox;
pub(crate) mod unawaited;

use std::time::{Duration, Instant};

use embody_wire::Outcome;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::gate::{Mind, SURPRISE_LIMIT};
use crate::results::raw;
use crate::session::Session;
use crate::session::packet::object;
use crate::upstream::Health;

/// Flags that are shown, and how much of each.
const FLAGS: usize = 16;
const FLAG_CHARS: usize = 600;
/// How the flag begins that says how unusual a call is, and the one that says that nobody knows.
pub(crate) const UNUSUAL: &str = "this call is unusual";
pub(crate) const NO_NUMBER: &str = "the mind gives no number for it";
/// The longest text of a result that the mind hears.
const RESULT_BYTES: usize = 64 * 1024;

/// What the mind says before a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct View {
    pub(crate) mind: Mind,
    /// What it points at.
    pub(crate) flags: Vec<String>,
}

impl View {
    /// Of a mind that was not asked.
    pub(crate) fn unasked(session: &Session) -> Self {
        let is_there = session.mind.health() == Health::Connected;
        Self { mind: if is_there { Mind::Calm } else { Mind::Away }, flags: Vec::new() }
    }
}

/// What the mind is asked, or told.
#[derive(serde::Serialize)]
pub(crate) struct Observed<'a> {
    pub(crate) tool_name: &'a str,
    pub(crate) args: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<Value>,
}

/// Asks the mind about a call that is about to happen.
pub(crate) async fn before(
    session: &Session,
    tool: &str,
    args: &RawValue,
    limit: Duration,
    now: i64,
) -> View {
    if session.mind.health() == Health::Unavailable {
        return View { mind: Mind::Away, flags: Vec::new() };
    }
    let Ok(Ok(link)) = tokio::time::timeout(limit, session.mind.link()).await else {
        return View { mind: Mind::Away, flags: Vec::new() };
    };
    let arguments = raw(&Observed { tool_name: tool, args, result: None });
    let began = Instant::now();
    let asked = crate::carry::ask(&link, "observe", &arguments, limit).await;
    match asked.and_then(object) {
        Ok(answer) => {
            session.note_before(tool, now, began, None);
            view(&answer)
        }
        Err(reason) => {
            session.note_before(tool, now, began, Some(reason));
            View { mind: Mind::Silent, flags: Vec::new() }
        }
    }
}

fn view(answer: &serde_json::Map<String, Value>) -> View {
    let mut flags: Vec<String> = answer
        .get("cautionary_flags")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .take(FLAGS)
        .map(|flag| flag.as_str().map_or_else(|| flag.to_string(), str::to_owned))
        .map(|flag| flag.chars().take(FLAG_CHARS).collect())
        .collect();
    let error = answer.get("prediction_error").and_then(Value::as_f64);
    // A mind that gives no number has no view; one that is not a number is no calm.
    let is_surprised = error.is_none_or(|error| error > SURPRISE_LIMIT || error.is_nan());
    if is_surprised {
        let reasons = answer.get("reasons").and_then(Value::as_array).into_iter().flatten();
        let why: Vec<String> = reasons.filter_map(Value::as_str).take(4).map(str::to_owned).collect();
        let why = if why.is_empty() { String::new() } else { format!(": {}", why.join("; ")) };
        let how = error.map_or(NO_NUMBER.to_owned(), |error| format!("{UNUSUAL} ({error:.2} of 1)"));
        flags.push(format!("{how}{why}").chars().take(FLAG_CHARS).collect());
    }
    View { mind: if flags.is_empty() { Mind::Calm } else { Mind::Alarmed }, flags }
}

/// What the mind is told of a result: structured content, else JSON in the text, else the text.
pub(crate) fn told(outcome: &Outcome) -> Value {
    let result = match outcome {
        Outcome::Error(error) => {
            let error: Value = serde_json::from_str(error.get()).unwrap_or_default();
            let message = error.get("message").and_then(Value::as_str).unwrap_or("an error without words");
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

#[cfg(test)]
mod tests {
    use super::*;

    fn of(result: &Value) -> Value {
        told(&Outcome::Result(raw(result)))
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
        assert_eq!(told(&error), json!({"error": "bad", "error_type": "json_rpc"}));
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
