//! Upstream servers: our own services, and processes and web servers that misbehave.

mod embedded;
mod eras;
mod legacy;
mod processes;
mod tokens;
mod web;

use std::time::Duration;

use embody_wire::message::{Outcome, Response};
use embody_wire::upstream::{
    CallEvent, ConnectOptions, EraCache, Link, OutgoingCall, PendingCall, Route, ServerMessage,
};
use embody_wire::{Error, InitializeParams, Limits, Proxies, Url};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::sync::mpsc;

const SOON: Duration = Duration::from_secs(20);

fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).unwrap()
}

fn opening(route: Route) -> ConnectOptions {
    let era = EraCache::sessions();
    ConnectOptions {
        route,
        params: InitializeParams::default(),
        tokens: None,
        proxies: Proxies::default(),
        limits: Limits::default(),
        era,
    }
}

fn http(base: &str) -> Route {
    Route::Http { url: Url::parse(base).unwrap() }
}

async fn open(opening: &ConnectOptions) -> Result<(Link, mpsc::Receiver<ServerMessage>), Error> {
    let (sender, hears) = mpsc::channel(16);
    Ok((Link::open(opening, sender).await?, hears))
}

async fn begin(link: &Link, method: &str) -> PendingCall {
    link.begin(OutgoingCall { method, params: None }).await.unwrap()
}

async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(SOON, work).await.expect("nothing happened")
}

async fn next(running: &mut PendingCall) -> CallEvent {
    soon(running.next()).await
}

async fn result(running: &mut PendingCall) -> String {
    match next(running).await {
        CallEvent::Done(Outcome::Result(result)) => result.get().to_owned(),
        other => panic!("{other:?}"),
    }
}

async fn lost(running: &mut PendingCall) -> Error {
    match next(running).await {
        CallEvent::Lost(error) => error,
        other => panic!("{other:?}"),
    }
}

/// An exchange with the odd service of the server tests, over any transport.
async fn converse(link: &Link) {
    // The token on the wire is the connection's, and the echo shows what was sent.
    let params = raw(&json!({"_meta": {"progressToken": "mine"}}));
    let mut calls = Vec::new();
    for _ in 0..4 {
        calls.push(link.begin(OutgoingCall { method: "echo", params: Some(&params) }).await.unwrap());
    }
    for call in &mut calls {
        assert_eq!(result(call).await, format!(r#"{{"_meta":{{"progressToken":{}}}}}"#, call.number()));
    }
    let mut call = begin(link, "ask").await;
    let CallEvent::Request(question) = next(&mut call).await else { panic!() };
    assert_eq!(question.method, "elicitation/create");
    link.answer(Response::success(question.id, raw(&json!({"action": "accept"})))).await.unwrap();
    assert_eq!(result(&mut call).await, r#"{"answer":{"action":"accept"}}"#);
    let mut refused = begin(link, "refuse").await;
    assert!(matches!(next(&mut refused).await, CallEvent::Done(Outcome::Error(_))));
}
