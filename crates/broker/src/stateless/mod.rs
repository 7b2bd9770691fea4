//! Hosts of the stateless era: no greeting, no session on the wire, every request for itself. The broker finds the session by
//! the pipe that a request came through, or over HTTP by what a host says with every request: whose token it has, the
//! program that it names, and what it can do.
//!
//! Owns what differs at the edge: requests lose the era's own members on the way in, results gain them on the way out.
//! Between the two it is the same pipeline.
//!
//! - `key`: which session a request belongs to
//! - `dress`: parameters and results of one era in the other
//! - `listen`: `subscriptions/listen`
//! - `seal`: the state that a host brings back with its answers
//! - `tasks`: calls that go on as tasks

mod dress;
mod key;
mod listen;
mod seal;
mod tasks;

use std::sync::Arc;
use std::time::Duration;

use embody_store::Scope;
use embody_wire::server::{Call, TASKS, code, failure, supported};
use embody_wire::{Outcome, Version};
use serde_json::json;

pub(crate) use self::dress::{result_without_era, without_era, without_ours};
pub(crate) use self::listen::Listeners;
pub(crate) use self::seal::Seals;
pub(crate) use self::tasks::TaskCall;
use crate::pipeline::respond::raw;
use crate::session::Session;
use crate::sessions::InUse;
use crate::upstream::Hello;
use crate::{Broker, Principal, broker, builtin_tools, forward, pipeline};

/// How long `server/discover` waits for the store.
const WITHDRAWING: Duration = Duration::from_secs(1);
/// A session that nobody has used for so long is over; what is asked later begins anew.
pub(crate) const IDLE: Duration = Duration::from_secs(300);

impl Broker {
    /// Answers a request of the stateless era.
    pub(crate) async fn answer_alone(&self, mut call: Call<Principal>) -> Outcome {
        let method = call.request.method.clone();
        if method == "server/discover" {
            if call.host.connection.is_none() {
                self.begin_conversation(&call).await;
            }
            return dress::result(discover(), &method);
        }
        if is_of_sessions(&method) {
            return failure(
                code::METHOD_NOT_FOUND,
                format!("`{method}` belongs to sessions, which begin with `initialize`"),
            );
        }
        if tasks::is_about_a_task(&method)
            && let Some(outcome) = tasks::unknown_to(&call)
        {
            return outcome;
        }
        let session = match self.session_of(&call).await {
            Ok(session) => session,
            Err(outcome) => return outcome,
        };
        call.request.params = dress::without_era(call.request.params.take(), &method);
        let (session, call) = (&session.session, Arc::new(call));
        if let Some(level) = &call.host.client_info().log_level {
            forward::wants_level(session, level);
        }
        let outcome = match &*method {
            "tools/list" => Box::pin(self.list_tools(session, &call)).await,
            "tools/call" => pipeline::handle(self, session, &call).await,
            "subscriptions/listen" => Box::pin(self.listen(session, &call)).await,
            method if tasks::is_about_a_task(method) => Box::pin(self.answer_task(session, &call)).await,
            _ => Box::pin(forward::answer(self, session, &call)).await,
        };
        dress::result(outcome, &method)
    }

    /// Over HTTP `server/discover` is the only sign of a new conversation: whatever the one before it was shown, this one was
    /// not. It does not say in which session: a host may name other capabilities here than in its calls. So all sessions of
    /// this kind of its principal are shown the contract again.
    async fn begin_conversation(&self, call: &Call<Principal>) {
        let principal = &call.host.principal;
        for session in self.sessions.all() {
            if session.id.starts_with(key::OVER_HTTP) && session.host.principal == *principal {
                session.delivery.withdraw();
            }
        }
        let Ok(scope) = Scope::new(&principal.user, &principal.agent) else { return };
        let storing = self.config.store.begin_conversation(&scope, key::OVER_HTTP);
        let stored = tokio::time::timeout(WITHDRAWING, storing).await;
        let failure = match stored {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("the store did not answer within {} s", WITHDRAWING.as_secs()),
        };
        tracing::warn!(reason = failure, "cannot store that a new conversation begins");
    }

    /// The session that a request belongs to; opened if there is none.
    async fn session_of(&self, call: &Call<Principal>) -> Result<InUse, Outcome> {
        let said = call.host.client_info();
        let (capabilities, client) = (said.capabilities.clone(), said.client.clone());
        let hello = Hello { capabilities, client, log_level: None };
        if broker::is_broker(&hello) {
            return Err(failure(code::INVALID_REQUEST, broker::NEVER_ENDING));
        }
        let id = key::of(&call.host);
        let open = || Session::open(&self.config, Arc::clone(&call.host), id.clone(), (&hello, None));
        let entered = self.sessions.enter_or_open(&id, &call.host.principal, open);
        let (session, left) = entered.map_err(|reason| failure(code::INTERNAL_ERROR, reason))?;
        if let Some(left) = left {
            tokio::spawn(async move { left.end().await });
        }
        session.session.kept(&self.config).await;
        Ok(session)
    }
}

/// Methods that the stateless era does not have.
fn is_of_sessions(method: &str) -> bool {
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
    // What a host that knows tasks may be given one for, the servers decide with each call.
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
