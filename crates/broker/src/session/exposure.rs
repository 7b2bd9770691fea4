//! What the agent behind a session has read that the owner did not write: what a body that is not part of this program says.
//! The mark is stored before a request for content is sent, so that no byte of the answer comes before it. Whatever else a body
//! says is marked where it leaves for the host: answers and errors in `forward::words`, notifications in
//! [`Ear::pass_on`](super::Ear::pass_on), questions in `reverse`, reasons and stderr in `status`. What an agent leaves for its
//! later turns needs the owner's approval after that.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use embody_store::{Scope, origin_name};
use embody_wire::Notification;
use serde::Deserialize;
use serde_json::json;

use super::packet::object;
use super::{Session, lock};
use crate::approval::WORDS_LIMIT;
use crate::arguments::Arguments;
use crate::catalogue::Offered;
use crate::policy::{Gate, Ruled};
use crate::results::raw;
use crate::upstream::{Role, Upstream};
use crate::{Broker, Setup};

/// The key in `_meta` under which the embedded mind is asked what a change would be, and the one under which a server of ours
/// learns that the owner has approved the call.
const PREVIEW_KEY: &str = "embody/preview";
pub(crate) const APPROVED_KEY: &str = "embody/approved";

/// A stored mark is not written again so soon after, in microseconds.
const FRESH_MICROS: i64 = 60 * 1_000_000;
/// Origins whose marks a session remembers.
const REMEMBERED: usize = 256;
/// Origins that a reason names.
const NAMED: usize = 3;
/// How long the mind may take to say what a change would be.
const PREVIEW: Duration = Duration::from_secs(5);

/// The parts of a body's text that belong to no tool, resource, prompt or method.
pub(crate) const ERRORS: &str = "errors";

/// What this session has marked its agent with.
pub(crate) struct Exposure {
    setup: Arc<Setup>,
    scope: Scope,
    session: String,
    marks: Mutex<Marks>,
}

#[derive(Default)]
struct Marks {
    /// When each origin was stored last, in microseconds since 1970.
    stored: HashMap<String, i64>,
    /// Those that could not be stored, the latest first.
    unstored: Vec<String>,
}

/// What the owner approves, beside the arguments.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lasting {
    /// The difference that it makes, line by line.
    pub(crate) difference: Vec<String>,
    /// What a server of ours is told once the owner has approved.
    pub(crate) approved: Option<serde_json::Value>,
    /// What the agent had read, the latest first.
    pub(crate) origins: Vec<String>,
}

impl Exposure {
    pub(super) fn new(setup: &Arc<Setup>, scope: &Scope, session: &str) -> Arc<Self> {
        let (setup, scope, session) = (Arc::clone(setup), scope.clone(), session.to_owned());
        Arc::new(Self { setup, scope, session, marks: Mutex::default() })
    }

    fn is_fresh(&self, origin: &str) -> bool {
        let fresh = (self.setup.clock)().saturating_sub(FRESH_MICROS);
        lock(&self.marks).stored.get(origin).is_some_and(|at| *at >= fresh)
    }

    /// Stores that the agent reads text of this origin, unless a recent mark says so. If the store fails, this session still
    /// knows.
    pub(crate) async fn mark(&self, origin: &str) {
        if self.is_fresh(origin) {
            return;
        }
        let now = (self.setup.clock)();
        let stored =
            self.setup.store.record_untrusted_read(&self.scope, &self.scope.writer(), &[origin], now).await;
        let mut marks = lock(&self.marks);
        marks.unstored.retain(|known| known != origin);
        match stored {
            Ok(()) => {
                if marks.stored.len() >= REMEMBERED {
                    marks.stored.clear();
                }
                marks.stored.insert(origin.to_owned(), now);
            }
            Err(error) => {
                tracing::error!(session = self.session, reason = %error, "cannot store that the agent reads text of other origin");
                marks.unstored.insert(0, origin.to_owned());
                marks.unstored.truncate(NAMED);
            }
        }
    }

    /// What the agent has read, the latest first; `None` if nothing that counts.
    async fn origins(&self) -> Option<Vec<String>> {
        let unstored: Vec<String> =
            lock(&self.marks).unstored.iter().map(|origin| origin_name(origin)).collect();
        let (store, writer, now) = (&self.setup.store, self.scope.writer(), (self.setup.clock)());
        let known = async {
            let is_exposed = store.has_untrusted_read(&self.scope, &writer, now).await?;
            Ok::<_, embody_store::Error>((is_exposed, store.read_origins(&self.scope, &writer, now).await?))
        };
        match known.await {
            Ok((is_exposed, read)) => {
                let read = read.into_iter().map(|read| read.origin).filter(|read| !unstored.contains(read));
                let origins: Vec<String> = unstored.iter().cloned().chain(read).collect();
                (is_exposed || !unstored.is_empty()).then_some(origins)
            }
            Err(error) => {
                tracing::error!(session = self.session, reason = %error, "cannot read whether the agent has read text of other origin");
                Some(unstored)
            }
        }
    }
}

impl Session {
    /// The origin of what this upstream says here, if it is text that the owner did not write.
    pub(crate) fn origin(&self, upstream: &str, what: &str) -> Option<String> {
        let is_foreign = self.upstream(upstream).is_some_and(|upstream| is_foreign(upstream));
        is_foreign.then(|| format!("{upstream}/{what}"))
    }

    /// The same of what a request brings, if no recent mark says so: it is to be marked before the request is sent.
    pub(crate) fn unmarked(&self, upstream: &str, what: &str, method: &str) -> Option<String> {
        let origin = self.origin(upstream, what).filter(|_| returns_content(method))?;
        (!self.exposure.is_fresh(&origin)).then_some(origin)
    }

    /// Stores that the agent reads what this upstream says here, if the owner did not write it.
    pub(crate) async fn mark_read(&self, upstream: &str, what: &str) {
        if let Some(origin) = self.origin(upstream, what) {
            self.exposure.mark(&origin).await;
        }
    }

    /// Whether a person answers an approval while the call waits: in the console, on Telegram, or in the host's form.
    fn can_ask(&self) -> bool {
        let principal = &self.host.principal;
        match principal.mark() {
            Some(_) => matches!(&*principal.channel, "web" | "telegram"),
            None => principal.may_approve && self.host.hello().can_show_forms(),
        }
    }
}

impl Broker {
    /// What the agent leaves for its later turns (standing instructions, schedules) needs the owner's approval once it has
    /// read text that the owner did not write. Where no person can be asked, the embedded mind makes a proposal of a change of
    /// the instructions.
    pub(crate) async fn guard_lasting(
        &self,
        session: &Session,
        tool: &Offered,
        upstream: &Upstream,
        arguments: &Arguments,
        ruled: Ruled,
    ) -> (Ruled, Option<Lasting>) {
        let is_mind = upstream.spec().role.is_mind();
        let is_lasting = match &*tool.tool {
            "update_instructions" => is_mind,
            "schedule_run" => !is_mind && upstream.spec().is_embedded(),
            _ => false,
        };
        if !is_lasting || ruled.gate == Gate::Deny {
            return (ruled, None);
        }
        let Some(origins) = session.exposure.origins().await else { return (ruled, None) };
        let lasting = match (is_mind, upstream.spec().is_embedded()) {
            (true, true) => match preview(session, arguments).await.filter(|_| session.can_ask()) {
                Some(lasting) => lasting,
                None => return (ruled, None),
            },
            (false, true) => Lasting { approved: Some(json!(true)), ..Lasting::default() },
            (_, false) => Lasting::default(),
        };
        (ruled.asked(&reason(&origins)), Some(Lasting { origins, ..lasting }))
    }
}

/// Why the owner is asked, with the latest origins.
fn reason(origins: &[String]) -> String {
    let named = origins.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match origins.len().checked_sub(NAMED) {
        _ if origins.is_empty() => "the agent has read text that the owner did not write".to_owned(),
        None | Some(0) => format!("after reading {named}: text that the owner did not write"),
        Some(more) => format!("after reading {named} and {more} more: text that the owner did not write"),
    }
}

/// Whether a notification carries anything that a body could have written.
pub(crate) fn has_text(notification: &Notification) -> bool {
    notification.params.as_deref().is_some_and(|params| !matches!(params.get(), "{}" | "null"))
}

/// Whether the answer to a request is more than a list of definitions.
pub(crate) fn returns_content(method: &str) -> bool {
    !matches!(method, "resources/list" | "resources/templates/list" | "prompts/list" | "tools/list")
}

/// Whether what it returns is not our own: it is a body, and not part of this program.
fn is_foreign(upstream: &Upstream) -> bool {
    matches!(upstream.spec().role, Role::Body(_)) && !upstream.spec().is_embedded()
}

/// The difference that a change of the instructions makes, from the embedded mind. None if it cannot be said or shown whole.
async fn preview(session: &Session, arguments: &Arguments) -> Option<Lasting> {
    #[derive(Deserialize)]
    struct Preview {
        diff: String,
        base_version: i64,
    }
    let link = session.mind.link().await.ok()?;
    let given = serde_json::from_str(arguments.canonical()).ok()?;
    let meta = raw(&json!({ PREVIEW_KEY: true }));
    let asked = crate::carry::ask_with(&link, "update_instructions", given, Some(&meta), PREVIEW).await;
    let members = asked.and_then(object).ok()?;
    let preview: Preview = serde_json::from_value(members.into()).ok()?;
    let size = arguments.canonical().len() + preview.diff.len();
    (size <= WORDS_LIMIT / 2).then(|| Lasting {
        difference: preview.diff.lines().filter(|line| !line.starts_with("@@ ")).map(str::to_owned).collect(),
        approved: Some(json!(preview.base_version)),
        ..Lasting::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
