//! The scripted host: a client of the broker with support for elicitation, which the approver answers. The steps decide what it calls.

use std::sync::Arc;
use std::time::Duration;

use embody_broker::Broker;
use embody_store::Principal;
use embody_wire::message::Response;
use embody_wire::server::{CancellationToken, code};
use embody_wire::upstream::{
    CallEvent, ConnectOptions, EraCache, InProcessServer, Link, OutgoingCall, Route,
};
use embody_wire::{InitializeParams, Limits, Outcome, Proxies, Request};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::approver::{Answer, Approver};
use super::transcript::Transcript;
use super::{AGENT, USER};
use crate::error::{CliError, ErrorContext};

/// The timeout of a call that needs no approval.
const CALL_TIMEOUT: Duration = Duration::from_secs(20);

pub(super) struct Host {
    link: Link,
}

impl Host {
    pub(super) async fn connect(broker: &Arc<Broker>) -> Result<Self, CliError> {
        let principal = Principal { may_approve: true, ..Principal::host(USER, AGENT)? };
        let capabilities = to_raw_value(&json!({"elicitation": {}})).ok();
        let options = ConnectOptions {
            route: Route::InProcess(InProcessServer::new(Arc::clone(broker), move || {
                (principal.clone(), CancellationToken::new())
            })),
            params: InitializeParams { capabilities, ..InitializeParams::named("embody-demo") },
            tokens: None,
            proxies: Proxies::default(),
            limits: Limits::default(),
            era: EraCache::sessions(),
        };
        // Notifications are ignored.
        let (notifications, _) = mpsc::channel(1);
        let link = Link::open(&options, notifications).await.context("the broker did not open a session")?;
        Ok(Self { link })
    }

    /// Calls a tool that must not ask a person.
    pub(super) async fn call(&self, tool: &str, arguments: &Value) -> Result<Value, CliError> {
        let call = self.send_call(tool, arguments, async |question: &str| {
            Err(CliError::new(format!("unexpected approval request for `{tool}`")).hint(question))
        });
        timeout(CALL_TIMEOUT, call).await.map_err(|_| {
            CliError::new(format!("`{tool}` was not answered within {} s", CALL_TIMEOUT.as_secs()))
        })?
    }

    /// Calls a tool, and returns the answer of the approver if one was asked.
    pub(super) async fn call_with_approval(
        &self,
        tool: &str,
        arguments: &Value,
        approver: &mut Approver,
        transcript: &mut Transcript,
    ) -> Result<(Value, Option<Answer>), CliError> {
        let mut given = None;
        let call = self.send_call(tool, arguments, async |question: &str| {
            let answer = approver.ask(transcript, question).await?;
            given = Some(answer);
            Ok(answer)
        });
        let result = call.await?;
        Ok((result, given))
    }

    async fn send_call(
        &self,
        tool: &str,
        arguments: &Value,
        mut ask: impl AsyncFnMut(&str) -> Result<Answer, CliError>,
    ) -> Result<Value, CliError> {
        let lost =
            |error: embody_wire::Error| CliError::new(format!("`{tool}` was not answered")).caused_by(&error);
        let params = to_raw_value(&json!({"name": tool, "arguments": arguments}))
            .context(format!("`{tool}` cannot be called"))?;
        let call = OutgoingCall { method: "tools/call", params: Some(&params) };
        let mut pending = self.link.begin(call).await.map_err(lost)?;
        loop {
            match pending.next().await {
                CallEvent::Done(Outcome::Result(result)) => return parse_result(&result),
                CallEvent::Done(Outcome::Error(error)) => {
                    return Err(CliError::new(format!("`{tool}` was refused: {}", error.get())));
                }
                CallEvent::Lost(error) => return Err(lost(error)),
                CallEvent::Notification(_) => {}
                CallEvent::Request(request) => {
                    let response = match question(&request) {
                        Some(question) => answer_response(request, ask(&question).await?),
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

    pub(super) async fn close(self) {
        self.link.close().await;
    }
}

/// The message of an elicitation.
fn question(request: &Request) -> Option<String> {
    let params: Value = serde_json::from_str(request.params.as_deref()?.get()).ok()?;
    let message = params.get("message")?.as_str()?;
    (request.method == "elicitation/create").then(|| message.to_owned())
}

fn answer_response(request: Request, answer: Answer) -> Response {
    let result = match answer {
        Answer::Yes => json!({"action": "accept", "content": {}}),
        Answer::No => json!({"action": "decline"}),
    };
    let raw = to_raw_value(&result).unwrap_or_else(|_| RawValue::NULL.to_owned());
    Response::success(request.id, raw)
}

fn parse_result(result: &RawValue) -> Result<Value, CliError> {
    serde_json::from_str(result.get()).context("the broker's result cannot be read")
}
