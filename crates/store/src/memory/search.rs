//! Searching: reads what the ranking needs in a handful of statements, and the texts of the winners only.

use std::collections::{BTreeSet, HashMap};

use crate::db::{Conn, Sql, args, listed};
use crate::error::{Error, ErrorKind, Result};
use crate::memory::analyze::Term;
use crate::memory::fields::{FoundMemory, MemoryList, MemorySearch, MemoryStatus, check_time};
use crate::memory::index::{self, Packed};
use crate::memory::ledger::Ledger;
use crate::memory::rank::{self, Actor, Base, Candidate, Draft, Question, Ranked, Statistics};
use crate::memory::rows;
use crate::store::{Scope, Store, check_name, check_text};

const QUERY_LIMIT: usize = 16 * 1024;
const MOST: u32 = 200;
/// The best by their own words; they are weighed together with their neighbours.
const POOL: usize = 150;
/// A filter that lets hardly any of the best pass is not followed further than this.
const MOST_WEIGHED: usize = 10_000;
/// A filter that leaves no more than these is applied before ranking, a weaker one after it.
const FEW: u32 = 5000;
/// Unpacking more than this would keep other tasks of the thread waiting.
const LARGE_BYTES: usize = 64 * 1024;

pub(super) const ACTORS: Sql =
    listed!("SELECT name, actor FROM memory_actors WHERE user_id = $1 AND agent = $2 AND name", "$3", "");
macro_rules! candidates {
    ($list:literal, $array:literal, $wanted:literal) => {
        concat!(
            "WITH pool AS (SELECT seq, previous_seq, next_seq FROM agent_long_term_memory \
             WHERE user_id = $1 AND agent = $2 AND seq ",
            $wanted,
            ") SELECT CAST(",
            $list,
            "(",
            $array,
            "(seq, session_ordinal, actor, asks, occurred_at, previous_seq, next_seq, status, kind)) AS TEXT) \
             FROM agent_long_term_memory WHERE user_id = $1 AND agent = $2 \
             AND seq IN (SELECT seq FROM pool UNION SELECT previous_seq FROM pool UNION SELECT next_seq FROM pool)"
        )
    };
}
/// All of them in one row, as JSON: some hundred rows on their own would cost more than the whole ranking.
pub(super) const CANDIDATES: Sql = Sql {
    lite: candidates!("json_group_array", "json_array", "IN (SELECT value FROM json_each($3))"),
    pg: candidates!("json_agg", "json_build_array", "= ANY($3)"),
};
pub(super) const FEW_SINCE: &str = "SELECT seq FROM agent_long_term_memory WHERE user_id = $1 AND agent = $2 \
     AND status = 'active' AND occurred_at >= $3 LIMIT $4";
pub(super) const FEW_OF_KIND: &str = "SELECT seq FROM agent_long_term_memory WHERE user_id = $1 AND agent = $2 \
     AND status = 'active' AND occurred_at >= $3 AND kind = $5 LIMIT $4";

impl Store {
    /// The memories that answer best, best first; with an empty query the newest.
    pub async fn search_memories(&self, scope: &Scope, search: &MemorySearch) -> Result<Vec<FoundMemory>> {
        check(search)?;
        if search.query.trim().is_empty() {
            return self.newest(scope, search).await;
        }
        let draft = Draft::read(&search.query);
        if draft.is_empty() || search.limit == 0 {
            return Ok(Vec::new());
        }
        let mut conn = self.db().reader().await?;
        let Some(ledger) = Ledger::read(&mut conn, scope).await? else { return Ok(Vec::new()) };
        let mut question = resolve(&mut conn, scope, &draft, &ledger).await?;
        let mut packed = index::read(&mut conn, scope, &question.terms).await?;
        if packed.len() == 0 {
            question = draft.with_names(question);
            packed = index::read(&mut conn, scope, &question.terms).await?;
        }
        let base = weigh(ledger.statistics(), packed).await?;
        let ranked = best(&mut conn, scope, search, &question, &base).await?;
        fetch(&mut conn, scope, ranked).await
    }

    async fn newest(&self, scope: &Scope, search: &MemorySearch) -> Result<Vec<FoundMemory>> {
        let list = MemoryList {
            status: MemoryStatus::Active,
            kind: search.kind.clone(),
            since: search.since,
            after: None,
            limit: search.limit,
        };
        let memories = self.list_memories(scope, &list).await?;
        Ok(memories.into_iter().map(|memory| FoundMemory { memory, score: 0.0 }).collect())
    }
}

fn check(search: &MemorySearch) -> Result<()> {
    check_text("query", &search.query, QUERY_LIMIT)?;
    search.kind.as_deref().map_or(Ok(()), |kind| check_name("kind", kind))?;
    search.since.map_or(Ok(()), |since| check_time("since", since))?;
    if search.limit > MOST {
        return Err(Error::invalid(format!(
            "the limit is `{}`; at most {MOST} memories are found",
            search.limit
        )));
    }
    Ok(())
}

async fn resolve(conn: &mut Conn, scope: &Scope, draft: &Draft, ledger: &Ledger) -> Result<Question> {
    let names: Vec<i64> = draft.names().iter().map(|name| name.0).collect();
    let rows: Vec<(i64, String)> = conn.all(ACTORS, args![scope.user(), scope.agent(), names]).await?;
    let known: Vec<Actor> = rows.into_iter().map(|(name, actor)| Actor { name: Term(name), actor }).collect();
    Ok(draft.resolve(&known, u64::try_from(ledger.actors).unwrap_or(0)))
}

async fn weigh(statistics: Statistics, packed: Packed) -> Result<Base> {
    if packed.len() < LARGE_BYTES {
        return Ok(Base::new(statistics, packed.unpack()?));
    }
    let work = move || Ok(Base::new(statistics, packed.unpack()?));
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Error::new(ErrorKind::Other, "the search was interrupted").because(error))?
}

/// The best memories that pass the filter, best first.
async fn best(
    conn: &mut Conn,
    scope: &Scope,
    search: &MemorySearch,
    question: &Question,
    base: &Base,
) -> Result<Vec<Ranked>> {
    let few = few(conn, scope, search).await?;
    let limit = search.limit as usize;
    let mut size = POOL.max(2 * limit);
    loop {
        let pool = base.best(size);
        let chosen = few.iter().flat_map(|few| base.best_of(few, size));
        let seqs: BTreeSet<u32> = pool.iter().copied().chain(chosen).map(|ranked| ranked.seq).collect();
        let found = candidates(conn, scope, &seqs).await?;
        let all: Vec<Candidate> = found.iter().map(|row| row.candidate.clone()).collect();
        let passing: BTreeSet<u32> =
            found.iter().filter(|row| row.passes(search)).map(|row| row.candidate.seq).collect();
        let mut ranked = rank::order(question, base, &all);
        ranked.retain(|ranked| ranked.score > 0.0 && passing.contains(&ranked.seq));
        if ranked.len() >= limit || few.is_some() || pool.len() < size || size > MOST_WEIGHED {
            ranked.truncate(limit);
            return Ok(ranked);
        }
        size *= 8;
    }
}

/// The memories that pass the filter, if there is one and they are few.
async fn few(conn: &mut Conn, scope: &Scope, search: &MemorySearch) -> Result<Option<Vec<u32>>> {
    let since = search.since.unwrap_or(i64::MIN);
    let mut values = args![scope.user(), scope.agent(), since, FEW + 1];
    let sql = match (&search.kind, search.since) {
        (None, None) => return Ok(None),
        (None, Some(_)) => FEW_SINCE,
        (Some(kind), _) => {
            values.push(kind.into());
            FEW_OF_KIND
        }
    };
    let rows: Vec<(i64,)> = conn.all(sql, values).await?;
    if rows.len() > FEW as usize {
        return Ok(None);
    }
    rows.into_iter().map(|(seq,)| rows::number(seq)).collect::<Result<_>>().map(Some)
}

type Row = (i64, i64, Option<String>, i64, i64, Option<i64>, Option<i64>, String, String);

/// A candidate, and what a filter looks at.
struct Found {
    candidate: Candidate,
    is_active: bool,
    kind: String,
}

impl Found {
    fn passes(&self, search: &MemorySearch) -> bool {
        self.is_active
            && search.kind.as_ref().is_none_or(|kind| *kind == self.kind)
            && search.since.is_none_or(|since| self.candidate.occurred_at >= since)
    }
}

/// These memories and their neighbours.
async fn candidates(conn: &mut Conn, scope: &Scope, seqs: &BTreeSet<u32>) -> Result<Vec<Found>> {
    let seqs: Vec<i64> = seqs.iter().map(|seq| i64::from(*seq)).collect();
    let (rows,): (Option<String>,) = conn.one(CANDIDATES, args![scope.user(), scope.agent(), seqs]).await?;
    let rows: Vec<Row> = serde_json::from_str(rows.as_deref().unwrap_or("[]"))
        .map_err(|error| Error::new(ErrorKind::Other, "the memories cannot be weighed").because(error))?;
    rows.into_iter()
        .map(|(seq, session, actor, asks, occurred_at, previous, next, status, kind)| {
            let candidate = Candidate {
                seq: rows::number(seq)?,
                session: rows::number(session)?,
                actor: actor.unwrap_or_default(),
                asks: asks & 1 != 0,
                ends_asking: asks & 2 != 0,
                occurred_at,
                previous: previous.map(rows::number).transpose()?,
                next: next.map(rows::number).transpose()?,
            };
            Ok(Found { candidate, is_active: status == MemoryStatus::Active.name(), kind })
        })
        .collect()
}

/// The memories themselves. One that was forgotten in the meantime is left out.
async fn fetch(conn: &mut Conn, scope: &Scope, ranked: Vec<Ranked>) -> Result<Vec<FoundMemory>> {
    if ranked.is_empty() {
        return Ok(Vec::new());
    }
    let seqs: Vec<u32> = ranked.iter().map(|ranked| ranked.seq).collect();
    let kept = rows::by_seqs(conn, scope, &seqs).await?;
    let active = kept.into_iter().filter(|kept| kept.memory.status == MemoryStatus::Active);
    let mut memories: HashMap<u32, _> = active.map(|kept| (kept.seq, kept.memory)).collect();
    let found = |ranked: Ranked| {
        memories.remove(&ranked.seq).map(|memory| FoundMemory { memory, score: ranked.score })
    };
    Ok(ranked.into_iter().filter_map(found).collect())
}
