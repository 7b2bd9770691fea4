//! Records which untrusted text the agent of a session has read (text of a body outside this program), before a request for
//! it is sent; other text is marked where it leaves for the host. Afterwards, what an agent stores for its later turns needs
//! the owner's approval.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use embody_store::untrusted_reads::{ORIGINS_LIMIT, ReadOrigin};
use embody_store::{Scope, Store};
use embody_wire::Notification;
use serde::Deserialize;
use serde_json::json;

use super::bootstrap::object;
use super::{Session, lock};
use crate::BrokerConfig;
use crate::approval::APPROVAL_TEXT_BYTES;
use crate::arguments::Arguments;
use crate::catalogue::{CatalogTool, QuarantineReason};
use crate::pipeline::respond::raw;
use crate::pipeline::send::call_mind;
use crate::policy::{Gate, Ruling};
use crate::upstream::{Role, Upstream};

/// The `_meta` key that asks the embedded mind for a preview of a change, and the key that tells an embedded server that the
/// owner has approved the call.
const PREVIEW_KEY: &str = "embody/preview";
pub(crate) const APPROVED_KEY: &str = "embody/approved";

/// A stored mark is not written again within this time, in microseconds.
const FRESH_MICROS: i64 = 60 * 1_000_000;
const NAMED_MAX: usize = 3;
const PREVIEW_TIMEOUT: Duration = Duration::from_secs(5);

/// The parts of a body's text that belong to no tool, resource, prompt or method.
pub(crate) const ERRORS: &str = "errors";

pub(crate) struct UntrustedReads {
    config: Arc<BrokerConfig>,
    reads: ReadLog,
}

struct ReadLog {
    store: Store,
    scope: Scope,
    session: String,
    marks: Mutex<ReadMarks>,
}

#[derive(Default)]
struct ReadMarks {
    /// When the mark was last stored, in microseconds since 1970.
    stored_at: Option<i64>,
    /// The latest origins, newest first, at most as many as the store keeps.
    latest: VecDeque<MarkedRead>,
}

struct MarkedRead {
    origin: ReadOrigin,
    /// When it was last sent to the store, in microseconds since 1970.
    sent_at: Option<i64>,
}

impl ReadMarks {
    /// Notes a read from this origin. Returns whether the store has a fresh mark and the origin.
    fn note(&mut self, origin: &str, now: i64) -> bool {
        let origin = ReadOrigin::new(origin, now);
        let known = self.latest.iter().position(|read| read.origin.origin == origin.origin);
        let sent_at = known.and_then(|known| self.latest.remove(known)).and_then(|read| read.sent_at);
        self.latest.push_front(MarkedRead { origin, sent_at });
        self.latest.truncate(ORIGINS_LIMIT);
        is_fresh(self.stored_at, now) && is_fresh(sent_at, now)
    }

    /// The same for an origin that the store already has, without building its name. Returns `false` and notes nothing if the
    /// store does not have it.
    fn note_again(&mut self, upstream: &str, item: &str, now: i64) -> bool {
        let is_this = |read: &MarkedRead| {
            let rest = read.origin.origin.strip_prefix(upstream);
            rest.and_then(|rest| rest.strip_prefix('/')) == Some(item) && is_fresh(read.sent_at, now)
        };
        let Some(position) = self.latest.iter().position(is_this) else { return false };
        if !is_fresh(self.stored_at, now) {
            return false;
        }
        let Some(mut read) = self.latest.remove(position) else { return false };
        read.origin.at = now;
        self.latest.push_front(read);
        true
    }

    fn sent(&mut self, origin: &ReadOrigin) {
        if let Some(read) = self.latest.iter_mut().find(|read| read.origin.origin == origin.origin) {
            read.sent_at = Some(origin.at);
        }
    }
}

fn is_fresh(at: Option<i64>, now: i64) -> bool {
    at.is_some_and(|at| at >= now.saturating_sub(FRESH_MICROS))
}

impl ReadLog {
    /// Notes that the agent reads text from this origin. Waits until the mark is stored, unless a recent one is; the origin
    /// alone is stored with the next commit. If the store fails, this session still has the mark.
    async fn mark(&self, origin: &str, now: i64) {
        let (is_known, is_marked) = {
            let mut marks = lock(&self.marks);
            (marks.note(origin, now), is_fresh(marks.stored_at, now))
        };
        if is_known {
            return;
        }
        let (writer, read) = (self.scope.writer(), ReadOrigin::new(origin, now));
        let stored = match is_marked {
            true => {
                self.store.untrusted_reads().record_origin_deferred(&self.scope, &writer, read.clone()).await
            }
            false => {
                self.store.untrusted_reads().record_origins(&self.scope, &writer, vec![read.clone()]).await
            }
        };
        match stored {
            Ok(()) => {
                let mut marks = lock(&self.marks);
                marks.sent(&read);
                if !is_marked {
                    marks.stored_at = marks.stored_at.max(Some(now));
                }
            }
            Err(error) => {
                tracing::error!(session = self.session, reason = %error, "cannot store that the agent reads text of other origin");
            }
        }
    }

    fn latest(&self, now: i64) -> Vec<ReadOrigin> {
        let marks = lock(&self.marks);
        marks.latest.iter().map(|read| &read.origin).filter(|read| read.counts(now)).cloned().collect()
    }

    /// The origins that the agent has read, newest first; `None` if none counts. Writes all of them to the store first.
    async fn origins(&self, now: i64) -> Option<Vec<String>> {
        let latest = self.latest(now);
        let (store, scope, writer) = (&self.store, &self.scope, self.scope.writer());
        let known = async {
            store.untrusted_reads().record_origins(scope, &writer, latest.clone()).await?;
            let is_exposed = store.untrusted_reads().has_recent(scope, &writer, now).await?;
            Ok::<_, embody_store::Error>((
                is_exposed,
                store.untrusted_reads().origins(scope, &writer, now).await?,
            ))
        };
        let (is_exposed, stored) = known.await.unwrap_or_else(|error| {
            tracing::error!(session = self.session, reason = %error, "cannot read whether the agent has read text of other origin");
            (true, Vec::new())
        });
        let mut origins: Vec<String> = latest.into_iter().map(|read| read.origin).collect();
        let is_exposed = is_exposed || !origins.is_empty();
        for read in stored {
            if origins.len() < ORIGINS_LIMIT && !origins.contains(&read.origin) {
                origins.push(read.origin);
            }
        }
        is_exposed.then_some(origins)
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct LastingWrite {
    pub(crate) difference: Vec<String>,
    /// Sent to an embedded server once the owner has approved.
    pub(crate) approved: Option<serde_json::Value>,
    /// What the agent had read, newest first.
    pub(crate) origins: Vec<String>,
}

impl UntrustedReads {
    pub(super) fn new(config: &Arc<BrokerConfig>, scope: &Scope, session: &str) -> Arc<Self> {
        let (store, scope, session) = (config.store.clone(), scope.clone(), session.to_owned());
        let reads = ReadLog { store, scope, session, marks: Mutex::default() };
        Arc::new(Self { config: Arc::clone(config), reads })
    }

    pub(crate) async fn mark(&self, origin: &str) {
        self.reads.mark(origin, (self.config.clock)()).await;
    }

    async fn origins(&self) -> Option<Vec<String>> {
        self.reads.origins((self.config.clock)()).await
    }
}

impl Session {
    pub(crate) fn origin(&self, upstream: &str, item: &str) -> Option<String> {
        // Nothing is known about the text of a server that is no longer configured.
        let is_foreign = self.upstream(upstream).is_none_or(|upstream| is_foreign(upstream));
        is_foreign.then(|| format!("{upstream}/{item}"))
    }

    /// Notes the read of a request's response. Returns the origin if the store does not have it: it must be marked before the
    /// request is sent.
    pub(crate) fn unmarked_origin(&self, upstream: &str, item: &str, method: &str) -> Option<String> {
        if !returns_content(method) {
            return None;
        }
        let now = (self.untrusted_reads.config.clock)();
        let mut marks = lock(&self.untrusted_reads.reads.marks);
        if marks.note_again(upstream, item, now) {
            return None;
        }
        let origin = self.origin(upstream, item)?;
        (!marks.note(&origin, now)).then_some(origin)
    }

    pub(crate) async fn mark_read(&self, upstream: &str, item: &str) {
        if let Some(origin) = self.origin(upstream, item) {
            self.untrusted_reads.mark(&origin).await;
        }
    }

    /// The same for a tool's definition, if the quarantine reason quotes it.
    pub(crate) async fn mark_quoted(&self, tool: &CatalogTool, reason: &QuarantineReason) {
        if reason.quotes() {
            self.mark_read(&tool.upstream, &tool.tool).await;
        }
    }

    /// Whether a person can approve while the call waits: in the console, on Telegram, or in the host's form.
    fn can_ask(&self) -> bool {
        let principal = &self.host.principal;
        match self.mark() {
            Some(_) => matches!(&*principal.channel, "web" | "telegram"),
            None => principal.may_approve && self.host.initialize_params().can_show_forms(),
        }
    }
}

/// Whether a tool stores something for later turns of the agent: standing instructions or a schedule.
pub(crate) fn is_lasting(tool: &CatalogTool, upstream: &Upstream) -> bool {
    let is_mind = upstream.spec().role.is_mind();
    match &*tool.tool {
        "update_instructions" => is_mind,
        "schedule_run" => !is_mind && upstream.spec().is_embedded(),
        _ => false,
    }
}

/// A call for which [`is_lasting`] holds needs the owner's approval once the agent has read untrusted text. If no person can
/// be asked, the embedded mind turns a change of the instructions into a proposal.
pub(crate) async fn guard_lasting(
    session: &Session,
    upstream: &Upstream,
    arguments: &Arguments,
    ruling: Ruling,
) -> (Ruling, Option<LastingWrite>) {
    let is_mind = upstream.spec().role.is_mind();
    if ruling.gate == Gate::Deny {
        return (ruling, None);
    }
    let Some(origins) = session.untrusted_reads.origins().await else { return (ruling, None) };
    let lasting = match (is_mind, upstream.spec().is_embedded()) {
        (true, true) => match preview(session, arguments).await.filter(|_| session.can_ask()) {
            Some(lasting) => lasting,
            None => return (ruling, None),
        },
        (false, true) => LastingWrite { approved: Some(json!(true)), ..LastingWrite::default() },
        (_, false) => LastingWrite::default(),
    };
    (ruling.asked(&reason(&origins)), Some(LastingWrite { origins, ..lasting }))
}

fn reason(origins: &[String]) -> String {
    let named = origins.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    match origins.len().checked_sub(NAMED_MAX) {
        _ if origins.is_empty() => "the agent has read text that the owner did not write".to_owned(),
        None | Some(0) => format!("after reading {named}: text that the owner did not write"),
        Some(more) => format!("after reading {named} and {more} more: text that the owner did not write"),
    }
}

/// Whether a notification contains text that a body could have written.
pub(crate) fn has_text(notification: &Notification) -> bool {
    notification.params.as_deref().is_some_and(|params| !matches!(params.get(), "{}" | "null"))
}

/// Whether the response to a request is more than a list of definitions.
pub(crate) fn returns_content(method: &str) -> bool {
    !matches!(method, "resources/list" | "resources/templates/list" | "prompts/list" | "tools/list")
}

/// Whether the upstream is a body that is not part of this program.
fn is_foreign(upstream: &Upstream) -> bool {
    matches!(upstream.spec().role, Role::Body(_)) && !upstream.spec().is_embedded()
}

async fn preview(session: &Session, arguments: &Arguments) -> Option<LastingWrite> {
    #[derive(Deserialize)]
    struct Preview {
        diff: String,
        base_version: i64,
    }
    let link = session.mind.lease().await.ok()?;
    let meta = raw(&json!({ PREVIEW_KEY: true }));
    let asked = call_mind(&link, "update_instructions", arguments.raw(), Some(&meta), PREVIEW_TIMEOUT).await;
    let members = asked.and_then(object).ok()?;
    let preview: Preview = serde_json::from_value(members.into()).ok()?;
    let size = arguments.canonical().len() + preview.diff.len();
    (size <= APPROVAL_TEXT_BYTES / 2).then(|| LastingWrite {
        difference: preview.diff.lines().filter(|line| !line.starts_with("@@ ")).map(str::to_owned).collect(),
        approved: Some(json!(preview.base_version)),
        ..LastingWrite::default()
    })
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use embody_store::DatabaseUrl;

    use super::*;

    const NOW: i64 = 1_800_000_000_000_000;

    async fn reads() -> ReadLog {
        let store = Store::open(DatabaseUrl::Memory).await.unwrap();
        let scope = Scope::new("owner", "default").unwrap();
        ReadLog { store, scope, session: "s".to_owned(), marks: Mutex::default() }
    }

    /// Whether a mark completes without waiting.
    async fn is_done_at_once(reads: &ReadLog, origin: &str, now: i64) -> bool {
        let mut marking = Box::pin(reads.mark(origin, now));
        let polled = marking.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        if polled == Poll::Pending {
            marking.await;
        }
        polled == Poll::Ready(())
    }

    #[tokio::test]
    async fn only_the_mark_is_waited_for_and_that_once_a_minute() {
        let reads = reads().await;
        assert!(!is_done_at_once(&reads, "desk/a", NOW).await);
        for origin in ["desk/a", "desk/b", "desk/c"] {
            assert!(is_done_at_once(&reads, origin, NOW + FRESH_MICROS).await, "{origin}");
        }
        assert!(!is_done_at_once(&reads, "desk/c", NOW + FRESH_MICROS + 1).await);
    }

    #[tokio::test]
    async fn the_latest_origins_come_first_and_are_stored_when_they_are_needed() {
        let reads = reads().await;
        assert_eq!(reads.origins(NOW).await, None);
        reads.mark("desk/a", NOW).await;
        for number in 0..20 {
            reads.mark(&format!("desk/{number}"), NOW + number).await;
        }
        reads.mark("desk/a", NOW + 20).await;
        let names = ["desk/a", "desk/19", "desk/18", "desk/17", "desk/16", "desk/15", "desk/14", "desk/13"];
        assert_eq!(reads.origins(NOW + 21).await.unwrap(), names);
        let stored = reads.store.untrusted_reads().origins(&reads.scope, "default", NOW + 21).await.unwrap();
        assert_eq!(stored.iter().map(|read| &*read.origin).collect::<Vec<_>>(), names);
        assert_eq!(reads.origins(NOW + 24 * 60 * FRESH_MICROS + 21).await, None, "after a day");
    }

    #[tokio::test]
    async fn an_origin_that_the_store_has_is_noted_again_without_its_name() {
        let reads = reads().await;
        let again = |item: &str, now: i64| lock(&reads.marks).note_again("desk", item, now);
        assert!(!again("a", NOW), "nothing was read");
        reads.mark("desk/a", NOW).await;
        reads.mark("desk/b", NOW).await;
        assert!(!again("c", NOW) && !again("", NOW) && !again("/a", NOW));
        assert!(again("a", NOW + 1));
        let latest = reads.latest(NOW + 1);
        let latest: Vec<(&str, i64)> = latest.iter().map(|read| (&*read.origin, read.at)).collect();
        assert_eq!(latest, [("desk/a", NOW + 1), ("desk/b", NOW)]);
        assert!(!again("a", NOW + FRESH_MICROS + 1), "it is stored again after a minute");
    }

    #[tokio::test]
    async fn an_origin_counts_before_the_store_has_it() {
        let reads = reads().await;
        assert!(!lock(&reads.marks).note("desk/a", NOW));
        assert_eq!(reads.origins(NOW).await.unwrap(), ["desk/a"]);
    }

    #[test]
    fn only_lists_of_definitions_have_no_content() {
        for method in [
            "tools/call",
            "resources/read",
            "prompts/get",
            "tasks/list",
            "resources/subscribe",
            "logging/setLevel",
            "x/y",
        ] {
            assert!(returns_content(method), "{method}");
        }
        for method in ["tools/list", "resources/list", "resources/templates/list", "prompts/list"] {
            assert!(!returns_content(method), "{method}");
        }
    }

    #[test]
    fn the_reason_names_the_latest_origins() {
        let origins = |count: usize| ["a/x", "b/y", "c/z", "d/w", "e/v"].map(str::to_owned)[..count].to_vec();
        assert_eq!(reason(&origins(0)), "the agent has read text that the owner did not write");
        assert_eq!(reason(&origins(1)), "after reading a/x: text that the owner did not write");
        assert_eq!(
            reason(&origins(5)),
            "after reading a/x, b/y, c/z and 2 more: text that the owner did not write"
        );
    }
}
