//! Errors of providers: which are retried, and which are not.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect};
use axum::routing::any;
use embody_agent::event::TurnEvent;
use embody_agent::model::{ModelError, ModelSettings, ModelTimes, Provider};
use serde_json::json;

use super::scripted::Scripted;
use super::{KEY, request, settings, user};

fn waits(told: &[TurnEvent]) -> Vec<Duration> {
    told.iter()
        .filter_map(|delta| if let TurnEvent::Waiting { after, .. } = delta { Some(*after) } else { None })
        .collect()
}

async fn response_error(provider: Provider, status: u16, text: &str) -> (ModelError, usize) {
    let server = Scripted::start(&json!([{"reply": {"status": status, "text": text}}]));
    let mut settings = settings(provider, &server.url);
    settings.times.retrying = Duration::ZERO;
    let (answer, _) = request(settings, &[user("hi")], &[]).await;
    (answer.unwrap_err(), server.log().len())
}

#[tokio::test]
async fn each_status_is_told_in_words_and_not_asked_again_in_vain() {
    for provider in [Provider::OpenAi, Provider::Anthropic] {
        let said = format!("no {KEY} \u{7}here");
        for (status, is_right) in [
            (
                401,
                (|error| matches!(error, ModelError::Unauthorized { had_key: true, .. }))
                    as fn(&ModelError) -> bool,
            ),
            (403, |error| matches!(error, ModelError::Unauthorized { .. })),
            (404, |error| matches!(error, ModelError::NotFound { .. })),
            (413, |error| matches!(error, ModelError::Overflow { .. })),
            (422, |error| matches!(error, ModelError::Refused { status: 422, .. })),
            (429, |error| matches!(error, ModelError::RateLimited { .. })),
            (500, |error| matches!(error, ModelError::Unavailable { .. })),
            (529, |error| matches!(error, ModelError::Unavailable { .. })),
        ] {
            let (error, asked) = response_error(provider, status, &said).await;
            assert!(is_right(&error), "{status}: {error:?}");
            assert_eq!(asked, 1, "{status}");
            let shown = format!("{error} {error:?} {:?}", error.hint());
            assert!(!shown.contains(KEY) && !shown.contains('\u{7}'), "{shown}");
        }
    }
}

#[tokio::test]
async fn a_context_that_is_too_long_is_an_overflow() {
    let (error, _) =
        response_error(Provider::OpenAi, 400, "This model's maximum context length is 8192 tokens.").await;
    assert!(matches!(&error, ModelError::Overflow { message } if message.contains("8192")), "{error:?}");
    let (error, _) =
        response_error(Provider::Anthropic, 400, "prompt is too long: 9 tokens > 8 maximum").await;
    assert!(matches!(error, ModelError::Overflow { .. }), "{error:?}");
}

#[tokio::test]
async fn what_passes_is_asked_again_and_told() {
    let server = Scripted::start(&json!([
        {"times": 1, "reply": {"status": 429, "retry_after": 1, "text": "slow down"}},
        {"times": 1, "reply": {"status": 529, "text": "Overloaded"}},
        {"reply": {"text": "at last"}},
    ]));
    let (answer, told) = request(settings(Provider::Anthropic, &server.url), &[user("hi")], &[]).await;
    assert_eq!(answer.unwrap().text, "at last");
    let waits = waits(&told);
    assert_eq!(waits.len(), 2);
    assert_eq!(waits[0], Duration::from_secs(1), "as long as the provider asks for");
    let lines: Vec<String> = told.iter().filter_map(TurnEvent::retry_line).collect();
    let line = |retry| format!("The model does not answer; retry {retry} of 7");
    assert_eq!(lines, [line(1), line(2)]);
    assert_eq!(server.log().len(), 3);
}

#[tokio::test]
async fn a_wait_beyond_the_patience_is_an_error_at_once() {
    let server = Scripted::start(&json!([{"reply": {"status": 429, "retry_after": 3600}}]));
    let (answer, told) = request(settings(Provider::OpenAi, &server.url), &[user("hi")], &[]).await;
    let error = answer.unwrap_err();
    assert!(told.is_empty(), "{told:?}");
    assert_eq!(error.hint().unwrap(), "try again in 3600 s");
}

#[tokio::test]
async fn a_dead_provider_is_given_up_within_the_patience() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let times = ModelTimes { retrying: Duration::from_millis(1200), ..ModelTimes::default() };
    let settings = ModelSettings { times, ..settings(Provider::OpenAi, &url) };
    let (answer, told) = request(settings, &[user("hi")], &[]).await;
    let error = answer.unwrap_err();
    assert!(matches!(&error, ModelError::Unavailable { why, .. } if why.contains("refused")), "{error:?}");
    let waits = waits(&told);
    assert!(!waits.is_empty() && waits.iter().sum::<Duration>() <= Duration::from_millis(1200), "{waits:?}");
    let retries: Vec<u32> = told
        .iter()
        .map(|event| match event {
            TurnEvent::Waiting { retry, most: Some(7), .. } => *retry,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(retries, (1..=u32::try_from(waits.len()).unwrap()).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_redirect_never_gets_the_key() {
    let reached = Arc::new(AtomicU32::new(0));
    let elsewhere = Arc::clone(&reached);
    let app = axum::Router::new()
        .route("/v1/chat/completions", any(async || Redirect::temporary("/other?token=hunter22")))
        .route(
            "/other",
            any(async move |_: HeaderMap| {
                elsewhere.fetch_add(1, Ordering::Relaxed);
                StatusCode::OK.into_response()
            }),
        );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    let (answer, _) = request(settings(Provider::OpenAi, &url), &[user("hi")], &[]).await;
    let error = answer.unwrap_err();
    assert!(matches!(error, ModelError::Refused { status: 307, .. }), "{error:?}");
    assert!(!error.to_string().contains("hunter22") && error.to_string().contains("/other"), "{error}");
    assert_eq!(reached.load(Ordering::Relaxed), 0);
}
