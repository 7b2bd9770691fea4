//! Messages and runs of schedules whose process died before the outcome was recorded. Lists them; none is repeated.

use embody_store::Store;
use serde::Serialize;

use crate::error::CliError;
use crate::output::printable;
use crate::time::{display, rfc3339, truncate};

/// How many of each kind are read, newest first.
const LIMIT: u32 = 1000;

#[derive(Debug, Serialize)]
pub(super) struct UnknownOutcome {
    /// `incoming`, `outgoing` or `run`.
    kind: &'static str,
    /// Its id; of a run, that of its schedule.
    id: String,
    #[serde(skip)]
    user: String,
    channel: String,
    /// The conversation, the recipient, or the time that the run was due.
    about: String,
    at: String,
    #[serde(skip)]
    micros: i64,
}

/// Newest first.
pub(super) async fn list_all(store: &Store) -> Result<Vec<UnknownOutcome>, CliError> {
    let mut all = Vec::new();
    for one in store.incoming().list_unknown(LIMIT).await? {
        let at = one.started_at.unwrap_or(one.created_at);
        all.push(unknown_outcome("incoming", (one.user, one.id), one.channel, one.conversation, at));
    }
    for one in store.outgoing().list_unknown(LIMIT).await? {
        all.push(unknown_outcome("outgoing", (one.user, one.id), one.channel, one.to, one.created_at));
    }
    for one in store.schedules().list_unknown_runs(LIMIT).await? {
        let due = format!("due {}", display(one.due_at));
        all.push(unknown_outcome(
            "run",
            (one.user, one.schedule),
            "scheduled".to_owned(),
            due,
            one.started_at,
        ));
    }
    all.sort_by_key(|one| std::cmp::Reverse(one.micros));
    Ok(all)
}

pub(super) async fn list_for_user(store: &Store, user: &str) -> Result<Vec<UnknownOutcome>, CliError> {
    let mut all = list_all(store).await?;
    all.retain(|one| one.user == user);
    Ok(all)
}

fn unknown_outcome(
    kind: &'static str,
    (user, id): (String, String),
    channel: String,
    about: String,
    micros: i64,
) -> UnknownOutcome {
    UnknownOutcome { kind, id, user, channel, about, at: rfc3339(micros), micros }
}

impl UnknownOutcome {
    pub(super) fn line(&self) -> String {
        let Self { kind, id, channel, about, micros, .. } = self;
        let (channel, about) = (truncate(channel, 40), truncate(about, 80));
        format!("{}  {kind}  {}  {}  {id}", display(*micros), printable(&channel), printable(&about))
    }
}
