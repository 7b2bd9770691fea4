//! Responses of both providers, streamed by a real process.

use embody_agent::model::{ChatMessage, ChatModel, ModelSettings, Provider, StopReason, ToolRequest};
use embody_wire::{Secret, Url};
use serde_json::{Value, json};

use super::scripted::Scripted;
use super::{KEY, request, settings, text_of, tool, user};

const BOTH: [Provider; 2] = [Provider::OpenAi, Provider::Anthropic];

#[tokio::test]
async fn a_text_streams_and_comes_whole() {
    let server = Scripted::start(&json!([{"reply": {"text": "Grüße, $USER! ", "repeat": 50, "chunk": 3}}]));
    for provider in BOTH {
        let (answer, told) = request(settings(provider, &server.url), &[user("Ana")], &[]).await;
        let answer = answer.unwrap();
        assert_eq!(answer.text, "Grüße, Ana! ".repeat(50));
        assert_eq!(text_of(&told), answer.text);
        assert!(told.len() > 100, "it was not streamed: {}", told.len());
        assert_eq!(answer.stop, StopReason::End);
        assert!(answer.usage.input > Some(0) && answer.usage.output > Some(100), "{:?}", answer.usage);
    }
}

/// spec: S-11
#[tokio::test]
async fn parallel_calls_are_made_answered_and_the_answer_follows() {
    let server = Scripted::start(&json!([
        {"when": {"results": 0, "tool": "look"}, "reply": {"text": "Let me see.", "chunk": 2, "calls": [
            {"name": "look", "arguments": {"at": "$USER"}}, {"name": "listen"}, {"name": "look", "arguments": {"at": "b"}}]}},
        {"when": {"results": 3}, "reply": {"text": "It said $RESULT."}},
    ]));
    for provider in BOTH {
        let tools = [tool("look"), tool("listen")];
        let (first, _) = request(settings(provider, &server.url), &[user("a")], &tools).await;
        let first = first.unwrap();
        assert_eq!((first.text.as_str(), first.stop), ("Let me see.", StopReason::Calls));
        let calls: Vec<(&str, &str)> =
            first.calls.iter().map(|call| (call.name.as_str(), call.arguments.as_str())).collect();
        assert_eq!(calls, [("look", r#"{"at":"a"}"#), ("listen", "{}"), ("look", r#"{"at":"b"}"#)]);

        let mut messages =
            vec![user("a"), ChatMessage::Assistant { text: first.text, calls: first.calls.clone() }];
        messages.extend(first.calls.iter().map(|call| ChatMessage::Tool {
            call_id: call.id.clone(),
            name: call.name.clone(),
            text: format!("{}!", call.arguments),
            is_error: false,
        }));
        let (second, _) = request(settings(provider, &server.url), &messages, &tools).await;
        assert_eq!(second.unwrap().text, r#"It said {"at":"b"}!."#);
    }
}

#[tokio::test]
async fn openai_gets_exactly_what_was_asked() {
    let server = Scripted::start(&json!([{"reply": {"text": "ok"}}]));
    let (answer, _) =
        request(settings(Provider::OpenAi, &server.url), &[user("hi")], &[tool("files.look")]).await;
    answer.unwrap();
    let request = &server.log()[0];
    assert_eq!(request["path"], "/v1/chat/completions");
    assert_eq!(request["headers"]["authorization"], "[masked]");
    assert_eq!(
        request["body"],
        json!({"model": "m-1", "stream": true, "stream_options": {"include_usage": true}, "max_tokens": 1000,
            "messages": [{"role": "system", "content": "Be. <ü>\nNow: 12:00"}, {"role": "user", "content": "hi"}],
            "tools": [{"type": "function", "function": {"name": "files_look", "description": "Does files.look.",
                "parameters": {"type": "object", "properties": {"b": {}, "a": {}}}}}]})
    );
}

#[tokio::test]
async fn anthropic_gets_its_cache_borders() {
    let server = Scripted::start(&json!([{"reply": {"text": "ok"}}]));
    let messages = [user("hi"), user("there")];
    let (answer, _) =
        request(settings(Provider::Anthropic, &server.url), &messages, &[tool("b"), tool("a")]).await;
    answer.unwrap();
    let request = &server.log()[0];
    assert_eq!(request["path"], "/v1/messages");
    assert_eq!(request["headers"]["x-api-key"], "[masked]");
    assert_eq!(request["headers"]["anthropic-version"], "2023-06-01");
    let body = &request["body"];
    let cached = json!({"type": "ephemeral"});
    assert_eq!(
        body["system"],
        json!([{"type": "text", "text": "Be. <ü>", "cache_control": cached}, {"type": "text", "text": "\nNow: 12:00"}])
    );
    assert_eq!(
        body["messages"],
        json!([{"role": "user", "content": [{"type": "text", "text": "hi"},
            {"type": "text", "text": "there", "cache_control": cached}]}])
    );
    let names: Vec<&Value> = body["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["b", "a"], "in the order given");
}

/// spec: P-09
#[tokio::test]
async fn a_model_without_native_tools_calls_with_blocks() {
    let block = "One moment.\n```tool_call\n{\"tool\": \"files.look\", \"arguments\": {\"at\": 1}}\n```\n";
    let server = Scripted::start(&json!([
        {"when": {"results": 1}, "reply": {"text": "It said $RESULT"}},
        {"reply": {"text": format!("{block}```tool_call\n{{oops\n```"), "chunk": 4}},
    ]));
    for provider in BOTH {
        let settings = ModelSettings { native_tools: false, ..settings(provider, &server.url) };
        let (first, told) = request(settings.clone(), &[user("go")], &[tool("files.look")]).await;
        let first = first.unwrap();
        assert_eq!((first.text.as_str(), text_of(&told).as_str()), ("One moment.", "One moment.\n"));
        assert_eq!(first.calls.len(), 1);
        assert_eq!(
            (first.calls[0].name.as_str(), first.calls[0].arguments.as_str()),
            ("files.look", r#"{"at": 1}"#)
        );
        assert!(first.malformed.len() == 1 && first.malformed[0].contains("{oops"), "{:?}", first.malformed);
        assert_eq!(first.stop, StopReason::Calls);

        let call = ToolRequest { id: "x".to_owned(), ..first.calls[0].clone() };
        let result = ChatMessage::Tool {
            call_id: "x".to_owned(),
            name: call.name.clone(),
            text: "```\n7".to_owned(),
            is_error: false,
        };
        let messages =
            [user("go"), ChatMessage::Assistant { text: "One.".to_owned(), calls: vec![call] }, result];
        let (second, _) = request(settings, &messages, &[tool("files.look")]).await;
        assert_eq!(second.unwrap().text, "It said ```\n7");
        let body = server.log().pop().unwrap()["body"].clone();
        assert_eq!(body.get("tools"), None);
        assert!(body["messages"].to_string().contains("````tool_result files.look"), "{body}");
    }
}

#[tokio::test]
async fn a_summary_without_tools_says_the_old_calls_in_words() {
    let server = Scripted::start(&json!([{"reply": {"text": "ok"}}]));
    let call = ToolRequest { id: "x".to_owned(), name: "look".to_owned(), arguments: "{}".to_owned() };
    let messages =
        [user("go"), ChatMessage::Assistant { text: String::new(), calls: vec![call] }, user("sum up")];
    for provider in BOTH {
        request(settings(provider, &server.url), &messages, &[]).await.0.unwrap();
        let body = server.log().pop().unwrap()["body"]["messages"].to_string();
        assert!(!body.contains("tool_use") && !body.contains("tool_calls"), "{body}");
        assert!(body.contains("interrupted"), "{body}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood() {
    use axum::routing::post;
    let body = json!({"choices": [{"index": 0, "finish_reason": "stop",
        "message": {"role": "assistant", "content": "whole"}}], "usage": {"prompt_tokens": 3, "completion_tokens": 1}});
    let app = axum::Router::new().route("/v1/chat/completions", post(async move || axum::Json(body.clone())));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    let (answer, _) = request(settings(Provider::OpenAi, &url), &[user("hi")], &[]).await;
    let answer = answer.unwrap();
    assert_eq!((answer.text.as_str(), answer.usage.input), ("whole", Some(3)));
}

#[test]
fn what_is_secret_is_not_shown() {
    let settings = settings(Provider::OpenAi, "http://user:hunter22@127.0.0.1:9");
    let model = ChatModel::new(settings.clone()).unwrap();
    let shown = format!("{settings:?} {model:?}");
    assert!(!shown.contains(KEY) && !shown.contains("hunter22"), "{shown}");
    assert_eq!(model.name(), "m-1");
}

#[test]
fn settings_that_cannot_work_are_refused_before_anything_is_sent() {
    let good = settings(Provider::Anthropic, "http://127.0.0.1:9");
    let why = |settings: ModelSettings| ChatModel::new(settings).unwrap_err().to_string();
    let ftp = ModelSettings { base_url: Url::parse("ftp://me:hunter22@h/x").unwrap(), ..good.clone() };
    assert_eq!(why(ftp), "invalid model settings: `base_url` `ftp://h/x` is not an http or https URL");
    let unnamed = ModelSettings { model: " ".to_owned(), ..good.clone() };
    assert_eq!(why(unnamed), "invalid model settings: `model` is empty");
    let key = ModelSettings { api_key: Some(Secret::new("sk-\nx")), ..good };
    assert_eq!(
        why(key),
        "invalid model settings: the key contains characters that are not allowed in a header"
    );
}
