//! What a session has learnt on the way: who listed what, who runs which task, and what holds for connections. Bounded for
//! each upstream by itself, so that one that lists without end does not make another's things forgotten.

mod tasks;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, Weak};

use embody_wire::upstream::Link;
use serde_json::value::RawValue;

pub(crate) use self::tasks::LONGEST_RUN;
use self::tasks::Tasks;
use super::lane::Lane;
use super::template;
use crate::session::lock;
use crate::upstream::Upstream;

/// URIs and templates of one upstream that are remembered.
const URIS: usize = 10_000;
const TEMPLATES: usize = 200;
/// Names of prompts that are remembered as given to the host.
const GIVEN: usize = 20_000;
/// Resources of one upstream that a host watches.
const SUBSCRIPTIONS: usize = 1_000;
/// Bytes of anything that is remembered.
const LONGEST: usize = 4_096;

/// What a session has learnt.
#[derive(Default)]
pub(crate) struct Known {
    upstreams: Mutex<HashMap<String, Learnt>>,
    /// The parameters of the last `logging/setLevel`.
    pub(super) level: Mutex<Option<Box<RawValue>>>,
    /// Whether the host watches the broker's own resource.
    pub(super) watches_status: AtomicBool,
    /// The names of prompts that the host has got.
    given_prompts: Mutex<HashSet<String>>,
    /// Prompts are collected by one at a time.
    pub(super) collecting: tokio::sync::Mutex<()>,
    pub(super) to_host: Mutex<HashMap<String, Lane>>,
    pub(super) to_upstreams: Mutex<HashMap<String, Lane>>,
}

/// What was learnt of one upstream.
#[derive(Default)]
struct Learnt {
    uris: HashSet<String>,
    templates: Vec<String>,
    tasks: Tasks,
    prompts: Vec<String>,
    has_prompts: bool,
    /// The parameters by which each was subscribed to.
    subscriptions: BTreeMap<String, Box<RawValue>>,
    /// The connection that was told what holds.
    told: Weak<Link>,
    /// The connection that the host's level was sent to as it came.
    levelled: Weak<Link>,
    /// The capabilities whose list the host got without it.
    missed: BTreeSet<&'static str>,
}

impl Known {
    fn of<T>(&self, upstream: &str, then: impl FnOnce(&mut Learnt) -> T) -> T {
        let mut upstreams = lock(&self.upstreams);
        match upstreams.get_mut(upstream) {
            Some(learnt) => then(learnt),
            None => then(upstreams.entry(upstream.to_owned()).or_default()),
        }
    }

    /// The first of these of which this is so.
    fn first<'a>(
        &self,
        upstreams: impl Iterator<Item = &'a Arc<Upstream>>,
        is_so: impl Fn(&Learnt) -> bool,
    ) -> Option<&'a Arc<Upstream>> {
        let known = lock(&self.upstreams);
        upstreams.into_iter().find(|upstream| known.get(&upstream.spec().name).is_some_and(&is_so))
    }

    /// A list of URIs that begins anew is the whole list.
    pub(super) fn forget_resources(&self, upstream: &str) {
        self.of(upstream, |learnt| learnt.uris.clear());
    }

    pub(super) fn forget_templates(&self, upstream: &str) {
        self.of(upstream, |learnt| learnt.templates.clear());
    }

    pub(super) fn learn_uri(&self, upstream: &str, uri: String) {
        self.of(upstream, |learnt| {
            if uri.len() <= LONGEST && learnt.uris.len() < URIS {
                learnt.uris.insert(uri);
            }
        });
    }

    pub(super) fn learn_template(&self, upstream: &str, template: String) {
        self.of(upstream, |learnt| {
            if template.len() <= LONGEST
                && learnt.templates.len() < TEMPLATES
                && !learnt.templates.contains(&template)
            {
                learnt.templates.push(template);
            }
        });
    }

    /// Keeps it, if something on it waits for the host: a resource that is watched, or a task that runs. Nothing of that
    /// changes before it is set: of two that set it the later knows more.
    pub(super) fn keep(&self, upstream: &Upstream) {
        self.of(&upstream.spec().name, |learnt| {
            upstream.keep(!learnt.subscriptions.is_empty() || learnt.tasks.are_running());
        });
    }

    pub(super) fn learn_prompts(&self, upstream: &str, names: Vec<String>) {
        self.of(upstream, |learnt| (learnt.prompts, learnt.has_prompts) = (names, true));
    }

    /// Remembers that the host gets these names of prompts in a list.
    pub(super) fn record_listed_prompts(&self, names: impl Iterator<Item = String>) {
        let mut given = lock(&self.given_prompts);
        let free = GIVEN.saturating_sub(given.len());
        given.extend(names.filter(|name| name.len() <= LONGEST).take(free));
    }

    /// Whether the host has got this name of a prompt in a list.
    pub(super) fn is_listed_prompt(&self, name: &str) -> bool {
        lock(&self.given_prompts).contains(name)
    }

    /// Whether this upstream has listed its prompts.
    pub(super) fn has_prompts(&self, upstream: &str) -> bool {
        self.of(upstream, |learnt| learnt.has_prompts)
    }

    /// The prompts of each upstream, as they were last listed.
    pub(super) fn prompts(&self) -> Vec<(String, Vec<String>)> {
        let known = lock(&self.upstreams);
        known.iter().map(|(upstream, learnt)| (upstream.clone(), learnt.prompts.clone())).collect()
    }

    /// Whose resource it is: of whoever listed it, else of whoever has a template for it.
    pub(super) fn owner<'a, I>(&self, upstreams: impl Fn() -> I, uri: &str) -> Option<&'a Arc<Upstream>>
    where
        I: Iterator<Item = &'a Arc<Upstream>>,
    {
        if uri.len() > LONGEST {
            return None;
        }
        let listed = self.first(upstreams(), |learnt| learnt.uris.contains(uri));
        let same = || self.first(upstreams(), |learnt| learnt.templates.iter().any(|one| one == uri));
        let fits = |learnt: &Learnt| learnt.templates.iter().any(|one| template::fits(one, uri));
        listed.or_else(same).or_else(|| self.first(upstreams(), fits))
    }

    pub(super) fn runner<'a>(
        &self,
        upstreams: impl Iterator<Item = &'a Arc<Upstream>>,
        task: &str,
    ) -> Option<&'a Arc<Upstream>> {
        self.first(upstreams, |learnt| learnt.tasks.has(task))
    }

    /// Where a host subscribed to it.
    pub(super) fn watched<'a>(
        &self,
        upstreams: impl Iterator<Item = &'a Arc<Upstream>>,
        uri: &str,
    ) -> Option<&'a Arc<Upstream>> {
        self.first(upstreams, |learnt| learnt.subscriptions.contains_key(uri))
    }

    pub(super) fn subscribe(&self, upstream: &str, uri: String, params: Box<RawValue>) {
        self.of(upstream, |learnt| {
            if uri.len() <= LONGEST
                && params.get().len() <= 2 * LONGEST
                && learnt.subscriptions.len() < SUBSCRIPTIONS
            {
                learnt.subscriptions.insert(uri, params);
            }
        });
    }

    pub(super) fn unsubscribe(&self, upstream: &str, uri: &str) {
        self.of(upstream, |learnt| learnt.subscriptions.remove(uri));
    }

    pub(super) fn subscriptions(&self, upstream: &str) -> Vec<Box<RawValue>> {
        self.of(upstream, |learnt| learnt.subscriptions.values().cloned().collect())
    }

    /// A list of what belongs to this capability is given, with this upstream's part or without it.
    pub(super) fn listed(&self, upstream: &str, capability: &'static str, is_there: bool) {
        self.of(upstream, |learnt| {
            if is_there {
                learnt.missed.remove(capability);
            } else {
                learnt.missed.insert(capability);
            }
        });
    }

    /// The capabilities whose list the host got without it, once.
    pub(super) fn take_missed(&self, upstream: &str) -> BTreeSet<&'static str> {
        self.of(upstream, |learnt| std::mem::take(&mut learnt.missed))
    }

    /// The host's level is sent to this connection as it comes.
    pub(super) fn sends_level(&self, upstream: &str, link: &Arc<Link>) {
        self.of(upstream, |learnt| learnt.levelled = Arc::downgrade(link));
    }

    /// Whether it was, so that it need not be sent again.
    pub(super) fn has_level(&self, upstream: &str, link: &Arc<Link>) -> bool {
        self.of(upstream, |learnt| learnt.levelled.ptr_eq(&Arc::downgrade(link)))
    }

    /// Whether this connection is a new one, which has to be told; from now on it counts as told.
    pub(super) fn is_new(&self, upstream: &str, link: &Arc<Link>) -> bool {
        let link = Arc::downgrade(link);
        self.of(upstream, |learnt| {
            let is_new = !learnt.told.ptr_eq(&link);
            learnt.told = link;
            is_new
        })
    }
}
