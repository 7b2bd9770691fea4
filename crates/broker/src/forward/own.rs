//! The broker's own resource: what works and what does not, as `runtime_status` says it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use embody_wire::{Notification, Outcome};
use serde_json::json;
use serde_json::value::RawValue;

use super::lane;
use super::route::Asking;
use crate::pipeline::respond::raw;
use crate::session::Session;

/// Its URI.
pub(super) const STATUS: &str = "embody://runtime/status";

/// It as it is listed.
pub(super) fn resource() -> Box<RawValue> {
    raw(&json!({
        "uri": STATUS,
        "name": "runtime_status",
        "title": "What works and what does not",
        "description": "Whether this session is bootstrapped, what is degraded and why, which servers are connected, and which approvals wait.",
        "mimeType": "application/json",
    }))
}

/// Answers a request about it.
pub(super) async fn answer(asking: Asking<'_>) -> Outcome {
    let known = &asking.session.known;
    match &*asking.call.request.method {
        "resources/subscribe" => known.watches_status.store(true, Ordering::Release),
        "resources/unsubscribe" => known.watches_status.store(false, Ordering::Release),
        _ => {
            let status = crate::builtin_tools::status::of(&asking.broker.config, asking.session).await;
            let text = serde_json::to_string_pretty(&status).unwrap_or_default();
            let contents = json!([{"uri": STATUS, "mimeType": "application/json", "text": text}]);
            return Outcome::Result(raw(&json!({ "contents": contents })));
        }
    }
    Outcome::Result(raw(&json!({})))
}

/// A server has come or gone.
pub(super) fn changed(session: &Arc<Session>) {
    if session.known.watches_status.load(Ordering::Acquire) {
        let params = Some(raw(&json!({"uri": STATUS})));
        let updated = Notification { method: "notifications/resources/updated".to_owned(), params };
        // No upstream has an empty name.
        lane::to_host(session, "", updated);
    }
}
