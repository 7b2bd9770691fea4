//! The postings in their table. Whoever changes them holds the scope's [`Ledger`](super::ledger::Ledger).

use std::collections::{BTreeMap, HashMap};

use crate::db::{Conn, Sql, Value, args, dialect, listed};
use crate::error::{Error, ErrorKind, Result};
use crate::memories::analyze::{Document, Term};
use crate::memories::postings::{self, Block, Damaged, OPEN, Posting, Tail};
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

pub(super) struct Placed<'a> {
    pub(super) seq: u32,
    pub(super) session: u32,
    pub(super) document: &'a Document,
}

impl Placed<'_> {
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
pub(super) async fn append(conn: &mut Conn, scope: &Scope, memories: &[Placed<'_>]) -> Result<()> {
    let postings: Vec<_> = memories.iter().map(Placed::postings).collect();
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

/// Exchanges the words that a memory is found by; `before` or `after` is nothing when it was or will not be found.
pub(super) async fn exchange(
    conn: &mut Conn,
    scope: &Scope,
    before: Option<Placed<'_>>,
    after: Option<Placed<'_>>,
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

pub(super) struct Packed {
    terms: Vec<Term>,
    rows: Vec<(i64, Vec<u8>)>,
}

impl Packed {
    /// Blocks of these terms, each term's in their order.
    pub(super) fn new(terms: Vec<Term>, rows: Vec<(i64, Vec<u8>)>) -> Self {
        Self { terms, rows }
    }

    /// How many bytes there are to unpack.
    pub(super) fn len(&self) -> usize {
        self.rows.iter().map(|(_, data)| data.len()).sum()
    }

    /// The list of each term, in the order in which the terms were asked for.
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

pub(super) async fn clear(conn: &mut Conn, scope: &Scope) -> Result<()> {
    let sql = "DELETE FROM memory_postings WHERE user_id = $1 AND agent = $2";
    conn.execute(sql, args![scope.user(), scope.agent()]).await.map(drop)
}

async fn write(conn: &mut Conn, scope: &Scope, blocks: Vec<(Term, Block)>) -> Result<()> {
    let row = |(term, block): (Term, Block)| -> Vec<Value> {
        args![scope.user(), scope.agent(), term.0, block.key, block.data]
    };
    conn.insert_rows(INSERT, blocks.into_iter().map(row).collect(), REPLACE).await
}

fn damaged(term: i64, error: Damaged) -> Error {
    Error::new(ErrorKind::Corrupt, format!("the memory index cannot be read at term `{term}`"))
        .because(error)
        .hint("the memories themselves are intact: rebuild their index")
}

const _: () =
    assert!(OPEN == 9_223_372_036_854_775_807, "the statement that reads open blocks names their key");
