//! Whether the agent behind a session has read text that the owner did not write: what a body that is not part of this
//! program answers. The mark is stored before such a request is sent, so that no byte of the answer comes before it. What
//! an agent leaves for its later turns needs the owner's approval after that.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::Session;
use super::packet::object;
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
/// How long the mind may take to say what a change would be.
const PREVIEW: Duration = Duration::from_secs(5);
const REASON: &str = "the agent has read text that the owner did not write";

/// When this session marked its agent last.
pub(crate) struct Exposure {
    setup: Arc<Setup>,
    /// In microseconds since 1970; 0 if never.
    read_at: AtomicI64,
    stored_at: AtomicI64,
}

/// What the owner approves, beside the arguments.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lasting {
    /// The difference that it makes, line by line.
    pub(crate) difference: Vec<String>,
    /// What a server of ours is told once the owner has approved.
    pub(crate) approved: Option<serde_json::Value>,
}

impl Exposure {
    pub(super) fn new(setup: &Arc<Setup>) -> Self {
        Self { setup: Arc::clone(setup), read_at: AtomicI64::new(0), stored_at: AtomicI64::new(0) }
    }
}

impl Session {
    /// Whether the answer to this request counts as text of other origin and no recent mark says so.
    pub(crate) fn must_mark(&self, upstream: &str, method: &str) -> bool {
        let now = (self.exposure.setup.clock)();
        now.saturating_sub(self.exposure.stored_at.load(Ordering::Acquire)) > FRESH_MICROS
            && returns_content(method)
            && self.upstream(upstream).is_some_and(|upstream| is_foreign(upstream))
    }

    /// Stores that the agent reads text that the owner did not write. If the store fails, this session still knows.
    pub(crate) async fn mark_exposed(&self) {
        let Exposure { setup, read_at, stored_at } = &self.exposure;
        let now = (setup.clock)();
        read_at.store(now, Ordering::Release);
        match setup.store.mark_exposed(&self.scope, &self.scope.writer(), now).await {
            Ok(()) => stored_at.store(now, Ordering::Release),
            Err(error) => {
                tracing::error!(session = self.id, reason = %error, "cannot store that the agent reads text of other origin");
            }
        }
    }

    async fn is_exposed(&self) -> bool {
        let Exposure { setup, read_at, stored_at } = &self.exposure;
        let is_stored = read_at.load(Ordering::Acquire) <= stored_at.load(Ordering::Acquire);
        if !is_stored {
            return true;
        }
        let known = setup.store.is_exposed(&self.scope, &self.scope.writer(), (setup.clock)()).await;
        known.unwrap_or_else(|error| {
            tracing::error!(session = self.id, reason = %error, "cannot read whether the agent has read text of other origin");
            true
        })
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
        if !is_lasting || ruled.gate == Gate::Deny || !session.is_exposed().await {
            return (ruled, None);
        }
        let lasting = match (is_mind, upstream.spec().is_embedded()) {
            (true, true) => match preview(session, arguments).await.filter(|_| session.can_ask()) {
                Some(lasting) => lasting,
                None => return (ruled, None),
            },
            (false, true) => Lasting { approved: Some(json!(true)), ..Lasting::default() },
            (_, false) => Lasting::default(),
        };
        (ruled.asked(REASON), Some(lasting))
    }
}

/// Whether the answer to a request has content, and not only definitions or nothing.
fn returns_content(method: &str) -> bool {
    !matches!(
        method,
        "resources/list"
            | "resources/templates/list"
            | "resources/subscribe"
            | "resources/unsubscribe"
            | "prompts/list"
            | "tools/list"
            | "tasks/list"
            | "logging/setLevel"
    )
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
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_settings_have_no_content() {
        for method in
            ["tools/call", "resources/read", "prompts/get", "completion/complete", "tasks/result", "x/y"]
        {
            assert!(returns_content(method), "{method}");
        }
        for method in ["resources/list", "prompts/list", "logging/setLevel", "resources/subscribe"] {
            assert!(!returns_content(method), "{method}");
        }
    }
}
