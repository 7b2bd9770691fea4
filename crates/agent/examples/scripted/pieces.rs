//! A response on the wire: as a stream of events, or whole.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::response::Response;
use http_body::Frame;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::question::Format;
use crate::{Call, Reply, delay};

const MODEL: &str = "scripted";

pub(crate) async fn respond(
    format: Format,
    is_stream: bool,
    number: u64,
    reply: Reply,
    input_tokens: u64,
) -> Response {
    let wait = delay(&reply);
    if !is_stream {
        if let Some(wait) = wait {
            tokio::time::sleep(wait).await;
        }
        let body = match format {
            Format::OpenAi => whole_openai(number, &reply, input_tokens),
            Format::Anthropic => anthropic_message(number, &reply, input_tokens),
        };
        let response = Response::builder().header("content-type", "application/json");
        return response.body(Body::from(body.to_string())).unwrap_or_default();
    }
    let mut events = match format {
        Format::OpenAi => openai(number, &reply, input_tokens),
        Format::Anthropic => anthropic(number, &reply, input_tokens),
    };
    if reply.cut {
        let ending = if format == Format::OpenAi { 3 } else { 2 };
        events.truncate(events.len().saturating_sub(ending));
    }
    let (sender, receiver) = mpsc::channel(16);
    tokio::spawn(async move {
        for event in events {
            if let Some(wait) = wait {
                tokio::time::sleep(wait).await;
            }
            if sender.send(Bytes::from(event)).await.is_err() {
                return;
            }
        }
    });
    let response = Response::builder().header("content-type", "text/event-stream");
    response.body(Body::new(Pipe(receiver))).unwrap_or_default()
}

struct Pipe(mpsc::Receiver<Bytes>);

impl http_body::Body for Pipe {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

fn openai(number: u64, reply: &Reply, input_tokens: u64) -> Vec<String> {
    let chunk = |choices: Value, usage: Value| {
        let chunk = json!({"id": format!("chatcmpl-{number}"), "object": "chat.completion.chunk", "created": 1,
            "model": MODEL, "choices": choices, "usage": usage});
        format!("data: {chunk}\n\n")
    };
    let delta =
        |delta: Value| chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}]), Value::Null);
    let mut events = vec![delta(json!({"role": "assistant", "content": ""}))];
    events.extend(cut(&reply.text, reply.chunk).into_iter().map(|text| delta(json!({"content": text}))));
    for (index, call) in reply.calls.iter().enumerate() {
        let function = json!({"name": call.name, "arguments": ""});
        let id = call_id(number, index);
        events.push(delta(
            json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": function}]}),
        ));
    }
    // Interleaved, as parallel calls may arrive.
    let arguments: Vec<Vec<String>> =
        reply.calls.iter().map(|call| cut(&written(call), reply.chunk)).collect();
    for turn in 0..arguments.iter().map(Vec::len).max().unwrap_or(0) {
        for (index, piece) in
            arguments.iter().enumerate().filter_map(|(i, pieces)| Some((i, pieces.get(turn)?)))
        {
            events.push(delta(json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})));
        }
    }
    let reason = if reply.calls.is_empty() { "stop" } else { "tool_calls" };
    events.push(chunk(json!([{"index": 0, "delta": {}, "finish_reason": reason}]), Value::Null));
    events.push(chunk(json!([]), openai_usage(reply, input_tokens)));
    events.push("data: [DONE]\n\n".to_owned());
    events
}

fn whole_openai(number: u64, reply: &Reply, input_tokens: u64) -> Value {
    let calls: Vec<Value> = reply
        .calls
        .iter()
        .enumerate()
        .map(|(index, call)| {
            json!({"id": call_id(number, index), "type": "function",
                "function": {"name": call.name, "arguments": written(call)}})
        })
        .collect();
    let reason = if calls.is_empty() { "stop" } else { "tool_calls" };
    let mut message = json!({"role": "assistant", "content": reply.text});
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    json!({"id": format!("chatcmpl-{number}"), "object": "chat.completion", "created": 1, "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": openai_usage(reply, input_tokens)})
}

fn openai_usage(reply: &Reply, input_tokens: u64) -> Value {
    if reply.no_usage {
        return Value::Null;
    }
    let output = output_tokens(reply);
    json!({"prompt_tokens": input_tokens, "completion_tokens": output, "total_tokens": input_tokens + output,
        "prompt_tokens_details": {"cached_tokens": 0}})
}

fn anthropic(number: u64, reply: &Reply, input_tokens: u64) -> Vec<String> {
    let event = |name: &str, mut data: Value| {
        data["type"] = name.into();
        format!("event: {name}\ndata: {data}\n\n")
    };
    let mut message = anthropic_message(number, reply, input_tokens);
    message["content"] = json!([]);
    message["stop_reason"] = Value::Null;
    message["usage"]["output_tokens"] = 1.into();
    let mut events = vec![event("message_start", json!({"message": message})), event("ping", json!({}))];
    let mut index = 0;
    let mut block = |start: Value, deltas: Vec<Value>| {
        events.push(event("content_block_start", json!({"index": index, "content_block": start})));
        let delta = |delta: Value| event("content_block_delta", json!({"index": index, "delta": delta}));
        events.extend(deltas.into_iter().map(delta));
        events.push(event("content_block_stop", json!({"index": index})));
        index += 1;
    };
    if !reply.text.is_empty() {
        let pieces = cut(&reply.text, reply.chunk).into_iter();
        let deltas = pieces.map(|text| json!({"type": "text_delta", "text": text})).collect();
        block(json!({"type": "text", "text": ""}), deltas);
    }
    for (place, call) in reply.calls.iter().enumerate() {
        let arguments = written(call);
        let pieces = if arguments == "{}" { vec![String::new()] } else { cut(&arguments, reply.chunk) };
        let deltas = pieces
            .into_iter()
            .map(|json| json!({"type": "input_json_delta", "partial_json": json}))
            .collect();
        let start = json!({"type": "tool_use", "id": call_id(number, place), "name": call.name, "input": {}});
        block(start, deltas);
    }
    let reason = if reply.calls.is_empty() { "end_turn" } else { "tool_use" };
    let ending = json!({"stop_reason": reason, "stop_sequence": null});
    let usage = json!({"output_tokens": output_tokens(reply)});
    events.push(event("message_delta", json!({"delta": ending, "usage": usage})));
    events.push(event("message_stop", json!({})));
    events
}

fn anthropic_message(number: u64, reply: &Reply, input_tokens: u64) -> Value {
    let text = (!reply.text.is_empty()).then(|| json!({"type": "text", "text": reply.text}));
    let calls = reply.calls.iter().enumerate().map(|(place, call)| {
        json!({"type": "tool_use", "id": call_id(number, place), "name": call.name, "input": call.arguments})
    });
    let content: Vec<Value> = text.into_iter().chain(calls).collect();
    let reason = if reply.calls.is_empty() { "end_turn" } else { "tool_use" };
    json!({"id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": MODEL,
        "content": content, "stop_reason": reason, "stop_sequence": null,
        "usage": {"input_tokens": input_tokens, "output_tokens": output_tokens(reply),
            "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}})
}

fn call_id(number: u64, index: usize) -> String {
    format!("call_{number}_{index}")
}

fn output_tokens(reply: &Reply) -> u64 {
    let calls: usize = reply.calls.iter().map(|call| written(call).len()).sum();
    ((reply.text.len() + calls) as u64 / 4).max(1)
}

/// The arguments as text; a string is used literally, so that a script can send malformed ones.
fn written(call: &Call) -> String {
    match &call.arguments {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn cut(text: &str, size: Option<usize>) -> Vec<String> {
    let Some(size) = size else { return vec![text.to_owned()] };
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(size.max(1)).map(|piece| piece.iter().collect()).collect()
}
