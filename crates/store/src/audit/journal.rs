//! Putting things on record: durable before it returns, or soon.

use super::entry::{Actor, CallEnd, Event, Intent, Outcome, Record};
use super::operation::{Action, Operation};
use crate::areas::Audit;
use crate::db::WriteTx;
use crate::error::Result;

/// A write whose intent is on record, durably. Nothing else can make one, so whoever asks for it cannot act unrecorded.
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
    /// Puts something on record and waits until it is durable.
    pub async fn append(self, record: Record) -> Result<()> {
        self.store.db().chained().append(record.entry()?).await
    }

    /// Puts something on record with the next commit, without waiting for it. While the database cannot be written the
    /// record is kept and tried again; when too many are kept this waits, and in the end fails. None is left out silently.
    pub async fn append_deferred(self, record: Record) -> Result<()> {
        self.store.db().chained().append_soon(record.entry()?).await
    }

    /// Puts the intent of a write on record. When this returns an error the write must not happen: the record may be
    /// missing.
    pub async fn begin(self, actor: &Actor, intent: Intent) -> Result<RecordedIntent> {
        let begun = RecordedIntent { actor: actor.clone(), call_id: intent.call.call_id.clone() };
        self.append(Record { actor: actor.clone(), event: Event::Intent(intent) }).await?;
        Ok(begun)
    }

    /// Puts on record what became of a write, with the next commit. If it is lost, the outcome is unknown. Whoever made the
    /// write knows better than whoever gave it up: an outcome may follow an `unknown` of [`Audit::close_unknown`], and then
    /// counts; nothing follows any other.
    pub async fn finish(self, begun: RecordedIntent, outcome: Outcome, detail: Option<String>) -> Result<()> {
        let end = CallEnd { call_id: begun.call_id, outcome, detail };
        self.append_deferred(Record { actor: begun.actor, event: Event::Outcome(end) }).await
    }
}

impl Audit<'_> {
    /// Puts on record that nobody knows what became of a write, if it still has no outcome when that is written: however
    /// many give it up, and however late its outcome comes, there is one `unknown` at most, and none after an outcome.
    pub async fn close_unknown(self, actor: Actor, call_id: String, detail: Option<String>) -> Result<()> {
        let end = CallEnd { call_id, outcome: Outcome::Unknown, detail };
        let entry = Record { actor, event: Event::Outcome(end) }.entry()?;
        self.store.db().chained().append(entry.if_open()).await
    }
}

impl WriteTx {
    /// Puts on record, in the same commit, what an operator does to something of a user.
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

    /// Puts something on record in the same commit as the rest of this write.
    pub(crate) fn record(&mut self, record: Record) -> Result<()> {
        self.entries.push(record.entry()?);
        Ok(())
    }

    /// Puts the intent of a write on record in the same commit as the rest of this write. Hand the result out only after
    /// the commit.
    pub(crate) fn begin_write(&mut self, actor: &Actor, intent: Intent) -> Result<RecordedIntent> {
        let begun = RecordedIntent { actor: actor.clone(), call_id: intent.call.call_id.clone() };
        self.record(Record { actor: actor.clone(), event: Event::Intent(intent) })?;
        Ok(begun)
    }
}
