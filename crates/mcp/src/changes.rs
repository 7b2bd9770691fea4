//! Who is told that a list or a resource has changed: sessions by notification, the stateless era on its
//! `subscriptions/listen` streams.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use embody_wire::message::{Id, Notification};
use embody_wire::serve::{Call, Host};
use serde_json::{Map, Value, json};
use tokio::sync::broadcast;

use crate::context::Level;
use crate::era::raw;

/// Changes that a slow listener may be behind before it is told that everything may have changed.
const BEHIND: usize = 256;
/// Resources that one host may watch.
const MOST_WATCHED: usize = 1024;
const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// What has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources.
    Resources,
    /// One resource.
    Resource(String),
}

/// Everybody who wants to know of changes.
pub struct Changes<P> {
    sessions: Mutex<HashMap<Arc<str>, Session<P>>>,
    news: broadcast::Sender<(Change, Option<P>)>,
}

struct Session<P> {
    host: Arc<Host<P>>,
    watched: HashSet<String>,
    level: Option<Level>,
}

impl<P: Clone + PartialEq + Send + Sync + 'static> Default for Changes<P> {
    fn default() -> Self {
        Self { sessions: Mutex::default(), news: broadcast::channel(BEHIND).0 }
    }
}

impl<P: Clone + PartialEq + Send + Sync + 'static> Changes<P> {
    fn sessions(&self) -> MutexGuard<'_, HashMap<Arc<str>, Session<P>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells everybody of a change, or only the hosts of one principal.
    pub async fn announce(&self, change: Change, only: Option<&P>) {
        let _ = self.news.send((change.clone(), only.cloned()));
        let hosts: Vec<Arc<Host<P>>> = self
            .sessions()
            .values()
            .filter(|session| only.is_none_or(|only| session.host.principal == *only))
            .filter(|session| match &change {
                Change::Resource(uri) => session.watched.contains(uri),
                Change::Tools | Change::Prompts | Change::Resources => true,
            })
            .map(|session| Arc::clone(&session.host))
            .collect();
        for host in hosts {
            host.notify(notification(&change, None)).await;
        }
    }

    /// A session that has greeted is told of changes from now on.
    pub(crate) fn enter(&self, host: &Arc<Host<P>>) {
        if let Some(id) = &host.session {
            let session =
                Session { host: Arc::clone(host), watched: HashSet::new(), level: Some(Level::Info) };
            self.sessions().insert(Arc::clone(id), session);
        }
    }

    /// A session is over.
    pub(crate) fn leave(&self, host: &Host<P>) {
        if let Some(id) = &host.session {
            self.sessions().remove(id);
        }
    }

    /// A session wants to hear of a resource, or no longer. `false` if it watches too many.
    pub(crate) fn watch(&self, host: &Host<P>, uri: &str, on: bool) -> bool {
        let mut sessions = self.sessions();
        let Some(session) = host.session.as_ref().and_then(|id| sessions.get_mut(id)) else { return true };
        if !on {
            session.watched.remove(uri);
            return true;
        }
        if session.watched.len() >= MOST_WATCHED {
            return false;
        }
        session.watched.insert(uri.to_owned());
        true
    }

    /// The least severe log message that a session wants.
    pub(crate) fn level(&self, host: &Host<P>) -> Option<Level> {
        host.session.as_ref().and_then(|id| self.sessions().get(id)?.level)
    }

    /// Sets it.
    pub(crate) fn set_level(&self, host: &Host<P>, level: Level) {
        let mut sessions = self.sessions();
        if let Some(session) = host.session.as_ref().and_then(|id| sessions.get_mut(id)) {
            session.level = Some(level);
        }
    }

    /// Serves a `subscriptions/listen` call until it is cancelled or the server ends.
    pub(crate) async fn listen(&self, call: &Call<P>, wanted: &Map<String, Value>) -> Map<String, Value> {
        let mut news = self.news.subscribe();
        let id = subscription(&call.request.id);
        let filter = Filter::read(wanted);
        let params = json!({"notifications": filter.agreed(), "_meta": {SUBSCRIPTION_ID: &id}});
        let acknowledged = Notification {
            method: "notifications/subscriptions/acknowledged".to_owned(),
            params: Some(raw(&params)),
        };
        call.notify(acknowledged).await;
        let copy = async {
            loop {
                match news.recv().await {
                    Ok((change, only)) => {
                        let is_meant = only.is_none_or(|only| only == call.host.principal);
                        if is_meant && filter.wants(&change) {
                            call.notify(notification(&change, Some(&id))).await;
                        }
                    }
                    // What was missed is not known: everything may have changed.
                    Err(broadcast::error::RecvError::Lagged(_)) => {
                        for change in filter.everything() {
                            call.notify(notification(&change, Some(&id))).await;
                        }
                    }
                    Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
                }
            }
        };
        tokio::select! {
            () = copy => {}
            () = call.until_unwanted() => {}
        }
        let mut result = Map::new();
        result.insert("_meta".into(), json!({SUBSCRIPTION_ID: id}));
        result
    }
}

/// What a listener wants to hear of.
struct Filter {
    tools: bool,
    prompts: bool,
    resources: bool,
    uris: Vec<String>,
}

impl Filter {
    fn read(wanted: &Map<String, Value>) -> Self {
        let on = |name: &str| wanted.get(name).and_then(Value::as_bool).unwrap_or(false);
        let uris = wanted.get("resourceSubscriptions").and_then(Value::as_array);
        Self {
            tools: on("toolsListChanged"),
            prompts: on("promptsListChanged"),
            resources: on("resourcesListChanged"),
            uris: uris
                .into_iter()
                .flatten()
                .filter_map(|uri| uri.as_str().map(str::to_owned))
                .take(MOST_WATCHED)
                .collect(),
        }
    }

    fn agreed(&self) -> Value {
        let mut agreed = Map::new();
        for (name, on) in [
            ("toolsListChanged", self.tools),
            ("promptsListChanged", self.prompts),
            ("resourcesListChanged", self.resources),
        ] {
            if on {
                agreed.insert(name.into(), true.into());
            }
        }
        if !self.uris.is_empty() {
            agreed.insert("resourceSubscriptions".into(), self.uris.clone().into());
        }
        agreed.into()
    }

    fn wants(&self, change: &Change) -> bool {
        match change {
            Change::Tools => self.tools,
            Change::Prompts => self.prompts,
            Change::Resources => self.resources,
            Change::Resource(uri) => self.uris.contains(uri),
        }
    }

    fn everything(&self) -> Vec<Change> {
        let lists = [Change::Tools, Change::Prompts, Change::Resources];
        let resources = self.uris.iter().cloned().map(Change::Resource);
        lists.into_iter().chain(resources).filter(|change| self.wants(change)).collect()
    }
}

fn notification(change: &Change, subscription: Option<&Value>) -> Notification {
    let method = match change {
        Change::Tools => "notifications/tools/list_changed",
        Change::Prompts => "notifications/prompts/list_changed",
        Change::Resources => "notifications/resources/list_changed",
        Change::Resource(_) => "notifications/resources/updated",
    };
    let mut params = Map::new();
    if let Change::Resource(uri) = change {
        params.insert("uri".into(), uri.clone().into());
    }
    if let Some(id) = subscription {
        params.insert("_meta".into(), json!({SUBSCRIPTION_ID: id}));
    }
    let params = (!params.is_empty()).then(|| raw(&params.into()));
    Notification { method: method.to_owned(), params }
}

fn subscription(id: &Id) -> Value {
    serde_json::from_str(id.as_json()).unwrap_or(Value::Null)
}
