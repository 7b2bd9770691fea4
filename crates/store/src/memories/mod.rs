//! What an agent remembers: saving, searching and forgetting, by user and agent.
//!
//! `analyze` makes terms of a text, `postings` packs where they occur, `rank` orders what matches: all pure. The rest
//! keeps them in tables, the same way in both databases.

pub(crate) mod alike;
mod analyze;
mod change;
mod erase;
mod index;
mod lookup;
mod postings;
mod rank;
mod rows;
mod save;
mod search;
#[cfg(test)]
mod tests;
mod transfer;

use serde::{Deserialize, Serialize};

pub use self::alike::{Merge, NumberedMemory};
pub use self::analyze::{TextTerm, text_terms};
pub use self::change::{EditOutcome, ForgetOutcome, MemoryEdit};
pub use self::erase::EraseReport;
pub use self::transfer::MemoryImport;
use crate::db::names;
pub use crate::erase::ErasedPlace;
use crate::error::{Error, Result};
use crate::store::{check_name, check_text};

const TEXT_LIMIT: usize = 64 * 1024;
const SOURCE_LIMIT: usize = 2048;
const TAGS_LIMIT: usize = 32;
/// The years 1 to 9999, in microseconds since 1970.
const TIMES: std::ops::RangeInclusive<i64> = -62_135_596_800_000_000..=253_402_300_799_999_999;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryStatus {
    #[default]
    Active,
    /// For the operator's review; no search finds it.
    Quarantined,
    /// Only its history stays.
    Forgotten,
    /// Only its id and its times stay; the text is gone from the store.
    Erased,
}

impl MemoryStatus {
    pub const ALL: [Self; 4] = [Self::Active, Self::Quarantined, Self::Forgotten, Self::Erased];
}

names! {
    pub MemoryStatus {
        Active = "active", Quarantined = "quarantined", Forgotten = "forgotten", Erased = "erased",
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMemory {
    pub text: String,
    pub kind: String,
    pub tags: Vec<String>,
    pub actor: Option<String>,
    /// Without a session the memory has no neighbours, and is found less well.
    pub session: Option<String>,
    /// Authenticated name.
    pub writer: String,
    pub source: Option<String>,
    /// How far the writer is trusted, as the connection says.
    pub trust: String,
    /// Defaults to now.
    pub occurred_at: Option<i64>,
    pub status: MemoryStatus,
}

impl NewMemory {
    pub fn note(text: &str, writer: &str, trust: &str) -> Self {
        Self {
            text: text.to_owned(),
            kind: "note".to_owned(),
            tags: Vec::new(),
            actor: None,
            session: None,
            writer: writer.to_owned(),
            source: None,
            trust: trust.to_owned(),
            occurred_at: None,
            status: MemoryStatus::Active,
        }
    }
}

/// A memory, or an earlier version of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    pub id: String,
    /// Counts the changes, from 1.
    pub version: i64,
    pub status: MemoryStatus,
    pub text: String,
    pub kind: String,
    #[serde(default)]
    pub tags: Vec<String>,
    #[serde(default)]
    pub actor: Option<String>,
    #[serde(default)]
    pub session: Option<String>,
    /// Who wrote this version.
    pub writer: String,
    #[serde(default)]
    pub source: Option<String>,
    pub trust: String,
    pub occurred_at: i64,
    pub created_at: i64,
    /// When this version was written.
    pub changed_at: i64,
}

const MOST_VERSIONS: i64 = 1_000_000_000;

impl Memory {
    pub(super) fn check(&self) -> Result<()> {
        check_name("memory", &self.id)?;
        if self.text.trim().is_empty() {
            return Err(Error::invalid("the memory has no text"));
        }
        check_text("text of the memory", &self.text, TEXT_LIMIT)?;
        check_name("kind", &self.kind)?;
        check_name("writer", &self.writer)?;
        check_name("trust", &self.trust)?;
        self.actor.as_deref().map_or(Ok(()), |actor| check_name("actor", actor))?;
        self.session.as_deref().map_or(Ok(()), |session| check_name("session", session))?;
        self.source.as_deref().map_or(Ok(()), |source| check_text("source", source, SOURCE_LIMIT))?;
        if self.tags.len() > TAGS_LIMIT {
            return Err(Error::invalid(format!(
                "the memory has {} tags; {TAGS_LIMIT} are allowed",
                self.tags.len()
            )));
        }
        self.tags.iter().try_for_each(|tag| check_name("tag", tag))?;
        for (what, time) in [
            ("occurred_at", self.occurred_at),
            ("created_at", self.created_at),
            ("changed_at", self.changed_at),
        ] {
            check_time(what, time)?;
        }
        if !(1..=MOST_VERSIONS).contains(&self.version) {
            return Err(Error::invalid(format!("invalid memory version `{}`", self.version)));
        }
        Ok(())
    }
}

pub(super) fn check_time(what: &str, time_us: i64) -> Result<()> {
    if TIMES.contains(&time_us) {
        return Ok(());
    }
    Err(Error::invalid(format!("`{what}` is `{time_us}`, which is not in the years 1 to 9999"))
        .hint("times are microseconds since 1970"))
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaveResult {
    /// Of the existing memory, if the same text was saved in the same session.
    pub id: String,
    pub version: i64,
    pub status: MemoryStatus,
    /// Whether it existed already.
    pub repeated: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemorySearch {
    /// Natural language. Empty lists the newest.
    pub query: String,
    pub limit: u32,
    pub kind: Option<String>,
    pub since: Option<i64>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FoundMemory {
    pub memory: Memory,
    /// Comparable within one search only; 0 in a list of the newest.
    pub score: f64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryList {
    pub status: MemoryStatus,
    pub kind: Option<String>,
    pub since: Option<i64>,
    /// Id of the last memory of the page before.
    pub after: Option<String>,
    pub limit: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindCount {
    pub kind: String,
    pub memories: u64,
}
