//! Tasks that a listener follows: whenever one of them may be otherwise, its server is asked how it is, and the listener is
//! told what `tasks/get` would say. What a server pushes is only a reason to ask.

use std::collections::HashMap;
use std::sync::Arc;

use embody_wire::serve::Call;
use embody_wire::{Notification, Outcome};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Held;
use crate::arguments::Members;
use crate::results::raw;
use crate::session::Session;
use crate::stateless::dress::member;
use crate::stateless::listen::{Filter, SUBSCRIPTION_ID};
use crate::upstream::{Health, Upstream};
use crate::{Broker, Principal};

/// The tasks that one listener follows; dropping it ends that.
pub(in crate::stateless) struct Followed {
    session: Arc<Session>,
    tasks: Vec<Held>,
    /// What was last told of each.
    last: HashMap<String, blake3::Hash>,
}

impl Followed {
    /// What the host calls them.
    pub(in crate::stateless) fn ids(&self) -> Vec<&str> {
        self.tasks.iter().map(|held| &*held.id).collect()
    }

    /// Tells their servers, and says that they are followed or no longer are.
    fn count(&self, on: bool) {
        let listeners = &self.session.ear.listeners;
        for held in &self.tasks {
            listeners.follow(&held.upstream.spec().name, &held.task, on);
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let mut told: Vec<&Arc<Upstream>> = Vec::new();
        for Held { upstream, .. } in &self.tasks {
            // One that is away is told when it comes back, if there is still something to tell.
            let is_needed = on || upstream.health() == Health::Connected;
            if !is_needed || told.iter().any(|known| Arc::ptr_eq(known, upstream)) {
                continue;
            }
            told.push(upstream);
            let (listeners, upstream) = (Arc::clone(listeners), Arc::clone(upstream));
            runtime.spawn(async move {
                if let Ok(link) = upstream.link().await {
                    listeners.watch_at(&upstream.spec().name, &link);
                }
            });
        }
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        if !self.tasks.is_empty() {
            self.count(false);
        }
    }
}

impl Broker {
    /// Follows the tasks that a listener asks for, as far as they are of its session.
    pub(in crate::stateless) async fn follow(
        &self,
        session: &Arc<Session>,
        call: &Call<Principal>,
        filter: &Filter,
    ) -> Followed {
        let mut tasks: Vec<Held> = Vec::new();
        for id in filter.task_ids.iter().flatten() {
            let held = self.held(session, &call.host.principal, id).await;
            let held = held.ok().filter(|held| Arc::ptr_eq(&held.session, session));
            tasks.extend(held.filter(|held| tasks.iter().all(|known| known.id != held.id)));
        }
        let followed = Followed { session: Arc::clone(session), tasks, last: HashMap::new() };
        followed.count(true);
        followed
    }

    /// Tells a listener how these of its tasks are, if it was not told before.
    pub(in crate::stateless) async fn tell_of(
        &self,
        followed: &mut Followed,
        call: &Arc<Call<Principal>>,
        subscription: &Value,
        which: impl Fn(&Held) -> bool,
    ) {
        let Followed { tasks, last, .. } = followed;
        for held in tasks.iter().filter(|held| which(held)) {
            let params = raw(&json!({"taskId": held.id}));
            let Outcome::Result(result) = self.ask_of(held, call, "tasks/get", Some(&params)).await else {
                continue;
            };
            let Some(params) = told(&result, subscription) else { continue };
            let hash = blake3::hash(params.get().as_bytes());
            if last.insert(held.id.clone(), hash) != Some(hash) {
                let method = "notifications/tasks".to_owned();
                call.notify(Notification { method, params: Some(params) }).await;
            }
        }
    }
}

/// What `tasks/get` says, as a notification says it.
fn told(result: &RawValue, subscription: &Value) -> Option<Box<RawValue>> {
    let Members(members) = serde_json::from_str(result.get()).ok()?;
    let kept = members.iter().filter(|(name, _)| !matches!(&**name, "resultType" | "_meta"));
    let kept = kept.map(|(name, value)| member(name, value.get()));
    let meta = member("_meta", &json!({SUBSCRIPTION_ID: subscription}).to_string());
    let written: Vec<String> = kept.chain([meta]).collect();
    RawValue::from_string(format!("{{{}}}", written.join(","))).ok()
}
