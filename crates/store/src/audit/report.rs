//! What a verification found, in words that a person can act on.

use std::fmt;

use serde::Serialize;

/// What the verification found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditReport {
    /// Every chain in the database, in the order of their names.
    pub chains: Vec<ChainReport>,
}

impl AuditReport {
    /// The first chain that is not what it should be.
    pub fn broken(&self) -> Option<(&ChainReport, &Break)> {
        self.chains.iter().find_map(|chain| match &chain.state {
            ChainState::Broken(found) => Some((chain, found)),
            ChainState::Intact | ChainState::KeyAway => None,
        })
    }
}

/// One chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChainReport {
    /// Its name: the fingerprint of its key.
    pub chain: String,
    /// How many records it has.
    pub records: u64,
    /// The time of its first record, in microseconds since 1970.
    pub first_at: Option<i64>,
    /// The time of its last record.
    pub last_at: Option<i64>,
    /// Whether it is what it should be.
    pub state: ChainState,
    /// So many of the last records are not covered by the head: if they were cut off, nobody would notice. Usual for a
    /// moment after a power cut.
    pub beyond_head: u64,
    /// Why the head cannot be read or written, if it cannot.
    pub head_trouble: Option<String>,
}

/// Whether a chain is what it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChainState {
    /// Every record is there, unchanged and in its place, up to the head.
    Intact,
    /// It is not; this is the first thing that is wrong.
    Broken(Break),
    /// It has another key than the one here: it belongs to another replica, or the key was replaced.
    KeyAway,
}

/// The first thing that is wrong with a chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Break {
    /// The place in the chain.
    pub seq: i64,
    /// The id of the record at that place, if there is one.
    pub id: Option<String>,
    /// What is wrong there.
    pub fault: Fault,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The record was changed, or not written by us.
    Changed,
    /// The record is not there, but later ones are.
    Missing,
    /// A record stands where none can be.
    Extra,
    /// The record belongs to another place.
    Reordered {
        /// That place.
        belongs_at: i64,
    },
    /// The records from here on are gone.
    Truncated {
        /// The chain had reached this one.
        known: i64,
    },
    /// The chain itself noted that the records before this one were not those that the head knew.
    Gap {
        /// Why it was noted.
        reason: String,
        /// The last record that the head knew.
        known: Option<i64>,
    },
    /// The counter in the database does not fit the records.
    Counter,
    /// The head knows another record at this place: the database was replaced by another one.
    HeadDiffers,
    /// The head is gone: a cut-off tail could not be noticed.
    HeadMissing,
    /// The head belongs to the chain of another key.
    HeadForeign {
        /// That chain.
        chain: String,
    },
    /// The head was not written with our key.
    HeadDamaged,
}

impl fmt::Display for Break {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record {}", self.seq)?;
        if let Some(id) = &self.id {
            write!(f, " (`{}`)", id.escape_debug())?;
        }
        write!(f, ": {}", self.fault)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed => f.write_str("it was changed, or not written by this chain"),
            Self::Missing => f.write_str("it is missing, but later ones are there"),
            Self::Extra => f.write_str("no record can stand at this place"),
            Self::Reordered { belongs_at } => write!(f, "it belongs to place {belongs_at}"),
            Self::Truncated { known } => {
                write!(f, "it and all after it are gone; the chain had reached record {known}")
            }
            Self::Gap { reason, known: Some(known) } => {
                write!(f, "before it, records up to {known} were lost (`{}`)", reason.escape_debug())
            }
            Self::Gap { reason, known: None } => {
                write!(f, "before it, records may have been lost (`{}`)", reason.escape_debug())
            }
            Self::Counter => f.write_str("the counter in the database does not fit the records"),
            Self::HeadDiffers => f.write_str("the head outside the database knows another record here"),
            Self::HeadMissing => f.write_str("the head outside the database is gone"),
            Self::HeadForeign { chain } => {
                write!(f, "the head outside the database belongs to the chain `{}`", chain.escape_debug())
            }
            Self::HeadDamaged => f.write_str("the head outside the database was not written with this key"),
        }
    }
}
