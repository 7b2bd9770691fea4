//! Tests with streams as real servers send them, with their deviations.

use std::collections::VecDeque;

use embody_wire::Url;
use embody_wire::sse::Parser;
use serde_json::{Value, json};

use super::super::chat::{ChatMessage, ChatRequest, ChatResponse, StopReason, ToolRequest, Usage};
use super::super::errors::{ErrorContext, ModelError};
use super::super::names::Names;
use super::super::response_builder::ResponseBuilder;
use super::super::settings::{KeySource, ModelSettings, ModelTimes, Provider};
use super::cut;
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

fn lines(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("data: {line}\n\n")).collect()
}

fn calls(answer: &ChatResponse) -> Vec<(&str, &str)> {
    answer.calls.iter().map(|call| (call.name.as_str(), call.arguments.as_str())).collect()
}

#[test]
fn openai_text_with_a_role_first_and_usage_last() {
    let (answer, told) = folded(&lines(&[
        r#"{"id":"chatcmpl-B","object":"chat.completion.chunk","created":1,"model":"gpt-4o","service_tier":"default","system_fingerprint":"fp","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null}"#,
        r#"{"id":"chatcmpl-B","choices":[{"index":0,"delta":{"content":"Hello"},"logprobs":null,"finish_reason":null}],"usage":null}"#,
        r#"{"id":"chatcmpl-B","choices":[{"index":0,"delta":{"content":" there"},"logprobs":null,"finish_reason":null}],"usage":null}"#,
        r#"{"id":"chatcmpl-B","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"usage":null}"#,
        r#"{"id":"chatcmpl-B","choices":[],"usage":{"prompt_tokens":1200,"completion_tokens":2,"total_tokens":1202,"prompt_tokens_details":{"cached_tokens":1024,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}}"#,
        "[DONE]",
    ]))
    .unwrap();
    assert_eq!((answer.text.as_str(), answer.stop), ("Hello there", StopReason::End));
    assert_eq!(told, [TurnEvent::Text("Hello".to_owned()), TurnEvent::Text(" there".to_owned())]);
    let usage = Usage { input: Some(1200), output: Some(2), cache_read: Some(1024), cache_write: None };
    assert_eq!(answer.usage, usage);
}

#[test]
fn openai_parallel_calls_interleaved_by_index() {
    let (answer, told) = folded(&lines(&[
        r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"look","arguments":""}}]},"finish_reason":null}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"call_b","type":"function","function":{"name":"listen","arguments":""}}]},"finish_reason":null}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":"}}]},"finish_reason":null}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{\"b\""}},{"index":0,"function":{"arguments":"1}"}}]},"finish_reason":null}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":":2}"}}]},"finish_reason":null}]}"#,
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
        "[DONE]",
    ]))
    .unwrap();
    assert_eq!(calls(&answer), [("look", r#"{"a":1}"#), ("listen", r#"{"b":2}"#)]);
    let ids: Vec<&str> = answer.calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!((ids, answer.stop), (vec!["call_a", "call_b"], StopReason::Calls));
    assert_eq!(told, []);
}

#[test]
fn an_index_is_a_label_and_takes_no_room() {
    let (answer, _) = folded(&lines(&[
        r#"{"choices":[{"delta":{"tool_calls":[{"index":40000000,"id":"a","function":{"name":"look","arguments":"{"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":40000000,"function":{"arguments":"}"}}]},"finish_reason":"tool_calls"}]}"#,
    ]))
    .unwrap();
    assert_eq!(calls(&answer), [("look", "{}")]);
}

#[test]
fn ollama_gives_every_call_the_same_index_and_says_stop() {
    let (answer, _) = folded(&lines(&[
        r#"{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"qwen3","system_fingerprint":"fp_ollama","choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":[{"id":"call_x","index":0,"type":"function","function":{"name":"look","arguments":"{\"at\":1}"}}]},"finish_reason":null}]}"#,
        r#"{"id":"chatcmpl-1","choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":[{"id":"call_y","index":0,"type":"function","function":{"name":"look","arguments":"{\"at\":2}"}}]},"finish_reason":null}]}"#,
        r#"{"id":"chatcmpl-1","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"stop"}]}"#,
        r#"{"id":"chatcmpl-1","choices":[],"usage":{"prompt_tokens":26,"completion_tokens":300,"total_tokens":326}}"#,
        "[DONE]",
    ]))
    .unwrap();
    assert_eq!(calls(&answer), [("look", r#"{"at":1}"#), ("look", r#"{"at":2}"#)]);
    assert_eq!(answer.stop, StopReason::Calls);
}

#[test]
fn servers_without_ids_indexes_or_strings_are_understood() {
    // Google: no index. Others: no id, arguments as an object, a name and nothing else.
    let (answer, _) = folded(&lines(&[
        r#"{"choices":[{"delta":{"role":"assistant","tool_calls":[{"function":{"arguments":"{\"a\":1}","name":"look"},"id":"","type":"function"},{"function":{"arguments":"{\"a\":2}","name":"look"},"id":"","type":"function"}]},"index":0}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":7,"function":{"name":"object","arguments":{"b": [1]}}},{"index":8,"function":{"name":"bare"}}]},"finish_reason":"tool_calls"}]}"#,
    ]))
    .unwrap();
    let expected =
        [("look", r#"{"a":1}"#), ("look", r#"{"a":2}"#), ("object", r#"{"b": [1]}"#), ("bare", "{}")];
    assert_eq!(calls(&answer), expected);
    let mut ids: Vec<&str> = answer.calls.iter().map(|call| call.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert!(ids.len() == 4 && ids.iter().all(|id| id.len() == 9), "{ids:?}");
}

#[test]
fn an_id_and_a_name_on_every_piece_are_still_one_call() {
    let (answer, _) = folded(&lines(&[
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"look","arguments":"{\"at\""}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"look","arguments":":1}"}}]},"finish_reason":"tool_calls"}]}"#,
    ]))
    .unwrap();
    assert_eq!(calls(&answer), [("look", r#"{"at":1}"#)]);
}

#[test]
fn a_name_or_an_id_may_come_late() {
    let (answer, _) = folded(&lines(&[
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":""}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"look"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#,
    ]))
    .unwrap();
    assert_eq!((calls(&answer), answer.calls[0].id.as_str()), (vec![("look", "{}")], "a"));
}

#[test]
fn thoughts_are_not_words_and_lists_of_parts_are() {
    let (answer, _) = folded(&lines(&[
        r#"{"choices":[{"delta":{"content":null,"reasoning_content":"hmm","reasoning":"hmm"}}]}"#,
        r#"{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[]},{"type":"text","text":"Yes"}]}}]}"#,
        r#"{"choices":[{"delta":{"content":"."},"finish_reason":"stop"}]}"#,
    ]))
    .unwrap();
    assert_eq!(answer.text, "Yes.");
}

#[test]
fn each_end_has_its_meaning() {
    let stop = |reason: &str| {
        let line = format!(r#"{{"choices":[{{"delta":{{"content":"x"}},"finish_reason":"{reason}"}}]}}"#);
        folded(&lines(&[&line])).map(|(answer, _)| answer.stop)
    };
    assert_eq!(stop("stop"), Ok(StopReason::End));
    assert_eq!(stop("length"), Ok(StopReason::Length));
    assert_eq!(stop("content_filter"), Ok(StopReason::Refused));
    assert_eq!(stop("eos"), Ok(StopReason::End));
    assert!(matches!(stop("error"), Err(ModelError::Broken { .. })));
    assert_eq!(folded(&lines(&["[DONE]"])).unwrap().0.stop, StopReason::End);
    let open = folded(&lines(&[r#"{"choices":[{"delta":{"content":"x"},"finish_reason":null}]}"#]));
    assert!(matches!(open, Err(ModelError::Broken { .. })), "{open:?}");
}

#[test]
fn a_call_that_the_limit_cut_is_told_and_not_made() {
    let (answer, _) = folded(&lines(&[
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"look","arguments":"{}"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"send","arguments":"{\"te"}}]},"finish_reason":"length"}]}"#,
    ]))
    .unwrap();
    assert_eq!((calls(&answer), answer.stop), (vec![("look", "{}")], StopReason::Length));
    assert_eq!(answer.malformed, ["the call of `send` is cut off: the response reached its limit"]);
}

#[test]
fn errors_within_a_stream_are_errors() {
    let overloaded = r#"{"error":{"message":"Provider returned error","code":502},"choices":[]}"#;
    assert!(matches!(folded(&lines(&[overloaded])), Err(ModelError::Unavailable { .. })));
    let limited = r#"{"error":{"message":"slow","type":"rate_limit_exceeded"}}"#;
    assert!(matches!(folded(&lines(&[limited])), Err(ModelError::RateLimited { .. })));
    let long = r#"{"error":{"message":"context length exceeded","code":null}}"#;
    assert!(matches!(folded(&lines(&[long])), Err(ModelError::Overflow { .. })));
    assert!(matches!(folded(&lines(&["{oops"])), Err(ModelError::Broken { .. })));
    assert!(matches!(folded(&lines(&["[1]"])), Err(ModelError::Broken { .. })));
}

#[test]
fn calls_and_arguments_have_bounds() {
    let many: Vec<String> = (0..65)
        .map(|index| format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{{"index":{index},"id":"c{index}","function":{{"name":"x"}}}}]}}}}]}}"#))
        .collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let error = folded(&lines(&many)).unwrap_err();
    assert_eq!(error, ModelError::broken("the answer has more than 64 calls"));
    let piece = format!(
        r#"{{"choices":[{{"delta":{{"tool_calls":[{{"index":0,"id":"a","function":{{"name":"x","arguments":"{}"}}}}]}}}}]}}"#,
        "1".repeat(600 * 1024)
    );
    let error = folded(&lines(&[&piece, &piece])).unwrap_err();
    assert_eq!(error, ModelError::broken("the arguments of a call are longer than 1048576 bytes"));
}

fn sent(url: &str, messages: &[ChatMessage]) -> Value {
    let settings = ModelSettings {
        provider: Provider::OpenAi,
        base_url: Url::parse(url).unwrap(),
        model: "m".to_owned(),
        api_key: None,
        key_source: KeySource::Variable("KEY".to_owned()),
        native_tools: true,
        max_output_tokens: 5,
        times: ModelTimes::default(),
        proxies: embody_wire::Proxies::default(),
        failures: crate::model::FailureLog::Debug,
    };
    let request = ChatRequest { system: "", stable_len: 0, messages, tools: &[] };
    serde_json::from_slice(&body(&settings, &request, &Names::default()).unwrap()).unwrap()
}

#[test]
fn a_description_is_cut_only_when_it_is_too_long() {
    assert_eq!(cut(&"é".repeat(1024)), "é".repeat(1024));
    assert_eq!(cut(&"é".repeat(1025)), format!("{}…", "é".repeat(1023)));
    assert_eq!(cut(""), "");
}

#[test]
fn an_unreadable_event_is_not_repeated_at_length() {
    let event = format!(r#"{{"choices":"{}"}}"#, "x".repeat(10_000));
    let error = folded(&lines(&[&event])).unwrap_err().to_string();
    assert!(error.len() < 500, "{} bytes", error.len());
}

#[test]
fn openai_itself_takes_the_limit_under_its_new_name() {
    let own = sent("https://api.openai.com/v1", &[]);
    assert_eq!((&own["max_completion_tokens"], own.get("max_tokens")), (&json!(5), None));
    let other = sent("http://localhost:11434/v1", &[]);
    assert_eq!((&other["max_tokens"], other.get("max_completion_tokens")), (&json!(5), None));
}

#[test]
fn a_conversation_with_calls_as_openai_wants_it() {
    let call = |id: &str, arguments: &str| ToolRequest {
        id: id.to_owned(),
        name: "files.look".to_owned(),
        arguments: arguments.to_owned(),
    };
    let messages = [
        ChatMessage::User { text: "go".to_owned() },
        ChatMessage::Assistant {
            text: String::new(),
            calls: vec![call("1", "{\"a\": 1}"), call("2", "{broken")],
        },
        ChatMessage::Tool {
            call_id: "1".to_owned(),
            name: "x".to_owned(),
            text: "one".to_owned(),
            is_error: false,
        },
        ChatMessage::Tool {
            call_id: "2".to_owned(),
            name: "x".to_owned(),
            text: String::new(),
            is_error: true,
        },
        ChatMessage::Assistant { text: "done".to_owned(), calls: Vec::new() },
        ChatMessage::User { text: "more".to_owned() },
    ];
    assert_eq!(
        sent("http://h/v1", &messages)["messages"],
        json!([
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "files_look", "arguments": "{\"a\": 1}"}},
                {"id": "2", "type": "function", "function": {"name": "files_look", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "1", "content": "one"},
            {"role": "tool", "tool_call_id": "2", "content": ""},
            {"role": "assistant", "content": "done"},
            {"role": "user", "content": "more"},
        ])
    );
}
