//! Searching: reads what the ranking needs, in two statements where possible, and the texts of the best only.

use std::collections::{BTreeSet, HashMap};

use crate::areas::Memories;
use crate::db::{Conn, args};
use crate::error::{Error, ErrorKind, Result};
use crate::memories::index::PackedPostings;
use crate::memories::lookup::Lookup;
use crate::memories::rank::{self, Base, Candidate, ParsedQuestion, Question, ScoredMemory, Statistics};
use crate::memories::rows;
use crate::memories::{FoundMemory, MemoryList, MemorySearch, MemoryStatus, check_time};
use crate::store::{Scope, check_name, check_text};

const QUERY_LIMIT: usize = 16 * 1024;
const MOST: u32 = 200;
/// The best by their own words are weighed together with their neighbours. A larger pool finds no more
/// (docs/memory-search.md), and reading it is the largest part of a search.
const POOL: usize = 100;
/// The largest pool for a filter that few of the best pass.
const MOST_WEIGHED: usize = 10_000;
/// A filter that no more memories pass is applied before ranking, a weaker one after it.
const FEW: u32 = 5000;
/// Unpacking more would block other tasks of the thread.
const LARGE_BYTES: usize = 64 * 1024;

pub(super) const FEW_SINCE: &str = "SELECT seq FROM agent_long_term_memory WHERE user_id = $1 AND agent = $2 \
     AND status = 'active' AND occurred_at >= $3 LIMIT +$4";
pub(super) const FEW_OF_KIND: &str = "SELECT seq FROM agent_long_term_memory WHERE user_id = $1 AND agent = $2 \
     AND status = 'active' AND occurred_at >= $3 AND kind = $5 LIMIT +$4";

impl Memories<'_> {
    /// Best first; with an empty query the newest.
    pub async fn search(self, scope: &Scope, search: &MemorySearch) -> Result<Vec<FoundMemory>> {
        check(search)?;
        if search.query.trim().is_empty() {
            return self.newest(scope, search).await;
        }
        let parsed = ParsedQuestion::read(&search.query);
        if parsed.is_empty() || search.limit == 0 {
            return Ok(Vec::new());
        }
        let mut conn = self.store.reader().await?;
        let Some(mut lookup) = Lookup::read(&mut conn, scope, &parsed, search).await? else {
            return Ok(Vec::new());
        };
        let mut question = parsed.resolve(&lookup.actors, u64::try_from(lookup.ledger.actors).unwrap_or(0));
        if !lookup.has_any(&question.terms) {
            question = parsed.with_names(question);
        }
        let base = unpack(lookup.ledger.statistics(), lookup.take(&question.terms)).await?;
        let ranked = best(&mut conn, scope, search, &question, &base, &lookup).await?;
        fetch(&mut conn, scope, ranked).await
    }

    async fn newest(self, scope: &Scope, search: &MemorySearch) -> Result<Vec<FoundMemory>> {
        let list = MemoryList {
            status: MemoryStatus::Active,
            kind: search.kind.clone(),
            since: search.since,
            after: None,
            limit: search.limit,
        };
        let memories = self.list(scope, &list).await?;
        Ok(memories.into_iter().map(|memory| FoundMemory { memory, score: 0.0 }).collect())
    }
}

fn check(search: &MemorySearch) -> Result<()> {
    check_text("query", &search.query, QUERY_LIMIT)?;
    search.kind.as_deref().map_or(Ok(()), |kind| check_name("kind", kind))?;
    search.since.map_or(Ok(()), |since| check_time("since", since))?;
    if search.limit > MOST {
        return Err(Error::invalid(format!(
            "the limit is `{}`; at most {MOST} memories are returned",
            search.limit
        )));
    }
    Ok(())
}

async fn unpack(statistics: Statistics, packed: PackedPostings) -> Result<Base> {
    if packed.len() < LARGE_BYTES {
        return Ok(Base::new(statistics, packed.unpack()?));
    }
    let work = move || Ok(Base::new(statistics, packed.unpack()?));
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Error::new(ErrorKind::Other, "the search was interrupted").because(error))?
}

async fn best(
    conn: &mut Conn,
    scope: &Scope,
    search: &MemorySearch,
    question: &Question,
    base: &Base,
    lookup: &Lookup,
) -> Result<Vec<ScoredMemory>> {
    let few = few(conn, scope, search, lookup).await?;
    let limit = search.limit as usize;
    let mut size = POOL.max(2 * limit);
    loop {
        let pool = base.best(size);
        let chosen = few.iter().flat_map(|few| base.best_of(few, size));
        let seqs: BTreeSet<u32> = pool.iter().copied().chain(chosen).map(|ranked| ranked.seq).collect();
        let found = lookup.near(conn, scope, search, &seqs).await?;
        let passing: BTreeSet<u32> =
            found.iter().filter(|found| found.passes).map(|found| found.candidate.seq).collect();
        let all: Vec<Candidate> = found.into_iter().map(|found| found.candidate).collect();
        let mut ranked = rank::order(question, base, &all);
        ranked.retain(|ranked| ranked.score > 0.0 && passing.contains(&ranked.seq));
        if ranked.len() >= limit || few.is_some() || pool.len() < size || size > MOST_WEIGHED {
            ranked.truncate(limit);
            return Ok(ranked);
        }
        size *= 8;
    }
}

/// The memories that pass the filter, if there is a filter and they are few.
async fn few(
    conn: &mut Conn,
    scope: &Scope,
    search: &MemorySearch,
    lookup: &Lookup,
) -> Result<Option<Vec<u32>>> {
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
    if let Some(passing) = lookup.passing() {
        return Ok(Some(passing));
    }
    let rows: Vec<(i64,)> = conn.fetch_all(sql, values).await?;
    if rows.len() > FEW as usize {
        return Ok(None);
    }
    rows.into_iter().map(|(seq,)| rows::number(seq)).collect::<Result<_>>().map(Some)
}

/// Without those that were forgotten in the meantime.
async fn fetch(conn: &mut Conn, scope: &Scope, ranked: Vec<ScoredMemory>) -> Result<Vec<FoundMemory>> {
    if ranked.is_empty() {
        return Ok(Vec::new());
    }
    let seqs: Vec<u32> = ranked.iter().map(|ranked| ranked.seq).collect();
    let kept = rows::by_seqs(conn, scope, &seqs).await?;
    let active = kept.into_iter().filter(|kept| kept.memory.status == MemoryStatus::Active);
    let mut memories: HashMap<u32, _> = active.map(|kept| (kept.seq, kept.memory)).collect();
    let found = |ranked: ScoredMemory| {
        memories.remove(&ranked.seq).map(|memory| FoundMemory { memory, score: ranked.score })
    };
    Ok(ranked.into_iter().filter_map(found).collect())
}
