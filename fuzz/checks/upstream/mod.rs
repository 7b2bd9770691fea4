//! What must hold of a server behind us, whatever it says while calls are running: a call ends once, with the first answer that
//! has its id, byte for byte as the server wrote it, or with a reason; what the server asks is asked once or refused; and
//! nothing is left of the connection.
//!
//! The first four bytes are choices: how the server is reached, how many calls are made, which of them are given up, and how
//! it answers over HTTP. The others are what it says (`script`): on a pipe (`pipe`) or as the body of an answer (`web`).

mod events;
#[path = "../frames.rs"]
mod frames;
#[path = "../json.rs"]
mod json;
mod pipe;
mod script;
mod web;

use std::time::Duration;

use embody_wire::upstream::{CallEvent, ConnectOptions, EraCache, PendingCall, Route};
use embody_wire::{InitializeParams, Outcome};

use self::frames::Message;

/// Longer than anything takes.
const SOON: Duration = Duration::from_secs(30);

/// Panics when something does not hold.
pub(crate) fn check(data: &[u8]) {
    let Some((choices, said)) = data.split_first_chunk() else { return };
    let choices: [u8; 4] = choices.map(|byte| byte.wrapping_sub(b'0'));
    match choices[0] % 3 {
        0 => pipe::check(choices, said),
        1 => web::check(choices, said, "application/json"),
        _ => web::check(choices, said, "text/event-stream"),
    }
}

/// What came of a call.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    Done(Result<String, String>),
    Lost,
}

/// A call heard to its end.
#[derive(Default)]
struct Heard {
    /// The parameters of its progress.
    progress: Vec<String>,
    questions: usize,
}

/// Hears a call to its end, after which there is nothing.
async fn hear(running: &mut PendingCall) -> (Ended, Option<Outcome>, Heard) {
    let mut heard = Heard::default();
    let (ended, outcome) = loop {
        match running.next().await {
            CallEvent::Notification(notification) => {
                if notification.method == "notifications/progress" {
                    let params = notification.params.as_deref().map(|params| params.get().to_owned());
                    heard.progress.push(params.expect("progress of nothing"));
                }
            }
            CallEvent::Request(_) => heard.questions += 1,
            CallEvent::Done(outcome) => break (Ended::Done(text(&outcome)), Some(outcome)),
            CallEvent::Lost(_) => break (Ended::Lost, None),
        }
    };
    let after = running.next().await;
    assert!(matches!(after, CallEvent::Lost(embody_wire::Error::NoAnswer)), "after the end: {after:?}");
    (ended, outcome, heard)
}

fn text(outcome: &Outcome) -> Result<String, String> {
    match outcome {
        Outcome::Result(result) => Ok(result.get().to_owned()),
        Outcome::Error(error) => Err(error.get().to_owned()),
    }
}

/// Whether a message is the answer to the call of this number.
fn answer_to(message: &Message, number: u64) -> Option<Result<String, String>> {
    match message {
        Message::Response { id: Some(id), outcome } if *id == number.to_string() => Some(outcome.clone()),
        _ => None,
    }
}

fn opening(route: Route, bounds: frames::Bounds, era: EraCache) -> ConnectOptions {
    let limits = embody_wire::Limits {
        message_max_bytes: bounds.bytes,
        depth_max: bounds.depth,
        batch_max: bounds.messages,
        ..embody_wire::Limits::default()
    };
    ConnectOptions {
        route,
        params: InitializeParams::default(),
        tokens: None,
        proxies: embody_wire::Proxies::default(),
        limits,
        era,
    }
}

/// Waits until nothing runs but so much.
async fn rest(most: usize) {
    let count = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let waiting = async {
        while count() > most {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let waited = tokio::time::timeout(SOON, waiting).await;
    assert!(waited.is_ok(), "{} tasks are left", count().saturating_sub(most));
}
