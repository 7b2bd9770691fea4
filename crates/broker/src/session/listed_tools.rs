//! The session's catalogue and what of it the host was shown. Refreshed when a server lists other tools, a definition is
//! accepted, or the host finds a tool.

use std::sync::Arc;
use std::time::Duration;

use embody_store::Store;
use embody_wire::Notification;
use embody_wire::server::Call;
use serde_json::value::RawValue;

use super::{Session, lock};
use crate::catalogue::{Catalogue, FirstListing, ListingLimit, Source, ToolListing};
use crate::instructions::PIN;
use crate::pipeline::parse::CallParams;
use crate::upstream::{Health, RawTool, Upstream};
use crate::{BrokerConfig, Principal};

/// Found tools that are listed. When there are more the first ones are not listed any more; they can be called all the same.
const FOUND_MAX: usize = 32;

#[derive(Debug, Clone, Default)]
pub(super) struct ListedTools {
    catalogue: Catalogue,
    found: Vec<String>,
}

impl ListedTools {
    fn listing(&self, listing_limit: &ListingLimit) -> ToolListing<'_> {
        listing_limit.apply(&self.catalogue, &self.found)
    }

    /// Whether a host sees the same. In which order a server lists its tools does not matter: those that are remembered
    /// have another one.
    fn is_same(&self, other: &Self, listing_limit: &ListingLimit) -> bool {
        if self.catalogue.is(&other.catalogue) && self.found == other.found {
            return true;
        }
        let (shown, others) = (self.listing(listing_limit), other.listing(listing_limit));
        let (mut shown, mut others): (Vec<_>, Vec<_>) =
            (shown.definitions().collect(), others.definitions().collect());
        shown.sort_unstable();
        others.sort_unstable();
        shown == others
    }
}

impl Session {
    pub(crate) fn catalogue(&self) -> Catalogue {
        lock(&self.catalogue).clone()
    }

    /// What is offered, for a host that is about to get the names. Waits, at most for this long, until the tools of every
    /// upstream are known: only for those that were never seen before.
    pub(crate) async fn announce_catalogue(&self, config: &BrokerConfig, limit: Duration) -> Catalogue {
        let _ = tokio::time::timeout(limit, wait_tools_known(self.upstreams())).await;
        self.refresh_catalogue(config).await;
        self.announce()
    }

    /// The catalogue in which the name of a call is looked up. A name that the host has got belongs to its tool. Before any
    /// other one is looked up the tools of every body that could have it must be known: this waits for bodies that were never
    /// seen and are still starting, at most for as long as their start may take.
    pub(crate) async fn catalogue_for(&self, config: &BrokerConfig, asked: &CallParams) -> Catalogue {
        // The usual case, for every call.
        let is_given =
            lock(&self.announced).as_ref().is_some_and(|announced| asked.find(announced).is_some());
        let catalogue = self.catalogue();
        if is_given {
            return catalogue;
        }
        Box::pin(self.catalogue_with_all(config, asked)).await
    }

    async fn catalogue_with_all(&self, config: &BrokerConfig, asked: &CallParams) -> Catalogue {
        // The mind's names are its own, whatever bodies have.
        let is_of_mind = |catalogue: &Catalogue| asked.find(catalogue).is_some_and(|tool| tool.is_mind);
        let catalogue = self.catalogue();
        if is_of_mind(&catalogue) {
            return catalogue;
        }
        let named: Vec<&Arc<Upstream>> =
            self.upstreams().filter(|upstream| asked.may_name(&upstream.spec().name)).collect();
        if named.is_empty() {
            self.mind.wait_tools_known().await;
            self.refresh_catalogue(config).await;
            let catalogue = self.catalogue();
            if is_of_mind(&catalogue) {
                return catalogue;
            }
            wait_tools_known(self.bodies.iter()).await;
            self.refresh_catalogue(config).await;
            return self.announce();
        }
        // No other body can have a name that begins with this one's.
        wait_tools_known(named.into_iter()).await;
        if asked.find(&self.catalogue()).is_none() {
            self.refresh_catalogue(config).await;
        }
        self.catalogue()
    }

    /// This is offered from now on, under the names that the host has got.
    fn set_catalogue(&self, new: Catalogue) {
        let mut catalogue = lock(&self.catalogue);
        *catalogue = match &*lock(&self.announced) {
            Some(announced) => new.with_names_of(announced),
            None => new,
        };
    }

    /// The host gets these names: from now on each of them stays with its tool.
    fn announce(&self) -> Catalogue {
        let catalogue = lock(&self.catalogue);
        *lock(&self.announced) = Some(catalogue.clone());
        catalogue.clone()
    }

    /// The catalogue, after a look at what this upstream shows on the connection that it has now.
    pub(crate) async fn catalogue_after_listing(
        &self,
        config: &BrokerConfig,
        upstream: &Upstream,
    ) -> Catalogue {
        let has_compared =
            || lock(&self.compared_listings).get(&upstream.spec().name) == Some(&upstream.listing());
        // The usual case, for every call.
        if upstream.is_listed() && has_compared() {
            return self.catalogue();
        }
        Box::pin(async {
            if upstream.health() == Health::Connected {
                upstream.wait_listed().await;
            }
            if !has_compared() {
                self.refresh_catalogue(config).await;
            }
        })
        .await;
        self.catalogue()
    }

    /// Whether what this upstream shows on its connection was compared with its pins.
    pub(crate) fn has_compared(&self, upstream: &Upstream) -> bool {
        !upstream.is_listed()
            || lock(&self.compared_listings).get(&upstream.spec().name) == Some(&upstream.listing())
    }

    /// What a host that asks for the list is given, as raw text; from now on it has seen that. When it has got it, it is told
    /// what has changed meanwhile.
    pub(crate) async fn list(self: &Arc<Self>, config: &Arc<BrokerConfig>, call: &Call<Principal>) -> String {
        self.notifier.on_list_requested();
        let catalogue = self.announce_catalogue(config, config.times.list).await;
        let listed = ListedTools { catalogue, found: self.found() };
        let list = listed.listing(&config.listing_limit).definitions().collect::<Vec<_>>().join(",");
        *lock(&self.listed_tools) = Some(listed);
        if !self.notifier.has_list() {
            let (session, config) = (Arc::clone(self), Arc::clone(config));
            call.on_flushed(move || {
                let held_back = session.notifier.on_list_sent();
                if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                    runtime.spawn(async move {
                        session.notify_all(held_back).await;
                        session.notify_if_changed(&config).await;
                    });
                }
            });
        }
        list
    }

    /// The tools that the host has found so far, as far as they are listed.
    pub(crate) fn found(&self) -> Vec<String> {
        lock(&self.found).iter().cloned().collect()
    }

    pub(crate) fn record_found<'a>(&self, names: impl Iterator<Item = &'a str>) {
        let mut found = lock(&self.found);
        for name in names {
            found.retain(|known| known != name);
            found.push_back(name.to_owned());
        }
        let surplus = found.len().saturating_sub(FOUND_MAX);
        found.drain(..surplus);
    }

    /// Tells the host that the list is another now than it was shown, or told before. Before it has got one there is nothing
    /// to tell.
    pub(crate) async fn notify_if_changed(&self, config: &BrokerConfig) {
        if !self.notifier.has_list() {
            return;
        }
        let current = ListedTools { catalogue: self.catalogue(), found: self.found() };
        let is_news = {
            let mut shown = lock(&self.listed_tools);
            let is_news = shown.as_ref().is_some_and(|shown| !shown.is_same(&current, &config.listing_limit));
            *shown = Some(current);
            is_news
        };
        if is_news {
            self.notifier.notify(list_changed()).await;
        }
    }

    /// A host that may have its list from elsewhere is told about changes from now on: every server has had its first start.
    async fn assume_listed(&self) {
        let Some(held_back) = self.notifier.assume_listed() else { return };
        *lock(&self.listed_tools) = Some(ListedTools { catalogue: self.catalogue(), found: self.found() });
        self.notify_all(held_back).await;
    }

    async fn notify_all(&self, notifications: Vec<Notification>) {
        for notification in notifications {
            self.notifier.notify(notification).await;
        }
    }

    pub(super) async fn refresh_catalogue(&self, config: &BrokerConfig) {
        let one_at_a_time = self.building.lock().await;
        let have_started = self.upstreams().all(|upstream| upstream.is_settled());
        let numbers: Vec<(String, u32)> =
            self.upstreams().map(|upstream| (upstream.spec().name.clone(), upstream.listing())).collect();
        let sources: Vec<Source<'_>> = self.upstreams().map(|upstream| tool_source(upstream)).collect();
        let compared =
            |place: usize| sources.get(place).is_some_and(|source| source.is_live || source.is_embedded);
        match config.catalogues.of(&config.store, &sources).await {
            Ok(new) => {
                self.set_catalogue(new);
                self.store_listings(config, &numbers).await;
                // What was only remembered of a server was not looked at.
                let seen = numbers.into_iter().enumerate().filter(|(place, _)| compared(*place));
                lock(&self.compared_listings).extend(seen.map(|(_, number)| number));
            }
            Err(error) => {
                tracing::error!(session = self.id, reason = %error, "the tools cannot be compared with their pins");
            }
        }
        drop(one_at_a_time);
        if have_started {
            self.assume_listed().await;
        }
        self.notify_if_changed(config).await;
    }

    /// Writes down which tools the servers have: the next session knows them by that before they are started.
    async fn store_listings(&self, config: &BrokerConfig, numbers: &[(String, u32)]) {
        for (name, number) in numbers {
            let is_news = *number > 0 && lock(&self.compared_listings).get(name) != Some(number);
            let listed = self.upstream(name).filter(|one| is_news && !one.spec().is_embedded());
            let Some(upstream) = listed.filter(|one| is_whole(one)) else { continue };
            let tools: Vec<String> = upstream.tools().iter().map(|tool| tool.name.clone()).collect();
            if let Err(error) = config.store.set_tools_of(name, &tools).await {
                tracing::warn!(session = self.id, body = name, reason = %error, "which tools it has is not kept");
            }
        }
    }
}

/// Waits until the tools of all of these are known. They start at the same time, so the waits do not add up.
async fn wait_tools_known<'a>(upstreams: impl Iterator<Item = &'a Arc<Upstream>>) {
    for upstream in upstreams {
        upstream.wait_tools_known().await;
    }
}

/// Whether its listing is complete, and from the connection that it has.
fn is_whole(upstream: &Upstream) -> bool {
    upstream.is_listed() && upstream.status().reason.is_none()
}

/// The tools of a body as it showed them last to any session; `None` if it never has.
pub(super) async fn last_seen_tools(store: Store, body: String) -> Option<Vec<RawTool>> {
    let tools = store.last_seen_tools(&body).await.unwrap_or_else(|error| {
        tracing::warn!(body, reason = %error, "its pinned tools cannot be read; it is started for them");
        None
    })?;
    let tool = |(name, text)| Some(RawTool { name, definition: RawValue::from_string(text).ok()? });
    Some(tools.into_iter().filter(|(name, _)| name != PIN).filter_map(tool).collect())
}

fn tool_source(upstream: &Upstream) -> Source<'_> {
    let spec = upstream.spec();
    let is_embedded = spec.is_embedded();
    let name = Arc::from(spec.name.as_str());
    // Looked at before the listing is taken: what is listed in between is seen with the next look.
    let is_live = upstream.health() == Health::Connected && upstream.is_listed();
    let first_listing = match (upstream.was_listed_before(), upstream.has_listed()) {
        (true, _) => FirstListing::BeforeSession,
        (false, true) => FirstListing::InSession,
        // The names of a mind that cannot be reached are not waited for: what it has is part of the contract.
        (false, false) if spec.role.is_mind() && upstream.knows_tools() => FirstListing::InSession,
        (false, false) => FirstListing::Never,
    };
    Source { upstream: name, role: &spec.role, is_embedded, is_live, first_listing, tools: upstream.tools() }
}

fn list_changed() -> Notification {
    Notification { method: "notifications/tools/list_changed".to_owned(), params: None }
}
