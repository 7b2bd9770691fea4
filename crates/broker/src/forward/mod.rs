//! Everything that is not a tool call: merged lists, requests to the server that owns their subject, and notifications in both
//! directions. Owns routing and merging; refuses to call tools, and leaves decisions to the gate.
//!
//! - `route`: sends a request to one upstream, or to each in turn
//! - `read_gate`: gate and audit for reads
//! - `lists`: one list merged from all upstreams
//! - `resources`, `prompts`, `tasks`: requests by subject
//! - `subscriptions`: log level and subscriptions, restored on a new connection
//! - `notification_queue`: bounded notification queues per server and direction
//! - `routing_table`: which upstream owns which URI and prompt

mod lists;
mod notification_queue;
mod prompts;
mod read_gate;
mod resources;
mod route;
mod routing_table;
mod subscriptions;
mod tasks;

use std::sync::Arc;

use embody_store::Principal;
use embody_wire::server::{Call, code, failure};
use embody_wire::{Notification, Outcome};
use serde::Deserialize;
use serde_json::value::RawValue;

use self::lists::ListKind;
use self::resources::Scheme;
use self::route::HostRequest;
use crate::policy::Kind;
use crate::session::Session;
use crate::upstream::Role;
use crate::{Broker, degraded};

pub(crate) use self::read_gate::{denied, permit};
pub(crate) use self::resources::watch;
pub(crate) use self::route::outcome_for_host;
pub(crate) use self::routing_table::RoutingTable;
pub(crate) use self::subscriptions::{apply_remote_setting, passes_log_level, request_log_level};
pub(crate) use self::tasks::{
    LONGEST_RUN, TaskAudit, TaskTarget, expire_tasks, leave_task, record_task_result, update_keep_alive,
};

/// Answers every method that is not the broker's own.
pub(crate) async fn answer(broker: &Broker, session: &Arc<Session>, call: &Arc<Call<Principal>>) -> Outcome {
    let request = HostRequest { broker, session, call };
    let outcome = match &*call.request.method {
        "resources/list" => lists::list(request, ListKind::Resources).await,
        "resources/templates/list" => lists::list(request, ListKind::Templates).await,
        "tasks/list" => lists::list(request, ListKind::Tasks).await,
        "prompts/list" => prompts::list(request).await,
        "prompts/get" => prompts::get(request).await,
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
            resources::answer(request).await
        }
        "completion/complete" => prompts::complete(request).await,
        "logging/setLevel" => subscriptions::set_level(request).await,
        "tasks/get" | "tasks/result" | "tasks/cancel" => tasks::answer(request).await,
        _ => forward_to_body(request).await,
    };
    match outcome {
        Outcome::Result(result) if session.is_fine() => Outcome::Result(result),
        Outcome::Result(result) => Outcome::Result(degraded::add_to_result(result, &session.degraded())),
        error @ Outcome::Error(_) => error,
    }
}

/// The notifications of a host that are forwarded to servers. `initialized`, `cancelled` and `progress` concern the host's
/// own connection only.
const FROM_HOST: [&str; 1] = ["notifications/roots/list_changed"];

/// The notifications of a server that are forwarded to the host unchanged, outside calls.
const TO_HOST: [&str; 6] = [
    "notifications/message",
    "notifications/resources/updated",
    "notifications/resources/list_changed",
    "notifications/prompts/list_changed",
    "notifications/tasks/status",
    "notifications/elicitation/complete",
];

/// Forwards a notification of the host. Drops its parameters, which can only be `_meta`.
pub(crate) fn on_host_notification(session: &Arc<Session>, notification: &Notification) {
    if let Some(method) = FROM_HOST.into_iter().find(|known| *known == notification.method) {
        notification_queue::to_upstreams(session, &Notification { method: method.to_owned(), params: None });
    }
}

pub(crate) fn is_for_host(method: &str) -> bool {
    method == "notifications/progress" || TO_HOST.contains(&method)
}

pub(crate) async fn on_upstream_notification(
    session: &Arc<Session>,
    upstream: &str,
    notification: Notification,
) {
    match &*notification.method {
        // A task notification only triggers a poll, whose result goes to the listeners.
        "notifications/tasks" if session.is_stateless() => {
            return session.notifier.listeners.on_task_changed(upstream, &notification);
        }
        // The response to a request of the connection itself.
        "notifications/subscriptions/acknowledged" => {
            return session.notifier.listeners.on_tasks_acknowledged(upstream, &notification);
        }
        "notifications/resources/list_changed" => session.routes.forget_resources(upstream),
        "notifications/resources/updated" if is_of_another(session, upstream, &notification) => return,
        method if TO_HOST.contains(&method) => {}
        _ => return,
    }
    notification_queue::to_host(session, upstream, notification);
}

/// Whether a body's notification names a resource that is reserved for the mind or the broker.
fn is_of_another(session: &Session, upstream: &str, notification: &Notification) -> bool {
    #[derive(Deserialize)]
    struct Updated {
        uri: String,
    }
    let params = notification.params.as_deref().map_or("{}", RawValue::get);
    let uri = serde_json::from_str(params).map(|Updated { uri }| uri).unwrap_or_default();
    upstream != session.mind.spec().name && Scheme::of(&uri).is_some()
}

/// Restores the settings of an upstream that may have a new connection.
pub(crate) fn on_upstream_changed(session: &Arc<Session>, upstream: &str) {
    if let Some(upstream) = session.upstream(upstream) {
        resources::status_changed(session);
        subscriptions::restore(session, upstream);
    }
}

/// Forwards a method that the operator has assigned to a body.
async fn forward_to_body(request: HostRequest<'_>) -> Outcome {
    let method = &request.call.request.method;
    let lists_it = |role: &Role| matches!(role, Role::Body(body) if body.forward_methods.contains(method));
    match request.session.upstreams().find(|upstream| lists_it(&upstream.spec().role)) {
        Some(upstream) => request.read(upstream, &Kind::Method.name(method), request.params()).await,
        None => failure(code::METHOD_NOT_FOUND, format!("Method not found: {}", printable(method))),
    }
}

pub(crate) fn printable(text: &str) -> String {
    embody_text::without_control(text, 80)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_to_the_broker_is_not_passed_on_with_a_call() {
        // These concern ids, tasks and subscriptions of the broker's own connection.
        for method in ["cancelled", "tasks", "subscriptions/acknowledged", "tools/list_changed", "x"] {
            assert!(!is_for_host(&format!("notifications/{method}")), "{method}");
        }
        for method in ["progress", "message", "tasks/status"] {
            assert!(is_for_host(&format!("notifications/{method}")), "{method}");
        }
    }
}
