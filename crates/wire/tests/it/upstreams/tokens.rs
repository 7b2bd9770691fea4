//! Tokens that expire.

use std::sync::{Arc, Mutex};

use embody_wire::upstream::{ConnectOptions, Freshness, TokenSource};
use embody_wire::{Error, Secret};

use super::{begin, http, lost, open, opening, result};
use crate::fake::{Log, initialize_result, json, result_of, serve, status};

/// Tokens `t-1`, `t-2` and so on; a new one on each [`Freshness::New`].
fn counted() -> (TokenSource, Arc<Mutex<Vec<Freshness>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&asked);
    let source = TokenSource::new(move |fresh| {
        let mut asked = kept.lock().unwrap();
        asked.push(fresh);
        let number = 1 + asked.iter().filter(|fresh| **fresh == Freshness::New).count();
        std::future::ready(Ok(Secret::new(format!("t-{number}"))))
    });
    (source, asked)
}

/// A server that accepts tokens from `least` on.
async fn serve_from(least: &'static str, then: &'static str) -> (String, Log) {
    serve(move |seen| {
        let token = seen.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        match seen.rpc_method().as_str() {
            "initialize" => json(&initialize_result(seen)),
            "" => status(405),
            "tools/call" if token < Some(least) => status(401),
            "tools/call" => json(&result_of(seen, then)),
            _ => status(202),
        }
    })
    .await
}

fn calls(log: &Log) -> Vec<String> {
    let calls = log.all().into_iter().filter(|seen| seen.rpc_method() == "tools/call");
    calls.map(|seen| seen.header("authorization").unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_refused_token_is_asked_anew_once_and_the_refused_call_sent_again() {
    let (base, log) = serve_from("t-2", "{}").await;
    let (tokens, asked) = counted();
    let (link, _hears) =
        open(&ConnectOptions { tokens: Some(tokens), ..opening(http(&base)) }).await.unwrap();
    assert_eq!(result(&mut begin(&link, "tools/call").await).await, "{}");
    assert_eq!(calls(&log), ["Bearer t-1", "Bearer t-2"]);
    assert_eq!(result(&mut begin(&link, "tools/call").await).await, "{}");
    assert_eq!(calls(&log).len(), 3, "the new one is kept in use");
    assert_eq!(asked.lock().unwrap().iter().filter(|fresh| **fresh == Freshness::New).count(), 1);
}

#[tokio::test]
async fn a_second_refusal_is_final_and_nothing_was_done() {
    let (base, log) = serve_from("t-9", "{}").await;
    let (tokens, _) = counted();
    let (link, _hears) =
        open(&ConnectOptions { tokens: Some(tokens), ..opening(http(&base)) }).await.unwrap();
    let error = lost(&mut begin(&link, "tools/call").await).await;
    assert!(matches!(error, Error::Unauthorized { status: 401 }) && error.was_not_executed());
    assert_eq!(calls(&log).len(), 2);
    // A source without another token is not retried with the same one.
    let tokens = Some(TokenSource::fixed(Secret::new("t-1")));
    let (link, _hears) = open(&ConnectOptions { tokens, ..opening(http(&base)) }).await.unwrap();
    assert!(matches!(lost(&mut begin(&link, "tools/call").await).await, Error::Unauthorized { .. }));
    assert_eq!(calls(&log).len(), 3);
}

#[tokio::test]
async fn without_a_token_nothing_is_sent() {
    let (base, log) = serve_from("t-1", "{}").await;
    let tokens = Some(TokenSource::new(|_| std::future::ready(Err("the vault is shut".to_owned()))));
    let error = open(&ConnectOptions { tokens, ..opening(http(&base)) }).await.unwrap_err();
    assert_eq!(error.to_string(), "no token for the server: the vault is shut");
    assert_eq!(log.lines(), Vec::<String>::new());
}

#[tokio::test]
async fn a_token_follows_no_redirect() {
    let (elsewhere, seen_elsewhere) = serve(|seen| json(&initialize_result(seen))).await;
    let (base, _) = serve(move |_| {
        let mut reply = status(307);
        reply.headers_mut().insert("location", format!("{elsewhere}/mcp").parse().unwrap());
        reply
    })
    .await;
    let (tokens, _) = counted();
    let error = open(&ConnectOptions { tokens: Some(tokens), ..opening(http(&base)) }).await.unwrap_err();
    assert!(matches!(error, Error::Redirect { status: 307, .. }) && error.was_not_executed());
    assert_eq!(seen_elsewhere.lines(), Vec::<String>::new());
}

#[tokio::test]
async fn a_token_learned_later_is_hidden_too() {
    let (base, _) = serve(|seen| match seen.rpc_method().as_str() {
        "initialize" => json(&initialize_result(seen)),
        "tools/call" => {
            let token = seen.header("authorization").unwrap().to_owned();
            let mut reply = crate::fake::typed("text/plain", &token);
            *reply.status_mut() = if token.ends_with("t-1") { 401 } else { 418 }.try_into().unwrap();
            reply
        }
        _ => status(202),
    })
    .await;
    let (tokens, _) = counted();
    let (link, _hears) =
        open(&ConnectOptions { tokens: Some(tokens), ..opening(http(&base)) }).await.unwrap();
    let error = lost(&mut begin(&link, "tools/call").await).await;
    assert_eq!(error.to_string(), "the server refused with HTTP status 418: Bearer [secret]");
}
