//! Which upstream listed which resource, template, prompt and task in one session, and what its connection was sent. Bounded per
//! upstream, so that one server cannot evict the entries of another.

mod tasks;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, Weak};

use embody_wire::upstream::Link;
use serde_json::value::RawValue;

pub(crate) use self::tasks::LONGEST_RUN;
use self::tasks::Tasks;
use super::notification_queue::NotificationQueue;
use super::template;
use crate::session::lock;
use crate::upstream::Upstream;

/// URIs and templates that are remembered per upstream.
const URIS: usize = 10_000;
const TEMPLATES: usize = 200;
/// Prompt names that are remembered as listed to the host.
const GIVEN: usize = 20_000;
/// Resources of one upstream that a host may subscribe to.
const SUBSCRIPTIONS: usize = 1_000;
/// The longest remembered text, in bytes.
const LONGEST: usize = 4_096;

#[derive(Default)]
pub(crate) struct RoutingTable {
    upstreams: Mutex<HashMap<String, UpstreamRoutes>>,
    /// The parameters of the last `logging/setLevel`.
    pub(super) level: Mutex<Option<Box<RawValue>>>,
    /// Whether the host is subscribed to the broker's own resource.
    pub(super) watches_status: AtomicBool,
    given_prompts: Mutex<HashSet<String>>,
    pub(super) collecting: tokio::sync::Mutex<()>,
    pub(super) to_host: Mutex<HashMap<String, NotificationQueue>>,
    pub(super) to_upstreams: Mutex<HashMap<String, NotificationQueue>>,
}

#[derive(Default)]
struct UpstreamRoutes {
    uris: HashSet<String>,
    templates: Vec<String>,
    tasks: Tasks,
    prompts: Vec<String>,
    has_prompts: bool,
    subscriptions: BTreeMap<String, Box<RawValue>>,
    /// The connection that has received the current settings.
    told: Weak<Link>,
    /// The connection that has received the host's log level directly.
    levelled: Weak<Link>,
    /// The capabilities whose list the host received without this upstream.
    missed: BTreeSet<&'static str>,
}

impl RoutingTable {
    fn with<T>(&self, upstream: &str, then: impl FnOnce(&mut UpstreamRoutes) -> T) -> T {
        let mut upstreams = lock(&self.upstreams);
        match upstreams.get_mut(upstream) {
            Some(routes) => then(routes),
            None => then(upstreams.entry(upstream.to_owned()).or_default()),
        }
    }

    /// The first of these upstreams whose entry matches.
    fn first<'a>(
        &self,
        upstreams: impl Iterator<Item = &'a Arc<Upstream>>,
        is_so: impl Fn(&UpstreamRoutes) -> bool,
    ) -> Option<&'a Arc<Upstream>> {
        let known = lock(&self.upstreams);
        upstreams.into_iter().find(|upstream| known.get(&upstream.spec().name).is_some_and(&is_so))
    }

    pub(super) fn forget_resources(&self, upstream: &str) {
        self.with(upstream, |routes| routes.uris.clear());
    }

    pub(super) fn forget_templates(&self, upstream: &str) {
        self.with(upstream, |routes| routes.templates.clear());
    }

    pub(super) fn add_uri(&self, upstream: &str, uri: String) {
        self.with(upstream, |routes| {
            if uri.len() <= LONGEST && routes.uris.len() < URIS {
                routes.uris.insert(uri);
            }
        });
    }

    pub(super) fn add_template(&self, upstream: &str, template: String) {
        self.with(upstream, |routes| {
            if template.len() <= LONGEST
                && routes.templates.len() < TEMPLATES
                && !routes.templates.contains(&template)
            {
                routes.templates.push(template);
            }
        });
    }

    /// Keeps the server alive while it has a subscription or a running task of this host. The lock is held until the value is
    /// set, so that the later of two updates wins.
    pub(super) fn update_keep_alive(&self, upstream: &Upstream) {
        self.with(&upstream.spec().name, |routes| {
            upstream.set_keep_alive(!routes.subscriptions.is_empty() || routes.tasks.are_running());
        });
    }

    pub(super) fn set_prompts(&self, upstream: &str, names: Vec<String>) {
        self.with(upstream, |routes| (routes.prompts, routes.has_prompts) = (names, true));
    }

    /// Remembers that the host receives these prompt names in a list.
    pub(super) fn record_listed_prompts(&self, names: impl Iterator<Item = String>) {
        let mut given = lock(&self.given_prompts);
        let free = GIVEN.saturating_sub(given.len());
        given.extend(names.filter(|name| name.len() <= LONGEST).take(free));
    }

    /// Whether the host has received this prompt name in a list.
    pub(super) fn is_listed_prompt(&self, name: &str) -> bool {
        lock(&self.given_prompts).contains(name)
    }

    pub(super) fn has_prompts(&self, upstream: &str) -> bool {
        self.with(upstream, |routes| routes.has_prompts)
    }

    pub(super) fn prompts(&self) -> Vec<(String, Vec<String>)> {
        let known = lock(&self.upstreams);
        known.iter().map(|(upstream, routes)| (upstream.clone(), routes.prompts.clone())).collect()
    }

    /// The upstream of a resource: the one that listed it, else one with a matching template.
    pub(super) fn owner_of_uri<'a, I>(
        &self,
        upstreams: impl Fn() -> I,
        uri: &str,
    ) -> Option<&'a Arc<Upstream>>
    where
        I: Iterator<Item = &'a Arc<Upstream>>,
    {
        if uri.len() > LONGEST {
            return None;
        }
        let listed = self.first(upstreams(), |routes| routes.uris.contains(uri));
        let same = || self.first(upstreams(), |routes| routes.templates.iter().any(|one| one == uri));
        let fits = |routes: &UpstreamRoutes| routes.templates.iter().any(|one| template::fits(one, uri));
        listed.or_else(same).or_else(|| self.first(upstreams(), fits))
    }

    pub(super) fn owner_of_task<'a>(
        &self,
        upstreams: impl Iterator<Item = &'a Arc<Upstream>>,
        task: &str,
    ) -> Option<&'a Arc<Upstream>> {
        self.first(upstreams, |routes| routes.tasks.has(task))
    }

    pub(super) fn subscribed_upstream<'a>(
        &self,
        upstreams: impl Iterator<Item = &'a Arc<Upstream>>,
        uri: &str,
    ) -> Option<&'a Arc<Upstream>> {
        self.first(upstreams, |routes| routes.subscriptions.contains_key(uri))
    }

    pub(super) fn subscribe(&self, upstream: &str, uri: String, params: Box<RawValue>) {
        self.with(upstream, |routes| {
            if uri.len() <= LONGEST
                && params.get().len() <= 2 * LONGEST
                && routes.subscriptions.len() < SUBSCRIPTIONS
            {
                routes.subscriptions.insert(uri, params);
            }
        });
    }

    pub(super) fn unsubscribe(&self, upstream: &str, uri: &str) {
        self.with(upstream, |routes| routes.subscriptions.remove(uri));
    }

    pub(super) fn subscriptions(&self, upstream: &str) -> Vec<Box<RawValue>> {
        self.with(upstream, |routes| routes.subscriptions.values().cloned().collect())
    }

    /// Notes that a list for this capability is returned, with or without this upstream's part.
    pub(super) fn note_listed(&self, upstream: &str, capability: &'static str, is_connected: bool) {
        self.with(upstream, |routes| {
            if is_connected {
                routes.missed.remove(capability);
            } else {
                routes.missed.insert(capability);
            }
        });
    }

    /// Takes the capabilities whose list the host received without this upstream.
    pub(super) fn take_missed(&self, upstream: &str) -> BTreeSet<&'static str> {
        self.with(upstream, |routes| std::mem::take(&mut routes.missed))
    }

    pub(super) fn mark_level_sent(&self, upstream: &str, link: &Arc<Link>) {
        self.with(upstream, |routes| routes.levelled = Arc::downgrade(link));
    }

    /// Whether this connection has received the host's level.
    pub(super) fn has_level(&self, upstream: &str, link: &Arc<Link>) -> bool {
        self.with(upstream, |routes| routes.levelled.ptr_eq(&Arc::downgrade(link)))
    }

    /// Whether this connection has not received the settings yet; marks it as having received them.
    pub(super) fn is_new_connection(&self, upstream: &str, link: &Arc<Link>) -> bool {
        let link = Arc::downgrade(link);
        self.with(upstream, |routes| {
            let is_new = !routes.told.ptr_eq(&link);
            routes.told = link;
            is_new
        })
    }
}
