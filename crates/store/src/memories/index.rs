//! The postings in their table, and the row of a scope with its statistics and last numbers. A writer locks that row.

use std::collections::{BTreeMap, HashMap};

use crate::db::{Conn, Sql, Value, args, dialect, listed};
use crate::error::{Error, ErrorKind, Result};
use crate::memories::analyze::{Document, Term};
use crate::memories::postings::{self, Block, DamagedBlock, OPEN, Posting, Tail};
use crate::memories::rank::Statistics;
use crate::store::Scope;

pub(super) const TAILS: Sql = listed!(
    "SELECT term, data FROM memory_postings WHERE user_id = $1 AND agent = $2 AND block = 9223372036854775807 AND term",
    "$3",
    ""
);
const INSERT: &str = "INSERT INTO memory_postings (user_id, agent, term, block, data)";
const REPLACE: &str = "ON CONFLICT (user_id, agent, term, block) DO UPDATE SET data = excluded.data";
const REMOVE: &str =
    "DELETE FROM memory_postings WHERE user_id = $1 AND agent = $2 AND term = $3 AND block = $4";

pub(super) struct IndexedMemory<'a> {
    pub(super) seq: u32,
    pub(super) session: u32,
    pub(super) document: &'a Document,
}

impl IndexedMemory<'_> {
    fn postings(&self) -> BTreeMap<Term, Vec<Posting>> {
        let mut postings: BTreeMap<Term, Vec<Posting>> = BTreeMap::new();
        for (chunk, part) in (0..).zip(&self.document.chunks) {
            for (term, count) in &part.counts {
                let (seq, session) = (self.seq, self.session);
                let posting = Posting { seq, session, chunk, count: *count, length: part.length };
                postings.entry(*term).or_default().push(posting);
            }
        }
        postings
    }
}

/// Appends memories that are newer than all others of the scope, in their order.
pub(super) async fn append(conn: &mut Conn, scope: &Scope, memories: &[IndexedMemory<'_>]) -> Result<()> {
    let postings: Vec<_> = memories.iter().map(IndexedMemory::postings).collect();
    let mut terms: Vec<i64> =
        postings.iter().flat_map(|postings| postings.keys()).map(|term| term.0).collect();
    terms.sort_unstable();
    terms.dedup();
    if terms.is_empty() {
        return Ok(());
    }
    let rows: Vec<(i64, Vec<u8>)> = conn.fetch_all(TAILS, args![scope.user(), scope.agent(), terms]).await?;
    let mut tails: BTreeMap<Term, Tail> = BTreeMap::new();
    for (term, data) in rows {
        tails.insert(Term(term), Tail::open(&data).map_err(|error| damaged(term, error))?);
    }
    let mut blocks = Vec::new();
    for (term, postings) in postings.iter().flatten() {
        let closed = tails.entry(*term).or_default().push(postings);
        blocks.extend(closed.map(|block| (*term, block)));
    }
    blocks.extend(tails.iter().map(|(term, tail)| (*term, tail.block())));
    write(conn, scope, blocks).await
}

/// Replaces the postings of a memory; `before` or `after` is `None` when it was or will not be found.
pub(super) async fn exchange(
    conn: &mut Conn,
    scope: &Scope,
    before: Option<IndexedMemory<'_>>,
    after: Option<IndexedMemory<'_>>,
) -> Result<()> {
    let Some(seq) = before.as_ref().or(after.as_ref()).map(|placed| placed.seq) else { return Ok(()) };
    let old = before.map(|placed| placed.postings()).unwrap_or_default();
    let new = after.map(|placed| placed.postings()).unwrap_or_default();
    let mut terms: Vec<i64> = old.keys().chain(new.keys()).map(|term| term.0).collect();
    terms.sort_unstable();
    terms.dedup();
    let rows: Vec<(i64, i64, Vec<u8>)> = conn
        .fetch_all(dialect!(MEMORY_BLOCKS), args![scope.user(), scope.agent(), terms.clone(), i64::from(seq)])
        .await?;
    let mut found: HashMap<i64, Block> =
        rows.into_iter().map(|(term, key, data)| (term, Block { key, data })).collect();
    let mut blocks = Vec::new();
    for term in terms {
        let postings = new.get(&Term(term)).map(Vec::as_slice).unwrap_or_default();
        let block = found.remove(&term).unwrap_or_else(|| Tail::default().block());
        let replaced = postings::replace(&block, seq, postings).map_err(|error| damaged(term, error))?;
        if replaced.is_empty() {
            conn.execute(REMOVE, args![scope.user(), scope.agent(), term, block.key]).await?;
        }
        blocks.extend(replaced.into_iter().map(|block| (Term(term), block)));
    }
    write(conn, scope, blocks).await
}

pub(super) struct PackedPostings {
    terms: Vec<Term>,
    rows: Vec<(i64, Vec<u8>)>,
}

impl PackedPostings {
    /// Blocks of these terms, in order for each term.
    pub(super) fn new(terms: Vec<Term>, rows: Vec<(i64, Vec<u8>)>) -> Self {
        Self { terms, rows }
    }

    pub(super) fn len(&self) -> usize {
        self.rows.iter().map(|(_, data)| data.len()).sum()
    }

    /// The list of each term, in the order of `terms`.
    pub(super) fn unpack(self) -> Result<Vec<Vec<Posting>>> {
        let mut lists: Vec<Vec<Posting>> = vec![Vec::new(); self.terms.len()];
        let places: HashMap<i64, usize> = self.terms.iter().map(|term| term.0).zip(0..).collect();
        for (term, data) in &self.rows {
            let list = places.get(term).and_then(|place| lists.get_mut(*place));
            list.map_or(Ok(()), |list| postings::decode(data, list))
                .map_err(|error| damaged(*term, error))?;
        }
        Ok(lists)
    }
}

async fn write(conn: &mut Conn, scope: &Scope, blocks: Vec<(Term, Block)>) -> Result<()> {
    let row = |(term, block): (Term, Block)| -> Vec<Value> {
        args![scope.user(), scope.agent(), term.0, block.key, block.data]
    };
    conn.insert_rows(INSERT, blocks.into_iter().map(row).collect(), REPLACE).await
}

fn damaged(term: i64, error: DamagedBlock) -> Error {
    Error::new(ErrorKind::Corrupt, format!("the memory index cannot be read at term `{term}`"))
        .because(error)
        .hint("the memories themselves are intact: rebuild their index")
}

const _: () =
    assert!(OPEN == 9_223_372_036_854_775_807, "the statement that reads open blocks names their key");

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
    /// Locks the scope until the transaction ends.
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

    /// Whether the scope has grown so much that the database's statistics are out of date: at 1,024 memories, and at
    /// every fourfold of that.
    pub(super) fn has_outgrown(&self, before: &Self) -> bool {
        let marks = std::iter::successors(Some(1024_i64), |mark| mark.checked_mul(4));
        marks.take_while(|mark| *mark <= self.last_seq).any(|mark| mark > before.last_seq)
    }

    /// Whether the scope never had more memories than this.
    pub(super) fn is_within(&self, count: u32) -> bool {
        self.last_seq <= i64::from(count)
    }

    pub(super) fn add(&mut self, document: &Document) {
        self.count(document, 1);
    }

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
