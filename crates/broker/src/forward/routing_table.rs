//! Which upstream listed which resource, template and prompt in one session, and what its connection was sent. Bounded per
//! upstream, so that one server cannot evict the entries of another. `tasks` has the tasks.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, Weak};

use embody_wire::upstream::Link;
use serde_json::value::RawValue;

use super::notification_queue::NotificationQueue;
use super::tasks::Tasks;
use crate::session::lock;
use crate::upstream::Upstream;

const URIS_MAX: usize = 10_000;
const TEMPLATES_MAX: usize = 200;
const LISTED_PROMPTS_MAX: usize = 20_000;
/// Resources of one upstream that a host may subscribe to.
const SUBSCRIPTIONS_MAX: usize = 1_000;
pub(super) const TEXT_BYTES: usize = 4_096;

#[derive(Default)]
pub(crate) struct RoutingTable {
    pub(super) upstreams: Mutex<HashMap<String, UpstreamRoutes>>,
    /// The parameters of the last `logging/setLevel`.
    pub(super) level: Mutex<Option<Box<RawValue>>>,
    /// Whether the host is subscribed to the broker's own resource.
    pub(super) watches_status: AtomicBool,
    listed_prompts: Mutex<HashSet<String>>,
    pub(super) collecting: tokio::sync::Mutex<()>,
    pub(super) to_host: Mutex<HashMap<String, NotificationQueue>>,
    pub(super) to_upstreams: Mutex<HashMap<String, NotificationQueue>>,
}

#[derive(Default)]
pub(super) struct UpstreamRoutes {
    uris: HashSet<String>,
    templates: Vec<String>,
    pub(super) tasks: Tasks,
    prompts: Vec<String>,
    has_prompts: bool,
    subscriptions: BTreeMap<String, Box<RawValue>>,
    /// The connection that has received the current settings.
    settings_sent_to: Weak<Link>,
    /// The connection that has received the host's log level directly.
    level_sent_to: Weak<Link>,
    /// The capabilities whose list the host received without this upstream.
    missed: BTreeSet<&'static str>,
}

impl RoutingTable {
    pub(super) fn with<T>(&self, upstream: &str, then: impl FnOnce(&mut UpstreamRoutes) -> T) -> T {
        let mut upstreams = lock(&self.upstreams);
        match upstreams.get_mut(upstream) {
            Some(routes) => then(routes),
            None => then(upstreams.entry(upstream.to_owned()).or_default()),
        }
    }

    fn first<'a>(
        &self,
        upstreams: impl Iterator<Item = &'a Arc<Upstream>>,
        matches: impl Fn(&UpstreamRoutes) -> bool,
    ) -> Option<&'a Arc<Upstream>> {
        let known = lock(&self.upstreams);
        upstreams.into_iter().find(|upstream| known.get(&upstream.spec().name).is_some_and(&matches))
    }

    /// Forgets what a server listed whose configuration has changed. What the host wants of it is sent to its replacement.
    pub(crate) fn forget_server(&self, server: &Upstream, is_replaced: bool) {
        let upstream = &*server.spec().name;
        lock(&self.to_host).remove(upstream);
        lock(&self.to_upstreams).remove(upstream);
        let mut upstreams = lock(&self.upstreams);
        let Some(routes) = upstreams.remove(upstream).filter(|_| is_replaced) else { return };
        let UpstreamRoutes { subscriptions, tasks, .. } = routes;
        let tasks = if server.spec().is_process() { Tasks::default() } else { tasks };
        upstreams.insert(upstream.to_owned(), UpstreamRoutes { subscriptions, tasks, ..Default::default() });
    }

    pub(super) fn forget_resources(&self, upstream: &str) {
        self.with(upstream, |routes| routes.uris.clear());
    }

    pub(super) fn forget_templates(&self, upstream: &str) {
        self.with(upstream, |routes| routes.templates.clear());
    }

    pub(super) fn add_uri(&self, upstream: &str, uri: String) {
        self.with(upstream, |routes| {
            if uri.len() <= TEXT_BYTES && routes.uris.len() < URIS_MAX {
                routes.uris.insert(uri);
            }
        });
    }

    pub(super) fn add_template(&self, upstream: &str, template: String) {
        self.with(upstream, |routes| {
            if template.len() <= TEXT_BYTES
                && routes.templates.len() < TEMPLATES_MAX
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

    pub(super) fn record_listed_prompts(&self, names: impl Iterator<Item = String>) {
        let mut given = lock(&self.listed_prompts);
        let free = LISTED_PROMPTS_MAX.saturating_sub(given.len());
        given.extend(names.filter(|name| name.len() <= TEXT_BYTES).take(free));
    }

    pub(super) fn is_listed_prompt(&self, name: &str) -> bool {
        lock(&self.listed_prompts).contains(name)
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
        if uri.len() > TEXT_BYTES {
            return None;
        }
        let listed = self.first(upstreams(), |routes| routes.uris.contains(uri));
        let same = || self.first(upstreams(), |routes| routes.templates.iter().any(|one| one == uri));
        let fits = |routes: &UpstreamRoutes| routes.templates.iter().any(|one| matches_template(one, uri));
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
            if uri.len() <= TEXT_BYTES
                && params.get().len() <= 2 * TEXT_BYTES
                && routes.subscriptions.len() < SUBSCRIPTIONS_MAX
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

    pub(super) fn take_missed(&self, upstream: &str) -> BTreeSet<&'static str> {
        self.with(upstream, |routes| std::mem::take(&mut routes.missed))
    }

    pub(super) fn mark_level_sent(&self, upstream: &str, link: &Arc<Link>) {
        self.with(upstream, |routes| routes.level_sent_to = Arc::downgrade(link));
    }

    pub(super) fn has_level(&self, upstream: &str, link: &Arc<Link>) -> bool {
        self.with(upstream, |routes| routes.level_sent_to.ptr_eq(&Arc::downgrade(link)))
    }

    /// Whether this connection has not received the settings yet; marks it as having received them.
    pub(super) fn is_new_connection(&self, upstream: &str, link: &Arc<Link>) -> bool {
        let link = Arc::downgrade(link);
        self.with(upstream, |routes| {
            let is_new = !routes.settings_sent_to.ptr_eq(&link);
            routes.settings_sent_to = link;
            is_new
        })
    }
}

/// Expressions per template; a template with more matches nothing.
const EXPRESSIONS_MAX: usize = 16;

enum TemplatePart<'a> {
    Text(&'a str),
    /// `{name}`: at least one character, no slash.
    Name,
    /// `{+name}`, `{?name}` and the like: anything.
    Anything,
}

fn matches_template(template: &str, uri: &str) -> bool {
    let Some(parts) = parts(template) else { return false };
    // A template without expressions is a plain URI.
    if !parts.iter().any(|part| !matches!(part, TemplatePart::Text(_))) {
        return template == uri;
    }
    let bytes = uri.as_bytes();
    // The positions where the parts so far may end.
    let mut ends = vec![false; bytes.len() + 1];
    if let Some(start) = ends.first_mut() {
        *start = true;
    }
    for part in parts {
        ends = match part {
            TemplatePart::Text(text) => after_text(&ends, bytes, text.as_bytes()),
            TemplatePart::Name => after_any(&ends, bytes, 1, |byte| byte != b'/'),
            TemplatePart::Anything => after_any(&ends, bytes, 0, |_| true),
        };
    }
    ends.last().copied().unwrap_or(false)
}

fn after_text(ends: &[bool], uri: &[u8], text: &[u8]) -> Vec<bool> {
    let mut after = vec![false; ends.len()];
    for (at, _) in ends.iter().enumerate().filter(|(_, is_end)| **is_end) {
        let is_connected = uri.get(at..).is_some_and(|rest| rest.starts_with(text));
        if let Some(end) = after.get_mut(at + text.len()).filter(|_| is_connected) {
            *end = true;
        }
    }
    after
}

fn after_any(ends: &[bool], uri: &[u8], least: usize, may_be: impl Fn(u8) -> bool) -> Vec<bool> {
    let mut after = Vec::with_capacity(ends.len());
    // Whether an earlier end is reachable without a forbidden character in between.
    let mut reaches = false;
    for (at, is_end) in ends.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| uri.get(at));
        reaches = reaches && before.is_none_or(|byte| may_be(*byte));
        let reached = reaches;
        // A part may end where it begins only if it may be empty.
        after.push(reached || (least == 0 && *is_end));
        reaches |= *is_end;
    }
    after
}

fn parts(template: &str) -> Option<Vec<TemplatePart<'_>>> {
    let mut parts = Vec::new();
    let mut rest = template;
    while let Some((text, behind)) = rest.split_once('{') {
        let (expression, behind) = behind.split_once('}')?;
        if parts.len() >= 2 * EXPRESSIONS_MAX {
            return None;
        }
        parts.push(TemplatePart::Text(text));
        let is_name = expression.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_');
        parts.push(if is_name { TemplatePart::Name } else { TemplatePart::Anything });
        rest = behind;
    }
    parts.push(TemplatePart::Text(rest));
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_fits_or_does_not() {
        for (template, uri, expected) in [
            ("note://{id}", "note://7", true),
            ("note://{id}", "note://", false),
            ("note://{id}", "note://7/8", false),
            ("note://{id}", "nota://7", false),
            ("note://{id}/text", "note://7/text", true),
            ("note://{id}/text", "note://7/texts", false),
            ("note://{a}-{b}", "note://1-2-3", true),
            ("note://{a}{b}", "note://12", true),
            ("note://{a}{b}", "note://1", false),
            ("file:///{+path}", "file:///a/b/c", true),
            ("file:///{+path}", "file:///", true),
            ("file:///{+path}.txt", "file:///a/b.txt", true),
            ("file:///{+path}.txt", "file:///a/b.md", false),
            ("search://all{?q,page}", "search://all", true),
            ("search://all{?q,page}", "search://all?q=x/y", true),
            ("plain://x", "plain://x", true),
            ("plain://x", "plain://xy", false),
            ("odd://{x", "odd://7", false),
            ("日本://{x}", "日本://é", true),
            ("", "", true),
            ("{x}", "", false),
        ] {
            assert_eq!(matches_template(template, uri), expected, "{template} {uri}");
        }
    }

    #[test]
    fn what_has_too_many_expressions_fits_nothing() {
        assert!(matches_template(&"{+a}".repeat(EXPRESSIONS_MAX), "x"));
        assert!(!matches_template(&"{+a}".repeat(EXPRESSIONS_MAX + 1), "x"));
    }
}
