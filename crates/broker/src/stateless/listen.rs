//! `subscriptions/listen`: the long-running request on which a stateless host receives changes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use embody_store::Principal;
use embody_wire::server::Call;
use embody_wire::upstream::Link;
use embody_wire::{Notification, Outcome};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::broadcast;

use super::tasks::{self, TaskHandle};
use crate::forward;
use crate::pipeline::respond::raw;
use crate::session::{Session, lock};
use crate::{Broker, BrokerConfig};

/// Events that a slow listener may miss before it is notified that everything may have changed.
const EVENT_BACKLOG: usize = 256;
const WATCHED_MAX: usize = 1024;
pub(super) const FOLLOWED_MAX: usize = 64;
pub(super) const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

#[derive(Default)]
pub(crate) struct Listeners {
    /// Created for the first listener: most sessions have none.
    news: OnceLock<broadcast::Sender<ListenEvent>>,
    watched: Mutex<HashMap<String, usize>>,
    /// The number of watchers per task, by server and the server's task id.
    watch: Mutex<HashMap<(String, String), usize>>,
}

#[derive(Clone)]
enum ListenEvent {
    Change(Notification),
    /// A task may have changed; its watchers poll it.
    Task {
        upstream: String,
        task: String,
    },
}

impl Listeners {
    /// Notifies all listeners without waiting for slow ones.
    pub(crate) fn notify(&self, notification: Notification) {
        self.send(ListenEvent::Change(notification));
    }

    fn send(&self, news: ListenEvent) {
        if let Some(listeners) = self.news.get() {
            let _ = listeners.send(news);
        }
    }

    fn subscribe(&self) -> broadcast::Receiver<ListenEvent> {
        self.news.get_or_init(|| broadcast::channel(EVENT_BACKLOG).0).subscribe()
    }

    pub(crate) fn on_task_changed(&self, upstream: &str, notification: &Notification) {
        self.notify_task(upstream, members(notification).get("taskId"));
    }

    /// Notifies the watchers of the tasks that a server has acknowledged.
    pub(crate) fn on_tasks_acknowledged(&self, upstream: &str, notification: &Notification) {
        let params = members(notification);
        let agreed = params.get("notifications").and_then(|agreed| agreed.get("taskIds"));
        for task in agreed.and_then(Value::as_array).into_iter().flatten() {
            self.notify_task(upstream, Some(task));
        }
    }

    fn notify_task(&self, upstream: &str, task: Option<&Value>) {
        let Some(task) = task.and_then(Value::as_str) else { return };
        let (upstream, task) = (upstream.to_owned(), task.to_owned());
        let is_followed = lock(&self.watch).contains_key(&(upstream.clone(), task.clone()));
        if is_followed {
            self.send(ListenEvent::Task { upstream, task });
        }
    }

    /// Subscribes on this connection to the tasks of this server that are watched.
    pub(crate) fn send_watched_tasks(&self, upstream: &str, link: &Link) {
        // Locked until it is sent, so that the later of two updates wins.
        let watch = lock(&self.watch);
        let here = watch.keys().filter(|(server, _)| server == upstream);
        link.watch_tasks(here.map(|(_, task)| task.clone()).collect());
    }

    /// Registers or releases one watch of a task.
    pub(super) fn watch_tasks(&self, upstream: &str, task: &str, on: bool) {
        let mut watch = lock(&self.watch);
        let place = (upstream.to_owned(), task.to_owned());
        let count = watch.entry(place.clone()).or_default();
        *count = if on { *count + 1 } else { count.saturating_sub(1) };
        if *count == 0 {
            watch.remove(&place);
        }
    }

    pub(crate) fn is_watched(&self, uri: &str) -> bool {
        lock(&self.watched).contains_key(uri)
    }

    /// Returns whether this is the first watcher.
    fn watch(&self, uri: &str) -> bool {
        let mut watched = lock(&self.watched);
        let count = watched.entry(uri.to_owned()).or_default();
        *count += 1;
        *count == 1
    }

    /// Returns whether this was the last watcher.
    fn leave(&self, uri: &str) -> bool {
        let mut watched = lock(&self.watched);
        let Some(count) = watched.get_mut(uri) else { return false };
        *count = count.saturating_sub(1);
        let is_last = *count == 0;
        if is_last {
            watched.remove(uri);
        }
        is_last
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Filter {
    tools_list_changed: bool,
    prompts_list_changed: bool,
    resources_list_changed: bool,
    resource_subscriptions: Vec<String>,
    pub(super) task_ids: Option<Vec<String>>,
}

impl Filter {
    fn read(call: &Call<Principal>) -> Self {
        #[derive(Deserialize)]
        struct Params {
            #[serde(default)]
            notifications: Value,
        }
        let params = call.request.params.as_deref().map_or("{}", |params| params.get());
        let wanted = serde_json::from_str::<Params>(params).map(|params| params.notifications);
        let mut filter: Self =
            wanted.ok().and_then(|wanted| serde_json::from_value(wanted).ok()).unwrap_or_default();
        filter.resource_subscriptions.truncate(WATCHED_MAX);
        filter.task_ids.iter_mut().for_each(|ids| ids.truncate(FOLLOWED_MAX));
        filter
    }

    fn agreed(&self, tasks: &[&str]) -> Value {
        let mut agreed = Map::new();
        for (name, on) in [
            ("toolsListChanged", self.tools_list_changed),
            ("promptsListChanged", self.prompts_list_changed),
            ("resourcesListChanged", self.resources_list_changed),
        ] {
            if on {
                agreed.insert(name.to_owned(), true.into());
            }
        }
        if !self.resource_subscriptions.is_empty() {
            agreed.insert("resourceSubscriptions".to_owned(), json!(self.resource_subscriptions));
        }
        if !tasks.is_empty() {
            agreed.insert("taskIds".to_owned(), json!(tasks));
        }
        agreed.into()
    }

    fn wants(&self, notification: &Notification) -> bool {
        match &*notification.method {
            "notifications/tools/list_changed" => self.tools_list_changed,
            "notifications/prompts/list_changed" => self.prompts_list_changed,
            "notifications/resources/list_changed" => self.resources_list_changed,
            "notifications/resources/updated" => {
                let uri = members(notification).get("uri").and_then(Value::as_str).map(str::to_owned);
                uri.is_some_and(|uri| self.resource_subscriptions.contains(&uri))
            }
            _ => false,
        }
    }

    fn all_changes(&self) -> Vec<Notification> {
        let lists = ["tools", "prompts", "resources"]
            .map(|list| Notification { method: format!("notifications/{list}/list_changed"), params: None });
        let updated = |uri: &String| Notification {
            method: "notifications/resources/updated".to_owned(),
            params: Some(raw(&json!({ "uri": uri }))),
        };
        let resources = self.resource_subscriptions.iter().map(updated);
        lists.into_iter().chain(resources).filter(|change| self.wants(change)).collect()
    }
}

/// Serves a listener until it leaves or the server ends.
pub(super) async fn listen(broker: &Broker, session: &Arc<Session>, call: &Arc<Call<Principal>>) -> Outcome {
    let filter = Filter::read(call);
    if let (Some(_), Some(outcome)) = (&filter.task_ids, tasks::unknown_to(call)) {
        return outcome;
    }
    let mut news = session.notifier.listeners.subscribe();
    let id: Value = serde_json::from_str(call.request.id.as_json()).unwrap_or_default();
    let _watching = ResourceWatch::begin(&broker.config, session, &filter.resource_subscriptions);
    let mut watch = tasks::watch_tasks(broker, session, call, &filter).await;
    let acknowledged = Notification {
        method: "notifications/subscriptions/acknowledged".to_owned(),
        params: Some(raw(&json!({"notifications": filter.agreed(&watch.ids())}))),
    };
    call.notify(tagged(acknowledged, &id)).await;
    let copy = async {
        loop {
            // Earlier events are not replayed: watched tasks are polled from the start.
            let notification = tokio::select! {
                notification = news.recv() => notification,
                came = watch.next(call) => {
                    tasks::notify_watcher(broker, &mut watch, came, call, &id).await;
                    continue;
                }
            };
            match notification {
                Ok(ListenEvent::Change(change)) if filter.wants(&change) => {
                    call.notify(tagged(change, &id)).await;
                }
                Ok(ListenEvent::Change(_)) => {}
                Ok(ListenEvent::Task { upstream, task }) => {
                    let is_it =
                        |held: &TaskHandle| held.task == task && held.upstream.spec().name == upstream;
                    watch.may_have_changed(is_it);
                }
                // The missed events are unknown: report that everything may have changed.
                Err(broadcast::error::RecvError::Lagged(_)) => {
                    for change in filter.all_changes() {
                        call.notify(tagged(change, &id)).await;
                    }
                    watch.may_have_changed(|_| true);
                }
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            }
        }
    };
    tokio::select! {
        () = copy => {}
        () = call.until_cancelled_or_shutdown() => {}
    }
    Outcome::Result(raw(&json!({"_meta": {SUBSCRIPTION_ID: id}})))
}

fn tagged(notification: Notification, id: &Value) -> Notification {
    let mut params = members(&notification);
    let meta = params.entry("_meta").or_insert_with(|| json!({}));
    if let Some(meta) = meta.as_object_mut() {
        meta.insert(SUBSCRIPTION_ID.to_owned(), id.clone());
    }
    Notification { method: notification.method, params: Some(raw(&params)) }
}

fn members(notification: &Notification) -> Map<String, Value> {
    let params = notification.params.as_deref().map_or("{}", |params| params.get());
    serde_json::from_str(params).unwrap_or_default()
}

/// Resources that are watched for a listener; dropping it ends the watch.
struct ResourceWatch {
    config: Arc<BrokerConfig>,
    session: Arc<Session>,
    uris: Vec<String>,
}

impl ResourceWatch {
    fn begin(config: &Arc<BrokerConfig>, session: &Arc<Session>, uris: &[String]) -> Self {
        let new: Vec<String> =
            uris.iter().filter(|uri| session.notifier.listeners.watch(uri)).cloned().collect();
        forward::watch(config, session, new, true);
        Self { config: Arc::clone(config), session: Arc::clone(session), uris: uris.to_vec() }
    }
}

impl Drop for ResourceWatch {
    fn drop(&mut self) {
        let last =
            self.uris.iter().filter(|uri| self.session.notifier.listeners.leave(uri)).cloned().collect();
        forward::watch(&self.config, &self.session, last, false);
    }
}
