//! Tests with real error bodies.

use super::*;

fn judged(status: u16, body: &str) -> ModelError {
    let context = ErrorContext {
        endpoint: "http://h/v1".to_owned(),
        model: "m".to_owned(),
        key: Some(Secret::new("sk-verysecret")),
        key_source: KeySource::Variable("MY_KEY".to_owned()),
    };
    context.classify(&ErrorResponse { status, retry_after: None, body: body.to_owned() })
}

#[test]
fn a_conversation_that_is_too_long_is_recognized_whoever_says_it() {
    let bodies = [
        // OpenAI
        (
            400,
            r#"{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 140001 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
        ),
        (
            400,
            r#"{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","param":"input","code":null}}"#,
        ),
        (
            429,
            r#"{"error":{"message":"Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 43311.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#,
        ),
        // Anthropic
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 211246 tokens > 200000 maximum"},"request_id":"req_1"}"#,
        ),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000, decrease input length or `max_tokens` and try again"}}"#,
        ),
        (
            413,
            r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
        ),
        (413, "<html>nginx</html>"),
        // llama.cpp
        (
            400,
            r#"{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":4096}}"#,
        ),
        (
            200,
            r#"{"error":{"code":500,"message":"request (2358 tokens) exceeds the available context size (2048 tokens), try increasing it","type":"server_error"}}"#,
        ),
        (500, r#"{"error":"Requested tokens (2285) exceed context window of 2048"}"#),
        // vLLM
        (
            400,
            r#"{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens","type":"BadRequestError","param":null,"code":400}"#,
        ),
        // LM Studio
        (
            400,
            r#"{"error":"Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens"}"#,
        ),
        // Google
        (
            400,
            r#"[{"error":{"code":400,"message":"The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]"#,
        ),
    ];
    for (status, body) in bodies {
        let error = judged(status, body);
        assert!(matches!(error, ModelError::Overflow { .. }), "{body}: {error:?}");
    }
}

#[test]
fn what_only_sounds_like_it_is_not() {
    let limited = r#"{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of 30,000 input tokens per minute."}}"#;
    assert!(matches!(judged(429, limited), ModelError::RateLimited { .. }));
    let key = r#"{"error":"the key of maximum context length"}"#;
    let refused = judged(401, key);
    assert!(matches!(refused, ModelError::Unauthorized { .. }));
    assert!(refused.hint().is_some_and(|hint| hint.contains("in the environment variable MY_KEY")));
}

#[test]
fn every_status_has_its_meaning() {
    let quota = r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#;
    assert!(matches!(judged(429, quota), ModelError::Refused { status: 429, .. }), "waiting brings no money");
    let overloaded = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    assert_eq!(
        judged(529, overloaded).to_string(),
        "the model at `http://h/v1` is not available: status 529: Overloaded"
    );
    let missing = r#"{"error":{"message":"model 'm' not found, try pulling it first","type":"api_error"}}"#;
    assert_eq!(
        judged(404, missing).to_string(),
        "unknown model `m` at `http://h/v1`: model 'm' not found, try pulling it first"
    );
    assert_eq!(judged(413, "<html>no</html>").to_string(), "the conversation is too long for the model");
    assert_eq!(judged(422, "").to_string(), "the model rejected the request (status 422)");
    assert_eq!(judged(404, "<html>no</html>").to_string(), "unknown model `m` at `http://h/v1`");
    assert!(
        matches!(judged(400, r#"{"detail":"bad"}"#), ModelError::Refused { message, .. } if message == "bad")
    );
    for status in [408, 500, 502, 503, 504, 529] {
        assert!(judged(status, "").is_transient(), "{status}");
    }
    for status in [400, 401, 403, 404, 413, 422] {
        assert!(!judged(status, "").is_transient(), "{status}");
    }
}

#[test]
fn no_error_shows_the_key_or_a_part_of_it() {
    let whole = format!("{}sk-verysecret\u{7}\n and more", "x".repeat(295));
    for status in [400, 401, 403, 404, 413, 429, 500] {
        let shown = format!("{:?} {0}", judged(status, &whole));
        assert!(!shown.contains("sk-very"), "{status}: {shown}");
    }
    let hint = r#"{"error":{"message":"Incorrect API key provided: sk-ve*****cret"}}"#;
    assert!(!judged(401, hint).to_string().contains("sk-"), "providers repeat a part of a wrong key");
}

#[test]
fn what_took_too_long_says_so_and_which_time_to_raise() {
    for (what, words, key) in [
        (TimeoutStage::FirstByte, "no first byte within 2s", "`first_byte_timeout_s`"),
        (TimeoutStage::FurtherByte, "no further byte within 2s", "`idle_timeout_s`"),
        (TimeoutStage::WholeAnswer, "no whole answer within 2s", "`total_timeout_s`"),
    ] {
        let error = ModelError::Timeout { endpoint: "p".to_owned(), what, after: Duration::from_secs(2) };
        assert_eq!(error.to_string(), format!("the model at `p` took too long: {words}"));
        assert!(error.hint().unwrap().contains(key), "{error:?}");
        assert!(!error.is_transient(), "{error:?}");
    }
}
