//! Everything that is not a tool call: lists of several servers as one, requests to the server that they belong to, and
//! notifications both ways.
//!
//! Owns routing and merging. Payloads stay raw text; whether something may happen is the gate's, and no tool is called
//! from here.
//!
//! - `gated`: what passes, by the gate, and what is recorded of it
//! - `reserved`: names that are the mind's and the broker's
//! - `lists`, `cursor`: one list from the lists of all
//! - `resources`, `prompts`, `completion`, `tasks`: whose it is
//! - `standing`: what holds for a connection, and is said again to a new one
//! - `lane`: notifications, each server's on their own way
//! - `said`: what hosts say to tasks, on record
//! - `known`: what was learnt on the way

mod completion;
mod cursor;
mod gated;
mod known;
mod lane;
mod lists;
mod own;
mod params;
mod prompts;
mod reserved;
mod resources;
mod route;
mod said;
mod standing;
mod tasks;
mod template;

use std::sync::Arc;

use embody_wire::server::{Call, code, failure};
use embody_wire::{Notification, Outcome};
use serde::Deserialize;
use serde_json::value::RawValue;

pub(crate) use self::gated::{denied, permit};
pub(crate) use self::known::{Known, LONGEST_RUN};
use self::lists::Kind as List;
pub(crate) use self::params::{only, read as read_params};
use self::reserved::Scheme;
pub(crate) use self::resources::watch;
use self::route::Asking;
pub(crate) use self::route::outcome_for_host;
pub(crate) use self::said::{SaidTo, Saying};
pub(crate) use self::standing::{is_wanted, set_elsewhere, wants_level};
pub(crate) use self::tasks::{keep, leave_task, tidy};
use crate::degraded;
use crate::policy::Kind;
use crate::session::Session;
use crate::upstream::Role;
use crate::{Broker, Principal};

/// Answers every method that is not the broker's own.
pub(crate) async fn answer(broker: &Broker, session: &Arc<Session>, call: &Arc<Call<Principal>>) -> Outcome {
    let asking = Asking { broker, session, call };
    let outcome = match &*call.request.method {
        "resources/list" => lists::merged(asking, List::Resources).await,
        "resources/templates/list" => lists::merged(asking, List::Templates).await,
        "tasks/list" => lists::merged(asking, List::Tasks).await,
        "prompts/list" => prompts::list(asking).await,
        "prompts/get" => prompts::get(asking).await,
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => resources::answer(asking).await,
        "completion/complete" => completion::complete(asking).await,
        "logging/setLevel" => standing::set_level(asking).await,
        "tasks/get" | "tasks/result" | "tasks/cancel" => tasks::answer(asking).await,
        _ => elsewhere(asking).await,
    };
    match outcome {
        Outcome::Result(result) if session.is_fine() => Outcome::Result(result),
        Outcome::Result(result) => Outcome::Result(degraded::tell(result, &session.degraded())),
        error @ Outcome::Error(_) => error,
    }
}

/// The notifications of a host that reach servers; every other one ends here. `initialized`, `cancelled` and `progress` are
/// about the host's own connection: each connection behind the broker has its own.
const FROM_HOST: [&str; 1] = ["notifications/roots/list_changed"];

/// The notifications of a server that reach the host as they are, outside calls.
const TO_HOST: [&str; 6] = [
    "notifications/message",
    "notifications/resources/updated",
    "notifications/resources/list_changed",
    "notifications/prompts/list_changed",
    "notifications/tasks/status",
    "notifications/elicitation/complete",
];

/// Takes a notification of the host. Its parameters can only be `_meta`, which no server needs to look again.
pub(crate) fn notice(session: &Arc<Session>, notification: &Notification) {
    if let Some(method) = FROM_HOST.into_iter().find(|known| *known == notification.method) {
        lane::to_upstreams(session, &Notification { method: method.to_owned(), params: None });
    }
}

/// Whether a notification that a server sends in the course of a call reaches the host.
pub(crate) fn is_for_host(method: &str) -> bool {
    method == "notifications/progress" || TO_HOST.contains(&method)
}

/// Takes a notification that an upstream sent outside any call.
pub(crate) async fn heard(session: &Arc<Session>, upstream: &str, notification: Notification) {
    match &*notification.method {
        // What is heard of tasks is asked for, and told to whoever listens to them.
        "notifications/tasks" if session.is_alone() => {
            return session.ear.listeners.tell_of_task(upstream, &notification);
        }
        // It answers a request of the connection's own.
        "notifications/subscriptions/acknowledged" => {
            return session.ear.listeners.tell_of_tasks(upstream, &notification);
        }
        "notifications/resources/list_changed" => session.known.forget_resources(upstream),
        "notifications/resources/updated" if is_of_another(session, upstream, &notification) => return,
        method if TO_HOST.contains(&method) => {}
        _ => return,
    }
    lane::to_host(session, upstream, notification);
}

/// Whether a body speaks of a resource that is the mind's or the broker's.
fn is_of_another(session: &Session, upstream: &str, notification: &Notification) -> bool {
    #[derive(Deserialize)]
    struct Updated {
        uri: String,
    }
    let params = notification.params.as_deref().map_or("{}", RawValue::get);
    let uri = serde_json::from_str(params).map(|Updated { uri }| uri).unwrap_or_default();
    upstream != session.mind.spec().name && Scheme::of(&uri).is_some()
}

/// An upstream may be connected anew: what holds for its connection is said again.
pub(crate) fn changed(session: &Arc<Session>, upstream: &str) {
    if let Some(upstream) = session.upstream(upstream) {
        own::changed(session);
        standing::restore(session, upstream);
    }
}

/// A tool call was answered. A result that stands for a task says who has the task.
pub(crate) fn shown(session: &Session, upstream: &str, params: &RawValue, result: &RawValue) {
    tasks::shown(session, upstream, params, result);
}

/// A method that only a body knows, by the operator's word.
async fn elsewhere(asking: Asking<'_>) -> Outcome {
    let method = &asking.call.request.method;
    let lists_it = |role: &Role| matches!(role, Role::Body(body) if body.forward_methods.contains(method));
    match asking.session.upstreams().find(|upstream| lists_it(&upstream.spec().role)) {
        Some(upstream) => asking.read(upstream, &Kind::Method.name(method), asking.params()).await,
        None => failure(code::METHOD_NOT_FOUND, format!("Method not found: {}", printable(method))),
    }
}

/// What somebody else wrote, as it may stand in a message.
pub(crate) fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_to_the_broker_is_not_passed_on_with_a_call() {
        // They speak of ids, tasks and subscriptions of the broker's own connection.
        for method in ["cancelled", "tasks", "subscriptions/acknowledged", "tools/list_changed", "x"] {
            assert!(!is_for_host(&format!("notifications/{method}")), "{method}");
        }
        for method in ["progress", "message", "tasks/status"] {
            assert!(is_for_host(&format!("notifications/{method}")), "{method}");
        }
    }
}
