//! Appending records, and the list of calls without an outcome.

use std::collections::HashSet;

use super::entry::{Action, Actor, AuditOutcome, Call, CallEnd, Entry, Event, Intent, Operation, Record};
use crate::areas::Audit;
use crate::db::{Conn, Value, WriteTx, args, dialect};
use crate::error::Result;

/// A write whose intent is durably recorded. It cannot be constructed otherwise, so no write can be sent unrecorded.
#[must_use = "a write that was begun needs an outcome"]
#[derive(Debug, PartialEq, Eq)]
pub struct RecordedIntent {
    actor: Actor,
    call_id: String,
}

impl RecordedIntent {
    pub fn call_id(&self) -> &str {
        &self.call_id
    }
}

impl Audit<'_> {
    /// Appends a record and waits until it is durable.
    pub async fn append(self, record: Record) -> Result<()> {
        self.store.db().chained().append(record.entry()?).await
    }

    /// Appends a record with the next commit, without waiting for it. While the database cannot be written the record
    /// is kept and retried; when too many are kept this waits, and finally fails. No record is dropped silently.
    pub async fn append_deferred(self, record: Record) -> Result<()> {
        self.store.db().chained().append_deferred(record.entry()?).await
    }

    /// Records the intent of a write. After an error the write must not happen: the record may be missing.
    pub async fn begin(self, actor: &Actor, intent: Intent) -> Result<RecordedIntent> {
        let begun = RecordedIntent { actor: actor.clone(), call_id: intent.call.call_id.clone() };
        self.append(Record { actor: actor.clone(), event: Event::Intent(intent) }).await?;
        Ok(begun)
    }

    /// Records the outcome of a write with the next commit. If the record is lost, the outcome is unknown. An outcome
    /// may follow an `unknown` of [`Audit::close_unknown`] and then counts; no record follows any other outcome.
    pub async fn finish(
        self,
        begun: RecordedIntent,
        outcome: AuditOutcome,
        detail: Option<String>,
    ) -> Result<()> {
        let end = CallEnd { call_id: begun.call_id, outcome, detail };
        self.append_deferred(Record { actor: begun.actor, event: Event::Outcome(end) }).await
    }

    /// Records that the outcome of a write is unknown, if it has none when that is written: there is at most one
    /// `unknown`, and none after an outcome.
    pub async fn close_unknown(self, actor: Actor, call_id: String, detail: Option<String>) -> Result<()> {
        let end = CallEnd { call_id, outcome: AuditOutcome::Unknown, detail };
        let entry = Record { actor, event: Event::Outcome(end) }.entry()?;
        self.store.db().chained().append(entry.if_open()).await
    }
}

impl WriteTx {
    /// Records an operator's action on something of a user in the same commit.
    pub(crate) fn operation(
        &mut self,
        user: &str,
        action: Action,
        subject: &str,
        note: Option<&str>,
    ) -> Result<()> {
        let actor = Actor { user: user.to_owned(), agent: None, session: None, channel: None };
        let operation = Operation { action, subject: subject.to_owned(), note: note.map(str::to_owned) };
        self.record(Record { actor, event: Event::Operator(operation) })
    }

    /// Appends a record in the same commit.
    pub(crate) fn record(&mut self, record: Record) -> Result<()> {
        self.entries.push(record.entry()?);
        Ok(())
    }

    /// Records the intent of a write in the same commit. Return the result only after the commit.
    pub(crate) fn begin_write(&mut self, actor: &Actor, intent: Intent) -> Result<RecordedIntent> {
        let begun = RecordedIntent { actor: actor.clone(), call_id: intent.call.call_id.clone() };
        self.record(Record { actor: actor.clone(), event: Event::Intent(intent) })?;
        Ok(begun)
    }
}

/// The changes of a batch to the list of calls without an outcome.
#[derive(Default)]
pub(super) struct Calls {
    opened: Vec<Vec<Value>>,
    closed: (Vec<String>, Vec<String>),
}

impl Calls {
    pub(super) fn note(&mut self, entry: &Entry, chain: &str, seq: i64) {
        match &entry.call {
            Call::Opens(call_id) => {
                self.opened.push(args![&entry.user, call_id, chain, seq, entry.at]);
            }
            Call::Closes(call_id) => {
                self.closed.0.push(entry.user.clone());
                self.closed.1.push(call_id.clone());
            }
            // Its call was removed by `drop_settled`.
            Call::ClosesOpen(_) | Call::None => {}
        }
    }

    pub(super) async fn write(self, conn: &mut Conn) -> Result<()> {
        if !self.opened.is_empty() {
            conn.insert_rows(
                "INSERT INTO audit_open (user_id, call_id, chain, seq, at)",
                self.opened,
                "ON CONFLICT DO NOTHING",
            )
            .await?;
        }
        if !self.closed.0.is_empty() {
            conn.execute(dialect!(AUDIT_CLOSE), args![self.closed.0, self.closed.1]).await?;
        }
        Ok(())
    }
}

/// Removes the entries that close a call only if it is open, where it is not, and the other calls from the list. The
/// lock of the chain, which every record that closes a call needs, prevents races.
pub(super) async fn drop_settled(conn: &mut Conn, entries: &mut Vec<Entry>) -> Result<()> {
    if !entries.iter().any(|entry| matches!(entry.call, Call::ClosesOpen(_))) {
        return Ok(());
    }
    let closed: HashSet<(String, String)> = entries
        .iter()
        .filter_map(|entry| match &entry.call {
            Call::Closes(call_id) => Some((entry.user.clone(), call_id.clone())),
            _ => None,
        })
        .collect();
    let mut kept = Vec::with_capacity(entries.len());
    for entry in std::mem::take(entries) {
        if let Call::ClosesOpen(call_id) = &entry.call {
            let call = (entry.user.clone(), call_id.clone());
            let is_open = !closed.contains(&call)
                && conn
                    .execute(
                        "DELETE FROM audit_open WHERE user_id = $1 AND call_id = $2",
                        args![&call.0, &call.1],
                    )
                    .await?
                    > 0;
            if !is_open {
                continue;
            }
        }
        kept.push(entry);
    }
    *entries = kept;
    Ok(())
}
