//! Hosts of the stateless era: no `initialize` and no session id; every request carries its context. The session is found by the
//! pipe or, over HTTP, by token, client name and capabilities. Owns what differs at the edge: era members are stripped from
//! requests and added to results; the pipeline between is the same.
//!
//! - `session_key`: which session a request belongs to
//! - `era_meta`: strips and adds the members of the era
//! - `listen`: `subscriptions/listen`
//! - `request_state`: signs and verifies `requestState`
//! - `multi_round`: requests to stateless servers, with their input requests
//! - `tasks`: calls that continue as tasks

mod era_meta;
mod listen;
mod multi_round;
mod request_state;
mod session_key;
mod tasks;

use std::sync::Arc;
use std::time::Duration;

use embody_store::Principal;
use embody_wire::server::{BoxFuture, Call, Claim, Host, MultiRoundService, TASKS, code, failure, supported};
use embody_wire::{InitializeParams, Outcome, Request, Version};
use serde_json::json;
use serde_json::value::RawValue;

pub(crate) use self::listen::Listeners;
pub(crate) use self::multi_round::call_upstream;
pub(crate) use self::request_state::{RequestStateSigner, sign_parts, verify_parts};
use self::request_state::{sign_request_state, verify_request_state};
pub(crate) use self::tasks::{TaskCall, register_task};
use crate::pipeline::respond::raw;
use crate::session::Session;
use crate::sessions::InUse;
use crate::{Broker, broker, builtin_tools, forward, pipeline};

/// How long `server/discover` waits for the store.
const STORE_TIMEOUT: Duration = Duration::from_secs(1);
/// A session that is unused for this long ends; a later request opens a new one.
pub(crate) const IDLE: Duration = Duration::from_secs(300);

impl MultiRoundService<Principal> for Broker {
    fn suspend<'a>(
        &'a self,
        principal: &'a Principal,
        ticket: &'a str,
        resume_data: Option<&'a RawValue>,
    ) -> BoxFuture<'a, Result<(), Outcome>> {
        Box::pin(self.replicas.suspend(principal.user(), ticket, resume_data))
    }

    fn claim<'a>(
        &'a self,
        host: &'a Host<Principal>,
        request: &'a Request,
        ticket: &'a str,
    ) -> BoxFuture<'a, Result<Claim, Outcome>> {
        Box::pin(self.replicas.claim(host, request, ticket))
    }

    fn sign_state<'a>(
        &'a self,
        host: &'a Host<Principal>,
        request: &'a Request,
        ticket: &'a str,
    ) -> BoxFuture<'a, Result<String, Outcome>> {
        Box::pin(sign_request_state(self, host, request, ticket))
    }

    fn verify_state<'a>(
        &'a self,
        host: &'a Host<Principal>,
        request: &'a Request,
        state: &'a str,
    ) -> BoxFuture<'a, Result<String, Outcome>> {
        Box::pin(verify_request_state(self, host, request, state))
    }
}

pub(crate) async fn answer(broker: &Broker, mut call: Call<Principal>) -> Outcome {
    let method = call.request.method.clone();
    if method == "server/discover" {
        if call.host.connection.is_none() {
            begin_conversation(broker, &call).await;
        }
        return era_meta::add_era_meta(discover(), &method);
    }
    if is_session_method(&method) {
        return failure(
            code::METHOD_NOT_FOUND,
            format!("`{method}` needs a session, which this protocol version does not have"),
        );
    }
    if tasks::is_about_a_task(&method)
        && let Some(outcome) = tasks::unknown_to(&call)
    {
        return outcome;
    }
    let session = match open_session(broker, &call).await {
        Ok(session) => session,
        Err(outcome) => return outcome,
    };
    call.request.params = era_meta::strip_era_params(call.request.params.take(), &method);
    let (session, call) = (&session.session, Arc::new(call));
    if let Some(level) = &call.host.initialize_params().log_level {
        forward::request_log_level(session, level);
    }
    let outcome = match &*method {
        "tools/list" => Box::pin(broker.list_tools(session, &call)).await,
        "tools/call" => pipeline::handle(broker, session, &call).await,
        "subscriptions/listen" => Box::pin(listen::listen(broker, session, &call)).await,
        method if tasks::is_about_a_task(method) => {
            Box::pin(tasks::answer_task(broker, session, &call)).await
        }
        _ => Box::pin(forward::answer(broker, session, &call)).await,
    };
    era_meta::add_era_meta(outcome, &method)
}

/// Over HTTP, `server/discover` is the only sign of a new conversation, which has not read the contract. It does not name the
/// session, because a host may declare other capabilities here than in its calls. All stateless HTTP sessions of the
/// principal therefore deliver the contract again.
async fn begin_conversation(broker: &Broker, call: &Call<Principal>) {
    let principal = &call.host.principal;
    for session in broker.sessions.all() {
        if session.id.starts_with(session_key::OVER_HTTP) && session.host.principal == *principal {
            session.delivery.withdraw();
        }
    }
    let storing = broker.config.store.sessions().begin_conversation(&principal.scope, session_key::OVER_HTTP);
    let stored = tokio::time::timeout(STORE_TIMEOUT, storing).await;
    let failure = match stored {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("the store did not answer within {} s", STORE_TIMEOUT.as_secs()),
    };
    tracing::warn!(reason = failure, "cannot store that a new conversation begins");
}

/// The session of a request; opened if it does not exist.
async fn open_session(broker: &Broker, call: &Call<Principal>) -> Result<InUse, Outcome> {
    let params = InitializeParams { log_level: None, ..(*call.host.initialize_params()).clone() };
    if broker::is_broker(&params) {
        return Err(failure(code::INVALID_REQUEST, broker::BROKER_BEHIND_BROKER));
    }
    let id = session_key::session_id(&call.host);
    let open = || Session::open(&broker.config, Arc::clone(&call.host), id.clone(), (&params, None));
    let entered = broker.sessions.enter_or_open(&id, &call.host.principal, open);
    let (session, left) = entered.map_err(|reason| failure(code::INTERNAL_ERROR, reason))?;
    if let Some(left) = left {
        tokio::spawn(async move { left.shutdown().await });
    }
    session.session.ensure_stored(&broker.config).await;
    Ok(session)
}

fn is_session_method(method: &str) -> bool {
    matches!(
        method,
        "initialize"
            | "ping"
            | "logging/setLevel"
            | "resources/subscribe"
            | "resources/unsubscribe"
            | "tasks/list"
            | "tasks/result"
    )
}

fn discover() -> Outcome {
    let mut capabilities = broker::capabilities(Version::V2025_06_18);
    // The servers decide per call whether a host that supports tasks receives one.
    if let Some(members) = capabilities.as_object_mut() {
        members.insert("extensions".to_owned(), json!({TASKS: {}}));
    }
    Outcome::Result(raw(&json!({
        "supportedVersions": supported(),
        "capabilities": capabilities,
        "instructions": builtin_tools::INSTRUCTIONS,
        "ttlMs": 0,
        "cacheScope": "private",
    })))
}
