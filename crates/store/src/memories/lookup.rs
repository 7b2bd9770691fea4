//! What a search reads first, with one statement: round trips to the database cost more than most of the work there.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Deserialize;

use crate::db::{Conn, Sql, args};
use crate::error::{Error, ErrorKind, Result};
use crate::memories::analyze::Term;
use crate::memories::index::Ledger;
use crate::memories::index::PackedPostings;
use crate::memories::rank::{Actor, Candidate, ParsedQuestion};
use crate::memories::rows;
use crate::memories::{MemorySearch, MemoryStatus};
use crate::store::Scope;

/// A smaller scope is read whole: selecting candidates costs another statement.
const SMALL: u32 = 256;

/// Candidates come in one row, as JSON: hundreds of rows would cost more than the whole ranking.
macro_rules! candidates {
    ($list:literal, $array:literal) => {
        concat!(
            "CAST(",
            $list,
            "(",
            $array,
            "(seq, session_ordinal, actor, asks, occurred_at, previous_seq, next_seq, status, kind)) AS TEXT)"
        )
    };
}

/// SQLite looks up a joined list one by one; for an `IN` it first copies the list into a tree.
pub(super) const THESE: Sql = Sql {
    sqlite: concat!(
        "SELECT ",
        candidates!("json_group_array", "json_array"),
        " FROM json_each($3) CROSS JOIN agent_long_term_memory WHERE user_id = $1 AND agent = $2 AND seq = value"
    ),
    pg: concat!(
        "SELECT ",
        candidates!("json_agg", "json_build_array"),
        " FROM agent_long_term_memory WHERE user_id = $1 AND agent = $2 AND seq = ANY($3)"
    ),
};

/// The ledger, the named actors, the postings, and all candidates of a small scope.
macro_rules! lookup {
    ($candidates:expr, $array:literal, $bytes:literal, $terms:literal, $names:literal) => {
        concat!(
            "SELECT CAST(0 AS BIGINT) AS part, CAST(0 AS BIGINT) AS number, CAST(0 AS BIGINT) AS block, CAST(",
            $array,
            "(memories, chunks, terms, last_seq, last_session, actors) AS TEXT) AS words, CAST(NULL AS ",
            $bytes,
            ") AS data FROM memory_scopes WHERE user_id = $1 AND agent = $2 \
             UNION ALL SELECT 1, name, 0, actor, NULL FROM memory_actors WHERE user_id = $1 AND agent = $2 AND name ",
            $names,
            " UNION ALL SELECT 2, term, block, NULL, data FROM memory_postings \
             WHERE user_id = $1 AND agent = $2 AND term ",
            $terms,
            " UNION ALL SELECT 3, 0, 0, ",
            $candidates,
            ", NULL FROM agent_long_term_memory WHERE user_id = $1 AND agent = $2 AND seq <= $5 \
             AND (SELECT last_seq FROM memory_scopes WHERE user_id = $1 AND agent = $2) <= $5"
        )
    };
}
pub(super) const LOOKUP: Sql = Sql {
    sqlite: lookup!(
        candidates!("json_group_array", "json_array"),
        "json_array",
        "BLOB",
        "IN (SELECT value FROM json_each($3))",
        "IN (SELECT value FROM json_each($4))"
    ),
    pg: lookup!(
        candidates!("json_agg", "json_build_array"),
        "json_build_array",
        "BYTEA",
        "= ANY($3)",
        "= ANY($4)"
    ),
};

pub(super) struct Lookup {
    pub(super) ledger: Ledger,
    /// Names of the parsed that are actors.
    pub(super) actors: Vec<Actor>,
    postings: Vec<(i64, i64, Vec<u8>)>,
    /// Every memory, if they are few.
    all: Option<Vec<Found>>,
}

impl Lookup {
    /// `None` if the scope never had a memory.
    pub(super) async fn read(
        conn: &mut Conn,
        scope: &Scope,
        parsed: &ParsedQuestion,
        search: &MemorySearch,
    ) -> Result<Option<Self>> {
        type Part = (i64, i64, i64, Option<String>, Option<Vec<u8>>);
        let numbers = |terms: Vec<Term>| -> Vec<i64> { terms.iter().map(|term| term.0).collect() };
        let (terms, names) = (numbers(parsed.terms()), numbers(parsed.names()));
        let parts: Vec<Part> =
            conn.fetch_all(LOOKUP, args![scope.user(), scope.agent(), terms, names, SMALL]).await?;
        let (mut ledger, mut actors, mut postings, mut all) = (None, Vec::new(), Vec::new(), None);
        for (part, number, block, words, data) in parts {
            let words = words.unwrap_or_default();
            match part {
                0 => ledger = Some(Ledger::of(parse(&words)?)),
                1 => actors.push(Actor { name: Term(number), actor: words }),
                2 => postings.push((number, block, data.unwrap_or_default())),
                _ => all = Some(parse_found(&words, search)?),
            }
        }
        let Some(ledger) = ledger else { return Ok(None) };
        postings.sort_unstable_by_key(|(term, block, _)| (*term, *block));
        let all = all.filter(|_| ledger.is_within(SMALL));
        Ok(Some(Self { ledger, actors, postings, all }))
    }

    pub(super) fn has_any(&self, terms: &[Term]) -> bool {
        self.postings.iter().any(|(term, ..)| terms.contains(&Term(*term)))
    }

    /// Removes and returns the postings of these terms, in the order of their blocks.
    pub(super) fn take(&mut self, terms: &[Term]) -> PackedPostings {
        let all = std::mem::take(&mut self.postings).into_iter();
        let wanted = all.filter(|(term, ..)| terms.contains(&Term(*term)));
        PackedPostings::new(terms.to_vec(), wanted.map(|(term, _, data)| (term, data)).collect())
    }

    /// The memories that pass the filter, if all are known.
    pub(super) fn passing(&self) -> Option<Vec<u32>> {
        let passing = self.all.as_ref()?.iter().filter(|found| found.passes);
        Some(passing.map(|found| found.candidate.seq).collect())
    }

    pub(super) async fn near(
        &self,
        conn: &mut Conn,
        scope: &Scope,
        search: &MemorySearch,
        seqs: &BTreeSet<u32>,
    ) -> Result<Vec<Found>> {
        if let Some(all) = &self.all {
            let near = with_neighbours(all, seqs);
            return Ok(all.iter().filter(|found| near.contains(&found.candidate.seq)).cloned().collect());
        }
        // Neighbours in a session nearly always have neighbouring numbers: requesting those at once saves a
        // statement.
        let beside =
            seqs.iter().flat_map(|seq| [seq.saturating_sub(1), *seq, seq.saturating_add(1)]).collect();
        let mut found = these(conn, scope, search, &beside).await?;
        let near = with_neighbours(&found, seqs);
        let far: BTreeSet<u32> = near.difference(&beside).copied().collect();
        if !far.is_empty() {
            found.extend(these(conn, scope, search, &far).await?);
        }
        found.retain(|found| near.contains(&found.candidate.seq));
        Ok(found)
    }
}

async fn these(
    conn: &mut Conn,
    scope: &Scope,
    search: &MemorySearch,
    seqs: &BTreeSet<u32>,
) -> Result<Vec<Found>> {
    let seqs: Vec<i64> = seqs.iter().map(|seq| i64::from(*seq)).collect();
    let (rows,): (Option<String>,) = conn.fetch_one(THESE, args![scope.user(), scope.agent(), seqs]).await?;
    parse_found(rows.as_deref().unwrap_or_default(), search)
}

/// The numbers of the known ones of `seqs`, and of their neighbours in their sessions.
fn with_neighbours(known: &[Found], seqs: &BTreeSet<u32>) -> BTreeSet<u32> {
    let pool = known.iter().map(|found| &found.candidate).filter(|found| seqs.contains(&found.seq));
    pool.flat_map(|candidate| [Some(candidate.seq), candidate.previous, candidate.next]).flatten().collect()
}

#[derive(Clone)]
pub(super) struct Found {
    pub(super) candidate: Candidate,
    pub(super) passes: bool,
}

/// A candidate as the database writes it, without copies: there may be a thousand.
#[derive(Deserialize)]
struct Row<'a> {
    seq: i64,
    session: i64,
    #[serde(borrow)]
    actor: Option<Cow<'a, str>>,
    asks: i64,
    occurred_at: i64,
    previous: Option<i64>,
    next: Option<i64>,
    #[serde(borrow)]
    status: Cow<'a, str>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
}

impl Row<'_> {
    fn passes(&self, search: &MemorySearch) -> bool {
        self.status == MemoryStatus::Active.name()
            && search.kind.as_ref().is_none_or(|kind| *kind == self.kind)
            && search.since.is_none_or(|since| self.occurred_at >= since)
    }
}

fn parse_found(json: &str, search: &MemorySearch) -> Result<Vec<Found>> {
    let rows: Vec<Row<'_>> = if json.is_empty() { Vec::new() } else { parse(json)? };
    // Actors are few, and often the same as before.
    let mut actors: Vec<Arc<str>> = vec![Arc::default()];
    let mut actor = |name: &str| {
        let known = actors.iter().rev().take(8).find(|known| ***known == *name).cloned();
        known.unwrap_or_else(|| {
            let new: Arc<str> = name.into();
            actors.push(Arc::clone(&new));
            new
        })
    };
    rows.iter()
        .map(|row| {
            let candidate = Candidate {
                seq: rows::number(row.seq)?,
                session: rows::number(row.session)?,
                actor: actor(row.actor.as_deref().unwrap_or_default()),
                asks: row.asks & 1 != 0,
                ends_asking: row.asks & 2 != 0,
                occurred_at: row.occurred_at,
                previous: row.previous.map(rows::number).transpose()?,
                next: row.next.map(rows::number).transpose()?,
            };
            Ok(Found { candidate, passes: row.passes(search) })
        })
        .collect()
}

fn parse<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T> {
    serde_json::from_str(json)
        .map_err(|error| Error::new(ErrorKind::Other, "the memories cannot be ranked").because(error))
}
