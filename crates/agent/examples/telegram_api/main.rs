//! A fake Telegram Bot API for tests, as a separate program: `telegram_api` prints `http://127.0.0.1:PORT` on its first
//! line.
//!
//! It behaves like the real one where that matters: long polls, offsets that confirm, one poller at a time, limits in
//! UTF-16 units after entities, the real error messages. The token is `42:TEST`. Tests control it:
//!
//! | request | does |
//! |---|---|
//! | `POST /control/updates` | adds a list of updates; each gets the next `update_id`; returns the ids |
//! | `GET /control/sent` | every call that had an effect, in order |
//! | `GET /control/state` | `{waiting, offset, polls, sent}` |
//! | `POST /control/faults` | replaces the list of faults (see `state.rs`) |
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    unreachable_pub,
    missing_docs,
    reason = "tests may fail loudly"
)]

mod html;
mod state;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State as Shared;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use crate::state::{End, Fault, State};

const TOKEN: &str = "42:TEST";

#[derive(Clone, Default)]
struct Server {
    state: Arc<Mutex<State>>,
    /// Signals an event that a poll may wait for.
    news: Arc<Notify>,
}

#[tokio::main]
async fn main() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("http://{}", listener.local_addr().unwrap());
    axum::serve(listener, Router::new().fallback(handle).with_state(Server::default())).await.unwrap();
}

async fn handle(Shared(server): Shared<Server>, uri: Uri, body: Bytes) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    if let Some(what) = uri.path().strip_prefix("/control/") {
        return control(&server, what, body);
    }
    let Some((token, method)) = uri.path().strip_prefix("/bot").and_then(|rest| rest.split_once('/')) else {
        return error(404, "Not Found".to_owned(), None);
    };
    if token != TOKEN {
        return error(401, "Unauthorized".to_owned(), None);
    }
    let fault = server.state.lock().unwrap().fault(method, &body);
    match fault {
        Some(Fault { cut: Some(when), .. }) => {
            if when == "after" {
                server.state.lock().unwrap().call(method, &body);
            }
            cut()
        }
        Some(fault) => {
            let status = fault.status.unwrap_or(500);
            let words = match (status, fault.retry_after) {
                (429, Some(seconds)) => format!("Too Many Requests: retry after {seconds}"),
                _ => "Internal Server Error".to_owned(),
            };
            error(status, fault.description.unwrap_or(words), fault.retry_after)
        }
        None if method == "getUpdates" => poll(&server, &body).await,
        None => {
            let end = server.state.lock().unwrap().call(method, &body);
            match end {
                End::Done(result) => done(result),
                End::Error { status, description, retry_after } => error(status, description, retry_after),
            }
        }
    }
}

/// Closes the connection without a response by panicking in its task.
fn cut() -> ! {
    std::panic::resume_unwind(Box::new("cut"))
}

async fn poll(server: &Server, params: &Value) -> Response {
    let offset = params["offset"].as_i64().unwrap_or(0);
    let limit = params["limit"].as_u64().map_or(100, |limit| limit.clamp(1, 100)) as usize;
    let until = Instant::now() + Duration::from_secs(params["timeout"].as_u64().unwrap_or(0).min(50));
    let mine = {
        let mut state = server.state.lock().unwrap();
        if state.webhook {
            let words = "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to \
                         delete the webhook first";
            return error(409, words.to_owned(), None);
        }
        state.polls += 1;
        state.polls
    };
    server.news.notify_waiters();
    loop {
        let news = server.news.notified();
        tokio::pin!(news);
        news.as_mut().enable();
        {
            let mut state = server.state.lock().unwrap();
            if state.polls != mine {
                let words = "Conflict: terminated by other getUpdates request; make sure that only one bot \
                             instance is running";
                return error(409, words.to_owned(), None);
            }
            let found = state.updates(offset, limit);
            if !found.is_empty() || Instant::now() >= until {
                return done(found.into());
            }
        }
        let _ = timeout_at(until, news).await;
    }
}

fn control(server: &Server, what: &str, body: Value) -> Response {
    let mut state = server.state.lock().unwrap();
    let answer = match what {
        "updates" => {
            let updates = body.as_array().cloned().unwrap_or_default();
            let ids: Vec<i64> = updates.into_iter().map(|update| state.add(update)).collect();
            json!(ids)
        }
        "sent" => json!(state.sent),
        "state" => json!({
            "waiting": state.waiting(), "offset": state.offset, "polls": state.polls, "sent": state.sent.len()
        }),
        "faults" => {
            state.faults = serde_json::from_value(body).unwrap();
            json!(true)
        }
        "webhook" => {
            state.webhook = true;
            json!(true)
        }
        _ => return error(404, "Not Found".to_owned(), None),
    };
    drop(state);
    server.news.notify_waiters();
    answered(200, &answer)
}

fn done(result: Value) -> Response {
    answered(200, &json!({ "ok": true, "result": result }))
}

fn error(status: u16, description: String, retry_after: Option<u64>) -> Response {
    let mut answer = json!({ "ok": false, "error_code": status, "description": description });
    if let Some(seconds) = retry_after {
        answer["parameters"] = json!({ "retry_after": seconds });
    }
    answered(status, &answer)
}

fn answered(status: u16, body: &Value) -> Response {
    let status = StatusCode::from_u16(status).unwrap();
    (status, [("content-type", "application/json")], body.to_string()).into_response()
}
