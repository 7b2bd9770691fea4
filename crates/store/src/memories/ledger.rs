//! The row of a scope: its statistics and the last numbers it gave out. Holding it locked is what makes a writer of the
//! scope the only one.

use crate::db::{Conn, args};
use crate::error::{Error, ErrorKind, Result};
use crate::memories::analyze::Document;
use crate::memories::rank::Statistics;
use crate::store::Scope;

/// Its numbers, in the order of the table.
pub(super) type Row = (i64, i64, i64, i64, i64, i64);

const LOCK: &str = "INSERT INTO memory_scopes AS this \
     (user_id, agent, memories, chunks, terms, last_seq, last_session, actors) VALUES ($1, $2, 0, 0, 0, 0, 0, 0) \
     ON CONFLICT (user_id, agent) DO UPDATE SET last_seq = this.last_seq \
     RETURNING memories, chunks, terms, last_seq, last_session, actors";
const WRITE: &str = "UPDATE memory_scopes SET memories = $3, chunks = $4, terms = $5, last_seq = $6, \
     last_session = $7, actors = $8 WHERE user_id = $1 AND agent = $2";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ledger {
    memories: i64,
    chunks: i64,
    terms: i64,
    last_seq: i64,
    last_session: i64,
    /// Number of distinct actors of its memories, "no actor" included.
    pub(super) actors: i64,
}

impl Ledger {
    /// Locks the scope for a writer, until its transaction ends.
    pub(super) async fn lock(conn: &mut Conn, scope: &Scope) -> Result<Self> {
        Ok(Self::of(conn.fetch_one(LOCK, args![scope.user(), scope.agent()]).await?))
    }

    pub(super) async fn write(&self, conn: &mut Conn, scope: &Scope) -> Result<()> {
        let Self { memories, chunks, terms, last_seq, last_session, actors } = *self;
        let values =
            args![scope.user(), scope.agent(), memories, chunks, terms, last_seq, last_session, actors];
        conn.execute(WRITE, values).await.map(drop)
    }

    pub(super) fn of((memories, chunks, terms, last_seq, last_session, actors): Row) -> Self {
        Self { memories, chunks, terms, last_seq, last_session, actors }
    }

    pub(super) fn next_seq(&mut self) -> Result<u32> {
        advance(&mut self.last_seq, "memories")
    }

    pub(super) fn next_session(&mut self) -> Result<u32> {
        advance(&mut self.last_session, "sessions")
    }

    /// Whether the scope has become so much larger that a database's idea of it is out of date: at 1,024 memories, and
    /// whenever there are four times as many.
    pub(super) fn has_outgrown(&self, before: &Self) -> bool {
        let marks = std::iter::successors(Some(1024_i64), |mark| mark.checked_mul(4));
        marks.take_while(|mark| *mark <= self.last_seq).any(|mark| mark > before.last_seq)
    }

    /// Whether the scope never had more memories than this.
    pub(super) fn is_within(&self, count: u32) -> bool {
        self.last_seq <= i64::from(count)
    }

    /// Counts a memory that is found from now on.
    pub(super) fn add(&mut self, document: &Document) {
        self.count(document, 1);
    }

    /// Counts a memory that is no longer found.
    pub(super) fn remove(&mut self, document: &Document) {
        self.count(document, -1);
    }

    fn count(&mut self, document: &Document, sign: i64) {
        let chunks = i64::try_from(document.chunks.len()).unwrap_or(i64::MAX);
        let terms = i64::try_from(document.length()).unwrap_or(i64::MAX);
        self.memories += sign;
        self.chunks += sign * chunks;
        self.terms += sign * terms;
    }

    /// Forgets what was counted, to count anew.
    pub(super) fn clear_statistics(&mut self) {
        (self.memories, self.chunks, self.terms) = (0, 0, 0);
    }

    pub(super) fn statistics(&self) -> Statistics {
        let positive = |count: i64| u64::try_from(count).unwrap_or(0);
        Statistics {
            memories: positive(self.memories),
            chunks: positive(self.chunks),
            terms: positive(self.terms),
        }
    }
}

fn advance(last: &mut i64, what: &str) -> Result<u32> {
    let next = u32::try_from(*last + 1)
        .map_err(|_| Error::new(ErrorKind::Full, format!("the agent cannot hold more {what}")))?;
    *last = i64::from(next);
    Ok(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_refreshed_now_and_then() {
        let at = |last_seq| Ledger { last_seq, ..Ledger::default() };
        assert!(at(1024).has_outgrown(&at(1023)) && at(5000).has_outgrown(&at(4000)));
        assert!(!at(1023).has_outgrown(&at(0)) && !at(4095).has_outgrown(&at(1024)));
        assert!(at(i64::MAX).has_outgrown(&at(0)) && !at(i64::MAX).has_outgrown(&at(i64::MAX)));
    }
}
