//! What is offered in a session, and what of it the host is shown: looked at again whenever a server shows something else,
//! somebody accepts a definition, or the host has found something.

use std::sync::Arc;
use std::time::Duration;

use embody_store::Store;
use embody_wire::Notification;
use embody_wire::upstream::Route;
use serde_json::value::RawValue;

use super::{Session, lock};
use crate::Setup;
use crate::catalogue::{Catalogue, Shelf, Shown, Source};
use crate::instructions::PIN;
use crate::upstream::{Health, RawTool, Start, Upstream};

/// Found tools that are listed. When there are more the first ones are not listed any more; they can be called all the same.
const FOUND_MAX: usize = 32;

/// What the list that a host sees is made of.
#[derive(Debug, Clone, Default)]
pub(super) struct Glance {
    catalogue: Catalogue,
    found: Vec<String>,
}

impl Glance {
    fn shown(&self, shelf: &Shelf) -> Shown<'_> {
        shelf.show(&self.catalogue, &self.found)
    }

    /// Whether a host sees the same.
    fn is_same(&self, other: &Self, shelf: &Shelf) -> bool {
        (self.catalogue.is(&other.catalogue) && self.found == other.found)
            || self.shown(shelf).definitions().eq(other.shown(shelf).definitions())
    }
}

impl Session {
    /// What is offered now.
    pub(crate) fn catalogue(&self) -> Catalogue {
        lock(&self.catalogue).clone()
    }

    /// Waits until every upstream has shown what it has or has failed, at most for this long, and gives what is offered.
    pub(crate) async fn settled(&self, setup: &Setup, limit: Duration) -> Catalogue {
        let all = async {
            for upstream in self.upstreams() {
                upstream.settled().await;
            }
        };
        let _ = tokio::time::timeout(limit, all).await;
        self.look(setup).await;
        self.catalogue()
    }

    /// The catalogue, after a look at what this upstream shows on the connection that it has now.
    pub(crate) async fn seen(&self, setup: &Setup, upstream: &Upstream) -> Catalogue {
        let has_looked = || lock(&self.looked).get(&upstream.spec().name) == Some(&upstream.listing());
        // The usual case, for every call.
        if upstream.is_listed() && has_looked() {
            return self.catalogue();
        }
        Box::pin(async {
            if upstream.health() == Health::Connected {
                upstream.listed().await;
            }
            if !has_looked() {
                self.look(setup).await;
            }
        })
        .await;
        self.catalogue()
    }

    /// Whether what this upstream shows on its connection was compared with its pins.
    pub(crate) fn has_compared(&self, upstream: &Upstream) -> bool {
        !upstream.is_listed() || lock(&self.looked).get(&upstream.spec().name) == Some(&upstream.listing())
    }

    /// What a host that asks for the list is given, as raw text; from now on it has seen that.
    pub(crate) fn list(&self, setup: &Setup, catalogue: Catalogue) -> String {
        let glance = Glance { catalogue, found: self.found() };
        let list = glance.shown(&setup.shelf).definitions().collect::<Vec<_>>().join(",");
        *lock(&self.shown) = glance;
        list
    }

    /// The tools that the host has found so far, as far as they are listed.
    pub(crate) fn found(&self) -> Vec<String> {
        lock(&self.found).iter().cloned().collect()
    }

    /// The host has found these: they are listed from now on.
    pub(crate) fn finds<'a>(&self, names: impl Iterator<Item = &'a str>) {
        let mut found = lock(&self.found);
        for name in names {
            found.retain(|known| known != name);
            found.push_back(name.to_owned());
        }
        let surplus = found.len().saturating_sub(FOUND_MAX);
        found.drain(..surplus);
    }

    /// Tells the host that the list is another now than it was shown, or told before.
    pub(crate) async fn tell(&self, setup: &Setup) {
        let now = Glance { catalogue: self.catalogue(), found: self.found() };
        let is_news = {
            let mut shown = lock(&self.shown);
            let is_news = !shown.is_same(&now, &setup.shelf);
            *shown = now;
            is_news
        };
        if is_news {
            self.ear.tell(list_changed()).await;
        }
    }

    /// Looks at what the upstreams offer now.
    pub(super) async fn look(&self, setup: &Setup) {
        let one_at_a_time = self.building.lock().await;
        let numbers: Vec<(String, u32)> =
            self.upstreams().map(|upstream| (upstream.spec().name.clone(), upstream.listing())).collect();
        let sources: Vec<Source<'_>> = self.upstreams().map(|upstream| source(upstream)).collect();
        let compared =
            |place: usize| sources.get(place).is_some_and(|source| source.is_live || source.is_embedded);
        match setup.catalogues.of(&setup.store, &sources).await {
            Ok(new) => {
                *lock(&self.catalogue) = new;
                self.note_listings(setup, &numbers).await;
                // What was only remembered of a server was not looked at.
                let seen = numbers.into_iter().enumerate().filter(|(place, _)| compared(*place));
                lock(&self.looked).extend(seen.map(|(_, number)| number));
            }
            Err(error) => {
                tracing::error!(session = self.id, reason = %error, "the tools cannot be compared with their pins");
            }
        }
        drop(one_at_a_time);
        self.tell(setup).await;
    }

    /// Writes down which tools the servers have that are started only when they are needed: the next session knows them by
    /// that.
    async fn note_listings(&self, setup: &Setup, numbers: &[(String, u32)]) {
        for (name, number) in numbers {
            let is_news = *number > 0 && lock(&self.looked).get(name) != Some(number);
            let lazy = self.upstream(name).filter(|one| is_news && one.spec().rest.start == Start::Lazy);
            let Some(upstream) = lazy.filter(|one| is_whole(one)) else { continue };
            let tools: Vec<String> = upstream.tools().iter().map(|tool| tool.name.clone()).collect();
            if let Err(error) = setup.store.set_tools_of(name, &tools).await {
                tracing::warn!(session = self.id, body = name, reason = %error, "which tools it has is not kept");
            }
        }
    }
}

/// Whether its listing is complete, and from the connection that it has.
fn is_whole(upstream: &Upstream) -> bool {
    upstream.is_listed() && upstream.state().reason.is_none()
}

/// The tools of a body as it showed them last, whoever saw them.
pub(super) async fn last_seen(store: Store, body: String) -> Vec<RawTool> {
    let tools = store.last_seen_tools(&body).await.unwrap_or_else(|error| {
        tracing::warn!(body, reason = %error, "its pinned tools cannot be read; it is started for them");
        Vec::new()
    });
    let tool = |(name, text)| Some(RawTool { name, definition: RawValue::from_string(text).ok()? });
    tools.into_iter().filter(|(name, _)| name != PIN).filter_map(tool).collect()
}

fn source(upstream: &Upstream) -> Source<'_> {
    let spec = upstream.spec();
    let is_embedded = matches!(spec.route, Route::Streams(_));
    let name = Arc::from(spec.name.as_str());
    // Looked at before the listing is taken: what is listed in between is seen with the next look.
    let is_live = upstream.health() == Health::Connected && upstream.is_listed();
    Source { upstream: name, role: &spec.role, is_embedded, is_live, tools: upstream.tools() }
}

fn list_changed() -> Notification {
    Notification { method: "notifications/tools/list_changed".to_owned(), params: None }
}
