//! The scripted host: a client of the broker over a pipe, as hosts are, with a form for questions. No model is behind it:
//! what it calls is written down in the steps.

use std::sync::Arc;
use std::time::Duration;

use embody_broker::{Broker, Principal};
use embody_wire::message::Response;
use embody_wire::serve::code;
use embody_wire::upstream::{CallEvent, Calling, EraCache, Hello, Link, Opening, Route};
use embody_wire::{Identity, Limits, Outcome, Proxies, Request};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::person::{Answer, Person};
use super::stage::{AGENT, USER};
use crate::embedded::{self, Presence};
use crate::failure::Failure;

/// Longer than anything takes that nobody is asked about.
const PATIENCE: Duration = Duration::from_secs(20);

/// A host with an open session.
pub(super) struct Host {
    link: Link,
}

impl Host {
    /// Opens a session as any host does.
    pub(super) async fn connect(broker: &Arc<Broker>) -> Result<Self, Failure> {
        let principal = Principal::new(USER, AGENT, "mcp").approving(true);
        let identity =
            Identity { name: "embody-demo".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
        let capabilities = to_raw_value(&json!({"elicitation": {}})).ok();
        let opening = Opening {
            route: Route::Streams(embedded::pipes(Arc::clone(broker), Some(principal), Presence::new())),
            hello: Hello { capabilities, identity, ..Hello::default() },
            tokens: None,
            proxies: Proxies::default(),
            limits: Limits::default(),
            era: EraCache::sessions(),
        };
        // What the broker says on its own is of no use here.
        let (said, _) = mpsc::channel(1);
        let link = Link::open(&opening, said)
            .await
            .map_err(|error| Failure::new("the broker does not open a session").because(&error))?;
        Ok(Self { link })
    }

    /// Calls a tool about which nobody is to be asked.
    pub(super) async fn call(&self, tool: &str, arguments: &Value) -> Result<Value, Failure> {
        let called = self.carry(tool, arguments, async |question: &str| {
            Err(Failure::new(format!("a person was asked about `{tool}`, which was not expected"))
                .hint(question))
        });
        timeout(PATIENCE, called)
            .await
            .map_err(|_| Failure::new(format!("`{tool}` was not answered within {} s", PATIENCE.as_secs())))?
    }

    /// Calls a tool about which a person is asked, and gives what they said if they were.
    pub(super) async fn call_asking(
        &self,
        tool: &str,
        arguments: &Value,
        person: &mut Person<'_>,
    ) -> Result<(Value, Option<Answer>), Failure> {
        let mut said = None;
        let called = self.carry(tool, arguments, async |question: &str| {
            let answer = person.ask(question).await?;
            said = Some(answer);
            Ok(answer)
        });
        let result = called.await?;
        Ok((result, said))
    }

    async fn carry(
        &self,
        tool: &str,
        arguments: &Value,
        mut asked: impl AsyncFnMut(&str) -> Result<Answer, Failure>,
    ) -> Result<Value, Failure> {
        let lost =
            |error: embody_wire::Error| Failure::new(format!("`{tool}` was not answered")).because(&error);
        let params = to_raw_value(&json!({"name": tool, "arguments": arguments}))
            .map_err(|error| Failure::new(format!("`{tool}` cannot be called")).because(&error))?;
        let calling = Calling { method: "tools/call", params: Some(&params) };
        let mut running = self.link.begin(calling).await.map_err(lost)?;
        loop {
            match running.next().await {
                CallEvent::Done(Outcome::Result(result)) => return read(&result),
                CallEvent::Done(Outcome::Error(error)) => {
                    return Err(Failure::new(format!("`{tool}` was refused: {}", error.get())));
                }
                CallEvent::Lost(error) => return Err(lost(error)),
                CallEvent::Notification(_) => {}
                CallEvent::Request(request) => {
                    let response = match question(&request) {
                        Some(question) => accepted(request, asked(&question).await?),
                        None => Response::failure(
                            request.id,
                            code::METHOD_NOT_FOUND,
                            "this host has no such method",
                        ),
                    };
                    self.link.answer(response).await.map_err(lost)?;
                }
            }
        }
    }

    /// Leaves.
    pub(super) async fn leave(self) {
        self.link.close().await;
    }
}

/// What a person is asked, if it is a form.
fn question(request: &Request) -> Option<String> {
    let params: Value = serde_json::from_str(request.params.as_deref()?.get()).ok()?;
    let message = params.get("message")?.as_str()?;
    (request.method == "elicitation/create").then(|| message.to_owned())
}

fn accepted(request: Request, answer: Answer) -> Response {
    let result = match answer {
        Answer::Yes => json!({"action": "accept", "content": {}}),
        Answer::No => json!({"action": "decline"}),
    };
    let raw = to_raw_value(&result).unwrap_or_else(|_| RawValue::NULL.to_owned());
    Response::success(request.id, raw)
}

fn read(result: &RawValue) -> Result<Value, Failure> {
    serde_json::from_str(result.get())
        .map_err(|error| Failure::new("the broker's result cannot be read").because(&error))
}
