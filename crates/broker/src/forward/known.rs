//! What a session has learnt on the way: who listed what, who runs which task, and what holds for connections. Bounded for
//! each upstream by itself, so that one that lists without end does not make another's things forgotten.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use embody_wire::upstream::Link;
use serde_json::value::RawValue;

use super::lane::Lane;
use super::template;
use crate::session::lock;
use crate::stateless::TaskCall;
use crate::upstream::Upstream;

/// URIs, templates and tasks of one upstream that are remembered.
const URIS: usize = 10_000;
const TEMPLATES: usize = 200;
const TASKS: usize = 1_000;
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
    tasks: VecDeque<String>,
    /// Those of them that were not seen to end.
    running: HashSet<String>,
    /// The calls that servers without sessions have made tasks of.
    begun: HashMap<String, TaskCall>,
    prompts: Vec<String>,
    /// The parameters by which each was subscribed to.
    subscriptions: BTreeMap<String, Box<RawValue>>,
    /// The connection that was told what holds.
    told: Weak<Link>,
    /// The connection that the host's level was sent to as it came.
    levelled: Weak<Link>,
    /// The capabilities whose list the host got without it.
    missed: BTreeSet<&'static str>,
}

impl Learnt {
    /// The oldest makes room.
    fn add_task(&mut self, task: String) {
        if self.tasks.len() >= TASKS
            && let Some(oldest) = self.tasks.pop_front()
        {
            self.running.remove(&oldest);
            self.begun.remove(&oldest);
        }
        self.tasks.push_back(task);
    }
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

    /// Whoever says its id first has the task. The oldest task makes room.
    pub(super) fn learn_task(&self, upstream: &str, task: String) {
        if task.len() > LONGEST || lock(&self.upstreams).values().any(|learnt| learnt.tasks.contains(&task)) {
            return;
        }
        self.of(upstream, |learnt| {
            learnt.add_task(task);
        });
    }

    /// A server without sessions has made a task of a call. Hosts know it by an id that says whose it is.
    pub(crate) fn begin_task(&self, upstream: &str, task: &str, begun: TaskCall) {
        self.of(upstream, |learnt| {
            if !learnt.tasks.iter().any(|known| known == task) {
                learnt.add_task(task.to_owned());
            }
            learnt.running.insert(task.to_owned());
            learnt.begun.insert(task.to_owned(), begun);
        });
    }

    /// Whether a call of this session began it.
    pub(crate) fn has_task(&self, upstream: &str, task: &str) -> bool {
        self.of(upstream, |learnt| learnt.tasks.iter().any(|known| known == task))
    }

    /// It is over: what is known of its call, once.
    pub(crate) fn end_task(&self, upstream: &str, task: &str) -> Option<TaskCall> {
        self.of(upstream, |learnt| {
            learnt.running.remove(task);
            learnt.begun.remove(task)
        })
    }

    /// Nobody wants it any more: the session does not stay for it.
    pub(crate) fn leave_task(&self, upstream: &str, task: &str) {
        self.of(upstream, |learnt| {
            learnt.running.remove(task);
            learnt.begun.get_mut(task).into_iter().for_each(|begun| begun.until = Instant::now());
        });
    }

    /// Whether a task is not over that would be gone with the session.
    pub(crate) fn is_busy(&self) -> bool {
        let now = Instant::now();
        let stays = |begun: &TaskCall| begun.is_of_session && begun.until > now;
        lock(&self.upstreams).values().any(|learnt| learnt.begun.values().any(stays))
    }

    /// A task that it runs was begun, or has ended.
    pub(super) fn runs(&self, upstream: &str, task: &str, is_running: bool) {
        self.of(upstream, |learnt| match is_running {
            true if learnt.tasks.iter().any(|known| known == task) => {
                learnt.running.insert(task.to_owned());
            }
            true => {}
            false => {
                learnt.running.remove(task);
            }
        });
    }

    /// Whether something on it waits for the host: a resource that is watched, or a task that runs.
    pub(super) fn waits(&self, upstream: &str) -> bool {
        self.of(upstream, |learnt| !learnt.subscriptions.is_empty() || !learnt.running.is_empty())
    }

    pub(super) fn learn_prompts(&self, upstream: &str, names: Vec<String>) {
        self.of(upstream, |learnt| learnt.prompts = names);
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
        self.first(upstreams, |learnt| learnt.tasks.iter().any(|known| known == task))
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
