//! Names that belong to the mind and the broker, whatever bodies list; they are never resolved to bodies. Owns the broker's
//! own resource, which has the content of `runtime_status`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use embody_wire::{Notification, Outcome};
use serde_json::json;
use serde_json::value::RawValue;

use super::notification_queue;
use super::route::HostRequest;
use crate::pipeline::respond::raw;
use crate::session::Session;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme {
    Mind,
    Broker,
}

impl Scheme {
    /// The owner of this URI or template; `None` if it may belong to any upstream. Schemes are case-insensitive.
    pub(super) fn of(uri: &str) -> Option<Self> {
        let (scheme, _) = uri.split_once(':')?;
        let is = |known: &str| scheme.eq_ignore_ascii_case(known);
        if is("memory") || is("instructions") {
            return Some(Self::Mind);
        }
        is("embody").then_some(Self::Broker)
    }
}

/// The prompts of every mind; reserved also while the mind is unavailable and its list unknown.
pub(super) const PROMPTS: [&str; 1] = ["get_system_prompt"];

pub(super) const STATUS: &str = "embody://runtime/status";

pub(super) fn status_resource() -> Box<RawValue> {
    raw(&json!({
        "uri": STATUS,
        "name": "runtime_status",
        "title": "What works and what does not",
        "description": "Whether this session is bootstrapped, what is degraded and why, which servers are connected, and which approvals wait.",
        "mimeType": "application/json",
    }))
}

pub(super) async fn answer_status(request: HostRequest<'_>) -> Outcome {
    let known = &request.session.routes;
    match &*request.call.request.method {
        "resources/subscribe" => known.watches_status.store(true, Ordering::Release),
        "resources/unsubscribe" => known.watches_status.store(false, Ordering::Release),
        _ => {
            let status = crate::builtin_tools::status::of(&request.broker.config, request.session).await;
            let text = serde_json::to_string_pretty(&status).unwrap_or_default();
            let contents = json!([{"uri": STATUS, "mimeType": "application/json", "text": text}]);
            return Outcome::Result(raw(&json!({ "contents": contents })));
        }
    }
    Outcome::Result(raw(&json!({})))
}

pub(super) fn status_changed(session: &Arc<Session>) {
    if session.routes.watches_status.load(Ordering::Acquire) {
        let params = Some(raw(&json!({"uri": STATUS})));
        let updated = Notification { method: "notifications/resources/updated".to_owned(), params };
        // An empty name matches no upstream.
        notification_queue::to_host(session, "", updated);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheme_is_the_minds_or_the_brokers_however_it_is_written() {
        for (uri, whose) in [
            ("memory://1", Some(Scheme::Mind)),
            ("MEMORY:1", Some(Scheme::Mind)),
            ("instructions://current", Some(Scheme::Mind)),
            ("embody://runtime/status", Some(Scheme::Broker)),
            ("memory://{id}", Some(Scheme::Mind)),
            ("memory", None),
            ("file:///memory://1", None),
            ("{scheme}://x", None),
        ] {
            assert_eq!(Scheme::of(uri), whose, "{uri}");
        }
    }
}
