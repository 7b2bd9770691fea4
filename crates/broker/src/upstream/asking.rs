//! The calls that are the supervisor's own. What a server says or asks while such a call runs is not about it, and is passed
//! on to whoever listens to the connection.

use std::time::Duration;

use embody_wire::server::code;
use embody_wire::upstream::{CallEvent, Link, OutgoingCall, ServerMessage};
use embody_wire::{Outcome, Response};
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::now::told;

/// Asks a server something; in words, why there is no answer.
pub(super) async fn ask(
    link: &Link,
    said: &mpsc::Sender<ServerMessage>,
    calling: OutgoingCall<'_>,
    limit: Duration,
) -> Result<Outcome, String> {
    let mut number = None;
    let asked = async {
        let mut running = link.begin(calling).await.map_err(|error| told(&error))?;
        number = Some(running.number());
        loop {
            let aside = match running.next().await {
                CallEvent::Done(outcome) => return Ok(outcome),
                CallEvent::Lost(error) => return Err(told(&error)),
                CallEvent::Notification(notification) => ServerMessage::Notification(notification),
                CallEvent::Request(request) => ServerMessage::Request(request),
            };
            pass_on(link, said, aside).await;
        }
    };
    if let Ok(answer) = timeout(limit, asked).await {
        return answer;
    }
    if let Some(number) = number {
        // A server that reads nothing must not hold the supervisor up a second time.
        let _ = timeout(limit, link.cancel(number, "no answer in time")).await;
    }
    Err(format!("`{}` took longer than {} ms", calling.method, limit.as_millis()))
}

/// The result of an answer; in words, what the server refuses.
pub(super) fn result(outcome: Outcome) -> Result<Box<RawValue>, String> {
    match outcome {
        Outcome::Result(result) => Ok(result),
        Outcome::Error(error) => {
            let error: String = error.get().chars().filter(|c| !c.is_control()).take(200).collect();
            Err(format!("the server answers with an error: {error}"))
        }
    }
}

async fn pass_on(link: &Link, said: &mpsc::Sender<ServerMessage>, aside: ServerMessage) {
    let Err(refused) = said.try_send(aside) else { return };
    // A question that finds no place is answered, so that the server does not wait for good.
    if let ServerMessage::Request(request) = refused.into_inner() {
        let _ = link.answer(Response::failure(request.id, code::INTERNAL_ERROR, "nobody can be asked")).await;
    }
}
