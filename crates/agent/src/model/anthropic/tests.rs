//! Tests with streams as Anthropic sends them, and requests as it accepts them.

use std::collections::VecDeque;

use embody_wire::Url;
use embody_wire::sse::Parser;
use serde_json::{Value, json};

use super::super::chat::{ChatMessage, ChatRequest, ChatResponse, StopReason, ToolRequest, Usage};
use super::super::errors::{ErrorContext, ModelError};
use super::super::names::Names;
use super::super::response_builder::ResponseBuilder;
use super::super::settings::{KeySource, ModelSettings, ModelTimes, Provider};
use super::{Block, BlockKind, EARLIER, system};
use super::{body, fold};
use crate::event::TurnEvent;

fn folded(stream: &str) -> Result<(ChatResponse, Vec<TurnEvent>), ModelError> {
    let context = ErrorContext {
        endpoint: "http://h".to_owned(),
        model: "m".to_owned(),
        key: None,
        key_source: KeySource::Variable("KEY".to_owned()),
    };
    let mut events = VecDeque::new();
    Parser::new(1 << 20).push(stream.as_bytes(), &mut events).unwrap();
    let mut builder = ResponseBuilder::default();
    let mut told = Vec::new();
    for event in &events {
        fold(&mut builder, event, &context)?;
        told.extend(builder.take_deltas());
    }
    Ok((builder.finish()?, told))
}

const RECORDED: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_01","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":25,"cache_creation_input_tokens":300,"cache_read_input_tokens":2000,"cache_creation":{"ephemeral_5m_input_tokens":300,"ephemeral_1h_input_tokens":0},"output_tokens":1,"service_tier":"standard"}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

event: ping
data: {"type": "ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Let me see"}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQB"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Okay, "}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"I look."}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_01","name":"look","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"at\": \"S"}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"F\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":2}

event: content_block_start
data: {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_02","name":"now","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":""}}

event: content_block_stop
data: {"type":"content_block_stop","index":3}

event: content_block_start
data: {"type":"content_block_start","index":4,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":"{\"q\":1}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":4}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":89}}

event: something_new
data: {"type":"something_new","x":1}

"#;

const END: &str = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

#[test]
fn a_recorded_answer_is_read_whole() {
    let (answer, told) = folded(&format!("{RECORDED}{END}")).unwrap();
    assert_eq!((answer.text.as_str(), answer.stop), ("Okay, I look.", StopReason::Calls));
    let call = |id: &str, name: &str, arguments: &str| ToolRequest {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    };
    assert_eq!(answer.calls, [call("toolu_01", "look", r#"{"at": "SF"}"#), call("toolu_02", "now", "{}")]);
    let usage = Usage { input: Some(2325), output: Some(89), cache_read: Some(2000), cache_write: Some(300) };
    assert_eq!(answer.usage, usage);
    assert_eq!(told, [TurnEvent::Text("Okay, ".to_owned()), TurnEvent::Text("I look.".to_owned())]);
}

#[test]
fn an_answer_that_does_not_stream_is_read_too() {
    let whole = r#"{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Hi"},{"type":"tool_use","id":"t","name":"look","input":{"a":1}}],"stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":4}}"#;
    let (answer, _) = folded(&format!("data: {whole}\n\n")).unwrap();
    assert_eq!((answer.text.as_str(), answer.stop, answer.usage.output), ("Hi", StopReason::Calls, Some(4)));
    assert_eq!(answer.calls[0].arguments, r#"{"a":1}"#);
}

#[test]
fn without_its_last_event_it_is_broken() {
    assert!(matches!(folded(RECORDED), Err(ModelError::Broken { .. })));
}

#[test]
fn ends_and_errors_have_their_meaning() {
    let stop = |reason: &str| {
        let event =
            format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}"}},"usage":null}}"#);
        folded(&format!("data: {event}\n\n{END}")).unwrap().0.stop
    };
    assert_eq!(stop("end_turn"), StopReason::End);
    assert_eq!(stop("max_tokens"), StopReason::Length);
    assert_eq!(stop("model_context_window_exceeded"), StopReason::Length);
    assert_eq!(stop("refusal"), StopReason::Refused);
    let error = |kind: &str| {
        let event = format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"no"}}}}"#);
        folded(&format!("event: error\ndata: {event}\n\n")).unwrap_err()
    };
    assert!(error("overloaded_error").is_transient());
    assert!(error("rate_limit_error").is_transient());
    assert!(matches!(error("authentication_error"), ModelError::Unauthorized { .. }));
    assert!(matches!(error("invalid_request_error"), ModelError::Refused { .. }));
    assert!(matches!(folded("data: {oops\n\n"), Err(ModelError::Broken { .. })));
}

#[test]
fn the_system_prompt_is_split_where_the_cache_ends_and_never_within_a_character() {
    let shown = |text: &str, stable_len: usize| {
        let blocks = system(text, stable_len);
        assert!(text.trim().is_empty() || joined(&blocks) == text, "byte for byte");
        let show = |block: &Block<'_>| {
            let BlockKind::Text { text } = &block.kind else { panic!("a block of another kind") };
            format!("{text}{}", if block.cache_control.is_some() { "|" } else { "" })
        };
        blocks.iter().map(show).collect::<Vec<_>>()
    };
    assert_eq!(shown("stable fresh", 7), ["stable |", "fresh"]);
    assert_eq!(shown("stübe", 3), ["st|", "übe"]);
    assert_eq!(shown("all", 99), ["all|"]);
    assert_eq!(shown("none", 0), ["none"]);
    assert_eq!(shown("all\n", 3), ["all\n|"], "a blank block is refused");
    assert_eq!(shown("\nnone", 1), ["\nnone"]);
    assert!(shown(" ", 1).is_empty());
}

fn joined(blocks: &[Block<'_>]) -> String {
    blocks
        .iter()
        .filter_map(|block| if let BlockKind::Text { text } = &block.kind { Some(*text) } else { None })
        .collect()
}

#[test]
fn a_conversation_with_calls_as_anthropic_wants_it() {
    let call = |id: &str, arguments: &str| ToolRequest {
        id: id.to_owned(),
        name: "files.look".to_owned(),
        arguments: arguments.to_owned(),
    };
    let result = |id: &str, text: &str, is_error: bool| ChatMessage::Tool {
        call_id: id.to_owned(),
        name: "files.look".to_owned(),
        text: text.to_owned(),
        is_error,
    };
    let messages = [
        ChatMessage::Assistant { text: "Hello.".to_owned(), calls: Vec::new() },
        ChatMessage::User { text: "go".to_owned() },
        ChatMessage::Assistant {
            text: " ".to_owned(),
            calls: vec![call("functions.look:0", r#"{"z": 1, "a": 1.0}"#), call("2", "[]")],
        },
        result("functions.look:0", "one", false),
        result("2", " ", true),
        ChatMessage::User { text: "and?".to_owned() },
    ];
    let settings = ModelSettings {
        provider: Provider::Anthropic,
        base_url: Url::parse("http://h").unwrap(),
        model: "m".to_owned(),
        api_key: None,
        key_source: KeySource::Variable("KEY".to_owned()),
        native_tools: true,
        max_output_tokens: 5,
        times: ModelTimes::default(),
        proxies: embody_wire::Proxies::default(),
        failures: crate::model::FailureLog::Debug,
    };
    let request = ChatRequest { system: "", stable_len: 0, messages: &messages, tools: &[] };
    let sent = String::from_utf8(body(&settings, &request, &Names::default()).unwrap()).unwrap();
    assert!(sent.contains(r#""input":{"z": 1, "a": 1.0}"#), "as the model wrote it: {sent}");
    let sent: Value = serde_json::from_str(&sent).unwrap();
    assert_eq!(
        sent,
        json!({"model": "m", "max_tokens": 5, "stream": true, "messages": [
            {"role": "user", "content": [{"type": "text", "text": EARLIER}]},
            {"role": "assistant", "content": [{"type": "text", "text": "Hello."}]},
            {"role": "user", "content": [{"type": "text", "text": "go"}]},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "id_functions_2elook_3a0", "name": "files_look", "input": {"z": 1, "a": 1.0}},
                {"type": "tool_use", "id": "2", "name": "files_look", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "id_functions_2elook_3a0", "content": "one"},
                {"type": "tool_result", "tool_use_id": "2", "is_error": true},
                {"type": "text", "text": "and?", "cache_control": {"type": "ephemeral"}}]},
        ]})
    );
}
