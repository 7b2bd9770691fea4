//! The log level and resource subscriptions of a host. A new connection to the same server receives them again, and a host that
//! got a list without that server is notified.

use std::sync::Arc;
use std::time::Duration;

use embody_store::Principal;
use embody_wire::server::{Call, Era, code, failure};
use embody_wire::{Notification, Outcome};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::route::{HostRequest, ask, declares, is_connected, is_done, outcome_for_host};
use super::{notification_queue, printable};
use crate::BrokerConfig;
use crate::params;
use crate::pipeline::respond::raw;
use crate::pipeline::send::CallResult;
use crate::policy::Kind;
use crate::session::{Session, lock};
use crate::upstream::Upstream;

const LEVEL_TIMEOUT: Duration = Duration::from_secs(5);
const RESTORE_TIMEOUT: Duration = Duration::from_secs(30);

const SET_LEVEL: &str = "logging/setLevel";
const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

#[derive(Deserialize)]
struct Params {
    level: String,
}

/// Answers `logging/setLevel`: sends the level to all servers with logging, also to those that connect later.
pub(super) async fn set_level(request: HostRequest<'_>) -> Outcome {
    let level = match params::read(SET_LEVEL, request.params()) {
        Ok(Params { level }) => level,
        Err(outcome) => return outcome,
    };
    if !LEVELS.contains(&&*level) {
        return failure(code::INVALID_PARAMS, format!("unknown log level `{}`", printable(&level)));
    }
    // Only the level is stored; other members belong to this request.
    let params = raw(&json!({"level": level}));
    *lock(&request.session.routes.level) = Some(params.clone());
    let answers = send_level(request.session, &params).join_all().await;
    let answers: Vec<(Arc<Upstream>, CallResult)> = answers.into_iter().flatten().collect();
    let is_refused = answers.iter().all(|(_, answer)| !is_done(answer));
    match answers.into_iter().next() {
        Some((upstream, refusal)) if is_refused => {
            outcome_for_host(request.session, &upstream, &Kind::Method.name(SET_LEVEL), refusal).await
        }
        _ => Outcome::Result(raw(&json!({}))),
    }
}

/// Sets the log level that a request of a stateless host asks for, if the servers do not send that much yet.
pub(crate) fn request_log_level(session: &Arc<Session>, level: &str) {
    let Some(wanted) = severity(level) else { return };
    let params = raw(&json!({ "level": level }));
    {
        let mut known = lock(&session.routes.level);
        let has = known.as_deref().and_then(|known| serde_json::from_str::<Params>(known.get()).ok());
        if has.and_then(|has| severity(&has.level)).is_some_and(|has| has <= wanted) {
            return;
        }
        *known = Some(params.clone());
    }
    send_level(session, &params).detach_all();
}

pub(crate) fn apply_remote_setting(
    config: &Arc<BrokerConfig>,
    session: &Arc<Session>,
    method: &str,
    params: &str,
) {
    #[derive(Deserialize)]
    struct Uri {
        uri: String,
    }
    if method == SET_LEVEL {
        let Ok(Params { level }) = serde_json::from_str(params) else { return };
        let params = raw(&json!({ "level": level }));
        *lock(&session.routes.level) = Some(params.clone());
        send_level(session, &params).detach_all();
    } else if let Ok(Uri { uri }) = serde_json::from_str(params) {
        super::watch(config, session, vec![uri], method == "resources/subscribe");
    }
}

/// Sends the level to all servers with logging.
fn send_level(session: &Arc<Session>, params: &RawValue) -> JoinSet<Option<(Arc<Upstream>, CallResult)>> {
    let mut sending = JoinSet::new();
    for upstream in session.upstreams().filter(|one| is_connected(one) && declares(one, "logging")) {
        let (session, upstream, params) = (Arc::clone(session), Arc::clone(upstream), params.to_owned());
        sending.spawn(async move {
            let link = upstream.lease().await.ok()?;
            session.routes.mark_level_sent(&upstream.spec().name, &link);
            let result = ask(&upstream, &link, SET_LEVEL, Some(&params), LEVEL_TIMEOUT).await?;
            Some((upstream, result))
        });
    }
    sending
}

/// Whether the caller receives this notification: a stateless host receives only the log messages that its request asks for.
pub(crate) fn passes_log_level(call: &Call<Principal>, notification: &Notification) -> bool {
    if notification.method != "notifications/message" || call.host.era() != Era::Stateless {
        return true;
    }
    let wanted = call.host.initialize_params().log_level.as_deref().and_then(severity);
    let params = notification.params.as_deref().map_or("{}", |params| params.get());
    let level = serde_json::from_str::<Params>(params).ok().and_then(|params| severity(&params.level));
    wanted.is_some_and(|wanted| level.is_none_or(|level| level >= wanted))
}

fn severity(level: &str) -> Option<usize> {
    LEVELS.iter().position(|known| *known == level)
}

/// Restores the settings on a new connection; does nothing for a known connection or an unavailable upstream.
pub(super) fn restore(session: &Arc<Session>, upstream: &Arc<Upstream>) {
    if !is_connected(upstream) {
        return;
    }
    let (session, upstream) = (Arc::clone(session), Arc::clone(upstream));
    tokio::spawn(async move {
        let name = &upstream.spec().name;
        if timeout(RESTORE_TIMEOUT, restore_connection(&session, &upstream)).await.is_err() {
            tracing::warn!(
                upstream = name,
                "log level and subscriptions could not be restored on a new connection"
            );
        }
    });
}

async fn restore_connection(session: &Session, upstream: &Upstream) {
    let name = &upstream.spec().name;
    let Ok(link) = upstream.lease().await else { return };
    if !session.routes.is_new_connection(name, &link) {
        return;
    }
    if session.is_stateless() && upstream.spec().is_process() {
        // The tasks of the previous process are gone.
        session.routes.process(name, link.number());
        session.routes.update_keep_alive(upstream);
    }
    for capability in session.routes.take_missed(name) {
        if declares(upstream, capability) {
            let method = format!("notifications/{capability}/list_changed");
            notification_queue::to_host(session, name, Notification { method, params: None });
        }
    }
    let level = lock(&session.routes.level).clone().filter(|_| declares(upstream, "logging"));
    // A new connection may already have received the level from the host; a second one would interfere with its calls.
    if let Some(level) = level.filter(|_| !session.routes.has_level(name, &link)) {
        ask(upstream, &link, SET_LEVEL, Some(&level), LEVEL_TIMEOUT).await;
    }
    session.notifier.listeners.send_watched_tasks(name, &link);
    for params in session.routes.subscriptions(name) {
        ask(upstream, &link, "resources/subscribe", Some(&params), LEVEL_TIMEOUT).await;
    }
}
