//! What is known about something that was said: memories that answer to it, and open commitments that share its words.

use embody_store::{Commitment, MemorySearch, Reflected, Scope, Store};
use schemars::JsonSchema;
use serde::Serialize;

use super::{cut, matter};
use crate::Moment;
use crate::context::written;

/// The most memories, and the most commitments.
const MOST: usize = 3;
/// The most characters of each.
const CHARACTERS: usize = 200;
/// The most characters of an observation that memories are asked with.
const ASKED: usize = 1000;

/// Something that is known. It is data, whoever wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Related {
    /// A memory.
    Memory {
        /// Its id.
        id: String,
        /// What it says, cut short.
        text: String,
        /// How far its writer was trusted.
        trust: String,
    },
    /// An open commitment.
    Commitment {
        /// Its id.
        id: String,
        /// `user`, `agent` or `both`.
        who: String,
        /// The matter, cut short.
        text: String,
        /// The last moment that is in time.
        #[serde(skip_serializing_if = "Option::is_none")]
        due_at: Option<String>,
        /// Whether that has passed.
        overdue: bool,
        /// How far whoever told it was trusted.
        trust: String,
    },
}

impl Related {
    /// How far whoever wrote it was trusted.
    #[must_use]
    pub fn trust(&self) -> &str {
        match self {
            Self::Memory { trust, .. } | Self::Commitment { trust, .. } => trust,
        }
    }
}

pub(super) struct About<'a> {
    pub(super) observation: &'a str,
    /// Whether time went by: then what is due is what matters.
    pub(super) time_passed: bool,
    pub(super) open: &'a [Commitment],
}

pub(super) async fn find(
    store: &Store,
    scope: &Scope,
    about: About<'_>,
    reflected: &Reflected,
    now: &Moment,
) -> Result<Vec<Related>, embody_store::Error> {
    let words = matter(about.observation);
    let is_new = |id: &str| reflected.commitments.iter().chain(&reflected.settled).any(|kept| kept.id == id);
    let is_due = |open: &Commitment| open.said.due_at.is_some_and(|due| due <= now.micros());
    let shares = |open: &Commitment| !words.is_disjoint(&matter(&open.said.text));
    let mut commitments: Vec<&Commitment> = about.open.iter().filter(|open| !is_new(&open.id)).collect();
    commitments.retain(|open| if about.time_passed { is_due(open) } else { shares(open) });
    let search = MemorySearch {
        query: cut(about.observation, ASKED),
        limit: u32::try_from(MOST).unwrap_or(3),
        kind: None,
        since: None,
    };
    let memories = if words.is_empty() { Vec::new() } else { store.search_memories(scope, &search).await? };
    let memories = memories.into_iter().map(|found| Related::Memory {
        id: found.memory.id,
        text: cut(&found.memory.text, CHARACTERS),
        trust: found.memory.trust,
    });
    let commitments = commitments.into_iter().take(MOST).map(|open| Related::Commitment {
        id: open.id.clone(),
        who: open.said.who.clone(),
        text: cut(&open.said.text, CHARACTERS),
        due_at: open.said.due_at.and_then(|due| written(now, due)),
        overdue: is_due(open),
        trust: open.trust.clone(),
    });
    Ok(memories.chain(commitments).collect())
}
