//! What nobody can say the end of: messages that were being answered or sent, and runs of schedules, when whoever did it
//! was gone. It lists them; none of them is done again.

use embody_store::Store;
use serde::Serialize;

use crate::failure::Failure;
use crate::output::printable;
use crate::time::{clipped, rfc3339, shown};

/// So many of each kind are looked at, the newest.
const MOST: u32 = 1000;

/// Something that got lost.
#[derive(Debug, Serialize)]
pub(super) struct Lost {
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

/// All of them, newest first.
pub(super) async fn all(store: &Store) -> Result<Vec<Lost>, Failure> {
    let mut all = Vec::new();
    for one in store.lost_incoming(MOST).await? {
        let at = one.started_at.unwrap_or(one.created_at);
        all.push(lost("incoming", (one.user, one.id), one.channel, one.conversation, at));
    }
    for one in store.lost_outgoing(MOST).await? {
        all.push(lost("outgoing", (one.user, one.id), one.channel, one.to, one.created_at));
    }
    for one in store.lost_runs(MOST).await? {
        let due = format!("due {}", shown(one.due_at));
        all.push(lost("run", (one.user, one.schedule), "scheduled".to_owned(), due, one.started_at));
    }
    all.sort_by_key(|lost| std::cmp::Reverse(lost.micros));
    Ok(all)
}

/// Those of one user.
pub(super) async fn of(store: &Store, user: &str) -> Result<Vec<Lost>, Failure> {
    let mut all = all(store).await?;
    all.retain(|lost| lost.user == user);
    Ok(all)
}

fn lost(
    kind: &'static str,
    (user, id): (String, String),
    channel: String,
    about: String,
    micros: i64,
) -> Lost {
    Lost { kind, id, user, channel, about, at: rfc3339(micros), micros }
}

impl Lost {
    /// One line for people.
    pub(super) fn line(&self) -> String {
        let Self { kind, id, channel, about, micros, .. } = self;
        let (channel, about) = (clipped(channel, 40), clipped(about, 80));
        format!("{}  {kind}  {}  {}  {id}", shown(*micros), printable(&channel), printable(&about))
    }
}
