//! A call and its faults. The call is in the journal before anything else happens.
//!
//! | trick | does, with `amount` as |
//! |---|---|
//! | `hang` | never answers |
//! | `slow` | answers after milliseconds |
//! | `crash` | ends without an answer |
//! | `half` | ends in the middle of its answer |
//! | `garbage` | first writes lines that are not messages |
//! | `stderr` | writes to stderr, bytes |
//! | `huge` | answers with a line of that many bytes |
//! | `drip` | answers byte by byte over milliseconds |
//! | `twice` | answers two times |
//! | `wrong_id` | answers unknown ids, then its own |
//! | `only_wrong_id` | answers unknown ids |
//! | `flood` | that many log messages, then the answer |
//! | `progress` | that many steps of progress before its answer, one after it |
//! | `changed` | notifies that its tools have changed |
//! | `elicit` · `sample` · `roots` | sends a request to the host after milliseconds, and returns the response |
//! | `error` | answers with a JSON-RPC error |
//! | `fail` | answers with a result that is an error |

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::Body;
use super::outlet::answer;
use super::start::{GARBAGE, complain};

#[derive(Deserialize)]
struct Params {
    name: String,
    #[serde(default)]
    arguments: Option<Box<RawValue>>,
    #[serde(default, rename = "_meta")]
    meta: Map<String, Value>,
}

/// How a call is answered.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Manner {
    trick: Option<String>,
    amount: Option<u64>,
    result: Option<Box<RawValue>>,
}

/// Executes a call.
pub(super) fn call(body: &Body, id: &RawValue, params: Option<&RawValue>) {
    let params_text = params.map_or("null", RawValue::get);
    let call: Params = match serde_json::from_str(params_text) {
        Ok(call) => call,
        Err(error) => return body.outlet.error(id, -32602, &error.to_string()),
    };
    body.journal.call(&call.name, params);
    let manner = manner(body.options.replies.as_deref(), &call);
    let result = manner
        .result
        .as_ref()
        .map_or_else(|| super::tools::result(&call.name).to_string(), |result| result.get().to_owned());
    let amount = manner.amount.unwrap_or_default();
    let whole = answer(id.get(), &result);
    match manner.trick.as_deref().unwrap_or_default() {
        "" => {}
        "hang" => return,
        "slow" => std::thread::sleep(Duration::from_millis(amount)),
        "crash" => std::process::exit(1),
        "half" => {
            body.outlet.bytes(whole.as_bytes().split_at(whole.len() / 2).0);
            std::process::exit(1);
        }
        "garbage" => body.outlet.bytes(GARBAGE),
        "stderr" => complain(amount),
        "huge" => {
            let text = "x".repeat(usize::try_from(amount).unwrap());
            let result = format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#);
            return body.outlet.result(id, &result);
        }
        "drip" => {
            return body.outlet.drip(format!("{whole}\n").as_bytes(), Duration::from_millis(amount));
        }
        "twice" => body.outlet.line(&whole),
        "wrong_id" => wrong_ids(body, &result),
        "only_wrong_id" => return wrong_ids(body, &result),
        "flood" => {
            for number in 0..amount {
                body.outlet.notify("notifications/message", &json!({"level": "info", "data": number}));
            }
        }
        "progress" => return progress(body, &call, amount, &whole),
        "changed" => body.outlet.notify("notifications/tools/list_changed", &json!({})),
        question @ ("elicit" | "sample" | "roots") => {
            std::thread::sleep(Duration::from_millis(amount));
            return body.outlet.result(id, &asked(body, question));
        }
        "error" => return body.outlet.error(id, -32000, "unruly will not"),
        "fail" => {
            let result = json!({"isError": true, "content": [{"type": "text", "text": "unruly could not"}]});
            return body.outlet.result(id, &result.to_string());
        }
        other => return body.outlet.error(id, -32602, &format!("no trick `{other}`")),
    }
    body.outlet.line(&whole);
}

fn manner(replies: Option<&Path>, call: &Params) -> Manner {
    let arguments = call.arguments.as_ref().map_or("{}", |arguments| arguments.get());
    let own: Manner = serde_json::from_str(arguments).unwrap_or_default();
    // The `result` of an `observe` is an argument and not an answer.
    if own.trick.is_some() {
        return own;
    }
    let replies = replies.and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
    let mut replies: std::collections::HashMap<String, Manner> =
        serde_json::from_str(&replies).unwrap_or_default();
    replies.remove(&call.name).unwrap_or(own)
}

fn wrong_ids(body: &Body, result: &str) {
    for id in ["987654321", r#""nobody asked""#, "null", "-1", "1.5"] {
        body.outlet.line(&answer(id, result));
    }
}

fn progress(body: &Body, call: &Params, steps: u64, whole: &str) {
    let token = call.meta.get("progressToken").cloned().unwrap_or_default();
    let step = |number: u64| {
        let params = json!({"progressToken": token, "progress": number, "total": steps});
        body.outlet.notify("notifications/progress", &params);
    };
    (1..=steps).for_each(step);
    body.outlet.line(whole);
    step(steps + 1);
}

fn asked(body: &Body, question: &str) -> String {
    let answer = match question {
        "elicit" => {
            let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
            let params = json!({"message": "What is your name?", "requestedSchema": schema});
            body.outlet.ask("elicitation/create", &params)
        }
        "sample" => {
            let message = json!({"role": "user", "content": {"type": "text", "text": "Say something."}});
            let params = json!({"messages": [message], "maxTokens": 10});
            body.outlet.ask("sampling/createMessage", &params)
        }
        _ => body.outlet.ask("roots/list", &json!({})),
    };
    format!(r#"{{"content":[],"structuredContent":{{"answer":{answer}}}}}"#)
}
