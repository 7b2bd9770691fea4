//! Notifies hosts that a list or a resource has changed: sessions by notification, stateless hosts on their
//! `subscriptions/listen` streams.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use embody_wire::message::{Id, Notification};
use embody_wire::server::{Call, Host};
use serde_json::{Map, Value, json};
use tokio::sync::broadcast;

use crate::context::LogLevel;
use crate::era::raw;
use crate::handler::Capabilities;

/// A listener that is further behind is notified that everything may have changed.
const MAX_LAG: usize = 256;
const MAX_SUBSCRIPTIONS: usize = 1024;
const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Change {
    Tools,
    Prompts,
    Resources,
    Resource(String),
    /// `state` is the result of `tasks/get`, as JSON.
    Task {
        id: String,
        state: String,
    },
}

pub struct ChangeNotifier<P> {
    sessions: Arc<Mutex<Sessions<P>>>,
    sender: broadcast::Sender<(Change, Option<P>)>,
}

type Sessions<P> = HashMap<Arc<str>, Session<P>>;

struct Session<P> {
    host: Arc<Host<P>>,
    subscribed: HashSet<String>,
    level: LogLevel,
    /// Changes that were not sent because the host does not read.
    missed: HashSet<Change>,
    is_sending_missed: bool,
}

impl<P: Clone + PartialEq + Send + Sync + 'static> Default for ChangeNotifier<P> {
    fn default() -> Self {
        Self { sessions: Arc::default(), sender: broadcast::channel(MAX_LAG).0 }
    }
}

impl<P: Clone + PartialEq + Send + Sync + 'static> ChangeNotifier<P> {
    fn sessions(&self) -> MutexGuard<'_, Sessions<P>> {
        lock(&self.sessions)
    }

    /// Notifies all hosts of a change, or only those of one principal. Does not wait: a host that does not read is
    /// notified once when it reads again.
    pub fn notify(&self, change: &Change, only: Option<&P>) {
        let _ = self.sender.send((change.clone(), only.cloned()));
        let mut sessions = self.sessions();
        let concerned = sessions
            .iter_mut()
            .filter(|(_, session)| only.is_none_or(|only| session.host.principal == *only))
            .filter(|(_, session)| match change {
                Change::Resource(uri) => session.subscribed.contains(uri),
                Change::Tools | Change::Prompts | Change::Resources => true,
                // Hosts with a session have no such tasks.
                Change::Task { .. } => false,
            });
        for (id, session) in concerned {
            if !session.is_sending_missed {
                if session.host.try_notify(notification(change, None)) {
                    continue;
                }
                // Outside a runtime no host is served.
                let Ok(runtime) = tokio::runtime::Handle::try_current() else { continue };
                session.is_sending_missed = true;
                runtime.spawn(send_missed(Arc::clone(&self.sessions), Arc::clone(id)));
            }
            session.missed.insert(change.clone());
        }
    }

    /// Notifies an initialized session of changes from now on.
    pub(crate) fn add_session(&self, host: &Arc<Host<P>>) {
        self.with(host, |_| ());
    }

    /// Updates a host's session, and adds it if it is missing.
    fn with<T>(&self, host: &Arc<Host<P>>, update: impl FnOnce(&mut Session<P>) -> T) -> Option<T> {
        let id = Arc::clone(host.session.as_ref()?);
        let mut sessions = self.sessions();
        // Checked under the lock: the session of a host that has disconnected would never be removed.
        if host.is_disconnected() {
            return None;
        }
        let session = sessions.entry(id).or_insert_with(|| Session {
            host: Arc::clone(host),
            subscribed: HashSet::new(),
            level: LogLevel::Info,
            missed: HashSet::new(),
            is_sending_missed: false,
        });
        Some(update(session))
    }

    pub(crate) fn remove_session(&self, host: &Host<P>) {
        if let Some(id) = &host.session {
            self.sessions().remove(id);
        }
    }

    /// Subscribes a session to a resource, or unsubscribes it. Returns `false` if it has too many subscriptions.
    pub(crate) fn set_subscribed(&self, host: &Arc<Host<P>>, uri: &str, on: bool) -> bool {
        let watch = |session: &mut Session<P>| {
            if !on {
                session.subscribed.remove(uri);
                return true;
            }
            let has_room = session.subscribed.len() < MAX_SUBSCRIPTIONS || session.subscribed.contains(uri);
            if has_room {
                session.subscribed.insert(uri.to_owned());
            }
            has_room
        };
        self.with(host, watch).unwrap_or(true)
    }

    /// The lowest log level that a session receives.
    pub(crate) fn level(&self, host: &Host<P>) -> Option<LogLevel> {
        let id = host.session.as_ref()?;
        Some(self.sessions().get(id).map_or(LogLevel::Info, |session| session.level))
    }

    pub(crate) fn set_level(&self, host: &Arc<Host<P>>, level: LogLevel) {
        self.with(host, |session| session.level = level);
    }

    /// Serves a `subscriptions/listen` call until it is cancelled or the server shuts down. Acknowledges only what the
    /// server supports.
    pub(crate) async fn listen(
        &self,
        call: &Call<P>,
        wanted: &Map<String, Value>,
        can: Capabilities,
    ) -> Map<String, Value> {
        let mut receiver = self.sender.subscribe();
        let id = subscription(&call.request.id);
        let filter = Filter::read(wanted, can);
        let params = json!({"notifications": filter.agreed(), "_meta": {SUBSCRIPTION_ID: &id}});
        let acknowledged = Notification {
            method: "notifications/subscriptions/acknowledged".to_owned(),
            params: Some(raw(&params)),
        };
        call.notify(acknowledged).await;
        let copy = async {
            loop {
                match receiver.recv().await {
                    Ok((change, only)) => {
                        let is_meant = only.is_none_or(|only| only == call.host.principal);
                        if is_meant && filter.wants(&change) {
                            call.notify(notification(&change, Some(&id))).await;
                        }
                    }
                    // The missed changes are unknown: everything may have changed.
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
            () = call.until_cancelled_or_shutdown() => {}
        }
        let mut result = Map::new();
        result.insert("_meta".into(), json!({SUBSCRIPTION_ID: id}));
        result
    }
}

fn lock<P>(sessions: &Mutex<Sessions<P>>) -> MutexGuard<'_, Sessions<P>> {
    sessions.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends a session the changes that it has missed, as fast as it reads.
async fn send_missed<P>(sessions: Arc<Mutex<Sessions<P>>>, id: Arc<str>) {
    loop {
        let (host, change) = {
            let mut sessions = lock(&sessions);
            let Some(session) = sessions.get_mut(&id) else { return };
            let Some(change) = session.missed.iter().next().cloned() else {
                session.is_sending_missed = false;
                return;
            };
            // Removed before it is sent: a change from here on must be sent again.
            session.missed.remove(&change);
            (Arc::clone(&session.host), change)
        };
        host.notify(notification(&change, None)).await;
    }
}

struct Filter {
    tools: bool,
    prompts: bool,
    resources: bool,
    uris: Vec<String>,
    tasks: Vec<String>,
}

impl Filter {
    fn read(wanted: &Map<String, Value>, can: Capabilities) -> Self {
        let on = |name: &str| wanted.get(name).and_then(Value::as_bool).unwrap_or(false);
        let texts = |name: &str, on: bool| {
            let given = wanted.get(name).and_then(Value::as_array).filter(|_| on).into_iter().flatten();
            given.filter_map(|text| text.as_str().map(str::to_owned)).take(MAX_SUBSCRIPTIONS).collect()
        };
        Self {
            tools: can.tools && on("toolsListChanged"),
            prompts: can.prompts && on("promptsListChanged"),
            resources: can.resources && on("resourcesListChanged"),
            uris: texts("resourceSubscriptions", can.resources),
            tasks: texts("taskIds", can.tasks),
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
        for (name, subscribed) in [("resourceSubscriptions", &self.uris), ("taskIds", &self.tasks)] {
            if !subscribed.is_empty() {
                agreed.insert(name.into(), subscribed.clone().into());
            }
        }
        agreed.into()
    }

    fn wants(&self, change: &Change) -> bool {
        match change {
            Change::Tools => self.tools,
            Change::Prompts => self.prompts,
            Change::Resources => self.resources,
            Change::Resource(uri) => self.uris.contains(uri),
            Change::Task { id, .. } => self.tasks.contains(id),
        }
    }

    /// Without tasks, whose state is unknown here: a host reads it with `tasks/get`.
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
        Change::Task { .. } => "notifications/tasks",
    };
    let mut params = match change {
        Change::Task { state, .. } => serde_json::from_str(state).unwrap_or_default(),
        _ => Map::new(),
    };
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
