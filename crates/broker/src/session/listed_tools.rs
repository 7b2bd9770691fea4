//! The session's catalogue and the part of it that the host was shown. Refreshed when a server lists other tools, the
//! operator accepts a definition, or the host finds a tool.

use std::sync::Arc;
use std::time::Duration;

use embody_store::{Principal, Store};
use embody_wire::Notification;
use embody_wire::server::Call;
use serde_json::value::RawValue;

use super::{Session, lock};
use crate::BrokerConfig;
use crate::catalogue::{Catalogue, FirstListing, ListingLimit, Source, ToolListing};
use crate::pipeline::parse::CallParams;
use crate::session::instructions::PIN;
use crate::upstream::{Health, RawTool, Upstream};

/// Found tools that are listed. Beyond this the oldest are no longer listed, but can still be called.
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

    /// Whether a host would see the same list. Ignores the order in which a server lists its tools, because remembered tools
    /// have another order.
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

    /// The catalogue for a host that is about to receive the names. Waits, up to this limit, for upstreams whose tools were
    /// never listed.
    pub(crate) async fn announce_catalogue(&self, config: &BrokerConfig, limit: Duration) -> Catalogue {
        let _ = tokio::time::timeout(limit, wait_tools_known(self.upstreams())).await;
        self.refresh_catalogue(config).await;
        self.announce()
    }

    /// The catalogue for resolving the name of a call. A name that the host has received belongs to its tool. Any other name
    /// may belong to a body that is still starting and was never listed: this waits for such bodies, at most for their start
    /// timeout.
    pub(crate) async fn catalogue_for(&self, config: &BrokerConfig, asked: &CallParams) -> Catalogue {
        // The common case.
        let is_given =
            lock(&self.announced).as_ref().is_some_and(|announced| asked.find(announced).is_some());
        let catalogue = self.catalogue();
        if is_given {
            return catalogue;
        }
        Box::pin(self.catalogue_with_all(config, asked)).await
    }

    async fn catalogue_with_all(&self, config: &BrokerConfig, asked: &CallParams) -> Catalogue {
        // The mind's names are reserved, whatever bodies list.
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
        // No other body can have a name with this body's prefix.
        wait_tools_known(named.into_iter()).await;
        if asked.find(&self.catalogue()).is_none() {
            self.refresh_catalogue(config).await;
        }
        self.catalogue()
    }

    /// Replaces the catalogue, keeping the names that the host has received.
    fn set_catalogue(&self, new: Catalogue) {
        let mut catalogue = lock(&self.catalogue);
        *catalogue = match &*lock(&self.announced) {
            Some(announced) => new.with_names_of(announced),
            None => new,
        };
    }

    /// Fixes the current names: from now on each of them stays with its tool.
    fn announce(&self) -> Catalogue {
        let catalogue = lock(&self.catalogue);
        *lock(&self.announced) = Some(catalogue.clone());
        catalogue.clone()
    }

    /// The catalogue, after comparing the listing of this upstream's current connection.
    pub(crate) async fn catalogue_after_listing(
        &self,
        config: &BrokerConfig,
        upstream: &Upstream,
    ) -> Catalogue {
        let has_compared =
            || lock(&self.compared_listings).get(&upstream.spec().name) == Some(&upstream.listing());
        // The common case.
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

    pub(crate) fn has_compared(&self, upstream: &Upstream) -> bool {
        !upstream.is_listed()
            || lock(&self.compared_listings).get(&upstream.spec().name) == Some(&upstream.listing())
    }

    /// Returns the tool list as raw text and remembers it as shown. After it is written, the host is notified of changes
    /// since then.
    pub(crate) async fn list(self: &Arc<Self>, config: &Arc<BrokerConfig>, call: &Call<Principal>) -> String {
        self.notifier.on_list_requested();
        let catalogue = self.announce_catalogue(config, config.settings().times.list).await;
        let listed = ListedTools { catalogue, found: self.found_tools() };
        let list =
            listed.listing(&config.settings().listing_limit).definitions().collect::<Vec<_>>().join(",");
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

    pub(crate) fn found_tools(&self) -> Vec<String> {
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

    /// Notifies the host that the list differs from the one that it was last shown or notified about. Does nothing before its
    /// first list.
    pub(crate) async fn notify_if_changed(&self, config: &BrokerConfig) {
        if !self.notifier.has_list() {
            return;
        }
        let current = ListedTools { catalogue: self.catalogue(), found: self.found_tools() };
        let is_news = {
            let mut shown = lock(&self.listed_tools);
            let is_news = shown
                .as_ref()
                .is_some_and(|shown| !shown.is_same(&current, &config.settings().listing_limit));
            *shown = Some(current);
            is_news
        };
        if is_news {
            self.notifier.notify(list_changed()).await;
        }
    }

    /// Enables notifications for a host that may have its list from elsewhere, once every server has started once.
    async fn assume_listed(&self) {
        let Some(held_back) = self.notifier.assume_listed() else { return };
        *lock(&self.listed_tools) =
            Some(ListedTools { catalogue: self.catalogue(), found: self.found_tools() });
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
            |index: usize| sources.get(index).is_some_and(|source| source.is_live || source.is_embedded);
        match config.catalogues.of(&config.store, &sources).await {
            Ok(new) => {
                self.set_catalogue(new);
                self.store_listings(config, &numbers).await;
                // Remembered listings were not compared.
                let seen = numbers.into_iter().enumerate().filter(|(index, _)| compared(*index));
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

    /// Stores which tools the servers have, so that the next session knows them before they start.
    async fn store_listings(&self, config: &BrokerConfig, numbers: &[(String, u32)]) {
        for (name, number) in numbers {
            let is_news = *number > 0 && lock(&self.compared_listings).get(name) != Some(number);
            let listed = self.upstream(name).filter(|one| is_news && !one.spec().is_embedded());
            let Some(upstream) = listed.filter(|one| is_whole(one)) else { continue };
            let tools: Vec<String> = upstream.tools().iter().map(|tool| tool.name.clone()).collect();
            if let Err(error) = config.store.pins().set_tools(name, &tools).await {
                tracing::warn!(session = self.id, body = name, reason = %error, "its list of tools could not be stored");
            }
        }
    }
}

/// Waits until the tools of all of these are known. The servers start in parallel, so the waits do not add up.
async fn wait_tools_known<'a>(upstreams: impl Iterator<Item = &'a Arc<Upstream>>) {
    for upstream in upstreams {
        upstream.wait_tools_known().await;
    }
}

fn is_whole(upstream: &Upstream) -> bool {
    upstream.is_listed() && upstream.status().reason.is_none()
}

/// The tools that a body last listed in any session; `None` if it never has.
pub(super) async fn last_seen_tools(store: Store, body: String) -> Option<Vec<RawTool>> {
    let tools = store.pins().list_last_seen(&body).await.unwrap_or_else(|error| {
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
    // Read before the listing: a change in between is seen by the next refresh.
    let is_live = upstream.health() == Health::Connected && upstream.is_listed();
    let first_listing = match (upstream.was_listed_before(), upstream.has_listed()) {
        (true, _) => FirstListing::BeforeSession,
        (false, true) => FirstListing::InSession,
        // The names of an unreachable mind are not awaited: its tools are part of the contract.
        (false, false) if spec.role.is_mind() && upstream.knows_tools() => FirstListing::InSession,
        (false, false) => FirstListing::Never,
    };
    Source { upstream: name, role: &spec.role, is_embedded, is_live, first_listing, tools: upstream.tools() }
}

fn list_changed() -> Notification {
    Notification { method: "notifications/tools/list_changed".to_owned(), params: None }
}
