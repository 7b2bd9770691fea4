//! A body in a store of its own.

use std::sync::Arc;

use embody_body::{Body, BodyConfig, Caller};
use embody_store::threads::{NewMessage, NewThread};
use embody_store::{DatabaseUrl, Scope, Store};
use serde_json::json;

/// 2027-01-31T08:00:00Z
pub(crate) const NOW: i64 = 1_801_382_400_000_000;

pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) body: Body,
}

impl World {
    /// A body that reaches others over telegram.
    pub(crate) async fn new() -> Self {
        Self::reaching(&["telegram"]).await
    }

    pub(crate) async fn reaching(channels: &[&str]) -> Self {
        let store = Store::open(DatabaseUrl::Memory).await.unwrap();
        Self { body: Body::new(store.clone(), Self::config(channels)), store }
    }

    /// What a body needs that reaches others over these.
    pub(crate) fn config(channels: &[&str]) -> BodyConfig {
        BodyConfig {
            due: Box::new(due),
            zone: Box::new(|scope| match scope.user() {
                "lost" => Err("unknown time zone `Mars/Base`, which USER.md names".to_owned()),
                _ => Ok("Europe/Berlin".to_owned()),
            }),
            skill: Arc::new(|caller, name| match (caller.scope.user(), name) {
                ("ann", "tea") => Ok("# Tea\n\nBoil\u{200b} water.\n".to_owned()),
                ("ann", "long") => Ok("x".repeat(50_000)),
                _ => Err(format!("unknown skill `{name}`: there are none")),
            }),
            clock: Box::new(|| NOW),
            gives_orders: Arc::new(|text| text.contains("ignore your rules")),
            channels: channels.iter().map(ToString::to_string).collect(),
        }
    }

    /// Something is said in a conversation of this user.
    pub(crate) async fn says(
        &self,
        user: &str,
        channel: &str,
        external: &str,
        role: &str,
        text: &str,
    ) -> String {
        let scope = Scope::new(user, "assistant").unwrap();
        let new = NewThread { channel: channel.into(), external: Some(external.into()), title: None };
        let thread = self.store.threads().open(&scope, new).await.unwrap().id;
        let content = json!({"role": role, "text": text}).to_string();
        self.store
            .threads()
            .append(user, &thread, vec![NewMessage { role: role.into(), content }])
            .await
            .unwrap();
        thread
    }
}

pub(crate) fn caller(user: &str) -> Caller {
    Caller {
        scope: Scope::new(user, "assistant").unwrap(),
        channel: "web".to_owned(),
        thread: None,
        shared_conversation: None,
        is_approved: false,
    }
}

/// The same where others read along.
pub(crate) fn in_shared_conversation(user: &str, thread: &str) -> Caller {
    Caller { channel: "telegram".to_owned(), shared_conversation: Some(thread.to_owned()), ..caller(user) }
}

/// A timetable of two lines: what is daily comes tomorrow, and what is once comes then, if it is not over.
fn due(cron: &str, zone: &str, now: i64) -> Result<Option<i64>, String> {
    assert_eq!(now, NOW);
    match cron.split_once(' ') {
        None if cron == "@daily" => Ok(Some(now + 86_400_000_000)),
        Some(("@once", at)) => {
            let at: jiff::Timestamp = at.parse().map_err(|_| format!("`{at}` is no moment"))?;
            Ok(Some(at.as_microsecond()).filter(|at| *at > now))
        }
        _ => Err(format!("`{cron}` is no timetable in {zone}")),
    }
}
