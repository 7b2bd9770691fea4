//! Everything that is not a tool call: lists of several servers as one, requests to the server that they belong to, and
//! notifications both ways.
//!
//! Owns routing and merging only. Payloads stay raw text; nothing here decides whether something may happen, and no tool
//! is called from here.
//!
//! - `lists`, `cursor`: one list from the lists of all
//! - `resources`, `prompts`, `completion`, `tasks`: whose it is
//! - `standing`: what holds for a connection, and is said again to a new one
//! - `lane`: notifications, each server's on their own way
//! - `said`: what hosts say to tasks, on record
//! - `known`: what was learnt on the way

mod completion;
mod cursor;
mod known;
mod lane;
mod lists;
mod own;
mod params;
mod prompts;
mod resources;
mod route;
mod said;
mod standing;
mod tasks;
mod template;

use std::sync::Arc;

use embody_wire::serve::{Call, code, failure};
use embody_wire::{Notification, Outcome};
use serde_json::value::RawValue;

pub(crate) use self::known::{Known, LONGEST_RUN};
use self::lists::Kind;
pub(crate) use self::params::read as read_params;
pub(crate) use self::resources::watch;
use self::route::Asking;
pub(crate) use self::route::words;
pub(crate) use self::said::{SaidTo, Saying};
pub(crate) use self::standing::{is_wanted, set_elsewhere, wants_level};
pub(crate) use self::tasks::{keep, leave_task, tidy};
use crate::degraded;
use crate::session::Session;
use crate::upstream::Role;
use crate::{Principal, Setup};

/// Answers every method that is not the broker's own.
pub(crate) async fn answer(
    setup: &Arc<Setup>,
    session: &Arc<Session>,
    call: &Arc<Call<Principal>>,
) -> Outcome {
    let asking = Asking { setup, session, call };
    let outcome = match &*call.request.method {
        "resources/list" => lists::merged(asking, Kind::Resources).await,
        "resources/templates/list" => lists::merged(asking, Kind::Templates).await,
        "tasks/list" => lists::merged(asking, Kind::Tasks).await,
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

/// Takes a notification of the host.
pub(crate) async fn notice(session: &Arc<Session>, notification: Notification) {
    match &*notification.method {
        // Each connection has been told so by its own opening.
        "notifications/initialized" => {}
        // They speak of ids and tokens that are the host's; calls pass them on by their own.
        "notifications/cancelled" | "notifications/progress" => {}
        _ => lane::to_upstreams(session, &notification),
    }
}

/// Takes a notification that an upstream sent outside any call.
pub(crate) async fn heard(session: &Arc<Session>, upstream: &str, notification: Notification) {
    match &*notification.method {
        // Whether the list that a host sees is another one is found out by looking.
        "notifications/tools/list_changed" => return,
        // They speak of ids and tokens that are the server's.
        "notifications/cancelled" | "notifications/progress" => return,
        // What is heard of tasks is asked for, and told to whoever listens to them.
        "notifications/tasks" if session.is_alone() => {
            return session.ear.listeners.tell_of_task(upstream, &notification);
        }
        // It answers a request of the connection's own.
        "notifications/subscriptions/acknowledged" => {
            return session.ear.listeners.tell_of_tasks(upstream, &notification);
        }
        "notifications/resources/list_changed" => session.known.forget_resources(upstream),
        _ => {}
    }
    lane::to_host(session, upstream, notification);
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
        Some(upstream) => asking.send(upstream, asking.params()).await,
        None => failure(code::METHOD_NOT_FOUND, format!("Method not found: {}", printable(method))),
    }
}

/// What somebody else wrote, as it may stand in a message.
pub(crate) fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(80).collect()
}
