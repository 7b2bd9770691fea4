//! What a verification found, in words that a person can act on.

use std::fmt;

use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditReport {
    /// Sorted by name.
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

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChainReport {
    /// Fingerprint of its key.
    pub chain: String,
    pub records: u64,
    pub first_at: Option<i64>,
    pub last_at: Option<i64>,
    pub state: ChainState,
    /// Number of last records that the head does not cover: their loss would go unnoticed. Usual for a moment
    /// after a power cut.
    pub beyond_head: u64,
    /// Why the head cannot be read or written.
    pub head_trouble: Option<String>,
}

/// Whether a chain is what it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChainState {
    Intact,
    /// The first fault found.
    Broken(Break),
    /// Its key is not the one here: it belongs to another replica, or the key was replaced.
    KeyAway,
}

/// The first thing that is wrong with a chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Break {
    pub seq: i64,
    pub id: Option<String>,
    pub fault: Fault,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Changed, or not written by us.
    Changed,
    /// Missing while later records exist.
    Missing,
    Extra,
    Reordered {
        belongs_at: i64,
    },
    Truncated {
        known: i64,
    },
    /// The chain itself recorded that the records before this one are not those that the head knew.
    Gap {
        reason: String,
        known: Option<i64>,
    },
    /// The counter in the database does not match the records.
    Counter,
    /// The head knows another record at this position: the database was replaced.
    HeadDiffers,
    /// Without the head a cut-off tail cannot be noticed.
    HeadMissing,
    HeadForeign {
        chain: String,
    },
    /// Not written with our key.
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
