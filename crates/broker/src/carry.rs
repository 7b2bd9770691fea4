//! One request on its way to an upstream and back: what is said about it on the way reaches the host in its order, what
//! is asked is answered, and when the host no longer wants it the upstream is told.

use std::time::Duration;

use embody_wire::serve::{Call, code};
use embody_wire::upstream::{CallEvent, Calling, Link, Running};
use embody_wire::{Error, Outcome, Response};
use serde_json::value::RawValue;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use crate::Principal;
use crate::results::raw;
use crate::reverse::{Asker, answer};
use crate::session::Session;
use std::sync::Arc;

/// How long a server has for its last word about a call that nobody wants any more.
const LAST_WORD: Duration = Duration::from_millis(500);

/// What came of it.
#[derive(Debug)]
pub(crate) enum Carried {
    /// The server's own answer.
    Answered(Outcome),
    /// Nobody is there to send it to.
    Away(String),
    /// It was not sent.
    NotSent(Error),
    /// It was sent, and there is no answer.
    Lost(Error),
    /// It was sent, and took too long.
    TimedOut,
    /// It was sent, and the host does not want it any more.
    Unwanted,
}

/// Carries a request of a host.
pub(crate) async fn carry(
    session: &Arc<Session>,
    upstream: &str,
    link: &Arc<Link>,
    calling: Calling<'_>,
    call: &Arc<Call<Principal>>,
    limit: Duration,
) -> Carried {
    let mut running = match link.begin(calling).await {
        Ok(running) => running,
        Err(error) => return Carried::NotSent(error),
    };
    // Whoever asks is answered beside the stream: what follows a question does not wait for it.
    let mut asked = JoinSet::new();
    let mut until = Instant::now() + limit;
    loop {
        tokio::select! {
            biased;
            event = running.next() => match event {
                // It takes back a question of the server's own, by an id that is not the host's.
                CallEvent::Notification(notification) if notification.method == "notifications/cancelled" => {}
                CallEvent::Notification(notification) => {
                    // A call that tells of its progress is alive.
                    until = Instant::now() + limit;
                    call.notify(notification).await;
                }
                CallEvent::Request(request) => {
                    let asker = Asker { session: Arc::clone(session), upstream: upstream.to_owned(), call: Some(Arc::clone(call)) };
                    let link = Arc::clone(link);
                    asked.spawn(async move {
                        let id = request.id.clone();
                        let outcome = answer(&asker, request).await;
                        let _ = link.answer(Response { id: Some(id), outcome }).await;
                    });
                }
                CallEvent::Done(outcome) => return Carried::Answered(outcome),
                CallEvent::Lost(error) => return Carried::Lost(error),
            },
            () = call.until_unwanted() => return last_word(&mut running, link, "the host has cancelled the call", Carried::Unwanted).await,
            () = sleep_until(until) => return last_word(&mut running, link, "it took too long", Carried::TimedOut).await,
        }
    }
}

/// Tells the server that nobody waits, and takes the answer if it comes at once.
async fn last_word(running: &mut Running, link: &Link, reason: &str, otherwise: Carried) -> Carried {
    let number = running.number();
    if link.cancel(number, reason).await.is_err() {
        return otherwise;
    }
    let answered = timeout(LAST_WORD, async {
        loop {
            match running.next().await {
                CallEvent::Done(outcome) => return Some(outcome),
                CallEvent::Lost(_) => return None,
                CallEvent::Notification(_) => {}
                CallEvent::Request(request) => {
                    let gone =
                        Response::failure(request.id, code::INTERNAL_ERROR, "nobody can be asked any more");
                    let _ = link.answer(gone).await;
                }
            }
        }
    });
    match answered.await {
        Ok(Some(outcome)) => Carried::Answered(outcome),
        _ => otherwise,
    }
}

/// Calls a tool on the broker's own behalf. What is said on the way is for nobody, and nobody can be asked.
pub(crate) async fn ask(
    link: &Link,
    tool: &str,
    arguments: &RawValue,
    limit: Duration,
) -> Result<Outcome, String> {
    ask_with(link, tool, arguments, None, limit).await
}

/// The same with `_meta`.
pub(crate) async fn ask_with(
    link: &Link,
    tool: &str,
    arguments: &RawValue,
    meta: Option<&RawValue>,
    limit: Duration,
) -> Result<Outcome, String> {
    #[derive(serde::Serialize)]
    struct Params<'a> {
        name: &'a str,
        arguments: &'a RawValue,
        #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
        meta: Option<&'a RawValue>,
    }
    let params = raw(&Params { name: tool, arguments, meta });
    let calling = Calling { method: "tools/call", params: Some(&params) };
    let mut running = link.begin(calling).await.map_err(|error| error.to_string())?;
    let answered = timeout(limit, async {
        loop {
            match running.next().await {
                CallEvent::Done(outcome) => return Ok(outcome),
                CallEvent::Lost(error) => return Err(error.to_string()),
                CallEvent::Notification(_) => {}
                CallEvent::Request(request) => {
                    let nobody =
                        Response::failure(request.id, code::METHOD_NOT_FOUND, "nobody can be asked here");
                    let _ = link.answer(nobody).await;
                }
            }
        }
    });
    match answered.await {
        Ok(answered) => answered,
        Err(_) => {
            let _ = link.cancel(running.number(), "it took too long").await;
            Err(format!("`{tool}` gave no answer within {} ms", limit.as_millis()))
        }
    }
}
