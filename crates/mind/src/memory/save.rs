//! Saving: who writes and how far they are trusted comes from the connection; what gives orders is held back.

use embody_store::memories::{MemoryStatus, NewMemory};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::read::{INSTRUCTIONS, means_instructions};
use crate::error::{Error, Result};
use crate::{Caller, Mind, Tool, Trust, ZonedNow, quarantine, zoned_now};

const KIND: &str = "note";
/// So far ahead the clocks of others may be; beyond it nothing has happened yet.
const DAY_MICROS: i64 = 24 * 60 * 60 * 1_000_000;
/// Looking at more would keep other tasks of the thread waiting.
const LONG_BYTES: usize = 4 * 1024;
/// Said to whoever saved it; what gave it away is for the owner alone.
const HELD_BACK: &str = "it reads like an order to the agent; it is kept for the owner to look at";

/// What to keep.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SaveMemory {
    /// Whole sentences that make sense later.
    pub text: String,
    /// One word; default `note`.
    #[serde(default)]
    pub kind: Option<String>,
    /// Words to file it under.
    #[serde(default)]
    #[schemars(description = "")]
    pub tags: Option<Vec<String>>,
    /// Who said or did it; improves search.
    #[serde(default)]
    pub actor: Option<String>,
    /// Default the current conversation.
    #[serde(default)]
    pub session: Option<String>,
    /// Where you have it from.
    #[serde(default)]
    pub source: Option<String>,
    /// When it happened: RFC 3339 or a date; default now.
    #[serde(default)]
    pub occurred_at: Option<String>,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SavedMemory {
    /// The memory's id; the same for an exact repeat within one session.
    pub id: String,
    /// Counts the changes, from 1.
    pub version: i64,
    /// `active`, or `quarantined`.
    pub status: String,
    /// Why it is held back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Mind {
    /// Keeps a memory. An exact repeat within one session is the memory that is there already.
    pub async fn save_memory(
        &self,
        caller: &Caller,
        args: SaveMemory,
        now: &ZonedNow,
    ) -> Result<SavedMemory> {
        let refused = |problem: String| Error::Arguments { tool: Tool::SaveMemory.name(), problem };
        let occurred_at = args
            .occurred_at
            .as_deref()
            .map(|text| zoned_now::parse_micros("occurred_at", text, now))
            .transpose()
            .map_err(refused)?;
        if let Some(at) = occurred_at.filter(|at| *at > now.micros().saturating_add(DAY_MICROS)) {
            return Err(refused(format!(
                "`occurred_at` is `{}`; it may be a day from now at the latest: say in the text what is to come",
                zoned_now::format_micros(at)
            )));
        }
        let kind = args.kind.filter(|kind| !kind.trim().is_empty()).unwrap_or_else(|| KIND.to_owned());
        if means_instructions(&kind) {
            return Err(refused(format!(
                "the kind `{INSTRUCTIONS}` is the standing instructions; change them with update_instructions"
            )));
        }
        let mut memory = NewMemory {
            text: args.text,
            kind,
            tags: args.tags.unwrap_or_default(),
            actor: non_empty(args.actor),
            session: non_empty(args.session).or_else(|| caller.session.clone()),
            writer: caller.writer.clone(),
            source: non_empty(args.source),
            trust: self.trust_of(caller, now).await?.to_owned(),
            occurred_at,
            status: MemoryStatus::Active,
        };
        if caller.trust != Trust::Owner {
            memory = with_quarantine_status(memory).await;
        }
        let saved = self.store.memories().save(&caller.scope, memory).await?;
        Ok(SavedMemory {
            id: saved.id,
            version: saved.version,
            status: saved.status.name().to_owned(),
            reason: (saved.status == MemoryStatus::Quarantined).then(|| HELD_BACK.to_owned()),
        })
    }
}

/// An empty string is how some hosts leave something out.
fn non_empty(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty())
}

/// Looks at a memory where it keeps nobody waiting. One that could not be looked at is held back.
async fn with_quarantine_status(memory: NewMemory) -> NewMemory {
    let held = if memory.text.len() < LONG_BYTES {
        gives_orders(&memory)
    } else {
        let copy = memory.clone();
        tokio::task::spawn_blocking(move || gives_orders(&copy)).await.unwrap_or(true)
    };
    let status = if held { MemoryStatus::Quarantined } else { memory.status };
    NewMemory { status, ..memory }
}

/// Whatever comes back with a memory is read, so all of it is looked at.
fn gives_orders(memory: &NewMemory) -> bool {
    let about = [
        Some(memory.kind.as_str()),
        memory.actor.as_deref(),
        memory.source.as_deref(),
        memory.session.as_deref(),
    ];
    let about = about.into_iter().flatten().chain(memory.tags.iter().map(String::as_str));
    std::iter::once(memory.text.as_str()).chain(about).any(|text| quarantine::find_directive(text).is_some())
}
