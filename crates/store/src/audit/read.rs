//! Reading the chain: the newest records, all of them, and the writes without an outcome. For operators: it crosses
//! users unless it says whose.

use std::collections::BTreeMap;
use std::io::Write;

use serde::Serialize;
use serde_json::value::RawValue;

use super::chain::RecordFields;
use crate::areas::Audit;
use crate::db::{Conn, Sql, args, dialect};
use crate::error::{Error, Result};
use crate::store::{Store, check_name, hex};

/// Records of one page; each has at most 16 KiB unless it was tampered with.
const PAGE: u32 = 256;
const TAIL_LIMIT: u32 = 10_000;

/// Records, with their texts as bytes: one that was tampered with may contain invalid UTF-8.
macro_rules! records {
    ($from:expr) => {
        Sql {
            sqlite: concat!(
                "SELECT a.seq, a.at, CAST(a.chain AS BLOB), CAST(a.id AS BLOB), CAST(a.user_id AS BLOB), \
                 CAST(a.agent AS BLOB), CAST(a.session AS BLOB), CAST(a.channel AS BLOB), \
                 CAST(a.event AS BLOB), CAST(a.detail AS BLOB), a.mac FROM ",
                $from
            ),
            pg: concat!(
                "SELECT a.seq, a.at, convert_to(a.chain, 'UTF8'), convert_to(a.id, 'UTF8'), \
                 convert_to(a.user_id, 'UTF8'), convert_to(a.agent, 'UTF8'), convert_to(a.session, 'UTF8'), \
                 convert_to(a.channel, 'UTF8'), convert_to(a.event, 'UTF8'), convert_to(a.detail, 'UTF8'), \
                 a.mac FROM ",
                $from
            ),
        }
    };
}

const RECORDS_AFTER: Sql = records!("audit a WHERE a.chain = $1 AND a.seq > $2 ORDER BY a.seq LIMIT +$3");
const OF_USER_AFTER: Sql =
    records!("audit a WHERE a.chain = $1 AND a.seq > $2 AND a.user_id = $4 ORDER BY a.seq LIMIT +$3");
const NEWEST: Sql = records!("audit a ORDER BY a.at DESC, a.chain DESC, a.seq DESC LIMIT +$1");
const NEWEST_OF_USER: Sql =
    records!("audit a WHERE a.user_id = $2 ORDER BY a.at DESC, a.chain DESC, a.seq DESC LIMIT +$1");
/// Of all users, or of one; from a time to a time, before the last record of the page before.
macro_rules! newest_before {
    ($user:literal) => {
        records!(concat!(
            "audit a WHERE a.at >= $2 AND a.at < $3 AND (a.at, a.chain, a.seq) < ($4, $5, $6)",
            $user,
            " ORDER BY a.at DESC, a.chain DESC, a.seq DESC LIMIT +$1"
        ))
    };
}

const BEFORE: Sql = newest_before!(" AND $7 = ''");
const BEFORE_OF_USER: Sql = newest_before!(" AND a.user_id = $7");
const OPEN: Sql = records!(
    "audit_open o JOIN audit a ON a.chain = o.chain AND a.seq = o.seq \
     WHERE o.at < $1 ORDER BY o.at, o.chain, o.seq LIMIT +$2"
);

/// A record as it is stored. Events of newer versions stay as they are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditRecord {
    pub chain: String,
    /// Position in the chain, from 1.
    pub seq: i64,
    pub id: String,
    pub at: i64,
    /// Empty for records of the chain about itself.
    pub user: String,
    pub agent: Option<String>,
    pub session: Option<String>,
    pub channel: Option<String>,
    pub event: String,
    /// The event as JSON.
    #[serde(serialize_with = "as_json")]
    pub detail: String,
    /// Keyed hash in hexadecimal.
    pub mac: String,
}

impl AuditRecord {
    /// One line of JSON, without the line end.
    pub fn json_line(&self) -> String {
        // A struct of texts, numbers and raw JSON always serializes.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// A text member of the event, such as `call_id`.
    pub fn text(&self, member: &str) -> Option<String> {
        let detail: serde_json::Value = serde_json::from_str(&self.detail).ok()?;
        detail.get(member)?.as_str().map(str::to_owned)
    }
}

pub struct AuditPages {
    store: Store,
    chains: std::vec::IntoIter<String>,
    current: Option<(String, i64)>,
}

impl AuditPages {
    pub async fn next(&mut self) -> Result<Option<Vec<AuditRecord>>> {
        loop {
            let (chain, after) = match self.current.take() {
                Some(place) => place,
                None => match self.chains.next() {
                    Some(chain) => (chain, i64::MIN),
                    None => return Ok(None),
                },
            };
            let rows = self.store.audit().page(&chain, after).await?;
            if let Some(last) = rows.last() {
                self.current = Some((chain, last.seq()));
                return Ok(Some(rows.into_iter().map(AuditRecord::from).collect()));
            }
        }
    }
}

/// Which records a [`AuditTail`] has.
#[derive(Clone, Debug)]
pub struct AuditRange {
    /// `None`: of all users.
    pub user: Option<String>,
    /// In microseconds; `until` is not part of it.
    pub since: i64,
    pub until: i64,
}

/// The records of a range, newest first, page by page.
pub struct AuditTail {
    store: Store,
    range: AuditRange,
    last: Option<(i64, String, i64)>,
}

impl AuditTail {
    /// The next older ones; empty at the end.
    pub async fn next(&mut self) -> Result<Vec<AuditRecord>> {
        let AuditRange { user, since, until } = &self.range;
        let (at, chain, seq) = self.last.clone().unwrap_or((i64::MAX, String::new(), 0));
        let statement = if user.is_some() { BEFORE_OF_USER } else { BEFORE };
        let values = args![PAGE, *since, *until, at, chain, seq, user.as_deref().unwrap_or_default()];
        let rows: Vec<Row> = self.store.fetch_all(statement, values).await?;
        let records: Vec<AuditRecord> =
            rows.into_iter().map(|row| AuditRecord::from(StoredRecord(row))).collect();
        if let Some(last) = records.last() {
            self.last = Some((last.at, last.chain.clone(), last.seq));
        }
        Ok(records)
    }
}

const LAST: Sql = Sql {
    sqlite: "SELECT CAST(chain AS BLOB), seq FROM audit_chains",
    pg: "SELECT convert_to(chain, 'UTF8'), seq FROM audit_chains",
};

/// Follows all chains: returns each record that is added once.
pub struct AuditFollower {
    store: Store,
    /// The last record that was seen of each chain.
    seen: BTreeMap<String, i64>,
}

impl AuditFollower {
    /// Does not return a record that was read in another way.
    pub fn skip(&mut self, record: &AuditRecord) {
        let seen = self.seen.entry(record.chain.clone()).or_insert(record.seq);
        *seen = record.seq.max(*seen);
    }

    /// The records that were added since the last call, by time.
    pub async fn next(&mut self) -> Result<Vec<AuditRecord>> {
        let audit = self.store.audit();
        let mut found = Vec::new();
        for chain in audit.chains().await? {
            let seen = self.seen.get(&chain).copied().unwrap_or(i64::MIN);
            let rows = audit.page(&chain, seen).await?;
            if let Some(last) = rows.last() {
                self.seen.insert(chain, last.seq());
            }
            found.extend(rows.into_iter().map(AuditRecord::from));
        }
        found.sort_by_key(|record| record.at);
        Ok(found)
    }
}

impl Audit<'_> {
    /// The records of a range, newest first.
    pub fn newest_first(self, range: AuditRange) -> AuditTail {
        AuditTail { store: self.store.clone(), range, last: None }
    }

    /// From now on.
    pub async fn follow(self) -> Result<AuditFollower> {
        let mut seen = BTreeMap::new();
        let last: Vec<(Text, i64)> = self.store.fetch_all(LAST, Vec::new()).await?;
        seen.extend(last.into_iter().map(|(chain, seq)| (String::from_utf8_lossy(&chain).into_owned(), seq)));
        Ok(AuditFollower { store: self.store.clone(), seen })
    }

    /// The newest records, of all users or of one, the oldest of them first; ordered by time, chain and seq.
    pub async fn tail(self, count: u32, user: Option<&str>) -> Result<Vec<AuditRecord>> {
        let count = count.min(TAIL_LIMIT);
        let mut conn = self.store.reader().await?;
        let rows: Vec<Row> = match user {
            None => conn.fetch_all(NEWEST, args![count]).await?,
            Some(user) => {
                check_name("user", user)?;
                conn.fetch_all(NEWEST_OF_USER, args![count, user]).await?
            }
        };
        Ok(rows.into_iter().rev().map(|row| AuditRecord::from(StoredRecord(row))).collect())
    }

    /// All records, page by page: chains by name, records in the order of the chain.
    pub async fn pages(self) -> Result<AuditPages> {
        let chains = self.chains().await?.into_iter();
        Ok(AuditPages { store: self.store.clone(), chains, current: None })
    }

    /// Writes all records as JSON Lines, in the order of [`Audit::pages`]; returns how many.
    pub async fn export(self, out: &mut (dyn Write + Send)) -> Result<u64> {
        let mut pages = self.pages().await?;
        let mut count = 0;
        let failed = |error| Error::file("cannot write the export of the audit chain", error);
        while let Some(page) = pages.next().await? {
            for record in page {
                writeln!(out, "{}", record.json_line()).map_err(failed)?;
                count += 1;
            }
        }
        out.flush().map_err(failed)?;
        Ok(count)
    }

    /// The intents of writes without an outcome before this time, oldest first. Those of ended processes have the
    /// outcome `unknown`; give a time before which no process can still be waiting.
    pub async fn open_writes(self, before: i64, limit: u32) -> Result<Vec<AuditRecord>> {
        let rows: Vec<Row> = self.store.fetch_all(OPEN, args![before, limit.min(TAIL_LIMIT)]).await?;
        Ok(rows.into_iter().map(|row| AuditRecord::from(StoredRecord(row))).collect())
    }

    pub(super) async fn page(self, chain: &str, after: i64) -> Result<Vec<StoredRecord>> {
        let mut conn = self.store.reader().await?;
        let rows: Vec<Row> = conn.fetch_all(RECORDS_AFTER, args![chain, after, PAGE]).await?;
        Ok(rows.into_iter().map(StoredRecord).collect())
    }

    /// All chains with records or a counter.
    pub(super) async fn chains(self) -> Result<Vec<String>> {
        chains(&mut self.store.reader().await?).await
    }
}

pub(super) async fn chains(conn: &mut Conn) -> Result<Vec<String>> {
    let rows: Vec<(Text,)> = conn.fetch_all(dialect!(AUDIT_CHAINS), Vec::new()).await?;
    Ok(rows.into_iter().map(|(chain,)| String::from_utf8_lossy(&chain).into_owned()).collect())
}

/// The next records of a user in a chain.
pub(super) async fn page_of_user(
    conn: &mut Conn,
    chain: &str,
    user: &str,
    after: i64,
) -> Result<Vec<StoredRecord>> {
    let rows: Vec<Row> = conn.fetch_all(OF_USER_AFTER, args![chain, after, PAGE, user]).await?;
    Ok(rows.into_iter().map(StoredRecord).collect())
}

type Text = Vec<u8>;
type Row = (i64, i64, Text, Text, Text, Option<Text>, Option<Text>, Option<Text>, Text, Text, Vec<u8>);

/// A record as the database has it; its texts may be invalid.
pub(super) struct StoredRecord(Row);

impl StoredRecord {
    pub(super) fn seq(&self) -> i64 {
        self.0.0
    }

    pub(super) fn at(&self) -> i64 {
        self.0.1
    }

    pub(super) fn mac(&self) -> &[u8] {
        &self.0.10
    }

    /// The fields of its mac, at this position.
    pub(super) fn mac_fields(&self, seq: i64) -> RecordFields<'_> {
        let (_, at, _, id, user, agent, session, channel, event, detail, _) = &self.0;
        RecordFields {
            seq,
            at: *at,
            id,
            user,
            agent: agent.as_deref(),
            session: session.as_deref(),
            channel: channel.as_deref(),
            event,
            detail,
        }
    }
}

impl From<StoredRecord> for AuditRecord {
    fn from(StoredRecord(row): StoredRecord) -> Self {
        let (seq, at, chain, id, user, agent, session, channel, event, detail, mac) = row;
        let text = |bytes: Text| String::from_utf8_lossy(&bytes).into_owned();
        Self {
            chain: text(chain),
            seq,
            id: text(id),
            at,
            user: text(user),
            agent: agent.map(text),
            session: session.map(text),
            channel: channel.map(text),
            event: text(event),
            detail: text(detail),
            mac: hex(&mac),
        }
    }
}

/// JSON stays as it is, byte for byte; anything else, and text with line ends, becomes a string.
fn as_json<S: serde::Serializer>(detail: &str, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    match serde_json::from_str::<&RawValue>(detail) {
        Ok(raw) if !detail.contains(['\n', '\r']) && raw.get().len() == detail.len() => {
            raw.serialize(serializer)
        }
        _ => serializer.serialize_str(detail),
    }
}
