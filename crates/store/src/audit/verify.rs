//! Verifying a chain from its first record to its head, page by page; reports the first fault.

use std::collections::HashMap;
use std::fmt;

use serde::Serialize;

use super::chain::{Chain, GAP, ORIGIN};
use super::erase;
use super::head::HeadState;
use super::read::StoredRecord;
use crate::areas::Audit;
use crate::db::args;
use crate::error::Result;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditReport {
    /// Sorted by name.
    pub chains: Vec<ChainReport>,
}

impl AuditReport {
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
    /// Number of last records that the head does not cover: their loss would go unnoticed. Usual for a moment after a
    /// power cut.
    pub beyond_head: u64,
    /// Why the head cannot be read or written.
    pub head_trouble: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChainState {
    Intact,
    /// The first fault found.
    Broken(Break),
    /// Its key is not here: it belongs to another replica, or the key was replaced.
    KeyAway,
}

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
            Self::Missing => f.write_str("it is missing, but later records exist"),
            Self::Extra => f.write_str("no record can have this number"),
            Self::Reordered { belongs_at } => write!(f, "it has the number {belongs_at}"),
            Self::Truncated { known } => {
                write!(f, "it and all later records are missing; the chain had reached record {known}")
            }
            Self::Gap { reason, known: Some(known) } => {
                write!(f, "before it, records up to {known} were lost (`{}`)", reason.escape_debug())
            }
            Self::Gap { reason, known: None } => {
                write!(f, "before it, records may have been lost (`{}`)", reason.escape_debug())
            }
            Self::Counter => f.write_str("the counter in the database does not match the records"),
            Self::HeadDiffers => f.write_str("the head outside the database names another record here"),
            Self::HeadMissing => f.write_str("the head outside the database is missing"),
            Self::HeadForeign { chain } => {
                write!(f, "the head outside the database belongs to the chain `{}`", chain.escape_debug())
            }
            Self::HeadDamaged => f.write_str("the head outside the database was not written with this key"),
        }
    }
}

impl Audit<'_> {
    /// Verifies the chain whose key is here, and lists the others. For operators. Takes time in proportion to the
    /// number of records and constant memory, and may run while others append.
    pub async fn verify(self) -> Result<AuditReport> {
        let own = self.store.chain();
        let mut names = self.chains().await?;
        if !names.iter().any(|name| name == own.name()) {
            names.push(own.name().to_owned());
            names.sort();
        }
        let mut chains = Vec::with_capacity(names.len());
        for name in names {
            chains.push(if name == own.name() {
                self.verify_own(own).await?
            } else {
                self.list(name).await?
            });
        }
        Ok(AuditReport { chains })
    }

    async fn verify_own(self, chain: &Chain) -> Result<ChainReport> {
        // Head and counter are read first: concurrent appends only make the chain longer.
        let known = chain.head.read().await;
        let promised = self.counter(chain).await?.map_or(0, |(seq, _)| seq);
        let mut scan = Scan::new(&known);
        let mut after = i64::MIN;
        loop {
            let page = self.page(chain.name(), after).await?;
            let Some(last) = page.last() else { break };
            after = last.seq();
            for row in page {
                scan.step(chain, row);
            }
        }
        scan.settle_erased();
        if let Some(suspect) = scan.suspect.take()
            && let (Some(belongs_at), Some(found)) =
                (self.place_of(chain, &suspect).await?, scan.broken.as_mut())
        {
            found.fault = Fault::Reordered { belongs_at };
        }
        if scan.broken.is_none() {
            scan.broken = scan.end(promised, self.counter(chain).await?, &known);
        }
        let last = scan.expected - 1;
        let (covered, unreadable) = match chain.head.read().await {
            HeadState::Head(head) => (head.seq, None),
            HeadState::Unreadable(error) => (0, Some(error)),
            _ => (0, None),
        };
        let trouble =
            unreadable.or_else(|| chain.head.trouble().filter(|_| !matches!(known, HeadState::Missing)));
        Ok(ChainReport {
            chain: chain.name().to_owned(),
            records: scan.records,
            first_at: scan.first_at,
            last_at: scan.last_at,
            beyond_head: u64::try_from(last - covered).unwrap_or(0),
            head_trouble: trouble.map(|error| error.to_string()),
            state: scan.broken.map_or(ChainState::Intact, ChainState::Broken),
        })
    }

    async fn list(self, chain: String) -> Result<ChainReport> {
        let (records, first_at, last_at): (i64, Option<i64>, Option<i64>) = self
            .store
            .fetch_one("SELECT count(*), min(at), max(at) FROM audit WHERE chain = $1", args![&chain])
            .await?;
        Ok(ChainReport {
            chain,
            records: u64::try_from(records).unwrap_or(0),
            first_at,
            last_at,
            state: ChainState::KeyAway,
            beyond_head: 0,
            head_trouble: None,
        })
    }

    async fn counter(self, chain: &Chain) -> Result<Option<(i64, Vec<u8>)>> {
        let mut conn = self.store.reader().await?;
        conn.fetch_optional("SELECT seq, mac FROM audit_chains WHERE chain = $1", args![chain.name()]).await
    }

    /// The right position of a record that was moved: after the record whose mac its own is made of. That one may
    /// have been moved too, to the position of the suspect.
    async fn place_of(self, chain: &Chain, suspect: &StoredRecord) -> Result<Option<i64>> {
        let fits = |mac: &[u8; 32], seq| chain.mac(mac, &suspect.mac_fields(seq)) == suspect.mac();
        if fits(&ORIGIN, 1) {
            return Ok(Some(1));
        }
        let mut after = i64::MIN;
        loop {
            let page = self.page(chain.name(), after).await?;
            let Some(last) = page.last() else { return Ok(None) };
            after = last.seq();
            for row in &page {
                let Ok(mac) = <[u8; 32]>::try_from(row.mac()) else { continue };
                for seq in [row.seq(), row.seq().saturating_add(1)] {
                    if seq != suspect.seq() && fits(&mac, seq) {
                        return Ok(Some(seq));
                    }
                }
            }
        }
    }
}

struct Scan<'a> {
    known: &'a HeadState,
    expected: i64,
    mac: [u8; 32],
    records: u64,
    first_at: Option<i64>,
    last_at: Option<i64>,
    broken: Option<Break>,
    /// A record that does not fit here; it may belong elsewhere.
    suspect: Option<StoredRecord>,
    /// Records that say that a text was erased from them, with their seals, until a later record confirms it.
    claims: Vec<(StoredRecord, [u8; 32])>,
    /// What records of this chain say about erased ones; the last one counts.
    confirmed: HashMap<i64, [u8; 32]>,
}

impl<'a> Scan<'a> {
    fn new(known: &'a HeadState) -> Self {
        Self {
            known,
            expected: 1,
            mac: ORIGIN,
            records: 0,
            first_at: None,
            last_at: None,
            broken: None,
            suspect: None,
            claims: Vec::new(),
            confirmed: HashMap::new(),
        }
    }

    /// After the first fault, records are only counted.
    fn step(&mut self, chain: &Chain, row: StoredRecord) {
        self.records += 1;
        self.first_at.get_or_insert(row.at());
        self.last_at = Some(row.at());
        if self.broken.is_some() {
            return;
        }
        let seq = row.seq();
        if seq > self.expected {
            self.broken = Some(Break { seq: self.expected, id: None, fault: Fault::Missing });
            return;
        }
        let mut mac = chain.mac(&self.mac, &row.mac_fields(seq));
        let mut genuine = mac == row.mac();
        if genuine && row.mac_fields(seq).event == erase::EVENT.as_bytes() {
            self.confirmed.extend(erase::listed(row.mac_fields(seq).detail));
        }
        let claim = (!genuine && seq == self.expected).then(|| erase::claim(chain, &row)).flatten();
        if let Some((kept, _)) = claim {
            (mac, genuine) = (kept, true);
        }
        let head_differs = matches!(self.known, HeadState::Head(head) if head.seq == seq && head.mac != mac);
        let fault = if seq < self.expected {
            Some(Fault::Extra)
        } else if !genuine {
            Some(Fault::Changed)
        } else if row.mac_fields(seq).event == GAP.as_bytes() {
            Some(noted(row.mac_fields(seq).detail))
        } else {
            head_differs.then_some(Fault::HeadDiffers)
        };
        match fault {
            None => {
                self.mac = mac;
                self.expected += 1;
                self.claims.extend(claim.map(|(_, seal)| (row, seal)));
            }
            Some(fault) => {
                let id = String::from_utf8_lossy(row.mac_fields(seq).id).into_owned();
                self.suspect = (fault == Fault::Changed).then_some(row);
                self.broken = Some(Break { seq, id: Some(id), fault });
            }
        }
    }

    /// The first record from which the chain did not erase a text was changed by someone else.
    fn settle_erased(&mut self) {
        let is_open = |(row, seal): &(StoredRecord, [u8; 32])| self.confirmed.get(&row.seq()) != Some(seal);
        // After a fault, the record that would confirm a claim was not read.
        let open = self.claims.iter().position(is_open).filter(|_| self.broken.is_none());
        let Some(open) = open else { return };
        let (row, _) = self.claims.swap_remove(open);
        let id = String::from_utf8_lossy(row.mac_fields(row.seq()).id).into_owned();
        self.broken = Some(Break { seq: row.seq(), id: Some(id), fault: Fault::Changed });
        self.suspect = Some(row);
    }

    /// The fault at the end of a chain whose records are right.
    fn end(&self, promised: i64, counter: Option<(i64, Vec<u8>)>, known: &HeadState) -> Option<Break> {
        let last = self.expected - 1;
        let reached = match known {
            HeadState::Head(head) => head.seq.max(promised),
            _ => promised,
        };
        if last < reached {
            return Some(Break { seq: self.expected, id: None, fault: Fault::Truncated { known: reached } });
        }
        let fits = match counter {
            None => last == 0,
            Some((seq, mac)) => seq > last || seq == last && mac == self.mac,
        };
        let fault = match known {
            _ if !fits => Fault::Counter,
            HeadState::Missing => Fault::HeadMissing,
            HeadState::Foreign(chain) => Fault::HeadForeign { chain: chain.clone() },
            HeadState::Damaged => Fault::HeadDamaged,
            HeadState::Head(_) | HeadState::Unreadable(_) => return None,
        };
        Some(Break { seq: last, id: None, fault })
    }
}

fn noted(detail: &[u8]) -> Fault {
    let detail: serde_json::Value = serde_json::from_slice(detail).unwrap_or_default();
    let reason = detail.get("reason").and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
    Fault::Gap { reason, known: detail.get("head_seq").and_then(serde_json::Value::as_i64) }
}
