//! One chain: how records join it, and what is recorded when the database does not match the chain's head.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};

use super::entry::Entry;
use super::head::{Head, HeadKeeper, HeadState, NewHead};
use super::journal::{Calls, drop_settled};
use super::key::Key;
use crate::db::{Conn, args};
use crate::error::{Error, ErrorKind, Result};
use crate::store::hex;

/// The mac before the first record.
pub(super) const ORIGIN: [u8; 32] = [0; 32];

pub(crate) struct Chain {
    key: [u8; 32],
    name: String,
    pub(super) head: HeadKeeper,
    /// Length of the chain after our last confirmed commit.
    committed: AtomicI64,
}

/// The files of a chain that must not be in the database.
pub(crate) struct ChainFiles {
    pub(crate) key: PathBuf,
    pub(crate) head: PathBuf,
}

/// The fields of a record's mac, as they are stored.
pub(super) struct RecordFields<'a> {
    pub(super) seq: i64,
    pub(super) at: i64,
    pub(super) id: &'a [u8],
    pub(super) user: &'a [u8],
    pub(super) agent: Option<&'a [u8]>,
    pub(super) session: Option<&'a [u8]>,
    pub(super) channel: Option<&'a [u8]>,
    pub(super) event: &'a [u8],
    pub(super) detail: &'a [u8],
}

impl Chain {
    /// A chain whose key lives as long as the process.
    pub(crate) fn forgotten() -> Result<Self> {
        Ok(Self::of(Key::forgotten()?, None))
    }

    /// The chain whose key is in the file; a missing key is created, together with its head. A key without records
    /// and without a head gets no head: its chain once had one.
    pub(crate) async fn open(files: ChainFiles, conn: &mut Conn) -> Result<Self> {
        let (key, is_new) = Key::open(&files.key)?;
        let chain = Self::of(key, Some(files.head.clone()));
        let length: Option<(i64,)> =
            conn.fetch_optional("SELECT seq FROM audit_chains WHERE chain = $1", args![&chain.name]).await?;
        let length = length.map_or(0, |(seq,)| seq);
        chain.committed.store(length, Ordering::Relaxed);
        if is_new {
            chain.head.begin().map_err(|error| {
                Error::file(format!("cannot make the audit head `{}`", files.head.display()), error)
            })?;
        } else if length == 0 {
            chain.head.wait_for_begin().await;
        }
        Ok(chain)
    }

    fn of(key: Key, head: Option<PathBuf>) -> Self {
        let head = HeadKeeper::new(key.name.clone(), key.head, head);
        Self { key: key.records, name: key.name, head, committed: AtomicI64::new(0) }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Appends the entries inside the caller's transaction, which locks the row of the chain until it ends.
    pub(crate) async fn seal(&self, conn: &mut Conn, mut entries: Vec<Entry>) -> Result<Option<NewHead>> {
        if entries.is_empty() {
            return Ok(None);
        }
        let sql = "INSERT INTO audit_chains AS this (chain, seq, mac) VALUES ($1, 0, $2) \
             ON CONFLICT (chain) DO UPDATE SET seq = this.seq RETURNING seq, mac";
        let (mut seq, mac): (i64, Vec<u8>) =
            conn.fetch_one(sql, args![&self.name, ORIGIN.as_slice()]).await?;
        let mut mac: [u8; 32] = mac.try_into().unwrap_or(ORIGIN);
        self.drop_written(conn, &mut entries).await?;
        drop_settled(conn, &mut entries).await?;
        if entries.is_empty() {
            return Ok(Some(NewHead { head: Head { seq, mac }, noted: None }));
        }
        let known = self.head.read().await;
        let mut noted = None;
        let forked = self.forked(conn, &known, seq).await?;
        if let Some(gap) = gap(&known, Head { seq, mac }, forked) {
            noted = known.head();
            tracing::error!(chain = %self.name, seq, "the audit chain does not match its head");
            entries.insert(0, gap);
        }
        let mut rows = Vec::with_capacity(entries.len());
        let mut calls = Calls::default();
        for entry in entries {
            seq += 1;
            mac = self.mac(&mac, &mac_fields(&entry, seq));
            calls.note(&entry, &self.name, seq);
            rows.push(self.row(entry, seq, &mac));
        }
        insert(conn, rows).await?;
        calls.write(conn).await?;
        let sql = "UPDATE audit_chains SET seq = $2, mac = $3 WHERE chain = $1";
        conn.execute(sql, args![&self.name, seq, mac.as_slice()]).await?;
        Ok(Some(NewHead { head: Head { seq, mac }, noted }))
    }

    /// Stores the head outside the database, after the commit.
    pub(crate) async fn publish(&self, reached: &NewHead) {
        self.committed.store(reached.head.seq, Ordering::Relaxed);
        self.head.advance(reached).await;
    }

    pub(crate) fn close(&self) {
        self.head.sync();
    }

    /// The mac of a record that follows one with the mac `before`.
    pub(super) fn mac(&self, before: &[u8; 32], record: &RecordFields<'_>) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(before).update(&record.seq.to_le_bytes()).update(&record.at.to_le_bytes());
        for field in [record.id, record.user, record.event, record.detail] {
            hasher.update(&(field.len() as u64).to_le_bytes()).update(field);
        }
        for field in [record.agent, record.session, record.channel] {
            // `None` and an empty text differ.
            let length = field.map_or(u64::MAX, |field| field.len() as u64);
            hasher.update(&length.to_le_bytes()).update(field.unwrap_or_default());
        }
        *hasher.finalize().as_bytes()
    }

    /// Whether the head belongs to records that the chain, though longer, does not have: after a gap a chain may be
    /// shorter than before, and the old database may be restored.
    async fn forked(&self, conn: &mut Conn, known: &HeadState, length: i64) -> Result<bool> {
        let Some(head) = known.head().filter(|head| (1..length).contains(&head.seq)) else {
            return Ok(false);
        };
        let sql = "SELECT mac FROM audit WHERE chain = $1 AND seq = $2";
        let stored: Option<(Vec<u8>,)> = conn.fetch_optional(sql, args![&self.name, head.seq]).await?;
        Ok(stored.is_none_or(|(mac,)| mac != head.mac))
    }

    /// Removes the entries that an earlier attempt wrote, when the connection broke before the commit was confirmed.
    async fn drop_written(&self, conn: &mut Conn, entries: &mut Vec<Entry>) -> Result<()> {
        if !entries.iter().any(|entry| entry.tried) {
            return Ok(());
        }
        let sql = "SELECT id FROM audit WHERE chain = $1 AND seq > $2";
        let written: Vec<(String,)> =
            conn.fetch_all(sql, args![&self.name, self.committed.load(Ordering::Relaxed)]).await?;
        let written: HashSet<String> = written.into_iter().map(|(id,)| id).collect();
        entries.retain(|entry| !entry.tried || !written.contains(&entry.id));
        Ok(())
    }

    fn row(&self, entry: Entry, seq: i64, mac: &[u8; 32]) -> Vec<crate::db::Value> {
        args![
            &self.name,
            seq,
            entry.id,
            entry.at,
            entry.user,
            entry.agent,
            entry.session,
            entry.channel,
            entry.event,
            entry.detail,
            mac.as_slice()
        ]
    }
}

fn mac_fields(entry: &Entry, seq: i64) -> RecordFields<'_> {
    RecordFields {
        seq,
        at: entry.at,
        id: entry.id.as_bytes(),
        user: entry.user.as_bytes(),
        agent: entry.agent.as_deref().map(str::as_bytes),
        session: entry.session.as_deref().map(str::as_bytes),
        channel: entry.channel.as_deref().map(str::as_bytes),
        event: entry.event.as_bytes(),
        detail: entry.detail.as_bytes(),
    }
}

async fn insert(conn: &mut Conn, rows: Vec<Vec<crate::db::Value>>) -> Result<()> {
    let done = conn
        .insert_rows(
            "INSERT INTO audit (chain, seq, id, at, user_id, agent, session, channel, event, detail, mac)",
            rows,
            "",
        )
        .await;
    done.map_err(|error| match error.kind() {
        ErrorKind::Conflict => {
            Error::new(ErrorKind::Corrupt, "the audit chain has records beyond its counter")
                .because(error)
                .hint("the database was changed by another program: `embody audit verify` reports where")
        }
        _ => error,
    })
}

/// The record to add when the database does not match the head. An older head is usual after a crash.
fn gap(known: &HeadState, found: Head, forked: bool) -> Option<Entry> {
    let reason = match known {
        HeadState::Head(_) if forked => "head_differs",
        HeadState::Head(head) if head.seq < found.seq || *head == found => return None,
        HeadState::Unreadable(error) => {
            tracing::warn!(reason = %error, "the head of the audit chain cannot be read");
            return None;
        }
        HeadState::Head(head) if head.seq == found.seq => "head_differs",
        HeadState::Head(_) => "records_lost",
        HeadState::Missing => "head_missing",
        HeadState::Foreign(_) => "head_foreign",
        HeadState::Damaged => "head_damaged",
    };
    let head = known.head();
    Some(Entry::note(
        GAP,
        &serde_json::json!({
            "reason": reason,
            "found_seq": found.seq,
            "head_seq": head.map(|head| head.seq),
            "head_mac": head.map(|head| hex(&head.mac)),
        }),
    ))
}

/// The event of a record which says that the records before it do not match the head.
pub(super) const GAP: &str = "gap";

#[cfg(test)]
mod tests {
    use super::super::{Action, Actor, Event, Operation, Record};
    use crate::audit::ChainState;
    use crate::store::{DatabaseUrl, Store};

    /// The connection breaks while committing, the commit happens, and the record is retried.
    #[tokio::test]
    async fn a_record_that_was_written_after_all_is_not_written_twice() {
        let store = Store::open(DatabaseUrl::Memory).await.unwrap();
        let actor = Actor { user: "ann".into(), agent: None, session: None, channel: None };
        let record = |subject: &str| {
            let event =
                Event::Operator(Operation { action: Action::Other, subject: subject.into(), note: None });
            Record { actor: actor.clone(), event }.entry().unwrap()
        };
        let mut again = record("once");
        let mut conn = store.db().reader().await.unwrap();
        conn.execute("BEGIN IMMEDIATE", Vec::new()).await.unwrap();
        store.chain().seal(&mut conn, vec![again.clone()]).await.unwrap();
        conn.commit().await.unwrap();
        again.tried = true;
        store.db().chained().append(again).await.unwrap();
        store.db().chained().append(record("other")).await.unwrap();
        let report = store.audit().verify().await.unwrap();
        assert_eq!((report.chains[0].records, &report.chains[0].state), (2, &ChainState::Intact));
    }
}
