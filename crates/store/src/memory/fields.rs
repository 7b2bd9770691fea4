//! What a memory is: its fields, their bounds, and the shapes in which callers ask for it.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::store::{check_name, check_text};

/// The longest text of a memory, in bytes.
const TEXT_LIMIT: usize = 64 * 1024;
const SOURCE_LIMIT: usize = 2048;
const TAGS_LIMIT: usize = 32;
/// The years 1 to 9999, in microseconds since 1970.
const TIMES: std::ops::RangeInclusive<i64> = -62_135_596_800_000_000..=253_402_300_799_999_999;

/// Whether a memory counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryStatus {
    /// It is found.
    #[default]
    Active,
    /// It is kept for the operator to look at, and found by nobody until then.
    Quarantined,
    /// It is kept as history only.
    Forgotten,
}

impl MemoryStatus {
    /// Every status.
    pub const ALL: [Self; 3] = [Self::Active, Self::Quarantined, Self::Forgotten];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Quarantined => "quarantined",
            Self::Forgotten => "forgotten",
        }
    }

    /// The status of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }
}

/// A memory to be saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMemory {
    /// What is remembered.
    pub text: String,
    /// What kind of thing it is, in the words of whoever saves it.
    pub kind: String,
    /// Words to file it under.
    pub tags: Vec<String>,
    /// Who said it.
    pub actor: Option<String>,
    /// In which conversation. Without it the memory has no neighbours, and is found less well.
    pub session: Option<String>,
    /// Who writes it down, by their authenticated name.
    pub writer: String,
    /// Where it comes from.
    pub source: Option<String>,
    /// How far the writer is trusted, as the connection says.
    pub trust: String,
    /// When it happened, in microseconds since 1970; now, if nobody says.
    pub occurred_at: Option<i64>,
    /// Active, or quarantined.
    pub status: MemoryStatus,
}

impl NewMemory {
    /// A note with this text, by this writer; everything else unsaid.
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

/// A memory as it is kept, or as it was in an earlier version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Sorts by age.
    pub id: String,
    /// Counts the changes, from 1.
    pub version: i64,
    /// Whether it counts.
    pub status: MemoryStatus,
    /// What is remembered.
    pub text: String,
    /// What kind of thing it is.
    pub kind: String,
    /// Words to file it under.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Who said it.
    #[serde(default)]
    pub actor: Option<String>,
    /// In which conversation.
    #[serde(default)]
    pub session: Option<String>,
    /// Who wrote this version.
    pub writer: String,
    /// Where it comes from.
    #[serde(default)]
    pub source: Option<String>,
    /// How far the writer was trusted.
    pub trust: String,
    /// When it happened, in microseconds since 1970.
    pub occurred_at: i64,
    /// When it was saved.
    pub created_at: i64,
    /// When this version was written.
    pub changed_at: i64,
}

/// More versions than anybody makes.
const MOST_VERSIONS: i64 = 1_000_000_000;

impl Memory {
    /// Whether every field is within its bounds.
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
            return Err(Error::invalid(format!("the memory has the version `{}`", self.version)));
        }
        Ok(())
    }
}

/// A time that has a date.
pub(super) fn check_time(what: &str, time_us: i64) -> Result<()> {
    if TIMES.contains(&time_us) {
        return Ok(());
    }
    Err(Error::invalid(format!("`{what}` is `{time_us}`, which is not in the years 1 to 9999"))
        .hint("times are microseconds since 1970"))
}

/// What became of a memory that was to be saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// The memory's id; of one that was there already, if the same was said in the same session.
    pub id: String,
    /// Its version.
    pub version: i64,
    /// Whether it counts.
    pub status: MemoryStatus,
    /// Whether it was there already.
    pub repeated: bool,
}

/// A question to the memories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemorySearch {
    /// In anybody's words. Empty lists the newest.
    pub query: String,
    /// The most memories to return.
    pub limit: u32,
    /// Only those of this kind.
    pub kind: Option<String>,
    /// Only what happened since, in microseconds since 1970.
    pub since: Option<i64>,
}

/// A memory that answers.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundMemory {
    /// The memory.
    pub memory: Memory,
    /// How well it answers; comparable within one search only. 0 in a list of the newest.
    pub score: f64,
}

/// Which memories to list, newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryList {
    /// With this status.
    pub status: MemoryStatus,
    /// Only those of this kind.
    pub kind: Option<String>,
    /// Only what happened since, in microseconds since 1970.
    pub since: Option<i64>,
    /// Those that come after the memory of this id in the list: the last one of the page before.
    pub after: Option<String>,
    /// The most memories to return.
    pub limit: u32,
}

/// A memory's text, written anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryRevision {
    /// Which memory.
    pub id: String,
    /// What is remembered from now on.
    pub text: String,
    /// Who writes it.
    pub writer: String,
    /// How far they are trusted.
    pub trust: String,
    /// Only if this is still the version; `None` overwrites whatever is there.
    pub expected_version: Option<i64>,
}

/// What became of a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RevisionOutcome {
    /// It is written; this is the new state.
    Written(Memory),
    /// Somebody else was faster; this is what is there, unchanged.
    Stale(Memory),
}

/// How many active memories there are of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindCount {
    /// The kind.
    pub kind: String,
    /// How many.
    pub memories: u64,
}
