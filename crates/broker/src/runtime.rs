//! The broker's own tools at work: the session's start, its state, and what the user said.

use std::sync::Arc;

use embody_wire::Outcome;
use embody_wire::serve::{Call, code, failure};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::arguments::Arguments;
use crate::asked::Asked;
use crate::degraded::Degraded;
use crate::meter::trace;
use crate::own::{self, Own};
use crate::results::{Refused, tool_result};
use crate::session::delivery::Carrier;
use crate::session::{Session, bootstrap_result};
use crate::{Broker, Principal};

/// Tools that are named when several have the name that was called.
const ALIKE: usize = 8;
/// The longest statement of a user, in bytes.
const LONGEST: usize = 64 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BootstrapArgs {
    #[serde(default)]
    session_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReflectArgs {
    text: String,
    #[serde(default)]
    kind: Option<String>,
}

impl Broker {
    /// Answers `tools/call`.
    pub(crate) async fn call_tool(&self, session: &Arc<Session>, call: &Arc<Call<Principal>>) -> Outcome {
        let asked = match Asked::read(call.request.params.as_deref()) {
            Ok(asked) => asked,
            Err(outcome) => {
                self.setup.meter.rejected.add(1);
                return outcome;
            }
        };
        let Some(own) = Own::named(&asked.name) else { return self.proxy(session, call, asked).await };
        self.setup.meter.own(own);
        trace::own(&asked.name);
        if own == Own::BodyTool {
            return match asked.inner() {
                Ok(inner) if Own::named(&inner.name).is_some() => {
                    self.rejected(code::INVALID_PARAMS, format!("`{}` is not a tool of a body", inner.name))
                }
                Ok(inner) => self.proxy(session, call, inner).await,
                Err(outcome) => outcome,
            };
        }
        let arguments = match Arguments::read(asked.arguments.as_deref()) {
            Ok(arguments) => arguments,
            Err(error) => return self.rejected(code::INVALID_PARAMS, error.to_string()),
        };
        if session.host.principal.room.is_some() && !own::is_own_for_a_room(own) {
            return self.with_degraded(session, Refused::in_a_room()).outcome();
        }
        let answered = Box::pin(self.own_tool(session, call, own, arguments.value())).await;
        answered.unwrap_or_else(|outcome| outcome)
    }

    async fn own_tool(
        &self,
        session: &Arc<Session>,
        call: &Arc<Call<Principal>>,
        own: Own,
        arguments: &Value,
    ) -> Result<Outcome, Outcome> {
        match own {
            Own::BodyTool => Err(failure(code::INTERNAL_ERROR, "`body_tool` stands for another call")),
            Own::Status => {
                let Nothing {} = own::take("runtime_status", arguments)?;
                let status = self.status(session).await;
                Ok(tool_result(&pretty(&status), &status, false))
            }
            Own::Bootstrap => {
                let args: BootstrapArgs = own::take("runtime_bootstrap", arguments)?;
                Ok(self.runtime_bootstrap(session, call, args.session_id.as_deref()).await)
            }
            Own::Find => {
                let args = crate::find::arguments(arguments)?;
                Ok(self.find_tools(session, call, args).await)
            }
            Own::Reflect => {
                let args: ReflectArgs = own::take("reflect_user_message", arguments)?;
                Ok(self.reflect(session, call, &args).await)
            }
        }
    }

    /// Returns the contract; without a mind the body's rules, and says so. It is text only: a host that shows
    /// `structuredContent` in place of the text, or beside it, would show no contract, or two.
    async fn runtime_bootstrap(
        &self,
        session: &Arc<Session>,
        call: &Arc<Call<Principal>>,
        session_id: Option<&str>,
    ) -> Outcome {
        if let Some(id) =
            session_id.filter(|id| id.is_empty() || id.len() > 200 || id.chars().any(char::is_control))
        {
            let shown: String = id.chars().take(40).filter(|c| !c.is_control()).collect();
            return failure(
                code::INVALID_PARAMS,
                format!("invalid `session_id` `{shown}` (expected 1 to 200 characters on one line)"),
            );
        }
        let booted = session.bootstrap(&self.setup, session_id).await;
        let contract = match session.contract(&self.setup).await {
            Ok(contract) => contract,
            Err(reason) => return self.with_degraded(session, Refused::failed(reason)).outcome(),
        };
        let degraded: Vec<String> = session
            .degraded()
            .iter()
            .filter(|one| **one != Degraded::HostPromptMissing)
            .map(Degraded::for_model)
            .collect();
        let packet = booted.as_ref().ok().map(|booted| &booted.packet);
        let result = bootstrap_result::result(&bootstrap_result::Parts {
            code: session.code(),
            contract: &contract,
            packet,
            is_mind_embedded: session.is_mind_embedded(),
            degraded: &degraded,
            error: booted.as_ref().err().filter(|none| none.is_malformed).map(|none| &*none.reason),
            mark: session.host.principal.mark(),
        });
        Box::pin(session.delivers(&self.setup, call, &contract.hash, Carrier::Bootstrap)).await;
        result
    }

    /// Goes the way of every call of the mind's `reflect`.
    async fn reflect(
        &self,
        session: &Arc<Session>,
        call: &Arc<Call<Principal>>,
        args: &ReflectArgs,
    ) -> Outcome {
        if args.text.len() > LONGEST {
            let text = format!("the text has {} bytes; at most {LONGEST} are taken", args.text.len());
            return tool_result(&text, &json!({ "error": text }), true);
        }
        let kind = args.kind.as_deref().unwrap_or("user_statement");
        let asked = Asked::made("reflect", &json!({"observation": args.text, "kind": kind}));
        self.proxy(session, call, asked).await
    }

    /// No tool has this name; says why, if a server that is away could be the reason.
    pub(crate) fn unknown(&self, session: &Session, asked: &Asked) -> Outcome {
        self.setup.meter.rejected.add(1);
        let shown: String = asked.name.chars().filter(|c| !c.is_control()).take(80).collect();
        let away: Vec<String> = session
            .degraded()
            .iter()
            .filter(|one| matches!(one.name(), "body_unavailable" | "mind_unavailable"))
            .map(Degraded::for_model)
            .collect();
        let catalogue = session.catalogue();
        let alike = catalogue.listed().filter(|offered| offered.tool == asked.name).take(ALIKE);
        let alike: Vec<String> = alike.map(|offered| format!("`{}`", offered.name)).collect();
        if !alike.is_empty() {
            let unsettled = catalogue.unsettled(&asked.name).map(|body| {
                format!(" (`{body}` has not listed its tools yet and may have one of this name)")
            });
            let why = unsettled.unwrap_or_default();
            let text = format!("Unknown tool: {shown}. Call it by its full name: {}{why}", alike.join(", "));
            return failure(code::INVALID_PARAMS, text);
        }
        if away.is_empty() || session.host.principal.room.is_some() {
            return failure(code::INVALID_PARAMS, format!("Unknown tool: {shown}"));
        }
        let reason = format!("unknown tool `{shown}`, and some servers are unavailable: {}", away.join("; "));
        self.with_degraded(session, Refused::failed(reason)).outcome()
    }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}
